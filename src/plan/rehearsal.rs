//! How the event is shrunk: the keys of `rehearsal`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Rehearsal;
use crate::units::{Ratio, Read, Reader, nearest};
use crate::workload::{Load, Probes};

/// Reads `rehearsal`; `load` has the phases it may name. Without a scale and lengths nothing is shrunk.
pub(super) fn read(reader: &Reader<'_>, load: Option<&Load>) -> Option<(Option<Rehearsal>, Probes)> {
    let mut map = reader.map()?;
    let scale = map.or("scale", Ratio::ONE);
    let phases = match map.reader("phases") {
        None => Some(BTreeMap::new()),
        Some(phases) => read_phases(&phases, load),
    };
    let probes = map.or("probes", Probes::default());
    let (scale, phases) = (scale?, phases?);
    let shrinks = scale != Ratio::ONE || !phases.is_empty();
    Some((shrinks.then_some(Rehearsal { scale, phases }), probes?))
}

fn read_phases(reader: &Reader<'_>, load: Option<&Load>) -> Option<BTreeMap<String, Duration>> {
    let names: Option<Vec<&str>> =
        load.map(|load| load.phases.iter().map(|phase| phase.name.as_str()).collect());
    let mut phases = BTreeMap::new();
    for (name, entry) in reader.map()?.rest() {
        if let Some(names) = names.as_ref().filter(|names| !names.contains(&name.as_str())) {
            let guess = nearest(&name, names).map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
            entry.fault(format!("no phase is named `{name}` ({guess}known: {})", names.join(", ")));
        } else if let Some(lasts) = Duration::read(&entry) {
            if lasts.is_zero() || lasts > Duration::from_secs(30 * 86_400) {
                entry.fault("a phase lasts more than nothing and at most 30 days (720h)");
            }
            phases.insert(name, lasts);
        }
    }
    Some(phases)
}
