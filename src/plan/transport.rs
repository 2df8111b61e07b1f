//! How requests travel: the keys of `target.request` that concern connections.

use std::net::IpAddr;
use std::time::Duration;

use super::{Http, Lookup, SenderKind, Transport};
use crate::units::{MapReader, Reader, parse_duration, show_duration};

/// Streams a connection carries, where the plan does not say: what most servers allow.
const STREAMS: u32 = 100;
/// The most streams, and the most connections, a plan may ask for.
const MOST: u32 = 100_000;
/// The most addresses connections may come from.
const MOST_SOURCES: usize = 64;
/// The shortest and the longest time from one look-up of a name to the next.
const INTERVAL: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(86_400));

impl Transport {
    /// How many connections `open` requests at once take, and how many requests each carries.
    pub fn connections(&self, open: u64) -> (u64, u64) {
        match self.http {
            Http::One => (open, 1),
            Http::Two { connections, streams } => {
                let streams = u64::from(streams);
                (connections.map_or_else(|| open.div_ceil(streams), u64::from).max(1), streams)
            }
        }
    }

    /// Reads the keys of `map` that concern connections.
    pub(super) fn read(map: &mut MapReader<'_>) -> Option<Self> {
        let standard = Self::default();
        let two = match map.reader("http") {
            None => Some(false),
            Some(reader) => reader.parse("1.1 or 2", |text| match text {
                "1.1" | "1" => Ok(false),
                "2" => Ok(true),
                other => Err(format!("`{other}` is no version of HTTP that is spoken here: write 1.1 or 2")),
            }),
        };
        let sender = match map.reader("sender") {
            None => Some(standard.sender),
            Some(reader) => {
                let known: Vec<_> = SenderKind::ALL.iter().map(|(name, _)| *name).collect();
                reader.one_of("sender", &known).and_then(|(name, _)| {
                    SenderKind::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
                })
            }
        };
        let connections = map.reader("connections");
        let streams = map.reader("streams");
        let sources = map.reader("source_addresses");
        let lookup = map.reader("lookup").map_or(Some(standard.lookup), |reader| lookup(&reader));
        if let Some(idle) = connections.as_ref().or(streams.as_ref()).filter(|_| two == Some(false)) {
            idle.fault("this is for HTTP/2 only: write `http: 2` beside it");
            return None;
        }
        let connections = connections.map_or(Some(None), |reader| count(&reader).map(Some));
        let streams = streams.map_or(Some(STREAMS), |reader| count(&reader));
        let source_addresses = sources.map_or(Some(Vec::new()), |reader| addresses(&reader));
        let http = match two? {
            false => Http::One,
            true => Http::Two { connections: connections?, streams: streams? },
        };
        Some(Self { http, sender: sender?, source_addresses: source_addresses?, lookup: lookup? })
    }
}

/// `once`, or an interval.
fn lookup(reader: &Reader<'_>) -> Option<Lookup> {
    reader.parse("once or an interval", |text| {
        if text == "once" {
            return Ok(Lookup::Once);
        }
        let interval = parse_duration(text).map_err(|why| format!("{why}, nor is it `once`"))?;
        let (least, most) = INTERVAL;
        if (least..=most).contains(&interval) {
            return Ok(Lookup::Every(interval));
        }
        Err(format!("`{text}` is not between {} and {}", show_duration(least), show_duration(most)))
    })
}

/// A number from 1 to [`MOST`].
fn count(reader: &Reader<'_>) -> Option<u32> {
    reader.parse("a number", |text| {
        let number = text.replace('_', "").parse::<u32>().ok();
        let wrong = || format!("`{text}` is no number from 1 to {MOST}");
        number.filter(|number| (1..=MOST).contains(number)).ok_or_else(wrong)
    })
}

/// A list of addresses of this machine.
fn addresses(reader: &Reader<'_>) -> Option<Vec<IpAddr>> {
    let mut out: Vec<IpAddr> = Vec::new();
    let mut whole = true;
    for entry in reader.list()? {
        let address = entry.parse("an address", |text| {
            let address: IpAddr = text.parse().map_err(|_| format!("`{text}` is no IP address"))?;
            if address.is_unspecified() || address.is_multicast() {
                return Err(format!("`{text}` is no address a connection can come from"));
            }
            if out.first().is_some_and(|first| first.is_ipv4() != address.is_ipv4()) {
                return Err(format!("`{text}` is of another family than `{}`", out[0]));
            }
            if out.contains(&address) { Err(format!("`{text}` stands here twice")) } else { Ok(address) }
        });
        whole &= address.is_some();
        out.extend(address);
    }
    if out.len() > MOST_SOURCES {
        reader.fault(format!("{} addresses are more than {MOST_SOURCES}", out.len()));
        return None;
    }
    whole.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Faults;

    fn read(text: &str) -> Result<Transport, Vec<String>> {
        let (node, faults) = (crate::plan::yaml::read(text).unwrap(), Faults::default());
        let transport = Transport::read(&mut Reader::root(&node, &faults).map().unwrap());
        transport.ok_or_else(|| faults.into_sorted().iter().map(|fault| fault.message.clone()).collect())
    }

    /// As in grafana/k6#738: how long a look-up holds is the plan's to say.
    #[test]
    fn a_name_is_pinned_or_looked_up_again_at_an_interval() {
        let lookup = |text| read(text).map(|transport| transport.lookup);
        assert_eq!(lookup("{ sender: hyper }"), Ok(Lookup::Every(Duration::from_secs(30))));
        assert_eq!(lookup("{ lookup: once }"), Ok(Lookup::Once));
        assert_eq!(lookup("{ lookup: 5m }"), Ok(Lookup::Every(Duration::from_secs(300))));
        for wrong in
            ["{ lookup: 30 }", "{ lookup: never }", "{ lookup: 10ms }", "{ lookup: 48h }", "{ lookup: [] }"]
        {
            let faults = lookup(wrong).unwrap_err();
            assert_eq!(faults.len(), 1, "{wrong}: {faults:?}");
        }
        assert!(lookup("{ lookup: never }").unwrap_err()[0].contains("`once`"), "the way out");
    }
}
