//! What is read of the target besides its answers: `target.memory` and `target.metrics`.

use std::path::PathBuf;

use super::address::Address;
use super::{MemoryFrom, MemorySource, Metric, Metrics, Page};
use crate::units::{Bytes, MapReader, Read, Reader, Series};

/// The ways to read memory.
const SOURCES: [&str; 3] = ["cgroup", "metric", "pid"];

impl Read for MemorySource {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (pid, cgroup, metric) = (map.reader("pid"), map.reader("cgroup"), map.reader("metric"));
        let ceiling = map.reader("ceiling").map_or(Some(None), |ceiling| Bytes::read(&ceiling).map(Some));
        let from = match (pid, cgroup, metric) {
            (None, None, None) => Some(MemoryFrom::Own),
            (Some(pid), None, None) => read_pid(&pid).map(MemoryFrom::Pid),
            (None, Some(cgroup), None) => read_cgroup(&cgroup).map(MemoryFrom::Cgroup),
            (None, None, Some(metric)) => Metric::read(&metric).map(MemoryFrom::Metric),
            _ => {
                map.here().fault(format!("memory is read in one way: name one of {}", SOURCES.join(", ")));
                None
            }
        };
        let (from, ceiling) = (from?, ceiling?);
        if from == MemoryFrom::Own && ceiling.is_none() {
            map.here().fault(format!(
                "where is its memory read? name one of {}, or a `ceiling`",
                SOURCES.join(", ")
            ));
            return None;
        }
        Some(Self { from, ceiling })
    }
}

fn read_pid(reader: &Reader<'_>) -> Option<u32> {
    let pid = u32::read(reader)?;
    if pid == 0 {
        reader.fault("`pid` is zero: name the target's process");
        return None;
    }
    Some(pid)
}

/// The folder of a control group, from `/`.
fn read_cgroup(reader: &Reader<'_>) -> Option<PathBuf> {
    reader.parse("a control group", |text| {
        let path = PathBuf::from(text);
        if path.is_absolute() && !text.contains('\0') {
            Ok(path)
        } else {
            Err(format!("`{text}` is no folder of a control group (write /sys/fs/cgroup/gateway.slice)"))
        }
    })
}

impl Read for Metric {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (page, series) = (need_page(&mut map), need_series(&mut map, "name"));
        Some(Self { page: page?, series: series? })
    }
}

impl Read for Metrics {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let page = need_page(&mut map);
        let queue_depth = series(&mut map, "queue_depth");
        let memory = series(&mut map, "memory");
        let (queue_depth, memory) = (queue_depth?, memory?);
        if queue_depth.is_none() && memory.is_none() {
            map.here().fault("nothing is read: name a metric under `queue_depth` or `memory`");
            return None;
        }
        Some(Self { page: page?, queue_depth, memory })
    }
}

fn need_page(map: &mut MapReader<'_>) -> Option<Page> {
    let Some(reader) = map.reader("url") else {
        map.here().fault("`url` is missing: where are the metrics? a URL, or a path of the target");
        return None;
    };
    reader.parse("a URL or a path", |text| {
        let path = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
        if path {
            return Ok(Page::Path(text.to_owned()));
        }
        let address = Address::parse_or_free(text)?;
        Ok(Page::Url(format!("{}{}", address.origin(), address.path)))
    })
}

fn series(map: &mut MapReader<'_>, key: &'static str) -> Option<Option<Series>> {
    map.reader(key).map_or(Some(None), |reader| reader.parse("a metric", Series::parse).map(Some))
}

fn need_series(map: &mut MapReader<'_>, key: &'static str) -> Option<Series> {
    let series = series(map, key)?;
    if series.is_none() {
        map.here().fault(format!("`{key}` is missing: which metric is it?"));
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Target, parse};

    fn read(set: &[&str]) -> Result<Target, String> {
        let set: Vec<_> =
            ["target.url=http://127.0.0.1:9"].iter().chain(set).map(|&set| set.to_owned()).collect();
        match parse(include_str!("../../plans/smoke.yaml"), &set, &|_| None) {
            Ok(loaded) => Ok(loaded.plan.target),
            Err(faults) => Err(faults.into_iter().map(|f| format!("{}: {}\n", f.path, f.message)).collect()),
        }
    }

    #[test]
    fn memory_is_read_in_one_of_three_ways_or_only_held_to_a_ceiling() {
        let from = |set: &str| read(&[set]).unwrap().memory.unwrap().from;
        assert_eq!(from("target.memory={pid: 4711}"), MemoryFrom::Pid(4711));
        assert_eq!(
            from("target.memory={cgroup: /sys/fs/cgroup/gw}"),
            MemoryFrom::Cgroup("/sys/fs/cgroup/gw".into())
        );
        let own = ["target.memory={ceiling: 1MiB}".to_owned()];
        let smoke = parse(include_str!("../../plans/smoke.yaml"), &own, &|_| None).unwrap().plan;
        assert_eq!(smoke.target.memory.unwrap().from, MemoryFrom::Own);
        let metric = from("target.memory={metric: {url: /metrics, name: 'mem{a=\"b\"}'}, ceiling: 1MiB}");
        let MemoryFrom::Metric(metric) = metric else { panic!("{metric:?}") };
        assert_eq!(
            (metric.page, metric.series.to_string()),
            (Page::Path("/metrics".into()), "mem{a=\"b\"}".into())
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_the_way_out() {
        for (set, part) in [
            ("target.memory={ceiling: 1MiB}", "a ceiling alone is for a target that tenfold starts"),
            ("target.memory={}", "name one of cgroup, metric, pid, or a `ceiling`"),
            ("target.memory={pid: 1, cgroup: /x}", "one way: name one of"),
            ("target.memory={pid: 0}", "`pid` is zero"),
            ("target.memory={cgroup: x}", "no folder of a control group"),
            ("target.memory={metric: {url: /m}}", "`name` is missing"),
            ("target.memory={pid: 1, rss: x}", "unknown key `rss` (known: ceiling, cgroup, metric, pid)"),
            ("target.metrics={queue_depth: a}", "`url` is missing"),
            ("target.metrics={url: /metrics}", "nothing is read"),
            ("target.metrics={url: /metrics, queue_depth: a b}", "`a b` names no metric"),
            (
                "target.metrics={url: 'http://a.example:0/', memory: a}",
                "port 0 is a free port of this machine",
            ),
        ] {
            let said = read(&[set]).unwrap_err();
            assert!(said.contains(part), "{set}: {said}");
        }
    }

    #[test]
    fn metrics_are_read_from_a_page_of_the_target_or_of_another_address() {
        let metrics = |url: &str| {
            read(&[&format!("target.metrics={{url: '{url}', queue_depth: depth}}")]).unwrap().metrics.unwrap()
        };
        assert_eq!(metrics("/metrics").page, Page::Path("/metrics".into()));
        assert_eq!(
            metrics("http://127.0.0.1:9090/metrics").page,
            Page::Url("http://127.0.0.1:9090/metrics".into())
        );
    }
}
