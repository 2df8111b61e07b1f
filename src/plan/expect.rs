//! What answers should look like, and when a run is no good or not worth going on with: the keys of `expect`,
//! `validity` and `abort_when`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::target::header_name;
use super::{AbortRule, Expect, Refusal, Validity, Wanted};
use crate::units::{MapReader, Read, Reader, Share, parse_duration};

impl Default for Expect {
    fn default() -> Self {
        Self {
            refusal: Refusal {
                shed: vec![503],
                throttled: vec![429],
                fast_within: Duration::from_millis(100),
                instead: Vec::new(),
                marked_by: BTreeMap::new(),
                headers: BTreeMap::new(),
                body: BTreeMap::new(),
            },
        }
    }
}

impl Read for Expect {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let refusal = map.or("refusal", Self::default().refusal);
        Some(Self { refusal: refusal? })
    }
}

impl Read for Refusal {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let standard = Expect::default().refusal;
        let mut map = reader.map()?;
        let shed = statuses(&mut map, "shed", standard.shed);
        let throttled = statuses(&mut map, "throttled", standard.throttled);
        let fast_within = map.or("fast_within", standard.fast_within);
        let instead = statuses(&mut map, "instead", standard.instead);
        let marked_by = wanted(&mut map, "marked_by", header_name);
        let headers = wanted(&mut map, "headers", header_name);
        let body = wanted(&mut map, "body", pointer);
        let (shed, throttled, instead) = (shed?, throttled?, instead?);
        if let Some(both) = instead.iter().find(|status| shed.contains(status) || throttled.contains(status))
        {
            map.here()
                .fault(format!("status {both} cannot be designed and come `instead` of what is designed"));
            return None;
        }
        if let Some(both) = shed.iter().find(|status| throttled.contains(status)) {
            map.here().fault(format!(
                "status {both} cannot mean both scarcity (`shed`) and entitlement (`throttled`): give each its own"
            ));
            return None;
        }
        if fast_within? == Duration::ZERO {
            map.here().fault("`fast_within` is zero: no refusal is that fast");
            return None;
        }
        Some(Self {
            shed,
            throttled,
            fast_within: fast_within?,
            instead,
            marked_by: marked_by?,
            headers: headers?,
            body: body?,
        })
    }
}

impl Refusal {
    /// Whether an answer with this status refuses, in the designed form or not.
    pub fn means_refusal(&self, status: u16) -> bool {
        [&self.shed, &self.throttled, &self.instead].into_iter().any(|statuses| statuses.contains(&status))
    }
}

fn statuses(map: &mut MapReader<'_>, key: &'static str, standard: Vec<u16>) -> Option<Vec<u16>> {
    let Some(reader) = map.reader(key) else { return Some(standard) };
    let statuses: Vec<u16> = Vec::read(&reader)?;
    if let Some(odd) = statuses.iter().find(|status| !(400..=599).contains(*status)) {
        reader.fault(format!("status {odd} is no refusal: 400 to 599 are"));
        return None;
    }
    Some(statuses)
}

fn wanted(
    map: &mut MapReader<'_>,
    key: &'static str,
    name: fn(&str) -> Result<String, String>,
) -> Option<BTreeMap<String, Wanted>> {
    let Some(reader) = map.reader(key) else { return Some(BTreeMap::new()) };
    let entries = reader.map()?.rest();
    let count = entries.len();
    let read = entries.into_iter().filter_map(|(written, entry)| {
        let name = name(&written).map_err(|message| entry.fault(message)).ok();
        let wanted = Wanted::read(&entry);
        Some((name?, wanted?))
    });
    let out: BTreeMap<_, _> = read.collect();
    (out.len() == count).then_some(out)
}

/// A JSON pointer (RFC 6901).
fn pointer(text: &str) -> Result<String, String> {
    if text.is_empty() || text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is no JSON pointer (write /{text})"))
    }
}

impl Read for Wanted {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let text = reader.scalar("`present` or the exact text")?;
        Some(if text == "present" { Self::Present } else { Self::Exactly(text.to_owned()) })
    }
}

impl Default for Validity {
    fn default() -> Self {
        let part = |value| Share::new(value).expect("a constant between 0 and 1");
        Self { lag_p99: None, unsent: part(0.001), unjoined: part(0.01), achieved: part(0.995) }
    }
}

impl Read for Validity {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let standard = Self::default();
        let mut map = reader.map()?;
        let lag_p99 = match map.reader("lag_p99") {
            None => Some(None),
            Some(lag) => lag.parse("`auto` or a duration", lag_limit),
        };
        let unsent = map.or("unsent", standard.unsent);
        let unjoined = map.or("unjoined", standard.unjoined);
        let achieved = map.or("achieved", standard.achieved);
        Some(Self { lag_p99: lag_p99?, unsent: unsent?, unjoined: unjoined?, achieved: achieved? })
    }
}

fn lag_limit(text: &str) -> Result<Option<Duration>, String> {
    if text == "auto" {
        return Ok(None);
    }
    match parse_duration(text)? {
        Duration::ZERO => Err("a limit of zero is never kept (write auto or 5ms)".to_owned()),
        limit => Ok(Some(limit)),
    }
}

impl Read for AbortRule {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let goodput_below = map.need("goodput_below");
        let lasting = map.need("for");
        let after = map.or("after", Duration::ZERO);
        Some(Self { goodput_below: goodput_below?, lasting: lasting?, after: after? })
    }
}
