use serde::Serialize;

use super::{Run, Series};
use crate::measure::Hist;
use crate::plan::Tolerance;

/// Which way is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// The more, the better.
    More,
    /// The less, the better.
    Less,
    /// Neither: a change is told and nothing else.
    Neutral,
}

/// The unit of a measure's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Events a second.
    PerSecond,
    /// How many times as many.
    Ratio,
    /// Requests.
    Requests,
    /// Seconds.
    Seconds,
    /// A part of a whole, 0 to 1.
    Share,
    /// Tokens.
    Tokens,
}

/// A number every run has one of.
#[derive(Debug)]
pub struct Measure {
    /// Its name, as [`crate::plan::MEASURES`] has it.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: Unit,
    /// Which way is up.
    pub better: Better,
    /// How much it may change where the plan does not say.
    pub tolerance: Tolerance,
    pub(super) value: fn(&Run) -> Option<f64>,
    pub(super) quantile: Option<Quantile>,
    pub(super) series: Option<fn(&Run) -> Option<&Series>>,
}

/// A measure that is a quantile of a histogram of microseconds.
pub(super) type Quantile = (fn(&Run) -> &Hist, f64);

/// Every measure, in the order reports show them. A new one is an entry here and one of [`crate::plan::MEASURES`].
pub const ALL: &[Measure] = &[
    measure("goodput", Unit::PerSecond, Better::More, Tolerance::Share(0.01), |run| {
        (run.offered > 0).then_some(run.goodput_per_s)
    })
    .with_series(|run| run.goodput.as_ref()),
    // with the deadline as it is, a queue that sheds sooner refuses callers it could have served; one that sheds too
    // late shows in goodput
    measure("onset.depth", Unit::Requests, Better::More, Tolerance::Share(0.02), |run| {
        run.onset.map(|(depth, _)| depth as f64)
    }),
    latency("refusal.p99", Better::Less, Tolerance::Amount(0.000_5), |run| &run.refusal_us, 0.99),
    measure("retry_after.kept", Unit::Share, Better::More, Tolerance::Share(0.01), |run| {
        share(run.probes.1, run.probes.0)
    }),
    measure("memory.peak", Unit::Bytes, Better::Less, Tolerance::Share(0.02), |run| {
        run.memory_peak_bytes.map(|bytes| bytes as f64)
    }),
    measure("drain", Unit::Seconds, Better::Less, Tolerance::Share(0.02), |run| run.drain_s),
    measure("completed.share", Unit::Share, Better::More, Tolerance::Share(0.01), |run| {
        share(run.completed, run.offered)
    }),
    measure("shed.share", Unit::Share, Better::Less, Tolerance::Share(0.01), |run| {
        share(run.shed, run.offered)
    }),
    latency("completed.p50", Better::Less, Tolerance::Share(0.02), |run| &run.completed_us, 0.5),
    latency("completed.p99", Better::Less, Tolerance::Share(0.02), |run| &run.completed_us, 0.99),
    latency("first_token.p50", Better::Less, Tolerance::Share(0.02), |run| &run.first_token_us, 0.5),
    latency("first_token.p99", Better::Less, Tolerance::Share(0.02), |run| &run.first_token_us, 0.99),
    latency("token_gap.p99", Better::Less, Tolerance::Share(0.05), |run| &run.token_gap_us, 0.99),
    latency("refusal.p50", Better::Less, Tolerance::Amount(0.000_5), |run| &run.refusal_us, 0.5),
    measure("onset.after", Unit::Seconds, Better::Neutral, Tolerance::Share(0.02), |run| {
        run.onset.map(|(_, after)| after)
    }),
    measure("retry_after.median", Unit::Seconds, Better::Neutral, Tolerance::Share(0.02), |run| {
        run.told_median_s.map(|seconds| seconds as f64)
    }),
    measure("attempts.ratio", Unit::Ratio, Better::Less, Tolerance::Share(0.02), |run| {
        share(run.attempts, run.offered)
    }),
    measure("charged.tokens", Unit::Tokens, Better::Neutral, Tolerance::Share(0.02), |run| {
        Some(run.charged_tokens as f64)
    }),
    measure("wasted.tokens", Unit::Tokens, Better::Less, Tolerance::Share(0.02), |run| {
        Some(run.wasted_tokens as f64)
    }),
    latency("lag.p99", Better::Neutral, Tolerance::Amount(0.000_5), |run| &run.lag_us, 0.99),
];

const fn measure(
    name: &'static str,
    unit: Unit,
    better: Better,
    tolerance: Tolerance,
    value: fn(&Run) -> Option<f64>,
) -> Measure {
    Measure { name, unit, better, tolerance, value, quantile: None, series: None }
}

const fn latency(
    name: &'static str,
    better: Better,
    tolerance: Tolerance,
    hist: fn(&Run) -> &Hist,
    quantile: f64,
) -> Measure {
    let quantile = Some((hist, quantile));
    Measure { name, unit: Unit::Seconds, better, tolerance, value: |_| None, quantile, series: None }
}

impl Measure {
    const fn with_series(self, series: fn(&Run) -> Option<&Series>) -> Self {
        Self { series: Some(series), ..self }
    }

    /// The run's number; `None` if it has none. Never a NaN.
    pub fn of(&self, run: &Run) -> Option<f64> {
        let value = match self.quantile {
            Some((hist, quantile)) => hist(run).number_at(quantile).map(|micros| micros as f64 / 1e6),
            None => (self.value)(run),
        };
        value.filter(|value| value.is_finite())
    }
}

fn share(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::MEASURES;

    #[test]
    fn the_plan_knows_every_measure_and_no_other() {
        let mut names: Vec<_> = ALL.iter().map(|measure| measure.name).collect();
        names.sort_unstable();
        let known: Vec<_> = MEASURES.iter().map(|measure| measure.known.id).collect();
        assert_eq!(names, known);
    }

    #[test]
    fn no_number_comes_from_nothing() {
        assert_eq!(share(0, 0), None);
        assert_eq!(share(1, 4), Some(0.25));
    }
}
