//! How often a comparison of five runs a side is right, in virtual time: a gateway slowed by 5 % against itself.

use std::time::Duration;

use tenfold::check::{Judgement, Scene};
use tenfold::diff::{Call, Comparison, Flip, Side, Verdict};
use tenfold::forecast::Forecast;
use tenfold::measure::Fold;
use tenfold::plan::{self, Plan};
use tenfold::report::{Inputs, Report, RunHeader};
use tenfold::simulate;

/// Runs a side.
const RUNS: u64 = 5;
/// The gateway at its full rate, and 5 % slower: by its budgets, which are what it drains by.
const FULL: &str = "target.embedded.budgets={tokens_per_minute: 1_200_000, burst: 900ms}";
const SLOW: &str = "target.embedded.budgets={tokens_per_minute: 1_140_000, burst: 900ms}";

/// Callers arrive by chance, so two runs differ though nothing has changed.
pub(crate) fn plan(budgets: &str, seed: u64) -> Plan {
    let overrides = ["load.arrivals=poisson".to_owned(), format!("load.seed={seed}"), budgets.to_owned()];
    plan::parse(include_str!("../../plans/smoke.yaml"), &overrides, &|_| None).expect("the plan is one").plan
}

/// The report of `plan` in virtual time.
pub(crate) fn simulated(plan: &Plan) -> Report {
    let policy = plan.policy().expect("an embedded gateway has a policy");
    let mut fold = Fold::in_virtual_time(plan);
    let ended = simulate::run(plan, policy, &mut |sighting| fold.see(sighting));
    let measures = fold.finish(ended.at);
    let forecast = Forecast::of(plan);
    let scene = Scene::simulated(plan, &forecast, &measures);
    let judgement = Judgement::of(&scene, false);
    let header = RunHeader {
        simulated: true,
        id: "simulated".into(),
        started: String::new(),
        took: Duration::ZERO,
        target: "the embedded gateway".into(),
        name: None,
        generator: None,
        ended_early: None,
        path: None,
    };
    Report::of(Inputs {
        header,
        plan,
        event: &forecast,
        rehearsal: &forecast,
        measures: &measures,
        judgement: &judgement,
        refusals: Vec::new(),
    })
}

/// A side of runs of the seeds from `first` on.
pub(crate) fn side(label: &str, budgets: &str, first: u64) -> Side {
    let run = |seed| simulated(&plan(budgets, seed)).to_run(label).expect("our own report is whole");
    Side { label: label.into(), runs: (first..first + RUNS).map(run).collect() }
}

/// What came of many comparisons.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Those in which the slowed gateway was called a regression, against runs of other seeds and of the same.
    pub(crate) found: [u32; 2],
    /// Those in which the gateway against itself was called changed, in either direction, likewise.
    pub(crate) alarms: [u32; 2],
}

/// Compares `tries` times: each with runs of its own.
pub(crate) fn tries(tries: u32) -> Tally {
    let mut tally = Tally::default();
    for n in 0..u64::from(tries) {
        let from = n * 1_000;
        let base = side("base", FULL, from);
        let slow = [side("slow", SLOW, from + 100), side("slow", SLOW, from)];
        // the same seeds give the same runs to the bit: there is nothing to simulate again
        let same = [side("same", FULL, from + 200), base.clone()];
        for which in 0..2 {
            let verdict = |new: &Side| Comparison::of(&base, new, &[]);
            tally.found[which] += u32::from(verdict(&slow[which]).verdict == Verdict::Regressed);
            tally.alarms[which] += u32::from(is_changed(&verdict(&same[which])));
        }
    }
    tally
}

/// Whether anything was called a change.
fn is_changed(comparison: &Comparison) -> bool {
    let called = |call: Call| matches!(call, Call::Better | Call::Worse | Call::Changed);
    comparison.rows.iter().any(|row| called(row.call))
        || comparison.checks.iter().any(|row| matches!(row.call, Flip::Broke | Flip::Mended))
}
