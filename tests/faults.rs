//! Whole live runs against a gateway that is faulty on purpose: a process of its own, so that what it leaks and where it
//! ends are its own.

#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop there")]

use std::path::PathBuf;

use tenfold::check::{self, Scene, Verdict};
use tenfold::forecast::Forecast;
use tenfold::live::{self, Options, Run, Stop};
use tenfold::observe::Outcome;
use tenfold::plan::{self, Plan};

/// The smoke plan, far shorter: 4 + 160 + 4 arrivals.
fn run(faults: &str) -> Run {
    run_as(faults, 1)
}

fn plan_of(faults: &str, replicas: u16) -> Plan {
    let overrides = [
        "load.phases.before.for=500ms".to_owned(),
        "load.phases.promotion.for=2s".to_owned(),
        "load.phases.after.for=500ms".to_owned(),
        format!("target.embedded.faults=[{faults}]"),
        format!("target.embedded.replicas={replicas}"),
    ];
    plan::parse(include_str!("../plans/smoke.yaml"), &overrides, &|_| None).unwrap().plan.rehearsed()
}

fn run_as(faults: &str, replicas: u16) -> Run {
    let plan = plan_of(faults, replicas);
    let program = Some(PathBuf::from(env!("CARGO_BIN_EXE_tenfold")));
    let run =
        live::run(&plan, &Options { program, ..Options::default() }, &mut |_| {}, &Stop::new()).unwrap();
    let sum: u64 = Outcome::ALL.iter().map(|outcome| run.measures.arrivals.get(*outcome)).sum();
    assert_eq!((sum, run.measures.offered), (168, 168), "every arrival has one end");
    run
}

fn count(run: &Run, outcome: Outcome) -> u64 {
    run.measures.arrivals.get(outcome)
}

/// What a check says of a run with these faults.
fn verdict(run: &Run, faults: &str, id: &str) -> Verdict {
    let plan = plan_of(faults, 1);
    let forecast = Forecast::of(&plan);
    let scene = Scene::live(&plan, &forecast, &run.measures);
    check::find(id).unwrap().judge(&scene).verdict
}

#[test]
fn the_child_is_told_of_its_faults_and_the_accounts_stay_exact() {
    let faults = "mixed_refusals, wrong_error_shape, missing_retry_after";
    let run = run(faults);
    for id in ["limits.separate", "shedding.shape", "retry_after.present"] {
        assert_eq!(verdict(&run, faults, id), Verdict::Fail, "{id}");
    }
    assert_eq!(verdict(&run, faults, "accounting.complete"), Verdict::Pass);
    assert!(count(&run, Outcome::Throttled) > 50, "{:?}", run.measures.arrivals);
    assert_eq!(count(&run, Outcome::Shed), 0, "503 is never said for scarcity");
    let plain = |raw: &live::Evidence| raw.status == 429 && !raw.body.contains("reason");
    assert!(!run.evidence.is_empty() && run.evidence.iter().all(plain), "{:?}", run.evidence);
}

#[test]
fn what_stays_behind_of_each_request_is_seen_in_the_childs_memory() {
    const LEFT: u64 = 200_000;
    let faults = "{ leak_per_request: 200kB }";
    let run = run(faults);
    assert_eq!(verdict(&run, faults, "memory.ceiling"), Verdict::Fail);
    let memory = &run.measures.vitals.target;
    let (_, last) = memory.last.unwrap();
    let grown = last.get().saturating_sub(memory.baseline.unwrap().get());
    // some came before the first sample, or after the last
    assert!(grown > 100 * LEFT, "{grown} bytes");
}

#[test]
fn a_child_that_ends_in_the_middle_is_known_to_have() {
    let faults = "{ crash: 100 }";
    let run = run(faults);
    assert_eq!(verdict(&run, faults, "target.alive"), Verdict::Fail);
    assert!(run.measures.vitals.target_ended.is_some());
    // one of the hundred is the canary
    assert!(count(&run, Outcome::Failed) > 60, "{:?}", run.measures.arrivals);
}

#[test]
fn a_refusal_that_takes_its_time_is_seen_unless_the_ping_is_as_slow() {
    let run = run("slow_refusal");
    let slow = run.measures.refusals.latency.quantile(0.01).unwrap();
    assert!(slow >= std::time::Duration::from_millis(49), "{slow:?}");
    let busy = run.measures.pings_while_refusing().quantile(0.5).unwrap_or_default().as_millis() >= 10;
    let found = verdict(&run, "slow_refusal", "shedding.fast");
    assert!(found == Verdict::Fail || busy, "{found:?}");
}

#[test]
fn the_sum_of_replicas_stays_in_the_quota_unless_each_takes_it_for_its_own() {
    let refused = |faults: &str| {
        let run = run_as(faults, 3);
        assert!(count(&run, Outcome::Completed) > 30, "{:?}", run.measures.arrivals);
        run.measures.upstream.refused
    };
    assert_eq!(refused(""), 0);
    assert!(refused("per_replica_quotas") > 10);
}
