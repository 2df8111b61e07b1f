use super::environment::{self, Lookup};
use super::{
    AbortRule, Expect, Files, Plan, Source, Validity, Variant, across, checks, diff, levers, overrides,
    rehearsal, target, traced, variants, yaml,
};
use crate::provider;
use crate::units::{Fault, Faults, MapReader, Ratio, Read, Reader};
use crate::workload::{Load, Mix, Probes};

/// `max_outstanding` where a plan names none.
pub const DEFAULT_OUTSTANDING: u32 = 20_000;

/// The largest `max_outstanding`: more connections than any machine has ports for.
const MOST_OUTSTANDING: u32 = 1_000_000;

/// A plan that was read, and what is to be said about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The plan: the whole event, not yet shrunk.
    pub plan: Plan,
    /// The plan as it was written, for reports.
    pub source: Source,
    /// What is allowed but probably not meant.
    pub warnings: Vec<Fault>,
}

/// Reads a plan: its text, the overrides as `path=value`, and a lookup of environment variables.
///
/// Overrides come before variables, and both before the rehearsal's scaling. All faults are collected; they come in
/// the order of the file, those of overrides last. None of them shows a value that came from the environment.
pub fn parse(text: &str, overrides: &[String], env: Lookup<'_>) -> Result<Loaded, Vec<Fault>> {
    parse_variant(text, None, overrides, env)
}

/// Like [`parse`], with the changes of a variant before those of the overrides.
pub fn parse_variant(
    text: &str,
    variant: Option<&Variant>,
    overrides: &[String],
    env: Lookup<'_>,
) -> Result<Loaded, Vec<Fault>> {
    parse_with(text, variant, overrides, env, &traced::no_files)
}

/// Like [`parse_variant`], with a way to open the files a plan names. That of a trace is read once, to its end, and
/// checked row by row.
pub fn parse_with(
    text: &str,
    variant: Option<&Variant>,
    overrides: &[String],
    env: Lookup<'_>,
    files: Files<'_>,
) -> Result<Loaded, Vec<Fault>> {
    let mut tree = yaml::read(text).map_err(|fault| vec![fault])?;
    let faults = Faults::default();
    if let Some(variant) = variant {
        variant.apply(&mut tree, &faults);
    }
    overrides::apply(&mut tree, overrides, &faults);
    let unset = Faults::default();
    let (node, secrets) = environment::substitute(&tree, env, &unset);
    let warnings = Faults::default();
    let follow: Follow<'_> = &|load, requests| traced::follow(load, requests, files, &faults, &warnings);
    let plan = read(&Reader::root(&node, &faults), follow, files);
    if let Some(plan) = &plan {
        across::check(plan, &node, &faults, &warnings);
    }
    let hide = |faults: Vec<Fault>| faults.into_iter().map(|fault| secrets.hide(fault)).collect();
    match plan {
        Some(plan) if faults.is_empty() && unset.is_empty() => {
            Ok(Loaded { plan, source: Source { tree }, warnings: hide(warnings.into_sorted()) })
        }
        _ => Err(hide(merged(unset, faults))),
    }
}

/// Both lists as one; what else is wrong with a value whose variable is unset is left out.
fn merged(unset: Faults, others: Faults) -> Vec<Fault> {
    let unset = unset.into_sorted();
    let all = Faults::default();
    let others = others.into_sorted().into_iter().filter(|fault| unset.iter().all(|u| u.path != fault.path));
    for Fault { place, path, message } in unset.iter().cloned().chain(others) {
        all.add(place, path, message);
    }
    all.into_sorted()
}

/// Makes a load and its classes follow the trace they name, if they do.
type Follow<'a> = &'a dyn Fn(&mut Load, Option<&mut Mix>) -> Option<()>;

/// The plan, or as much of one as the checks across its parts need; whether it is one, the list of faults tells.
fn read(reader: &Reader<'_>, follow: Follow<'_>, files: Files<'_>) -> Option<Plan> {
    let mut map = reader.map()?;
    read_format(&mut map);
    let name = read_name(&mut map);
    let about = map.or("about", String::new());
    let load: Option<Load> = map.need("load");
    let mut requests: Option<Mix> = map.need("requests");
    let load = load.and_then(|mut load| follow(&mut load, requests.as_mut()).map(|()| load));
    let provider: Option<provider::Config> = map.need("provider");
    let target = match map.reader("target") {
        Some(target) => target::read(&target, provider.as_ref(), files),
        None => {
            map.here().fault("`target` is missing");
            None
        }
    };
    let rehearsal = match map.reader("rehearsal") {
        Some(reader) => rehearsal::read(&reader, load.as_ref()),
        None => Some((None, Probes::default())),
    };
    let expect = map.or("expect", Expect::default());
    let validity = map.or("validity", Validity::default());
    let abort_when: Option<Vec<AbortRule>> = map.or("abort_when", Vec::new());
    let max_outstanding = read_outstanding(&mut map);
    let checks = match map.reader("checks") {
        Some(reader) => checks::read(&reader),
        None => Some(Default::default()),
    };
    let variants = match map.reader("variants") {
        Some(reader) => variants::read(&reader),
        None => Some(Vec::new()),
    };
    let levers = match map.reader("levers") {
        Some(reader) => levers::read(&reader, requests.as_ref(), provider.as_ref()),
        None => Some(Vec::new()),
    };
    let diff = match map.reader("diff") {
        Some(reader) => diff::read(&reader),
        None => Some(Default::default()),
    };
    // what is small and wrong is reported by now; the rest is still checked against itself, so that all faults show
    let (rehearsal, probes) = rehearsal.unwrap_or_default();
    Some(Plan {
        name: name.unwrap_or_default(),
        about: about.unwrap_or_default(),
        load: load?,
        requests: requests?,
        provider: provider?,
        target: target?,
        rehearsal,
        scale: Ratio::ONE,
        probes,
        expect: expect.unwrap_or_default(),
        validity: validity.unwrap_or_default(),
        abort_when: abort_when.unwrap_or_default(),
        max_outstanding: max_outstanding.unwrap_or(MOST_OUTSTANDING),
        checks: checks.unwrap_or_default(),
        variants: variants.unwrap_or_default(),
        levers: levers.unwrap_or_default(),
        diff: diff.unwrap_or_default(),
    })
}

/// The version of the plan format; only 1 so far.
fn read_format(map: &mut MapReader<'_>) {
    match map.reader("tenfold") {
        None => map.here().fault("`tenfold: 1`, the version of the plan format, is missing"),
        Some(format) => {
            format.parse("the version of the plan format", |text| match text {
                "1" => Ok(()),
                other => Err(format!("this tenfold reads plan format 1, not `{other}`")),
            });
        }
    }
}

/// The plan's name; a folder is named after it.
fn read_name(map: &mut MapReader<'_>) -> Option<String> {
    let Some(reader) = map.reader("name") else {
        map.here().fault("`name` is missing");
        return None;
    };
    reader.parse("a name", |text| {
        let tidy = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !text.is_empty() && text.len() <= 100 && !text.starts_with(['.', '-']) && text.chars().all(tidy) {
            Ok(text.to_owned())
        } else {
            Err(format!("`{text}` names no folder: use up to 100 of a-z, 0-9, `-`, `_` and `.`, a letter or digit first"))
        }
    })
}

/// The most requests open at once.
fn read_outstanding(map: &mut MapReader<'_>) -> Option<u32> {
    let Some(reader) = map.reader("max_outstanding") else { return Some(DEFAULT_OUTSTANDING) };
    let count = u32::read(&reader)?;
    if count == 0 || count > MOST_OUTSTANDING {
        reader.fault(format!("`max_outstanding` is 1 to {MOST_OUTSTANDING}"));
        return None;
    }
    Some(count)
}

#[cfg(test)]
mod tests;
