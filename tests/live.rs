//! Whole live runs: against the embedded gateway, a command, and targets that are none.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop there")]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::Duration;

use tenfold::live::{self, Ended, LiveError, Options, Run, Stop};
use tenfold::measure::Snapshot;
use tenfold::observe::Outcome;
use tenfold::plan::{self, Plan};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tenfold");

/// The smoke plan, far shorter, with more of its keys changed.
fn plan(overrides: &[&str]) -> Plan {
    short(include_str!("../plans/smoke.yaml"), overrides)
}

fn short(text: &str, overrides: &[&str]) -> Plan {
    let short =
        ["load.phases.before.for=500ms", "load.phases.promotion.for=2s", "load.phases.after.for=500ms"];
    let overrides: Vec<String> = short.iter().chain(overrides).map(|&set| set.to_owned()).collect();
    plan::parse(text, &overrides, &|_| None).unwrap().plan.rehearsed()
}

fn run_with(plan: &Plan, stop: &Stop, watch: &mut dyn FnMut(&Snapshot)) -> Result<Run, LiveError> {
    let options = Options { program: Some(PathBuf::from(PROGRAM)), ..Options::default() };
    live::run(plan, &options, watch, stop)
}

fn run(plan: &Plan) -> Result<Run, LiveError> {
    run_with(plan, &Stop::new(), &mut |_| {})
}

fn count(run: &Run, outcome: Outcome) -> u64 {
    run.measures.arrivals.get(outcome)
}

/// Every arrival has one outcome, and 4 + 160 + 4 were due.
fn check_sum(run: &Run) {
    let sum: u64 = Outcome::ALL.iter().map(|outcome| count(run, *outcome)).sum();
    assert_eq!((sum, run.measures.offered), (168, 168));
}

/// A server that answers every request with the same bytes and closes; its thread ends with this process.
fn answering(bytes: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 64 << 10];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(bytes.as_bytes());
            // the rest of the request, so that closing does not take the answer back
            let _ = stream.shutdown(std::net::Shutdown::Write);
            while matches!(stream.read(&mut request), Ok(1..)) {}
        }
    });
    url
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn an_overload_is_played_and_both_sides_are_seen() {
    let mut shown = 0;
    let metrics = "target.metrics={url: /metrics, queue_depth: tenfold_gateway_queue_requests}";
    let run = run_with(&plan(&[metrics]), &Stop::new(), &mut |_| shown += 1).unwrap();
    check_sum(&run);
    assert_eq!((run.ended_by.clone(), run.target.as_str()), (Ended::Done, "the embedded gateway"));
    assert!(run.carriers.request_id && run.carriers.traceparent && run.carriers.user, "{}", run.carriers);
    assert!(shown >= 4, "{shown}");
    let m = &run.measures;
    assert!(count(&run, Outcome::Shed) > 50, "{:?}", m.arrivals);
    // most are told to come back after the last phase, and nobody waits for them
    assert!(run.not_waited_for > 0 && m.returns.censored >= run.not_waited_for);
    assert!(!run.evidence.is_empty() && run.evidence.len() <= 20);
    assert!(run.evidence.iter().all(|raw| raw.status == 503 && raw.body.contains("reason")));
    let onset = m.onset.as_ref().unwrap();
    assert!((30..=45).contains(&onset.depth_met.requests), "{onset:?}");
    assert!(m.vitals.target.baseline.is_some() && m.vitals.own.samples > 10);
    assert!(m.vitals.target_ended.is_none() && m.vitals.provider_silent.is_none());
    assert_eq!((run.strangers, m.unjoined), (0, 0));
    // what the gateway says of its queue is what is seen from outside, but for what comes and goes meanwhile
    let said = &m.vitals.said;
    assert!(said.pages > 5 && said.lost == 0, "{said:?}");
    let depth = said.queue_depth;
    assert!(depth.said_peak > 20 && depth.most_apart * 2 < depth.said_peak, "{depth:?}");
}

#[test]
fn the_other_api_and_the_other_engine_are_spoken_through_the_whole_chain() {
    let run = run(&plan(&["provider.api=anthropic", "provider.engine=stream"])).unwrap();
    check_sum(&run);
    assert_eq!(count(&run, Outcome::Failed), 0);
    assert!(
        count(&run, Outcome::Shed) > 50 && count(&run, Outcome::Completed) > 20,
        "{:?}",
        run.measures.arrivals
    );
    let spoken = run.evidence.iter().all(|raw| raw.body.contains("overloaded_error"));
    assert!(!run.evidence.is_empty() && spoken, "{:?}", run.evidence);
}

/// The plan of streams, as short.
fn streams(overrides: &[&str]) -> Plan {
    short(include_str!("../plans/streams.yaml"), overrides)
}

#[test]
fn streams_are_read_token_by_token_through_the_whole_chain() {
    for changes in [&["provider.api=anthropic"][..], &["target.request.sender=reqwest"]] {
        let run = run(&streams(changes)).unwrap();
        check_sum(&run);
        let m = &run.measures;
        let completed = count(&run, Outcome::Completed);
        assert!(completed > 20 && count(&run, Outcome::Shed) > 50, "{changes:?} {:?}", m.arrivals);
        assert_eq!(count(&run, Outcome::Failed), 0, "{changes:?}");
        let s = &m.streams;
        assert!(s.whole >= completed && s.first_from_due.count() == s.whole, "{changes:?} {s:?}");
        assert_eq!((s.flawed, s.without_usage, s.used.get()), (0, 0, 1_200 * s.whole), "{changes:?}");
        assert_eq!((s.tokens, s.gaps.count()), (40 * s.whole, 39 * s.whole), "{changes:?}");
        // whoever was served at once waited for the service alone
        assert!(s.first_from_sent.min() >= Some(199_000), "{changes:?} {:?}", s.first_from_sent.min());
        let mean = s.gaps.mean().unwrap();
        assert!((19_000.0..22_000.0).contains(&mean), "{changes:?} {mean}");
    }
}

#[test]
fn whoever_leaves_a_stream_is_seen_leaving_by_the_provider_and_wastes_what_was_made() {
    let run = run(&streams(&["requests.chat.patience=700ms", "load.phases.after.for=2s"])).unwrap();
    let m = &run.measures;
    assert!(count(&run, Outcome::Abandoned) > 20, "{:?}", m.arrivals);
    let (forwards, charged, wasted) =
        (m.upstream.forwards, m.upstream.charged.get(), m.upstream.wasted.get());
    assert_eq!(charged, 1_200 * forwards);
    // the prompt at least, and not the last tokens: nobody stayed for them
    assert!((1_160 * forwards..1_199 * forwards).contains(&wasted), "{wasted} of {forwards}");
    assert!(
        m.streams.tokens > 0 && m.streams.tokens < 40 * forwards && m.streams.whole == 0,
        "{:?}",
        m.streams
    );
    assert_eq!((m.open_at_end.ghosts, m.open_at_end.at_provider), (0, 0));
}

#[test]
fn a_run_that_is_asked_to_stop_ends_in_order_with_what_it_has() {
    let stop = Stop::new();
    let asked = stop.clone();
    let run = run_with(&plan(&[]), &stop, &mut |now| {
        if now.offered > 20 && !asked.asked() {
            asked.ask();
        }
    })
    .unwrap();
    assert_eq!(run.ended_by, Ended::Interrupted);
    assert!(count(&run, Outcome::Unfinished) > 0, "{:?}", run.measures.arrivals);
    assert!(run.measures.offered < 168);
    let already = Stop::new();
    already.ask();
    assert!(matches!(run_with(&plan(&[]), &already, &mut |_| {}), Err(LiveError::Interrupted)));
}

#[test]
fn abort_when_spares_the_target() {
    let run = run(&plan(&["abort_when=[{goodput_below: 90%, for: 1s, after: 500ms}]"])).unwrap();
    let Ended::Aborted(why) = &run.ended_by else { panic!("{:?}", run.ended_by) };
    assert!(why.contains("below 90 % of what was offered"), "{why}");
    assert!(run.took < Duration::from_secs(3), "{:?}", run.took);
}

/// A command that is the reference gateway, and ends by itself after three seconds.
#[test]
fn a_target_that_dies_during_the_run_is_noticed_and_its_requests_fail() {
    let port = free_port();
    let config = format!(
        "{{listen: 127.0.0.1:{port}, provider: '$TENFOLD_PROVIDER_URL', service: {{start: 1s}}, \
         budgets: {{tokens_per_minute: 1200k, burst: 900ms}}}}"
    );
    let script = format!(
        "echo \"{config}\" | timeout -s KILL 3 {PROGRAM} serve gateway --config -; echo over >&2; exit 7"
    );
    let command = serde_json::to_string(&["sh", "-c", &script]).unwrap();
    let target = format!("target.spawn={{command: {command}, ready: 'http://127.0.0.1:{port}/healthz'}}");
    let run = run(&plan(&[&target, "load.phases.promotion.for=4s"])).unwrap();
    let (_, how) = run.measures.vitals.target_ended.as_ref().unwrap();
    assert!(how.contains("exit status: 7") && how.contains("over"), "{how}");
    assert!(count(&run, Outcome::Failed) > 50, "{:?}", run.measures.arrivals);
    assert!(run.measures.vitals.target.samples > 0, "the memory of a whole process tree");
    assert_eq!(run.ended_by, Ended::Done);
}

#[test]
fn a_target_that_cannot_be_started_says_why() {
    let start = |command: &str| {
        let target = format!("target.spawn={{command: [{command}], ready: 'http://127.0.0.1:9/'}}");
        let Err(LiveError::Target(why)) = run(&plan(&[&target])) else { panic!("it ran") };
        why
    };
    let missing = start("/no/such/program");
    assert!(missing.contains("`/no/such/program` could not be started"), "{missing}");
    let died = start("sh, -c, 'echo no licence >&2; exit 3'");
    assert!(
        died.contains("ended before it was ready (exit status: 3)") && died.contains("no licence"),
        "{died}"
    );
}

#[test]
fn a_target_that_is_none_loses_the_canary_and_is_told_why() {
    let lost = |url: &str| {
        let Err(LiveError::Canary(why)) = run(&plan(&[&format!("target.url={url}")])) else {
            panic!("it ran")
        };
        why
    };
    let refused = lost(&format!("http://127.0.0.1:{}", free_port()));
    assert!(refused.contains("no connection") && refused.contains("--wait-ready"), "{refused}");
    let garbage = lost(&answering("220 mail.example ESMTP\r\n\r\n"));
    assert!(
        garbage.contains("is it an HTTP server") && garbage.contains("the provider never saw it"),
        "{garbage}"
    );
    let redirect = lost(&answering("HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n"));
    assert!(redirect.contains("answered 302"), "{redirect}");
    let other = lost(&answering(
        "HTTP/1.1 200 OK\r\ncontent-length: 44\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"word\"}}]}",
    ));
    assert!(other.contains("not from our provider: set its upstream to http://127.0.0.1:"), "{other}");
}

#[test]
fn a_provider_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let holder = TcpListener::bind(taken).unwrap();
    let Err(LiveError::Provider(why)) = run(&plan(&[&format!("provider.listen='{taken}'")])) else {
        panic!("it ran")
    };
    assert!(why.contains(&taken.to_string()), "{why}");
    drop(holder);
}

#[test]
fn an_interrupted_command_leaves_a_report_and_no_child() {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["run", "plans/smoke.yaml", "-q", "--format", "json", "--out"]).arg(out.path());
    let child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let children = || std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    while children().trim().is_empty() {
        thread::sleep(Duration::from_millis(10));
    }
    let gateway = children().trim().to_owned();
    thread::sleep(Duration::from_secs(2));
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(130));
    let report: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(report["verdict"], "interrupted");
    assert!(report["checks"].as_array().unwrap().iter().all(|check| check["verdict"] != "pass"));
    assert!(!std::path::Path::new(&format!("/proc/{gateway}")).exists(), "the gateway is still there");
    let runs: Vec<_> = std::fs::read_dir(out.path().join("smoke")).unwrap().collect();
    assert_eq!(runs.len(), 1);
    let folder = runs[0].as_ref().unwrap().path();
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["junit.xml", "report.html", "report.json", "report.md"]);
}

#[test]
fn the_command_tells_by_its_exit_code_why_it_did_not_run() {
    let out = tempfile::tempdir().unwrap();
    let reports = out.path().join("reports");
    let run_to = |place: &std::path::Path, more: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.args(["run", "plans/smoke.yaml", "--out"]).arg(place).args(more);
        let done = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
    };
    let run = |more: &[&str]| run_to(&reports, more);
    let (code, said, _) = run(&["--dry-run"]);
    assert!(code == 0 && said.contains("nothing was sent"), "{said}");
    let (code, _, said) = run(&["--dry-run", "--target", "http://192.0.2.1/"]);
    assert!(code == 2 && said.contains("--confirm-target 192.0.2.1"), "{said}");
    let (code, _, said) = run(&["--format", "pdf"]);
    assert!(code == 2 && said.contains("known: html, json, junit, markdown, text"), "{said}");
    assert!(!reports.exists(), "nothing was run, so nothing is written");

    let nobody = format!("http://127.0.0.1:{}", free_port());
    let (code, _, said) = run(&["--target", &nobody]);
    assert!(code == 4 && said.contains("the provider listens at http://127.0.0.1:"), "{said}");
    assert!(said.contains(&format!("no connection to {nobody}")), "{said}");
    let (code, _, said) =
        run(&["--set", "load.phases.promotion.rate=1000/s", "--set", "load.phases.promotion.for=1h"]);
    assert!(code == 4 && said.contains("wiremock keeps every request"), "{said}");
    let (code, _, said) = run_to("/dev/null".as_ref(), &[]);
    assert!(code == 4 && said.contains("reports cannot be written to /dev/null/smoke"), "{said}");
}

#[test]
fn callers_who_retry_come_back_on_the_wire_and_each_arrival_still_has_one_outcome() {
    let retry =
        "requests.0.on_refusal={ retry: { attempts: 3, honour: false, backoff: 200ms, longest: 200ms } }";
    let run = run(&plan(&[retry])).unwrap();
    check_sum(&run);
    let m = &run.measures;
    let (attempts, shed) = (m.attempts.total(), count(&run, Outcome::Shed));
    assert!(attempts > 168 + 100 && attempts <= 3 * 168, "{attempts}");
    assert!(shed > 20 && m.attempts.get(Outcome::Shed) >= 3 * shed, "{shed} of {:?}", m.attempts);
    assert_eq!((run.strangers, m.unjoined, m.open_at_end.outstanding), (0, 0, 0));
}

/// A recorded crowd at ten times its speed, nobody refused: what the provider counted is what the trace says, to the
/// token, and so it is with words that are tokens of a real tokenizer.
#[test]
fn a_trace_is_played_with_its_own_times_and_sizes() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("plans/shared-link.yaml");
    for count_by in ["words", "o200k_base"] {
        let sets = [
            "load.arrivals.trace.from=60s".to_owned(),
            "load.arrivals.trace.speed=10".to_owned(),
            "load.phases=[{ name: crowd, for: 2s, event: true }]".to_owned(),
            "provider.quota={ tokens_per_minute: 60M, burst: 1s }".to_owned(),
            format!("provider.count={count_by}"),
        ];
        let loaded =
            tenfold::cli::load::read(&path, &sets).unwrap_or_else(|e| panic!("{}", e.render("plan")));
        let plan = loaded.plan.rehearsed();
        let due: Vec<_> = tenfold::workload::Schedule::new(&plan.load, &plan.requests).collect();
        let holds: u64 = due.iter().map(|arrival| arrival.sizes.hold().get()).sum();
        assert!(due.len() > 100 && due.iter().any(|a| a.sizes.prompt != due[0].sizes.prompt));
        let run = run(&plan).unwrap();
        assert_eq!(count(&run, Outcome::Completed), due.len() as u64, "{:?}", run.measures.arrivals);
        assert_eq!(run.measures.upstream.charged.get(), holds, "{count_by}");
    }
}
