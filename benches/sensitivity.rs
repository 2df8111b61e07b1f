//! The smallest fault each check still sees, in virtual time: `cargo bench --bench sensitivity`.
//!
//! Every fault is made smaller until its check is no longer red with each of five seeds. Measured is what the check says
//! of the smallest it sees, with the plan's own seed. What a leak must be to be seen follows from how long a live run is:
//! `memory.plateau` says it in its own sentence.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::Path;

use tenfold::check::{self, Finding, Scene, Verdict};
use tenfold::cli::load;
use tenfold::forecast::Forecast;
use tenfold::simulate::{self, Following};

/// A fault, its amounts from the largest on, and the check that is to see it in this plan.
struct Row {
    fault: &'static str,
    amounts: &'static [&'static str],
    plan: &'static str,
    changes: &'static [&'static str],
    check: &'static str,
}

const fn row(
    fault: &'static str,
    amounts: &'static [&'static str],
    plan: &'static str,
    check: &'static str,
) -> Row {
    Row { fault, amounts, plan, changes: &[], check }
}

const PARTS: &[&str] = &["50%", "20%", "10%", "5%", "4%", "3%", "2%", "1%", "0.5%", "0.2%", "0.1%", "0.01%"];
const TIMES: &[&str] = &["60s", "30s", "20s", "10s", "5s", "4s", "3s", "2s", "1s"];
const STEADY: &str = "steady-overload";

const ROWS: &[Row] = &[
    row("early_shedding", PARTS, STEADY, "shedding.onset"),
    row("early_shedding", PARTS, STEADY, "shedding.boundary"),
    row("late_shedding", PARTS, STEADY, "shedding.onset"),
    row("late_shedding", PARTS, STEADY, "shedding.boundary"),
    row("short_retry_after", TIMES, STEADY, "retry_after.honoured"),
    row("short_retry_after", TIMES, STEADY, "retry_after.calibrated"),
    row("short_retry_after", TIMES, STEADY, "retry_after.follows_state"),
    row("missing_retry_after", PARTS, STEADY, "retry_after.present"),
    row("malformed_retry_after", PARTS, STEADY, "retry_after.parseable"),
    row("costly_refusal", PARTS, STEADY, "shedding.free"),
    row("costly_refusal", PARTS, STEADY, "goodput.floor"),
    Row {
        fault: "costly_refusal",
        amounts: PARTS,
        plan: STEADY,
        changes: &["checks={ goodput.floor: { limit: 99% } }"],
        check: "goodput.floor",
    },
    row("costly_refusal", PARTS, STEADY, "quota.respected"),
    row("abandoned_work", PARTS, "callers-leave", "waste.none"),
    row("leaked_holds", PARTS, STEADY, "accounting.complete"),
];

/// What the row's check says of its fault at this amount, with the so-manieth seed after the plan's own.
fn found(row: &Row, amount: &str, nth: u64) -> Finding {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("plans/scenarios/{}.yaml", row.plan));
    let mut changes = vec![format!("target.embedded.faults=[{{ {}: {amount} }}]", row.fault)];
    changes.extend(row.changes.iter().map(|change| (*change).to_owned()));
    let mut plan = load::read(&path, &changes).unwrap_or_else(|it| panic!("{}", it.render(row.plan))).plan;
    plan.load.seed += nth;
    let policy = plan.policy().expect("the gateway is our own");
    let following = Following::of(&plan).expect("one machine, with a declared policy");
    let (measures, _, agreement) = simulate::measure_beside(&plan, policy, &following);
    let scene = Scene {
        plan: &plan,
        forecast: &Forecast::of(&plan),
        measures: &measures,
        agreement: Some(&agreement),
        live: false,
        setting: None,
    };
    check::find(row.check).expect("a check of the table").judge(&scene)
}

fn main() {
    println!("{:22} {:>8}  {:26} measured", "fault", "seen at", "check");
    for row in ROWS {
        let seen = |amount: &&&str| (0..5).all(|nth| found(row, amount, nth).verdict == Verdict::Fail);
        let smallest = row.amounts.iter().take_while(seen).last();
        let name = if row.changes.is_empty() { row.fault.to_owned() } else { format!("{} *", row.fault) };
        match smallest {
            None => println!("{name:22} {:>8}  {:26}", "none", row.check),
            Some(amount) => {
                let Finding { measured, expected, unit, .. } = found(row, amount, 0);
                let figure =
                    |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"));
                let (measured, expected) = (figure(measured), figure(expected));
                println!("{name:22} {amount:>8}  {:26} {measured} {unit} (limit {expected})", row.check);
            }
        }
    }
    println!("* with a limit of 99 %");
}
