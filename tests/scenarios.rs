//! The plans of `plans/scenarios`: with the reference gateway each is green, as written and as rehearsed, whatever the
//! seed; and what it is there for is judged in it.

#![cfg(feature = "cli")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tenfold::check::{Judgement, RunVerdict, Scene, Verdict};
use tenfold::cli::load;
use tenfold::forecast::Forecast;
use tenfold::plan::Plan;
use tenfold::simulate;

/// Seeds that are tried of each plan unless more are asked for.
const SEEDS: u64 = 8;

/// The longest a rehearsal takes, and the most callers a second it sends.
const LONGEST: f64 = 95.0;
const MOST_PER_S: f64 = 40.0;

/// Checks that every overload is for.
const OVERLOAD: &[&str] = &[
    "backlog.drain",
    "goodput.floor",
    "retry_after.parseable",
    "retry_after.present",
    "shedding.free",
    "shedding.onset",
];

/// Each scenario, and the checks that must have something to judge in it besides those of [`OVERLOAD`], if it is one.
const SCENARIOS: &[(&str, bool, &[&str])] = &[
    ("callers-leave", true, &["retry_after.honoured", "waste.none"]),
    ("capacity-loss", true, &["quota.respected", "retry_after.honoured"]),
    ("clock-skew", true, &["deadline.propagated", "retry_after.honoured"]),
    ("duplicates", true, &["duplicates.single_call", "retry_after.honoured"]),
    ("heavy-mix", true, &["retry_after.honoured"]),
    ("huge-prompts", true, &["limits.separate", "retry_after.honoured"]),
    ("mixed-deadlines", true, &["retry_after.honoured"]),
    (
        "provider-429",
        false,
        &[
            "accounting.complete",
            "backlog.drain",
            "goodput.floor",
            "quota.respected",
            "retries.bounded",
            "retry_after.present",
        ],
    ),
    ("quiet-day", false, &["quiet.no_false_shed"]),
    ("replicas", true, &["quota.respected", "retry_after.honoured"]),
    ("retry-storm", true, &["quiet.no_false_shed", "recovery.complete", "retries.bounded"]),
    ("short-burst", false, &["backlog.drain", "goodput.floor", "quiet.no_false_shed"]),
    ("slow-provider", true, &["retry_after.honoured"]),
    ("steady-overload", true, &["quota.respected", "retry_after.honoured", "shedding.boundary"]),
    ("tiers", true, &["retry_after.honoured", "tiers.order"]),
    ("unfair-tenant", true, &["fairness.tokens", "retry_after.honoured"]),
];

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("plans/scenarios/{name}.yaml"))
}

fn plan(name: &str) -> Plan {
    let loaded = load::read(&path_of(name), &[]).unwrap_or_else(|problem| panic!("{}", problem.render(name)));
    loaded.plan
}

fn judged(plan: &Plan) -> Judgement {
    let policy = plan.policy().expect("the gateway is our own");
    let (measures, _) = simulate::measure(plan, policy);
    let forecast = Forecast::of(plan);
    Judgement::of(&Scene::simulated(plan, &forecast, &measures), false)
}

/// What is red, or has no data, in a run.
fn troubles(judgement: &Judgement) -> Vec<String> {
    let bad = |verdict| matches!(verdict, Verdict::Fail | Verdict::NoData);
    let findings = judgement.findings.iter().filter(|finding| bad(finding.verdict));
    findings.map(|finding| format!("{} {:?}: {}", finding.check, finding.verdict, finding.because)).collect()
}

#[test]
fn every_plan_of_the_folder_stands_in_the_table_and_in_the_readme() {
    let folder = path_of("x").parent().expect("it lies in a folder").to_owned();
    let readme = fs::read_to_string(folder.join("README.md")).expect("it has a README");
    let files = fs::read_dir(folder).expect("it can be read").map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "yaml"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    let known: Vec<&str> = SCENARIOS.iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, known);
    for name in known {
        assert!(readme.contains(&format!("\n| `{name}.yaml` |")), "{name} is missing in the README");
    }
}

#[test]
fn a_rehearsal_is_short_and_small_enough_for_a_small_machine() {
    for (name, ..) in SCENARIOS {
        let small = plan(name).rehearsed();
        let (lasts, peak) = (small.load.end().as_secs_f64(), small.load.peak_per_s());
        assert!(lasts <= LONGEST && peak <= MOST_PER_S, "{name}: {lasts} s, {peak} callers a second");
    }
}

/// How many seeds are tried of each plan, its own the first: `SCENARIO_SEEDS=200` tries more.
fn seeds() -> u64 {
    std::env::var("SCENARIO_SEEDS").ok().map_or(SEEDS, |text| text.parse().expect("a number of seeds"))
}

/// Plays a plan as written and as rehearsed, with every seed.
fn plays(name: &str) {
    let (_, overload, checks) =
        SCENARIOS.iter().find(|(known, ..)| *known == name).expect("it is in the table");
    let applies: Vec<&str> = OVERLOAD.iter().filter(|_| *overload).chain(*checks).copied().collect();
    let written = plan(name);
    let rehearsed = written.rehearsed();
    let mut red = BTreeMap::new();
    for (how, mut plan) in [("as written", written), ("rehearsed", rehearsed)] {
        let first = plan.load.seed;
        for seed in first..first + seeds() {
            plan.load.seed = seed;
            let judgement = judged(&plan);
            if judgement.verdict != RunVerdict::Passed {
                red.insert((how, seed), troubles(&judgement));
            }
            for check in &applies {
                let finding = judgement.findings.iter().find(|finding| finding.check == *check);
                let verdict = finding.unwrap_or_else(|| panic!("no check {check}")).verdict;
                assert_ne!(verdict, Verdict::NotApplicable, "{name} {how}, seed {seed}: {check}");
            }
        }
    }
    assert!(red.is_empty(), "{} runs are not green: {red:#?}", red.len());
}

/// The reference gateway is green in each, and what the scenario is for is judged: a test of its own for each.
macro_rules! scenarios {
    ($($test:ident => $name:literal),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                plays($name);
            }
        )+

        #[test]
        fn every_scenario_of_the_table_is_played() {
            let known: Vec<&str> = SCENARIOS.iter().map(|(name, ..)| *name).collect();
            assert_eq!([$($name),+], known[..]);
        }
    };
}

scenarios! {
    callers_leave => "callers-leave",
    capacity_loss => "capacity-loss",
    clock_skew => "clock-skew",
    duplicates => "duplicates",
    heavy_mix => "heavy-mix",
    huge_prompts => "huge-prompts",
    mixed_deadlines => "mixed-deadlines",
    provider_429 => "provider-429",
    quiet_day => "quiet-day",
    replicas => "replicas",
    retry_storm => "retry-storm",
    short_burst => "short-burst",
    slow_provider => "slow-provider",
    steady_overload => "steady-overload",
    tiers => "tiers",
    unfair_tenant => "unfair-tenant",
}
