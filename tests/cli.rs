//! The command line as a process: exit codes, and what goes where.

#![cfg(feature = "cli")]

use assert_cmd::Command;

fn tenfold(args: &[&str]) -> assert_cmd::assert::Assert {
    Command::new(env!("CARGO_BIN_EXE_tenfold")).current_dir(env!("CARGO_MANIFEST_DIR")).args(args).assert()
}

fn out(assert: &assert_cmd::assert::Assert) -> (String, String) {
    let output = assert.get_output();
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn a_good_plan_is_summed_up_on_stdout() {
    let (stdout, stderr) =
        out(&tenfold(&["validate", "plans/smoke.yaml", "plans/flash-promotion.yaml"]).code(0));
    assert!(
        stdout.contains("plans/smoke.yaml: `smoke` is a plan; a rehearsal takes 22 s and sends about 1040"),
        "{stdout}"
    );
    assert_eq!((stdout.lines().count(), stderr.as_str()), (2, ""));
    let (stdout, _) = out(&tenfold(&["-q", "validate", "plans/smoke.yaml"]).code(0));
    assert_eq!(stdout, "");
}

#[test]
fn faults_go_to_stderr_with_exit_code_2_also_beside_a_good_plan() {
    let (stdout, stderr) = out(&tenfold(&["validate", "fixtures/bad/many.yaml", "plans/smoke.yaml"]).code(2));
    assert!(stdout.starts_with("plans/smoke.yaml: "), "{stdout}");
    assert!(
        stderr.lines().filter(|line| line.starts_with("fixtures/bad/many.yaml:")).count() >= 5,
        "{stderr}"
    );
    let (_, stderr) = out(&tenfold(&["validate", "plans/none.yaml"]).code(2));
    assert!(stderr.contains("plans/none.yaml: the plan cannot be read"), "{stderr}");
}

#[test]
fn overrides_and_variables_reach_the_plan() {
    tenfold(&["validate", "plans/smoke.yaml", "--set", "target.embedded.retry_after.constant=1s"]).code(0);
    let (_, stderr) = out(&tenfold(&["validate", "plans/smoke.yaml", "--set", "load.seed=x"]).code(2));
    assert!(
        stderr.starts_with("plans/smoke.yaml: --set load.seed=x: load.seed: `x` is no whole number"),
        "{stderr}"
    );
    let set = ["validate", "plans/smoke.yaml", "--set", "load.seed=${TENFOLD_TEST_SEED}"];
    tenfold(&set).code(2);
    Command::new(env!("CARGO_BIN_EXE_tenfold"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("TENFOLD_TEST_SEED", "9")
        .args(set)
        .assert()
        .code(0);
}

#[test]
fn a_bad_command_line_is_exit_code_2_and_help_is_0() {
    for args in [&["frobnicate"][..], &[], &["validate"], &["list", "nothing"], &["schema"]] {
        tenfold(args).code(2);
    }
    let (stdout, _) = out(&tenfold(&["--help"]).code(0));
    assert!(stdout.contains("Exit codes:") && stdout.contains("143  ended by SIGTERM"), "{stdout}");
    tenfold(&["--version"]).code(0);
}

#[test]
fn a_prediction_is_a_note_or_json_and_a_goal_names_its_lever() {
    let levers = "plans/levers.yaml";
    let (note, stderr) = out(&tenfold(&["predict", levers, "--explain"]).code(0));
    assert!(note.starts_with("levers, the whole event\n") && note.contains("[J. D. C. Little, "), "{note}");
    assert_eq!(stderr, "");
    let set = ["predict", levers, "--set", "levers.a second account.more_quota=+1/2", "--format", "json"];
    let (json, _) = out(&tenfold(&set).code(0));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let served = json["levers"][3]["serviceable_per_min"].as_f64().unwrap();
    assert!((served - 1_111.11).abs() < 0.01, "{served}");
    let until = ["predict", levers, "--until", "shed_share=5%", "--lever"];
    let (note, _) = out(&tenfold(&[&until[..], &["defer"]].concat()).code(0));
    assert!(note.contains("\n    defer  "), "{note}");
    let (_, stderr) = out(&tenfold(&[&until[..], &["dither"]].concat()).code(2));
    assert!(stderr.starts_with("no lever is named `dither` (in the plan: answer "), "{stderr}");
    tenfold(&["predict", levers, "--until", "goodput=5%"]).code(2);
    tenfold(&["predict", levers, "--lever", "defer"]).code(2);
    tenfold(&["predict", "fixtures/bad/many.yaml"]).code(2);
}

#[test]
fn tables_schema_and_completions_are_printed() {
    let (stdout, _) = out(&tenfold(&["list", "retry-after"]).code(0));
    assert!(stdout.contains("\n  appointment  "), "{stdout}");
    assert!(out(&tenfold(&["list"]).code(0)).0.contains("shedding.onset"));
    let (schema, _) = out(&tenfold(&["schema", "plan"]).code(0));
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for shell in ["bash", "zsh", "fish"] {
        assert!(out(&tenfold(&["completions", shell]).code(0)).0.contains("validate"), "{shell}");
    }
}
