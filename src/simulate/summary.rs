use crate::measure::Measures;
use crate::observe::Outcome;
use crate::units::Moment;

/// One number that a run comes to.
#[derive(Debug)]
pub struct Column {
    /// Its name in tables; it ends in its unit.
    pub name: &'static str,
    /// The number; `None` where the run has none.
    pub of: fn(&Measures) -> Option<f64>,
}

/// The numbers by which variants of a plan are compared, in the order of tables.
pub const COLUMNS: &[Column] = &[
    Column { name: "offered", of: |m| Some(m.offered as f64) },
    Column { name: "shed", of: |m| outcome(m, Outcome::Shed) },
    Column { name: "throttled", of: |m| outcome(m, Outcome::Throttled) },
    Column { name: "expired", of: |m| outcome(m, Outcome::Expired) },
    Column { name: "completed", of: |m| outcome(m, Outcome::Completed) },
    Column { name: "late", of: |m| outcome(m, Outcome::Late) },
    Column { name: "abandoned", of: |m| outcome(m, Outcome::Abandoned) },
    Column { name: "failed", of: |m| outcome(m, Outcome::Failed) },
    Column { name: "attempts", of: |m| Some(m.attempts.total() as f64) },
    Column { name: "goodput_per_s", of: goodput },
    Column { name: "first_shed_s", of: first_shed },
    Column { name: "first_shed_depth", of: |m| m.onset.map(|onset| onset.depth_met.requests as f64) },
    Column { name: "peak_depth", of: |m| Some(m.depths.peak.requests as f64) },
    Column { name: "drained_s", of: drained },
    Column { name: "wasted_tokens", of: |m| Some(m.upstream.wasted.get() as f64) },
];

/// What a run comes to, one number for each of [`COLUMNS`].
#[derive(Debug, Clone, PartialEq)]
pub struct Summary(pub Vec<Option<f64>>);

impl Summary {
    /// The summary of a run.
    pub fn of(measures: &Measures) -> Self {
        Self(COLUMNS.iter().map(|column| (column.of)(measures)).collect())
    }
}

fn outcome(measures: &Measures, outcome: Outcome) -> Option<f64> {
    Some(measures.arrivals.get(outcome) as f64)
}

/// Answers in time a second, of attempts due in the event; in the whole run on a quiet day.
fn goodput(measures: &Measures) -> Option<f64> {
    let (from, to) =
        measures.frame.event.map_or((Moment::ZERO, Moment::NEVER), |event| (event.start, event.end));
    let within = measures.windows.within(&measures.frame, from, to);
    let (good, count) = within.fold((0u64, 0u32), |(good, count), window| (good + window.goodput, count + 1));
    (count > 0).then(|| good as f64 / (measures.frame.width * count).as_secs_f64())
}

fn first_shed(measures: &Measures) -> Option<f64> {
    let (onset, event) = measures.onset.zip(measures.frame.event)?;
    Some(onset.sent.since(event.start).as_secs_f64())
}

fn drained(measures: &Measures) -> Option<f64> {
    let (drained, event) = measures.depths.drained.zip(measures.frame.event)?;
    Some(drained.since(event.end).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing;
    use crate::simulate::measure;

    #[test]
    fn the_smoke_plan_in_numbers() {
        let plan = testing::plan();
        let (measures, _) = measure(&plan, plan.policy().unwrap());
        let summary = Summary::of(&measures);
        let number = |name: &str| {
            let at = COLUMNS.iter().position(|column| column.name == name).unwrap();
            summary.0[at]
        };
        assert_eq!(number("offered"), Some(1_040.0));
        let sum: f64 = ["shed", "expired", "completed"].iter().filter_map(|name| number(name)).sum();
        assert!((sum - 1_040.0).abs() < 1e-9);
        // 20,000 tokens a second are 16.7 requests; the burst and what waits at the event's end come on top
        assert!((16.0..22.0).contains(&number("goodput_per_s").unwrap()), "{summary:?}");
        assert!((37.0..=39.0).contains(&number("first_shed_depth").unwrap()));
        assert!(number("drained_s").unwrap() < 10.0);
    }
}
