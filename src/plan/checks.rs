//! What a plan may say about checks: the ids it can name, and the limits it can change.

use std::collections::BTreeMap;

use super::{CheckOverride, Limit};
use crate::units::{Bytes, MapReader, Read, Reader, Share, Tokens, nearest, parse_duration};

/// A check a plan can name.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// Its id, stable for good.
    pub id: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
}

/// Every check a plan can name, sorted by id.
pub const CHECKS: &[Known] = &[
    known("accounting.complete", "every request is accounted for and every hold released"),
    known("backlog.drain", "the backlog is gone in time after the event"),
    known("deadline.propagated", "the provider is told what is left of the caller's time"),
    known("fairness.tokens", "each tenant is served near its fair share of tokens"),
    known("goodput.floor", "goodput stays near capacity in the event's steady part"),
    known("limits.separate", "each refusal has its own cause: a tenant's limit, or want of room"),
    known("memory.ceiling", "the target's memory stays under its forecast ceiling"),
    known("memory.plateau", "memory stands still while the queue stands at its bound"),
    known("quiet.no_false_shed", "nobody is refused before the event, nor after the backlog is gone"),
    known("quota.respected", "the provider hardly ever refuses what the gateway forwards"),
    known("recovery.complete", "after the event everyone is served in time again"),
    known("retries.bounded", "repeated calls stay within what is declared"),
    known("retry_after.calibrated", "announced waits end neither too early nor far too late"),
    known("retry_after.follows_state", "announced waits go with the state of the queue"),
    known("retry_after.honoured", "callers who wait exactly as told are served"),
    known("retry_after.no_echo", "callers who come back as told do not come as a second storm"),
    known("retry_after.parseable", "Retry-After is whole seconds or a date"),
    known("retry_after.present", "every refusal says when to come back"),
    known("retry_after.usable", "waits that no client keeps say not to try again"),
    known("shedding.boundary", "nobody is shed while there is room, nobody let in beyond the bound"),
    known("shedding.fast", "refusals are quick"),
    known("shedding.free", "refusals cost the provider nothing"),
    known("shedding.onset", "shedding begins where arithmetic says it must"),
    known("shedding.shape", "refusals have the designed status, headers and body"),
    known("target.alive", "the target answers to the end"),
    known("tiers.order", "nobody is turned away while somebody less important could give way"),
    known("waste.none", "hardly anything is spent on callers who have left"),
];

const fn known(id: &'static str, about: &'static str) -> Known {
    Known { id, about }
}

/// Reads the map `checks`: id to override.
pub(super) fn read(reader: &Reader<'_>) -> Option<BTreeMap<String, CheckOverride>> {
    let ids: Vec<&'static str> = CHECKS.iter().map(|check| check.id).collect();
    let entries = reader.map()?.rest();
    let mut out = BTreeMap::new();
    for (id, entry) in entries {
        if ids.contains(&id.as_str()) {
            out.extend(CheckOverride::read(&entry).map(|change| (id, change)));
        } else {
            let guess = nearest(&id, &ids).map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
            entry.fault(format!("unknown check `{id}` ({guess}known: {})", ids.join(", ")));
        }
    }
    Some(out)
}

impl Read for CheckOverride {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map: MapReader<'_> = reader.map()?;
        let limit = map.get("limit");
        let allow_no_data = map.or("allow_no_data", false);
        let off = map.or("off", false);
        Some(Self { limit, allow_no_data: allow_no_data?, off: off? })
    }
}

impl Read for Limit {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        reader.parse("a limit", limit)
    }
}

/// Reads `20ms`, `64MiB`, `90%`, `0.9` or `3`.
fn limit(text: &str) -> Result<Limit, String> {
    if let Ok(count) = Tokens::parse(text) {
        return Ok(Limit::Count(count.get()));
    }
    let part = Share::parse(text).map(Limit::Part);
    let size = || Bytes::parse(text).map(Limit::Size);
    let time = || parse_duration(text).map(Limit::Time);
    part.or_else(|_| size())
        .or_else(|_| time())
        .map_err(|_| format!("`{text}` is no limit (write 20ms, 90%, 64MiB or 3)"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::yaml;
    use crate::units::Faults;
    use std::time::Duration;

    #[test]
    fn the_ids_are_sorted() {
        assert!(CHECKS.windows(2).all(|pair| pair[0].id < pair[1].id));
    }

    #[test]
    fn limits_take_the_form_of_their_unit() {
        assert_eq!(limit("20ms"), Ok(Limit::Time(Duration::from_millis(20))));
        assert_eq!(limit("64MiB"), Ok(Limit::Size(Bytes::new(64 << 20))));
        assert_eq!(limit("90%"), Ok(Limit::Part(Share::new(0.9).unwrap())));
        assert_eq!(limit("0.5"), Ok(Limit::Part(Share::new(0.5).unwrap())));
        assert_eq!(limit("3"), Ok(Limit::Count(3)));
        assert!(limit("fast").is_err() && limit("").is_err() && limit("-1s").is_err());
    }

    #[test]
    fn an_unknown_check_is_named_with_the_nearest() {
        let tree =
            yaml::read("shedding.fsat: { limit: 5ms }\nbacklog.drain: { limit: 90s, of: true }\n").unwrap();
        let faults = Faults::default();
        let read = read(&Reader::root(&tree, &faults)).unwrap();
        assert_eq!(read["backlog.drain"].limit, Some(Limit::Time(Duration::from_secs(90))));
        let said: Vec<_> = faults.into_sorted().into_iter().map(|f| f.message).collect();
        assert!(said[0].contains("did you mean `shedding.fast`?"), "{said:?}");
        assert!(said[1].contains("unknown key `of` (did you mean `off`?"), "{said:?}");
    }
}
