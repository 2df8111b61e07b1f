use std::path::Path;
use std::time::Duration;

use super::*;
use crate::admission::Budgets;
use crate::check::{Judgement, Scene, Verdict};
use crate::forecast::Forecast;
use crate::measure::testing::{arrive, flash, healthy, record, smoke};
use crate::measure::{Measures, Vital};
use crate::observe::{Gaps, Outcome, Record, RetryAfter, Streamed};
use crate::plan::{Plan, TargetKind};
use crate::units::{Bytes, Moment};

mod answers;
mod told;

pub(super) fn report(plan: &Plan, measures: &Measures, interrupted: bool) -> Report {
    let forecast = Forecast::of(plan);
    let scene = Scene::live(plan, &forecast, measures);
    let judgement = Judgement::of(&scene, interrupted);
    let header = RunHeader {
        id: "20261130-071502".into(),
        simulated: false,
        started: "2026-11-30T07:15:02Z".into(),
        took: Duration::from_millis(25_400),
        target: "the embedded gateway".into(),
        name: None,
        generator: None,
        ended_early: interrupted.then(|| "ended by Ctrl-C".into()),
        path: Some("reports/smoke/20261130-071502/report.json".into()),
    };
    let refusals = vec![RawRefusal {
        seq: 83,
        status: 503,
        headers: vec![("retry-after".into(), "7".into())],
        body: "{\"type\":\"about:blank\"}".into(),
    }];
    Report::of(Inputs {
        header,
        plan,
        event: &forecast,
        rehearsal: &forecast,
        measures,
        judgement: &judgement,
        refusals,
    })
}

fn rendered(report: &Report, format: &str, style: Style) -> String {
    let mut out = Vec::new();
    (find(format).unwrap().render)(report, &style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Compares with `fixtures/golden/<name>`; `UPDATE_GOLDEN=1` writes it anew.
pub(super) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name} differs; UPDATE_GOLDEN=1 writes it anew. Now it is:\n{text}");
}

/// A run in which callers were told to come back after a second and were refused again, and one header cannot be read.
fn broken(plan: &Plan) -> Measures {
    let mut measures = healthy(plan);
    for seq in 0..40 {
        let mut record = record(seq, 6_000, 1, Outcome::Shed);
        (record.attempt.nth, record.probe) = (1, true);
        record.retry_after = Some(RetryAfter::After(Duration::from_secs(1)));
        if seq == 12 {
            record.retry_after = Some(RetryAfter::Unreadable("soon".into()));
            record.shape = Err("content-type is `text/html\u{1b}[31m`, not application/problem+json".into());
        }
        measures.due(record.attempt, record.due);
        measures.record(&record);
    }
    measures
}

#[test]
fn a_passed_run_reads_as_it_should() {
    let plan = smoke().plan();
    let report = report(&plan, &healthy(&plan), false);
    let text = rendered(&report, "text", Style::default());
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    golden("passed.txt", &text);
}

#[test]
fn a_failed_check_takes_three_lines() {
    let plan = smoke().plan();
    let text = rendered(&report(&plan, &broken(&plan), false), "text", Style::default());
    assert!(text.starts_with("FAILED"));
    assert!(!text.contains('\u{1b}'), "a server's escape reached the terminal");
    golden("failed.txt", &text);
}

#[test]
fn an_invalid_run_says_so_first_and_shows_no_check_as_passed() {
    let mut plan = smoke().plan();
    plan.validity.lag_p99 = Some(Duration::from_millis(6));
    let mut measures = healthy(&plan);
    (0..400).for_each(|i| {
        let mut record = record(10_000 + i, 12_000, 50, Outcome::Completed);
        record.sent = Some(record.due + Duration::from_millis(41));
        arrive(&mut measures, &record);
    });
    let text = rendered(&report(&plan, &measures, false), "text", Style::default());
    assert!(
        text.starts_with(
            "INVALID  our fault, not the gateway's: lag p99 41 ms (limit 6 ms) from second 12 on"
        ),
        "{text}"
    );
    assert!(!text.contains('✓'), "{text}");
    golden("invalid.txt", &text);
}

#[test]
fn an_interrupted_run_passes_nothing() {
    let plan = smoke().plan();
    let report = report(&plan, &healthy(&plan), true);
    assert!(report.checks.iter().all(|check| check.verdict != Verdict::Pass));
    let text = rendered(&report, "text", Style { colour: true, ascii: true });
    assert!(text.starts_with("\u{1b}[33mINTERRUPTED\u{1b}[0m") && text.contains("ended by Ctrl-C"), "{text}");
    assert!(!text.contains('✓') && !text.contains('✗'));
}

#[test]
fn the_json_keeps_its_keys_and_reads_back() {
    let plan = smoke().plan();
    let report = report(&plan, &healthy(&plan), false);
    let text = rendered(&report, "json", Style::default());
    assert!(!text.contains("NaN") && !text.contains("inf"));
    assert!(!text.contains("a-secret"), "a header of the plan reached the report");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let totals = &value["totals"];
    let sum: u64 = Outcome::ALL.iter().map(|outcome| totals[outcome.name()].as_u64().unwrap()).sum();
    assert_eq!(sum, totals["offered"].as_u64().unwrap());
    assert_eq!(value["schema"], "tenfold.report/1");
    assert_eq!(value["verdict"], "passed");
    assert_eq!(value["checks"][2]["id"], "shedding.onset");
    assert_eq!(value["checks"][2]["measured"], 37.0);
    for key in ["lag_p99_us", "unsent", "unjoined", "achieved_ratio", "reasons"] {
        assert!(!value["validity"][key].is_null(), "{key}");
    }
    let mut back: Report = serde_json::from_str(&text).unwrap();
    back.run.path.clone_from(&report.run.path);
    assert_eq!(back.totals, report.totals);
    assert_eq!(back.checks, report.checks);
    golden("passed.json", &text);
}

#[test]
fn an_empty_run_has_no_number_from_nothing() {
    let plan = smoke().plan();
    let report = report(&plan, &Measures::new(&plan), false);
    let text = rendered(&report, "json", Style::default());
    assert!(!text.contains("NaN") && !text.contains("inf"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["validity"]["lag_p99_us"].is_null() && value["onset"].is_null());
    assert_eq!(value["totals"]["shed"], 0);
    let page = rendered(&report, "text", Style::default());
    assert!(page.starts_with("INVALID") && page.contains("no request came due"), "{page}");
}

#[test]
fn a_dry_run_says_what_it_would_take() {
    let mut plan = flash().rehearsed();
    let forecast = Forecast::of(&plan);
    let render = |plan: &Plan, provider| {
        let mut out = Vec::new();
        let needs = DryNeeds {
            open: 417,
            connections: (417, 1),
            sources: 1,
            calls: 90,
            descriptors: 635,
            ports: 28_232,
            provider_keeps: Bytes::new(7_980_000),
            open_take: Bytes::new(17_778_000),
        };
        let dry = DryRun { plan, forecast: &forecast, needs, provider };
        dry.render(&Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = render(&plan, None);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    golden("dry-run.txt", &text);
    plan.target.kind = TargetKind::Url { url: "http://127.0.0.1:8080".into(), policy: None };
    let text = render(&plan, Some("http://127.0.0.1:9090"));
    assert!(text.contains("http://127.0.0.1:9090: the gateway must call this address"), "{text}");
    assert!(text.contains("250,000 tokens a minute and a burst of 3,750 tokens"), "{text}");
    let mut policy = flash().rehearsed().policy().unwrap().clone();
    policy.budgets = Budgets::of_slots(2);
    plan.target.kind = TargetKind::Url { url: "http://127.0.0.1:8080".into(), policy: Some(policy) };
    let text = render(&plan, None);
    assert!(text.contains("none: the gateway is believed to limit no tokens, 2 calls at once"), "{text}");
}

#[test]
fn what_a_target_says_of_itself_stands_in_every_form_for_people() {
    let plan = smoke().plan();
    let mut measures = healthy(&plan);
    let forms = ["text", "markdown", "html"];
    let silent = report(&plan, &measures, false);
    assert!(silent.said.is_none());
    assert!(forms.iter().all(|form| !rendered(&silent, form, Style::default()).contains("says that")));
    let at = Moment::from_secs(20);
    let memory = Some(Bytes::new(9_000_000));
    measures.vital(Vital::Said { at, queue_depth: Some(4), memory });
    measures.vital(Vital::Said { at, queue_depth: None, memory: None });
    let report = report(&plan, &measures, false);
    let depth = report.said.unwrap().queue_depth_requests.unwrap();
    assert_eq!((depth.samples, depth.said_peak, depth.seen_peak, depth.most_apart), (1, 4, 0, 4));
    for form in forms {
        let text = rendered(&report, form, Style::default()).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("says that at most 4 waited (seen at the same instants: 0)"), "{form}: {text}");
        assert!(
            text.contains("used at most 9.00 MB (seen: 14.0 MB); at most 5.00 MB apart"),
            "{form}: {text}"
        );
        assert!(text.contains("1 of 2 pages of its metrics did not come, or said nothing"), "{form}: {text}");
    }
}

#[test]
fn the_table_is_sorted() {
    assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
    assert!(find("text").is_some() && find("xml").is_none());
}

#[test]
fn every_form_of_a_passed_and_of_a_failed_run_is_as_it_was() {
    let plan = smoke().plan();
    for (name, measures) in [("passed", healthy(&plan)), ("failed", broken(&plan))] {
        let report = report(&plan, &measures, false);
        for (form, ending) in [("junit", "xml"), ("markdown", "md")] {
            let text = rendered(&report, form, Style { colour: true, ascii: false });
            assert!(!text.contains('\u{1b}'), "{form}: a server's escape reached the file");
            golden(&format!("{name}.{ending}"), &text);
        }
    }
}

/// How often an element begins.
fn elements(xml: &str, name: &str) -> usize {
    xml.matches(&format!("<{name} ")).count()
}

#[test]
fn junit_counts_an_invalid_and_an_interrupted_run_as_errors_and_missing_data_as_skipped() {
    let plan = smoke().plan();
    let xml = |measures: &Measures, interrupted| {
        let report = report(&plan, measures, interrupted);
        (rendered(&report, "junit", Style::default()), report)
    };
    let (passed, report) = xml(&healthy(&plan), false);
    assert_eq!(elements(&passed, "testcase"), 1 + report.checks.len());
    let bad = ["failure", "error", "skipped"].map(|name| elements(&passed, name));
    let apart = report.checks.iter().filter(|check| check.verdict == Verdict::NotApplicable).count();
    assert_eq!(bad, [0, 0, apart], "{passed}");
    assert!(passed.contains("name=\"smoke.shedding\" tests=\"5\""), "{passed}");
    let (interrupted, _) = xml(&healthy(&plan), true);
    assert_eq!(elements(&interrupted, "error"), 1 + report.checks.len() - apart);
    let (invalid, invalid_report) = xml(&Measures::new(&plan), false);
    let apply = invalid_report.checks.iter().filter(|check| check.verdict != Verdict::NotApplicable).count();
    assert_eq!(elements(&invalid, "error"), 1 + apply);
    assert!(invalid.contains("our fault, not the gateway"), "{invalid}");
    let mut quiet = healthy(&plan);
    quiet.vitals.pings = crate::measure::Pings::default();
    let (skipped, _) = xml(&quiet, false);
    assert!(elements(&skipped, "skipped") > 0 && elements(&skipped, "error") == 0, "{skipped}");
}

/// As in catchorg/Catch2#5: Jenkins drops the second of two suites of one name and time.
#[test]
fn junit_suites_of_two_runs_never_share_a_name_and_a_time() {
    let plan = smoke().plan();
    let mut virtually = report(&plan, &healthy(&plan), false);
    virtually.run.started = "1970-01-01T00:00:00Z".into();
    let xml = rendered(&virtually, "junit", Style::default());
    assert!(!xml.contains("timestamp") && xml.contains("smoke.shedding (20261130-071502, seed 7)"), "{xml}");
    let real = rendered(&report(&plan, &healthy(&plan), false), "junit", Style::default());
    assert!(real.contains("timestamp=\"2026-11-30T07:15:02"), "{real}");
}

/// A report in which a server put everything that means something somewhere.
pub(super) fn hostile() -> Report {
    let plan = smoke().plan();
    let mut report = report(&plan, &healthy(&plan), false);
    let nasty = "<script>alert(1)</script>\u{0}\u{1b}[2J\u{202e}\u{fffe}\u{85}]]>\"'&|`@all";
    report.verdict = crate::check::RunVerdict::Failed;
    for check in &mut report.checks {
        check.verdict = Verdict::Fail;
        (check.because, check.promised) = (nasty.to_owned(), nasty.to_owned());
    }
    (report.plan.name, report.run.target) = (nasty.to_owned(), nasty.to_owned());
    (report.plan.about, report.plan.requests[0].name) = (nasty.to_owned(), nasty.to_owned());
    (report.plan.requests[0].tenant, report.classes[0].name) = (nasty.to_owned(), nasty.to_owned());
    report.plan.phases[1].name = nasty.to_owned();
    report.run.ended_early = Some(nasty.to_owned());
    report.refusals[0].headers.push((nasty.to_owned(), nasty.to_owned()));
    report.refusals[0].body = nasty.to_owned();
    let part = FailurePart { cause: nasty.to_owned(), count: 2, first_s: 1.0, last_s: 2.0, read_bytes: 5 };
    report.failures.push(part);
    let text = TextPart { text: nasty.to_owned(), count: 1 };
    report.retry_after.odd.each.push(text.clone());
    report.retry_after.hints.push(HintPart {
        header: nasty.to_owned(),
        count: 2,
        min_s: Some(1.0),
        median_s: Some(1.0),
        max_s: Some(1.0),
        past: 0,
        nothing: 0,
        unknown: TextsPart { each: vec![text], others: 1 },
    });
    report
}

/// As in bojand/ghz#457 and NVIDIA-NeMo/nemo-platform#1176.
#[test]
fn no_form_shows_a_header_of_the_plan() {
    let plan = smoke().plan();
    assert!(plan.target.request.headers.values().any(|value| value.contains("a-secret")));
    let report = report(&plan, &broken(&plan), false);
    for format in ALL {
        let text = rendered(&report, format.name, Style::default());
        assert!(!text.contains("a-secret") && !text.contains("authorization"), "{}", format.name);
    }
}

/// As in bats-core/bats-core#846, apache/maven-surefire#1113 and jest-community/jest-junit#197.
#[test]
fn nothing_a_server_sent_is_markup_in_any_form() {
    let report = hostile();
    for format in ALL.iter().filter(|format| format.name != "json") {
        let text = rendered(&report, format.name, Style::default());
        let steers = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{fffe}');
        assert!(!text.contains(steers), "{}", format.name);
        assert!(format.name == "text" || !text.contains("<script>alert"), "{}", format.name);
        assert!(text.contains("\\u{1b}") || text.contains("\\\\u{1b}"), "{}: it is shown", format.name);
    }
}

#[test]
fn a_report_is_as_its_schema_says_and_reads_back_as_it_was() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let plan = smoke().plan();
    for report in [
        report(&plan, &healthy(&plan), false),
        report(&plan, &broken(&plan), true),
        report(&plan, &Measures::new(&plan), false),
        hostile(),
        streamed(),
    ] {
        let text = rendered(&report, "json", Style::default());
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let faults: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
        let back = read(text.as_bytes()).unwrap();
        assert_eq!(rendered(&back, "json", Style::default()), text);
    }
    let mut value = serde_json::to_value(report(&plan, &healthy(&plan), false)).unwrap();
    value["totals"]["offered"] = "many".into();
    assert!(!validator.is_valid(&value), "the schema forbids nothing");
}

/// The smoke plan with streamed answers, of which the last is flawed and does not say what it used.
fn streamed() -> Report {
    let mut sketch = smoke();
    sketch.requests[0]["stream"] = true.into();
    let plan = sketch.plan();
    let mut measures = healthy(&plan);
    let mut gaps = Gaps::default();
    gaps.push(Duration::from_millis(20), 9);
    for seq in 5_000..5_003 {
        let last = seq == 5_002;
        let used = (!last).then(|| crate::units::Tokens::new(1_200));
        let answered = record(seq, 15_000, 900, Outcome::Completed);
        let first_token = Some(answered.due + Duration::from_millis(250));
        let streamed = Some(Streamed { used, flawed: last });
        arrive(&mut measures, &Record { first_token, tokens: 10, streamed, ..answered });
        measures.gaps(&gaps);
    }
    report(&plan, &measures, false)
}

#[test]
fn streams_are_in_every_form_of_a_report_and_only_where_there_are_some() {
    let with = streamed();
    let part = with.streams.as_ref().unwrap();
    assert_eq!((part.whole, part.flawed, part.without_usage, part.used_tokens), (3, 1, 1, 2_400));
    assert_eq!((part.read_tokens, part.token_gap.count, part.first_token.from_due.count), (30, 27, 3));
    let without = report(&smoke().plan(), &healthy(&smoke().plan()), false);
    let style = Style { colour: false, ascii: true };
    for form in ["text", "markdown", "html", "junit"] {
        let text = rendered(&with, form, style);
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for wanted in
            ["first token after 250 ms median", "20 ms median", "1 not in the API", "1 without a word"]
        {
            assert!(words.contains(wanted), "{form}: {wanted}");
        }
        assert!(!rendered(&without, form, style).contains("first token"), "{form}");
    }
    let run = with.to_run("x").unwrap();
    assert_eq!((run.first_token_us.count(), run.token_gap_us.count()), (3, 27));
    assert_eq!(run.keys["requests.ask.stream"], "true", "streams are another load");
    assert!(without.streams.is_none() && without.to_run("x").unwrap().first_token_us.count() == 0);
}

/// As in grafana/k6#234: a run that took any certificate says so in every form. As in grafana/k6#726: so does one whose
/// target has a name, with every address.
#[test]
fn a_run_without_trust_and_the_addresses_of_a_name_are_in_every_form() {
    let mut plan = smoke().plan();
    let policy = plan.policy().cloned();
    plan.target.kind = TargetKind::Url { url: "https://gateway.example".into(), policy };
    let forms = ["text", "json", "html", "markdown", "junit"];
    let shown = |report: &Report, what: &str| {
        forms.iter().filter(|form| rendered(report, form, Style::default()).contains(what)).count()
    };
    let trusted = report(&plan, &healthy(&plan), false);
    assert_eq!(shown(&trusted, "insecure"), 0);
    plan.target.request.insecure = true;
    let mut report = report(&plan, &healthy(&plan), false);
    let address = |address: &str, answers| AddressPart { address: address.into(), answers };
    let addresses = vec![address("10.0.0.7", 1_040), address("fd00::1", 0)];
    let host = "gateway.example".to_owned();
    report.run.name = Some(NamePart { host, every_s: Some(30.0), lookups: 3, addresses });
    assert_eq!((shown(&report, "insecure"), shown(&report, "fd00::1")), (5, 5));
    let text = rendered(&report, "text", Style::default());
    let warning = text.lines().position(|line| line.starts_with("WARNING any certificate was taken"));
    assert_eq!(warning, Some(1), "right under the verdict: {text}");
    assert!(text.contains("10.0.0.7 answered 1,040") && text.contains("looked up 3 times"), "{text}");
    let value: serde_json::Value =
        serde_json::from_str(&rendered(&report, "json", Style::default())).unwrap();
    assert_eq!(
        (&value["run"]["insecure"], &value["run"]["name"]["addresses"][0]["answers"]),
        (&true.into(), &1_040.into())
    );
    report.run.name.as_mut().unwrap().every_s = None;
    assert!(rendered(&report, "markdown", Style::default()).contains("pinned"));

    // over plain HTTP there is no certificate to be taken
    plan.target.kind = TargetKind::Url { url: "http://gateway.example".into(), policy: None };
    assert!(!plan.target.takes_any_certificate());
}

#[test]
fn a_target_that_was_made_faulty_says_so_in_every_form() {
    let forms = ["text", "json", "html", "markdown", "junit"];
    let mut sketch = smoke();
    let shown = |sketch: &crate::measure::testing::Sketch| {
        let plan = sketch.plan();
        let report = report(&plan, &healthy(&plan), false);
        let says = |form: &&&str| rendered(&report, form, Style::default()).contains("37%");
        forms.iter().filter(says).count()
    };
    assert_eq!(shown(&sketch), 0);
    sketch.policy["faults"] = serde_json::json!(["no_recheck", { "early_shedding": "37%" }]);
    assert_eq!(shown(&sketch), 5);
    let plan = sketch.plan();
    let text = rendered(&report(&plan, &healthy(&plan), false), "text", Style::default());
    let warning = text.lines().nth(1).unwrap();
    assert!(warning.starts_with("WARNING this gateway was made faulty on purpose"), "{text}");
}
