//! Whole live runs against the embedded gateway and against targets that are none.

use std::path::PathBuf;
use std::time::Duration;

use tenfold::live::{self, Ended, LiveError, Options, Stop};
use tenfold::measure::Snapshot;
use tenfold::observe::Outcome;
use tenfold::plan::{self, Plan};

/// The smoke plan with some of its keys changed.
fn plan(overrides: &[&str]) -> Plan {
    let text = include_str!("../plans/smoke.yaml");
    let overrides: Vec<String> = overrides.iter().map(|&set| set.to_owned()).collect();
    plan::parse(text, &overrides, &|_| None).unwrap().plan.rehearsed()
}

fn options() -> Options {
    Options { program: Some(PathBuf::from(env!("CARGO_BIN_EXE_tenfold"))), wait_ready: None }
}

#[test]
fn the_smoke_plan_runs_from_end_to_end() {
    let plan = plan(&[]);
    let mut seen = 0;
    let run = live::run(&plan, &options(), &mut |_: &Snapshot| seen += 1, &Stop::new()).unwrap();
    let m = &run.measures;
    println!("{run:#?}");
    assert_eq!(run.ended_by, Ended::Done);
    assert!(seen > 20);
    let total: u64 = Outcome::ALL.iter().map(|outcome| m.arrivals.get(*outcome)).sum();
    assert_eq!((total, m.offered), (1_040, 1_040));
}
