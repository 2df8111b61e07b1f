//! Whole live runs against a gateway that is faulty on purpose: a process of its own, so that what it leaks and where it
//! ends are its own.

#![cfg(feature = "live")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop there")]

use std::path::PathBuf;

use tenfold::live::{self, Options, Run, Stop};
use tenfold::observe::Outcome;
use tenfold::plan;

/// The smoke plan, far shorter: 4 + 160 + 4 arrivals.
fn run(faults: &str) -> Run {
    run_as(faults, 1)
}

fn run_as(faults: &str, replicas: u16) -> Run {
    let overrides = [
        "load.phases.before.for=500ms".to_owned(),
        "load.phases.promotion.for=2s".to_owned(),
        "load.phases.after.for=500ms".to_owned(),
        format!("target.embedded.faults=[{faults}]"),
        format!("target.embedded.replicas={replicas}"),
    ];
    let plan =
        plan::parse(include_str!("../plans/smoke.yaml"), &overrides, &|_| None).unwrap().plan.rehearsed();
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

#[test]
fn the_child_is_told_of_its_faults_and_the_accounts_stay_exact() {
    let run = run("mixed_refusals, wrong_error_shape, missing_retry_after");
    assert!(count(&run, Outcome::Throttled) > 50, "{:?}", run.measures.arrivals);
    assert_eq!(count(&run, Outcome::Shed), 0, "503 is never said for scarcity");
    let plain = |raw: &live::Evidence| raw.status == 429 && !raw.body.contains("reason");
    assert!(!run.evidence.is_empty() && run.evidence.iter().all(plain), "{:?}", run.evidence);
}

#[test]
fn what_stays_behind_of_each_request_is_seen_in_the_childs_memory() {
    const LEFT: u64 = 200_000;
    let run = run("{ leak_per_request: 200kB }");
    let memory = &run.measures.vitals.target;
    let (_, last) = memory.last.unwrap();
    let grown = last.get().saturating_sub(memory.baseline.unwrap().get());
    // some came before the first sample, or after the last
    assert!(grown > 100 * LEFT, "{grown} bytes");
}

#[test]
fn a_child_that_ends_in_the_middle_is_known_to_have() {
    let run = run("{ crash: 100 }");
    assert!(run.measures.vitals.target_ended.is_some());
    // one of the hundred is the canary
    assert!(count(&run, Outcome::Failed) > 60, "{:?}", run.measures.arrivals);
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
