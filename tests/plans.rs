//! Plan files: those we ship are plans, and bad ones are answered well.

#![cfg(feature = "cli")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenfold::cli::load::{self, Problem};
use tenfold::plan::{Loaded, parse};
use tenfold::units::Fault;

const SMOKE: &str = include_str!("../plans/smoke.yaml");

fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("the folder is part of the project")
        .map(|entry| entry.expect("an entry can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .collect();
    files.sort();
    files
}

fn read(text: &str) -> Result<Loaded, Vec<String>> {
    let show = |f: Fault| format!("{} {}: {}", f.place, f.path, f.message);
    parse(text, &[], &|_| None).map_err(|faults| faults.into_iter().map(show).collect())
}

/// The smoke plan with one text replaced; it must be there.
fn smoke_with(old: &str, new: &str) -> Result<Loaded, Vec<String>> {
    assert!(SMOKE.contains(old), "the smoke plan has no `{old}`");
    read(&SMOKE.replacen(old, new, 1))
}

#[test]
fn every_plan_of_the_folder_is_one_without_faults_or_warnings() {
    let plans = ["plans", "plans/real", "plans/scenarios"].map(|folder| files(folder, "yaml")).concat();
    assert!(plans.len() >= 24);
    for path in plans {
        let loaded = load::read(&path, &[]).unwrap_or_else(|problem| panic!("{}", problem.render("plan")));
        assert!(loaded.warnings.is_empty(), "{}: {:?}", path.display(), loaded.warnings);
        assert_eq!(
            path.file_stem().unwrap().to_str().unwrap(),
            loaded.plan.name,
            "a plan is named after its file"
        );
    }
}

#[test]
fn every_bad_plan_is_told_what_is_wrong_with_it() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let bad = files("fixtures/bad", "yaml");
    assert!(bad.len() >= 15);
    for path in bad {
        let file = format!("fixtures/bad/{}", path.file_name().unwrap().to_str().unwrap());
        let told = match load::read(&path, &[]) {
            Ok(_) => panic!("{file} was taken for a plan"),
            Err(problem) => problem.render(&file),
        };
        let golden = path.with_extension("stderr");
        if update {
            fs::write(&golden, &told).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        assert_eq!(expected, told, "{file}: if this is better, run again with UPDATE_GOLDEN=1");
    }
}

#[test]
fn a_golden_without_its_plan_is_a_leftover() {
    for golden in files("fixtures/bad", "stderr") {
        assert!(golden.with_extension("yaml").exists(), "{}", golden.display());
    }
}

/// Where `needle` first stands in the text, as `line:column`.
fn place_of(text: &str, needle: &str) -> String {
    let before = &text[..text.find(needle).expect("it stands there")];
    let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
    format!("{}:{column}", before.matches('\n').count() + 1)
}

/// As in docker/compose#3109: a clock time is no number of seconds in base 60.
#[test]
fn clock_times_are_refused_alike() {
    for text in ["1:30", "10:00", "09:30", "2122:22", "'1:30'"] {
        let faults = smoke_with("deadline: 4.5s", &format!("deadline: {text}")).unwrap_err();
        assert_eq!(faults.len(), 1, "{faults:?}");
        let place = place_of(SMOKE, "4.5s");
        assert!(faults[0].starts_with(&format!("{place} requests.0.deadline: ")), "{faults:?}");
        assert!(faults[0].contains("looks like a clock time") && faults[0].contains("1m30s"), "{faults:?}");
    }
}

/// As in kislyuk/yq#152: words stay words, numbers stay as written, and nothing is no name.
#[test]
fn words_do_not_turn_into_booleans_or_numbers() {
    for name in ["no", "se", "on", "off", "y", "1.10", "0x1F", "1_0"] {
        let loaded = smoke_with("name: ask", &format!("name: {name}")).unwrap();
        assert_eq!(loaded.plan.requests.classes()[0].name, name);
    }
    for nothing in ["null", "~", ""] {
        let faults = smoke_with("name: ask", &format!("name: {nothing}")).unwrap_err();
        assert!(faults[0].contains("requests.0.name: a text belongs here, not nothing"), "{faults:?}");
    }
    for word in ["yes", "on", "1", "True"] {
        let faults = smoke_with("event: true", &format!("event: {word}")).unwrap_err();
        assert!(faults[0].contains("neither `true` nor `false`"), "{faults:?}");
    }
}

/// As in dtolnay/serde-yaml#277: aliases, merges and brackets cannot explode; a few anchors are fine.
#[test]
fn a_small_file_cannot_fill_the_memory() {
    let mut merges = "m0: &m0 {k0: 1}\n".to_owned();
    for level in 1..=18 {
        merges.push_str(&format!("m{level}: &m{level} {{<<: [*m{0}, *m{0}], k{level}: 1}}\n", level - 1));
    }
    let brackets = format!("a: {}\n", "[".repeat(100_000));
    let bomb = fs::read_to_string(&files("fixtures/bad", "yaml")[0]).unwrap();
    for text in [bomb, merges, brackets] {
        let faults = read(&text).unwrap_err();
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("at most 40 levels, and 20000 values"), "{faults:?}");
    }
    let anchored = SMOKE
        .replace("for: 2s", "for: &two 2s")
        .replace("name: ask", "name: &ask ask\n    tenant: *ask")
        .replace("margin: 500ms", "margin: &half 500ms")
        .replace("service: { start: 1s }", "service: { start: *two }")
        .replace("burst: 1s", "burst: *two");
    let loaded = read(&anchored.replace("&half 500ms", "500ms")).unwrap();
    assert_eq!(loaded.plan.requests.classes()[0].tenant, "ask");
    assert_eq!(loaded.plan.provider.quota.burst(), Duration::from_secs(2));
}

/// As in vectordotdev/vector#12341: a misspelt key is refused at every depth, with its place and the key that
/// was meant.
#[test]
fn a_misspelt_key_is_refused_at_every_depth() {
    let cases = [
        ("seed: 7", "sede: 7", "load.sede: unknown key `sede` (did you mean `seed`?"),
        ("rate: 480/min", "rtae: 480/min", "load.phases.0.rtae: unknown key `rtae` (did you mean `rate`?"),
        (
            "first_token",
            "fist_token",
            "provider.service.fist_token: unknown key `fist_token` (did you mean `first_token`?",
        ),
        ("about:", "abuot:", "abuot: unknown key `abuot` (did you mean `about`?"),
        (
            "expect:",
            "checks: { shedding.fast: { limt: 5ms } }\nexpect:",
            "checks.shedding.fast.limt: unknown key `limt` (did you mean `limit`?",
        ),
    ];
    for (old, new, expected) in cases {
        let faults = smoke_with(old, new).unwrap_err();
        let key = expected.split(": ").next().unwrap().rsplit('.').next().unwrap();
        let place = place_of(&SMOKE.replacen(old, new, 1), key);
        let expected = format!("{place} {expected}");
        assert!(faults.iter().any(|fault| fault.starts_with(&expected)), "no {expected}: {faults:#?}");
    }
}

/// As in xolox/python-humanfriendly#15: every duration has a unit, and the unit is the one that is written.
#[test]
fn a_duration_is_what_it_says_or_an_error() {
    let phase = |text: &str| {
        smoke_with("for: 2s", &format!("for: {text}"))
            .map(|loaded| loaded.plan.load.phases[0].lasts.as_secs())
    };
    assert_eq!(phase("5m"), Ok(300));
    assert_eq!(phase("1.5h"), Ok(5_400));
    for bad in ["5M", "1m30", "90", "-5s", "0s", "1e400s", "99999999999999999999h"] {
        let faults = phase(bad).unwrap_err();
        assert!(faults.len() == 1 && faults[0].starts_with(&place_of(SMOKE, "2s")), "{bad}: {faults:?}");
    }
}

#[test]
fn a_missing_file_and_a_folder_are_told_apart_from_a_bad_plan() {
    for path in ["plans/none.yaml", "plans"] {
        let Err(problem @ Problem::File(_)) = load::read(Path::new(path), &[]) else {
            panic!("{path} was read")
        };
        assert!(
            problem.render(path).starts_with(&format!("{path}: the plan cannot be read: ")),
            "{problem:?}"
        );
    }
}
