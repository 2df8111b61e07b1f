//! Faults against checks, in virtual time: every fault of a gateway turns exactly those checks red that are named for it,
//! every check is turned red by one, and without the fault the same plan is green. `tests/faults.rs` shows with real
//! sockets what only an HTTP shell can do wrong.

#![cfg(feature = "cli")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use tenfold::admission::faults;
use tenfold::check::{self, Judgement, RunVerdict, Scene, Verdict};
use tenfold::cli::load;
use tenfold::forecast::Forecast;
use tenfold::simulate::{self, Following};

/// A gateway with faults, the plan that shows them, and what that plan has besides; the checks that see it, and no other.
struct Row {
    faults: &'static str,
    plan: &'static str,
    changes: &'static [&'static str],
    red: &'static [&'static str],
}

const fn row(faults: &'static str, plan: &'static str, red: &'static [&'static str]) -> Row {
    Row { faults, plan, changes: &[], red }
}

/// What the four strategies are held to that promise a time.
const UNTRUE: &[&str] =
    &["retry_after.follows_state", "retry_after.calibrated", "retry_after.honoured", "retry_after.no_echo"];

const STEADY: &str = "scenarios/steady-overload";

const ROWS: &[Row] = &[
    row("abandoned_work", "scenarios/callers-leave", &["shedding.boundary", "goodput.floor", "waste.none"]),
    row("constant_retry_after", STEADY, UNTRUE),
    row(
        "costly_refusal",
        STEADY,
        &[
            "shedding.boundary",
            "shedding.free",
            "retry_after.honoured",
            "goodput.floor",
            "waste.none",
            "quota.respected",
        ],
    ),
    row("deadline_reset", STEADY, &["deadline.propagated"]),
    row(
        "duplicate_calls",
        "scenarios/duplicates",
        &["shedding.onset", "shedding.boundary", "duplicates.single_call"],
    ),
    Row {
        faults: "early_release",
        plan: "streams",
        // more than ten streams at once make each other slow
        changes: &[
            "provider.service={ first_token: 200ms, per_token: 20ms, strain: { above: 10, each: 20% } }",
            "target.embedded.budgets.concurrent=10",
        ],
        red: &[
            "shedding.onset",
            "shedding.boundary",
            "retry_after.calibrated",
            "retry_after.honoured",
            "goodput.floor",
            "waste.none",
            "quiet.no_false_shed",
        ],
    },
    row("early_shedding", STEADY, &["shedding.onset", "shedding.boundary"]),
    row(
        "{ early_shedding: 95% }",
        "scenarios/retry-storm",
        &["shedding.onset", "shedding.boundary", "quiet.no_false_shed"],
    ),
    row("greedy_tenant", "scenarios/unfair-tenant", &["shedding.boundary", "fairness.tokens"]),
    row("late_shedding", STEADY, &["shedding.onset", "shedding.boundary"]),
    row("leaked_holds", STEADY, &["accounting.complete"]),
    row("malformed_retry_after", STEADY, &["retry_after.parseable"]),
    row("missing_retry_after", STEADY, &["retry_after.present"]),
    row("mixed_refusals", "scenarios/retry-storm", &["shedding.onset", "limits.separate"]),
    row("no_recheck", "scenarios/capacity-loss", &["goodput.floor", "waste.none"]),
    row(
        "per_replica_quotas",
        "scenarios/replicas",
        &[
            "shedding.onset",
            "retry_after.follows_state",
            "retry_after.calibrated",
            "retry_after.honoured",
            "quota.respected",
        ],
    ),
    row("short_retry_after", STEADY, UNTRUE),
    row("synchronized_retry_after", STEADY, UNTRUE),
    row("tier_inversion", "scenarios/tiers", &["shedding.boundary", "retry_after.honoured", "tiers.order"]),
    row("unbounded_queue", STEADY, &["shedding.onset", "shedding.boundary"]),
    row(
        "unbounded_queue, no_recheck",
        "scenarios/retry-storm",
        &[
            "shedding.onset",
            "shedding.boundary",
            "backlog.drain",
            "recovery.complete",
            "goodput.floor",
            "waste.none",
        ],
    ),
    Row {
        faults: "unlimited_retries",
        plan: "scenarios/provider-429",
        changes: &["provider.faults=[{ at: 25s, for: 30s, errors: { status: 503 } }]"],
        red: &["retries.bounded"],
    },
    row("unmarked_long_waits", STEADY, &["retry_after.usable"]),
    row("wrong_error_shape", "smoke", &["shedding.shape"]),
];

/// Checks that do not apply in virtual time.
const LIVE: &[&str] = &["memory.ceiling", "memory.plateau", "shedding.fast", "target.alive"];

/// The plan of a row, simulated and judged, its gateway with these faults.
fn judged(row: &Row, faults: &str) -> Judgement {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("plans/{}.yaml", row.plan));
    let mut changes: Vec<String> = row.changes.iter().map(|change| (*change).to_owned()).collect();
    changes.push(format!("target.embedded.faults=[{faults}]"));
    let loaded = load::read(&path, &changes).unwrap_or_else(|problem| panic!("{}", problem.render(row.plan)));
    let plan = loaded.plan;
    let policy = plan.policy().expect("the gateway is our own");
    // of a healthy gateway the verdicts are the policy's own
    let following = Following::of(&plan).filter(|_| !faults.is_empty());
    let (measures, agreement) = match &following {
        Some(following) => {
            let (measures, _, agreement) = simulate::measure_beside(&plan, policy, following);
            (measures, Some(agreement))
        }
        None => (simulate::measure(&plan, policy).0, None),
    };
    let forecast = Forecast::of(&plan);
    let scene = Scene::simulated(&plan, &forecast, &measures).beside(agreement.as_ref());
    Judgement::of(&scene, false)
}

fn failed(judgement: &Judgement) -> BTreeSet<&'static str> {
    let red = judgement.findings.iter().filter(|finding| finding.verdict == Verdict::Fail);
    red.map(|finding| finding.check).collect()
}

#[test]
fn every_fault_turns_its_checks_red_and_no_other_and_without_it_all_is_green() {
    let mut wrong = String::new();
    for row in ROWS {
        let (found, named) = (failed(&judged(row, row.faults)), row.red.iter().copied().collect());
        if found != named {
            let (missing, extra) = (named.difference(&found), found.difference(&named));
            let (missing, extra): (Vec<_>, Vec<_>) = (missing.collect(), extra.collect());
            let _ = writeln!(wrong, "{} in {}: not red {missing:?}, red {extra:?}", row.faults, row.plan);
        }
        let healthy = judged(row, "");
        if healthy.verdict != RunVerdict::Passed {
            let _ = writeln!(wrong, "healthy in {} {:?}: {:?}", row.plan, row.changes, failed(&healthy));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_fault_has_a_row_and_every_check_is_turned_red_by_one() {
    let alone: Vec<&str> = ROWS.iter().map(|row| row.faults).collect();
    for kind in faults::ALL {
        assert_eq!(alone.contains(&kind.name), !kind.live_only, "{}", kind.name);
    }
    let red: BTreeSet<&str> = ROWS.iter().flat_map(|row| row.red).copied().collect();
    for kind in check::ALL {
        assert_eq!(red.contains(kind.id), !LIVE.contains(&kind.id), "{}", kind.id);
    }
}

#[test]
fn the_table_for_readers_is_that_of_this_test() {
    let mut table = String::from(
        "# Faults against checks\n\n\
         What turns red when a gateway has a fault (`tenfold list faults`), in the plan named beside it; nothing else \
         does,\nand without the fault all is green. Made by `tests/matrix.rs` in virtual time. What only shows on the wire is \
         tried with\nreal sockets in `tests/faults.rs`: `crash` turns `target.alive` red, `leak_per_request` \
         `memory.ceiling` (and\n`memory.plateau`, where the queue stands for long enough), `slow_refusal` `shedding.fast`.\n\n\
         | fault | plan | turns red |\n|---|---|---|\n",
    );
    for row in ROWS {
        let changed = if row.changes.is_empty() { "" } else { ", changed" };
        let red: Vec<String> = row.red.iter().map(|check| format!("`{check}`")).collect();
        let _ = writeln!(table, "| `{}` | `{}.yaml`{changed} | {} |", row.faults, row.plan, red.join(", "));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/scenarios/faults.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &table).expect("it can be written");
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, table, "if this is better, run again with UPDATE_GOLDEN=1");
}
