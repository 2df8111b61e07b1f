//! The smallest fault each check still sees, in virtual time: `cargo bench --bench sensitivity`.
//!
//! Every fault is made smaller until its check is no longer red with each of five seeds. Measured is what the check says
//! of the smallest it sees, with the plan's own seed. Memory is only there with real sockets: `-- --leak` runs a gateway
//! that leaks for a minute and a quarter each time, less and less until `memory.plateau` does not see it.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::path::{Path, PathBuf};

use tenfold::check::{self, Finding, Scene, Verdict};
use tenfold::cli::load;
use tenfold::forecast::Forecast;
use tenfold::live::{self, Options, Stop};
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
    let forecast = Forecast::of(&plan);
    let scene = Scene::simulated(&plan, &forecast, &measures).beside(Some(&agreement));
    check::find(row.check).expect("a check of the table").judge(&scene)
}

/// What `memory.plateau` says of a live run in which each request leaves this much behind: six thousand requests to a
/// gateway that keeps no promises, which take memory themselves.
fn leaking(amount: &str) -> Finding {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/smoke.yaml");
    let changes = [
        "target.embedded.retry_after=drain".to_owned(),
        "load.phases.promotion.for=75s".to_owned(),
        format!("target.embedded.faults=[{{ leak_per_request: {amount} }}]"),
    ];
    let plan = load::read(&path, &changes).unwrap_or_else(|it| panic!("{}", it.render("smoke"))).plan;
    let program = Some(PathBuf::from(env!("CARGO_BIN_EXE_tenfold")));
    let options = Options { program, ..Options::default() };
    let run = live::run(&plan, &options, &mut |_| {}, &Stop::new()).expect("it can run");
    let forecast = Forecast::of(&plan);
    let scene = Scene::live(&plan, &forecast, &run.measures);
    check::find("memory.plateau").expect("a check of the table").judge(&scene)
}

fn print(fault: &str, check: &str, smallest: Option<(&str, Finding)>) {
    let Some((amount, finding)) = smallest else { return println!("{fault:22} {:>8}  {check:26}", "none") };
    let figure = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"));
    let (measured, expected) = (figure(finding.measured), figure(finding.expected));
    println!("{fault:22} {amount:>8}  {check:26} {measured} {} (limit {expected})", finding.unit);
}

fn main() {
    println!("{:22} {:>8}  {:26} measured", "fault", "seen at", "check");
    if std::env::args().any(|arg| arg == "--leak") {
        let runs = ["1kB", "500B", "200B", "100B", "80B"].iter().map(|amount| (*amount, leaking(amount)));
        let smallest = runs.take_while(|(_, finding)| finding.verdict == Verdict::Fail).last();
        return print("leak_per_request", "memory.plateau", smallest);
    }
    for row in ROWS {
        let seen = |amount: &&&str| (0..5).all(|nth| found(row, amount, nth).verdict == Verdict::Fail);
        let smallest = row.amounts.iter().take_while(seen).last();
        let name = if row.changes.is_empty() { row.fault.to_owned() } else { format!("{} *", row.fault) };
        print(&name, row.check, smallest.map(|amount| (*amount, found(row, amount, 0))));
    }
    println!("* with a limit of 99 %");
}
