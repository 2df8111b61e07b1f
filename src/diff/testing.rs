//! Runs by hand, for the tests of this layer and of the report.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Checked, Run, Side};
use crate::check::{RunVerdict, Verdict};
use crate::measure::Hist;

/// A good run: goodput 3.47/s, first shed at 55 requests, and so on.
pub(crate) fn run(seed: u64) -> Run {
    let times = |micros: &[u64]| {
        let mut hist = Hist::default();
        (0..1_000).for_each(|i| hist.record(Duration::from_micros(micros[i % micros.len()])));
        hist
    };
    let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let check = |id: &str, unit: &str, measured| Checked {
        id: id.into(),
        verdict: Verdict::Pass,
        measured: Some(measured),
        unit: unit.into(),
        tolerated: false,
    };
    Run {
        name: format!("reports/{seed}/report.json"),
        plan: "flash-promotion".into(),
        seed,
        version: "0.1.0".into(),
        target: "the embedded gateway".into(),
        verdict: RunVerdict::Passed,
        keys: text(&[("load.phases.promotion.rate", "2,000/min"), ("checks.shedding.fast.limit", "10 ms")]),
        own: text(&[("target.kind", "embedded")]),
        tolerances: BTreeMap::new(),
        offered: 1_117,
        shed: 780,
        completed: 337,
        attempts: 1_182,
        goodput_per_s: 3.47,
        charged_tokens: 482_400,
        wasted_tokens: 0,
        onset: Some((55, 4.5)),
        drain_s: Some(40.0),
        memory_peak_bytes: Some(21_400_000),
        probes: (65, 65),
        told_median_s: Some(7),
        completed_us: times(&[2_900_000, 20_000_000, 22_000_000]),
        refusal_us: times(&[900, 1_000, 1_100]),
        first_token_us: Hist::default(),
        token_gap_us: Hist::default(),
        lag_us: times(&[300, 400]),
        goodput: None,
        checks: vec![check("shedding.fast", "ms", 1.1), check("goodput.floor", "share", 0.997)],
    }
}

/// A side.
pub(crate) fn side(label: &str, runs: Vec<Run>) -> Side {
    Side { label: label.into(), runs }
}

/// Five runs whose goodput is `goodput` give or take a little.
pub(crate) fn five(label: &str, goodput: f64) -> Side {
    let runs = (0..5u64).map(|i| Run { goodput_per_s: goodput + i as f64 * 0.004, ..run(i) });
    side(label, runs.collect())
}
