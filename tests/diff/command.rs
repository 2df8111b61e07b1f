//! `tenfold diff`, `run --repeat` and `run --log` as processes.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tenfold::plan;

use crate::power::simulated;

fn tenfold(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// Writes the report of the smoke plan, changed by `overrides`, and gives its path.
fn report(dir: &Path, name: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|&set| set.to_owned()).collect();
    let plan = plan::parse(include_str!("../../plans/smoke.yaml"), &overrides, &|_| None).unwrap().plan;
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, serde_json::to_string(&simulated(&plan)).unwrap()).unwrap();
    path.display().to_string()
}

#[test]
fn the_three_answers_and_a_file_that_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let base = report(dir.path(), "a.json", &[]);
    let same = report(dir.path(), "b.json", &[]);
    let worse = ["target.embedded.recheck=false", "target.embedded.bound=none"];
    let worse = report(dir.path(), "c.json", &worse);
    let other = report(dir.path(), "d.json", &["load.phases.promotion.rate=3000/min"]);

    let (code, out, err) = tenfold(&["diff", &base, &same]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("UNCHANGED") && out.contains("n=1:"), "{out}");

    let (code, out, _) = tenfold(&["diff", &base, &worse, "--format", "markdown"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("goodput.floor") && out.contains("broke"), "{out}");

    let (code, out, _) = tenfold(&["diff", &base, &other]);
    assert_eq!(code, 5, "{out}");
    assert!(out.contains("load.phases.promotion.rate") && out.contains("4800/min and 3000/min"), "{out}");
    let (_, out, _) = tenfold(&["diff", &base, &other, "--allow", "load", "--format", "json"]);
    let value: Value = serde_json::from_str(&out).unwrap();
    assert_ne!(value["verdict"], "not_comparable", "{out}");

    let cut = dir.path().join("t.json");
    fs::write(&cut, &fs::read(&base).unwrap()[..500]).unwrap();
    let (code, out, err) = tenfold(&["diff", &base, &cut.display().to_string()]);
    assert_eq!((code, out.as_str(), err.lines().count()), (2, "", 1), "{err}");
    assert!(err.contains("t.json:") && err.contains("it ends in the middle"), "{err}");
    for args in [&["diff", &base][..], &["diff", &base, &same, "--format", "xml"], &["diff", &base, ","]] {
        assert_eq!(tenfold(args).0, 2, "{args:?}");
    }
}

#[test]
fn a_directory_of_five_runs_a_side_is_told_apart_from_a_slower_one() {
    let dir = tempfile::tempdir().unwrap();
    let side = |name: &str, budget: &str| {
        for seed in 0..5 {
            let sets = ["load.arrivals=poisson", budget, &format!("load.seed={seed}")];
            report(dir.path(), &format!("{name}/{seed}/report.json"), &sets);
        }
        dir.path().join(name).display().to_string()
    };
    let base = side("base", "target.embedded.margin=500ms");
    let slow = side("slow", "target.embedded.budgets={tokens_per_minute: 1_080_000, burst: 900ms}");
    let (code, out, _) = tenfold(&["diff", &base, &slow]);
    assert_eq!(code, 1, "{out}");
    let goodput = out.lines().find(|line| line.contains("  goodput ")).unwrap();
    assert!(out.starts_with("REGRESSED") && out.contains("5 runs a side"), "{out}");
    assert!(goodput.contains("worse"), "{goodput}");
    let (code, out, _) = tenfold(&["diff", &slow, &base]);
    assert!(code == 0 && out.starts_with("IMPROVED"), "{out}");
    // runs of two builds are no side
    let (code, out, _) = tenfold(&["diff", &dir.path().display().to_string(), &base]);
    assert!(code == 5 && out.contains("target.policy"), "{out}");
}

#[test]
fn two_runs_in_a_row_are_one_side_and_each_request_a_row() {
    let dir = tempfile::tempdir().unwrap();
    let (out, log) = (dir.path().join("out"), dir.path().join("rows.csv"));
    let (out, log) = (out.display().to_string(), log.display().to_string());
    let short = ["before.for=500ms", "promotion.for=2s", "after.for=500ms"];
    let short: Vec<String> = short.iter().map(|set| format!("--set=load.phases.{set}")).collect();
    let mut args = vec!["run", "plans/smoke.yaml", "--repeat", "2", "--out", &out, "--log", &log];
    args.extend(short.iter().map(String::as_str));
    let (code, _, err) = tenfold(&args);
    // so short a run shows too little for some checks
    assert!([0, 1, 3].contains(&code), "{code}: {err}");
    assert!(err.contains("run 1 of 2\n") && err.contains("run 2 of 2\n"), "{err}");
    let side = err.lines().find_map(|line| line.strip_prefix("the reports in ")).unwrap();
    let side = side.strip_suffix(" are one side of `tenfold diff`").unwrap();
    let read = |n: u32| -> Value {
        serde_json::from_str(&fs::read_to_string(format!("{side}/{n}/report.json")).unwrap()).unwrap()
    };
    let rows = fs::read_to_string(&log).unwrap();
    for n in 1..=2 {
        let totals = read(n)["totals"].clone();
        assert_eq!(totals["offered"], 168);
        let of_run: Vec<&str> = rows.lines().filter(|row| row.starts_with(&format!("{n},"))).collect();
        let ghosts = of_run.iter().filter(|row| row.contains(",ghost,")).count();
        assert_eq!(totals["attempts"], of_run.len() - ghosts, "run {n}");
        let charged: u64 =
            of_run.iter().map(|row| row.rsplit(',').nth(1).unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(totals["charged_tokens"], charged, "run {n}");
    }
    let (code, out, _) = tenfold(&["diff", side, side, "--allow", "validity"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("2 runs a side") && out.contains("n=2:"), "{out}");
}

#[test]
fn a_log_that_cannot_be_written_ends_a_run_before_it_begins() {
    let (code, _, err) = tenfold(&["run", "plans/smoke.yaml", "--log", "/no/such/dir/rows.csv"]);
    assert!(code == 4 && err.contains("the log cannot be written"), "{code}: {err}");
    assert_eq!(tenfold(&["run", "plans/smoke.yaml", "--log", "rows.parquet"]).0, 2);
    assert_eq!(tenfold(&["run", "plans/smoke.yaml", "--repeat", "0"]).0, 2);
}
