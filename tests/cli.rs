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

#[test]
fn a_report_is_shown_again_in_any_form() {
    let golden = "fixtures/golden/passed.json";
    let (text, stderr) = out(&tenfold(&["report", golden]).code(0));
    assert!(text.starts_with("PASSED  smoke") && text.contains(golden), "{text}");
    assert_eq!(stderr, "");
    let kept = std::fs::read(golden).unwrap();
    for (form, begins) in [
        ("json", "{"),
        ("html", "<!DOCTYPE html>"),
        ("junit", "<?xml"),
        ("markdown", "### "),
        ("text", "PASSED"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
        let shown =
            command.args(["report", "-", "--format", form]).write_stdin(kept.clone()).assert().code(0);
        assert!(out(&shown).0.starts_with(begins), "{form}");
    }
    let (again, _) = out(&tenfold(&["report", golden, "--format", "json"]).code(0));
    assert_eq!(again.as_bytes(), kept);
    let (schema, _) = out(&tenfold(&["schema", "report"]).code(0));
    assert_eq!(schema, std::fs::read_to_string("fixtures/schema/report.schema.json").unwrap());
}

#[test]
fn a_bad_report_is_one_message_and_exit_code_2() {
    let whole = std::fs::read_to_string("fixtures/golden/passed.json").unwrap();
    let newer = whole.replacen("tenfold.report/1", "tenfold.report/2", 1);
    let broken = whole.replacen("\"offered\": 1040", "\"offered\": \"many\"", 1);
    for (text, says) in [
        (&whole[..900], "it ends in the middle"),
        ("{\"schema\": \"k6/1\"}", "stdin: it is a `k6/1`"),
        (newer.as_str(), "update tenfold"),
        (broken.as_str(), "invalid type: string \"many\", expected u64"),
        ("\u{1b}[31m", "stdin:1:1: it is no JSON"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
        let told = command.args(["report", "-"]).write_stdin(text).assert().code(2);
        let (stdout, stderr) = out(&told);
        assert!(stdout.is_empty() && stderr.contains(says) && stderr.lines().count() == 1, "{stderr}");
    }
    let (_, stderr) = out(&tenfold(&["report", "none.json"]).code(2));
    assert!(stderr.starts_with("none.json: the report cannot be read"), "{stderr}");
}

/// As in rustic-rs/rustic#1915, sharkdp/fd#24 and ducaale/xh#14.
#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tenfold"));
    command.args(["report", "fixtures/golden/passed.json", "--format", "json"]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_simulation_is_judged_like_a_run_and_the_same_seed_gives_the_same_bytes() {
    let args = ["simulate", "plans/smoke.yaml", "--format", "json"];
    let (first, stderr) = out(&tenfold(&args).code(0));
    assert_eq!((out(&tenfold(&args).code(0)).0 == first, stderr.as_str()), (true, ""));
    let report: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!((&report["verdict"], &report["run"]["simulated"]), (&"passed".into(), &true.into()));
    assert_eq!(report["run"]["started"], "", "no date");
    let verdict = |id: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|check| check["id"] == id).unwrap()["verdict"].clone()
    };
    assert_eq!(verdict("shedding.onset"), "pass");
    for id in ["memory.ceiling", "shedding.fast", "target.alive"] {
        assert_eq!(verdict(id), "not_applicable", "{id}");
    }
    tenfold(&["simulate", "plans/smoke.yaml", "--set", "target.embedded.retry_after.constant=1s"]).code(1);
}

#[test]
fn variants_make_a_table_and_what_they_cannot_change_is_named() {
    let grid =
        ["--vary", "requests.0.deadline=4s,5s", "--vary", "target.embedded.bound=deadline,{ requests: 20 }"];
    let (stdout, _) =
        out(&tenfold(&[&["simulate", "plans/smoke.yaml", "--seeds", "2"], &grid[..]].concat()).code(0));
    assert_eq!(stdout.lines().count(), 5, "{stdout}");
    assert!(stdout.contains("requests.0.deadline=5s target.embedded.bound={ requests: 20 }"), "{stdout}");
    for plan in [&["plans/smoke.yaml", "--seeds", "3"][..], &["plans/edge-gate.yaml"]] {
        let on = |jobs| {
            let vary = ["--vary", "load.seed=1,2,3", "--format", "json", "--jobs", jobs];
            out(&tenfold(&[&["simulate"][..], plan, &vary[..]].concat()).code(0)).0
        };
        assert_eq!(on("1"), on("4"), "the same bytes on one core and on four: {plan:?}");
    }
    let (_, stderr) = out(&tenfold(&["simulate", "plans/smoke.yaml", "--vary", "load.sede=1,2"]).code(2));
    assert!(stderr.contains("load.sede: unknown key `sede` (did you mean `seed`?"), "{stderr}");
    let (_, stderr) = out(&tenfold(&["simulate", "plans/smoke.yaml", "--vary", "load.seed"]).code(2));
    assert!(stderr.contains("write PATH=A,B"), "{stderr}");
    let url = ["simulate", "plans/smoke.yaml", "--set", "target.url=http://127.0.0.1:1"];
    let (_, stderr) = out(&tenfold(&url).code(2));
    assert!(stderr.contains("target.policy: what this gateway decides by is not declared"), "{stderr}");
}

#[test]
fn the_edge_gate_prints_its_tables_and_is_not_run() {
    let (stdout, _) = out(&tenfold(&["simulate", "plans/edge-gate.yaml"]).code(0));
    for numbers in ["58331/229912/454", "0/20090/446", "52266", "480.40", "0.9348", "34.23", "36077"] {
        assert!(stdout.contains(numbers), "{numbers}: {stdout}");
    }
    let (_, stderr) = out(&tenfold(&["run", "plans/edge-gate.yaml", "--dry-run"]).code(2));
    assert!(stderr.contains("requests.0.max_tokens: ") && stderr.contains("tenfold simulate"), "{stderr}");
    let retry = "requests.0.on_refusal={ retry: { like: openai-python } }";
    out(&tenfold(&["run", "plans/smoke.yaml", "--set", retry, "--dry-run"]).code(0));
}

/// As in ai-dynamo/aiperf#786: a trace with a missing column, an empty one and one of a header alone end the run with code 2
/// before a request is sent, and say which column, or that nothing would be played.
#[test]
fn a_trace_that_cannot_be_played_ends_the_run_before_any_request() {
    let target = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (plan, trace) = (folder.path().join("plan.yaml"), folder.path().join("day.csv"));
    let text = "tenfold: 1\nname: day\nload: { arrivals: { trace: { file: day.csv, format: burstgpt } } }\n\
                requests: [{ name: ask, prompt: { tokens: 8 }, max_tokens: 4, deadline: 5s }]\n\
                provider: { quota: { tokens_per_minute: 1_000_000, burst: 1s }, service: { first_token: 9ms, per_token: 0ms } }\n\
                target: { url: 'http://ADDRESS' }\n";
    std::fs::write(&plan, text.replace("ADDRESS", &target.local_addr().unwrap().to_string())).unwrap();
    let column = "there is no column `Response tokens`: it has Timestamp, Model, Request tokens";
    let header = "Timestamp,Model,Request tokens,Response tokens\n";
    for (file, said) in [
        ("Timestamp,Model,Request tokens\n5,ChatGPT,472\n", column),
        ("", "it is empty"),
        (header, "there is no row in it"),
        (&format!("{header}5,ChatGPT,472,0\n"), "no row is left of 1"),
    ] {
        std::fs::write(&trace, file).unwrap();
        for command in ["validate", "run"] {
            let (_, stderr) = out(&tenfold(&[command, plan.to_str().unwrap()]).code(2));
            assert!(stderr.contains(said) && stderr.contains("plan.yaml:3:"), "{command}: {stderr}");
        }
    }
    assert!(target.accept().is_err(), "nobody has called");
}

/// As in HPMLL/BurstGPT#11 and vllm-project/vllm#13063: how many rows were failures of the recording is said before a run and
/// after it.
#[test]
fn rows_without_tokens_are_counted_wherever_a_trace_is_spoken_of() {
    let trace =
        "load.arrivals={ trace: { file: ../fixtures/traces/burstgpt.csv, format: burstgpt, from: 7m } }";
    let sets = ["--set", trace, "--set", "load.phases=[{ name: day, for: 60s }]", "--set", "rehearsal={}"];
    let said = |args: &[&str]| {
        let args: Vec<_> = args.iter().chain(&sets).copied().collect();
        let (stdout, _) = out(&tenfold(&args));
        stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let plan = "plans/shared-link.yaml";
    let counts = [&["validate", plan][..], &["run", plan, "--dry-run"], &["simulate", plan]].map(said);
    for text in &counts {
        assert!(text.contains("of no tokens left out") && text.contains("rows in"), "{text}");
    }
}

/// What `tenfold selftest` has found on this machine holds for every plan, until it is told not to.
#[test]
fn a_plan_beyond_what_the_selftest_found_is_refused_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.json");
    let cores = std::thread::available_parallelism().unwrap();
    let kept = |name: &str, rate: u32| {
        format!(
            r#"{{"name":"{name}","http":1,"rate_per_s":{rate},"lag_p99_us":9,"deviation_p99_us":null,"then":null}}"#
        )
    };
    let write = |scheduling: &str| {
        let limits = format!(
            r#"{{"schema":"tenfold.limits/2","measured":"2026-11-30T12:00:00Z","cores":{cores},"scheduling":"{scheduling}","generator":[{},{}],"provider":[{}]}}"#,
            kept("hyper", 9_000),
            kept("reqwest", 10),
            kept("wiremock", 9_000)
        );
        std::fs::write(&file, limits).unwrap();
    };
    write(&tenfold::live::scheduling_permitted().unwrap().to_string());
    let run = |more: &[&str]| {
        let mut command = Command::cargo_bin("tenfold").unwrap();
        command.args(["run", "plans/smoke.yaml", "--dry-run"]).args(more).env("TENFOLD_LIMITS", &file);
        command.assert()
    };
    let said = String::from_utf8(run(&[]).code(4).get_output().stderr.clone()).unwrap();
    assert!(said.contains("`promotion` offers 80/s, and the generator keeps 10/s here"), "{said}");
    assert!(said.contains("send with hyper") && said.contains("--beyond-limits"), "{said}");
    run(&["--beyond-limits"]).code(0);
    run(&["--set", "target.request.sender=hyper"]).code(0);
    // limits of other permissions, of another machine, and what is none
    write("nice 40");
    let said = String::from_utf8(run(&[]).code(0).get_output().stderr.clone()).unwrap();
    assert!(said.contains("scheduling `nice 40`, which is not this machine as it is now"), "{said}");
    std::fs::write(&file, "{}").unwrap();
    let said = String::from_utf8(run(&[]).code(0).get_output().stderr.clone()).unwrap();
    assert!(said.contains("is no result of `tenfold selftest` and is not used"), "{said}");
}
