use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::*;
use crate::plan::DeadlineForm;
use crate::provider::wire::openai;
use crate::provider::wire::openai::OpenAi;
use crate::provider::{Charge, Count, Engine, Law, Quota, Service, Window};
use crate::units::{Rate, Tokens};

const RUN: u32 = 0x9f3c_2a11;

fn config(listen: &str) -> Config {
    Config {
        listen: listen.into(),
        advertise: None,
        engine: Engine::Wiremock,
        api: &OpenAi,
        count: Count::Words,
        // two requests of 10 + 10 tokens at once; the next one fits twenty seconds later
        quota: Quota {
            tokens: Rate::per_minute(60).unwrap(),
            burst: Duration::from_secs(40),
            window: Window::Bucket,
            charge: Charge::Reservation,
        },
        service: Service {
            first_token: Duration::from_millis(20),
            per_token: Duration::from_millis(1),
            law: Law::Fixed,
        },
        slots: None,
        faults: Vec::new(),
    }
}

fn shell() -> (ProviderShell, Receiver<Arrived>) {
    let (sender, seen) = channel();
    let deadline = DeadlineHeader { header: "x-request-timeout-ms".into(), form: DeadlineForm::RemainingMs };
    let tell = move |arrived| sender.send(arrived).unwrap();
    let shell = ProviderShell::start(&config("127.0.0.1:0"), &deadline, Clock::start(), RUN, tell).unwrap();
    (shell, seen)
}

/// An answer: status, head (lower case) and body.
fn call(shell: &ProviderShell, line: &str, headers: &str, body: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(shell.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: p\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_lowercase(), body.to_owned())
}

fn post(shell: &ProviderShell, headers: &str, body: &str) -> (u16, String, String) {
    call(shell, &format!("POST {}", openai::PATH), headers, body)
}

fn id(seq: u64) -> RequestId {
    RequestId { run: RUN, seq, attempt: 0, output: Tokens::new(7) }
}

fn body(user: &str) -> String {
    openai::request_body("rehearsal", Tokens::new(10), 60, Tokens::new(10), user)
}

#[test]
fn an_answer_has_the_words_its_id_asks_for_and_is_seen_arriving() {
    let (shell, seen) = shell();
    let id = id(412);
    let headers = format!(
        "x-request-id: {id}\r\ntraceparent: {}\r\nx-request-timeout-ms: 4321\r\n",
        id.traceparent().unwrap()
    );
    let (status, head, text) = post(&shell, &headers, &body(&id.to_string()));
    assert_eq!(status, 200, "{text}");
    assert!(
        head.contains("content-type: application/json") && head.contains("x-ratelimit-remaining-tokens: 20")
    );
    let answer: Value = serde_json::from_str(&text).unwrap();
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(content.split(' ').count(), 7);
    assert_eq!(answer["usage"]["total_tokens"], 17);
    let arrived = seen.recv().unwrap();
    assert_eq!((arrived.id, arrived.carriers.to_string().as_str()), (id, "x-request-id, traceparent, user"));
    let Sighting::AtProvider { attempt, at, until, charged, refused, budget } = arrived.sighting else {
        panic!()
    };
    assert_eq!((attempt.seq, attempt.nth, charged, refused), (412, 0, Tokens::new(20), false));
    assert_eq!(until.since(at), Duration::from_millis(27));
    assert_eq!(budget, Some(Duration::from_millis(4_321)));
    assert!(seen.try_recv().is_err());
}

#[test]
fn a_spent_quota_is_told_in_the_documented_form() {
    let (shell, seen) = shell();
    let send = |seq| post(&shell, &format!("x-request-id: {}\r\n", id(seq)), &body("u"));
    assert_eq!((send(1).0, send(2).0), (200, 200));
    let (status, head, text) = send(3);
    assert_eq!(status, 429);
    let header =
        |name: &str| head.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned));
    let secs: u64 = header("retry-after").unwrap().parse().unwrap();
    let millis: u64 = header("retry-after-ms").unwrap().parse().unwrap();
    assert!((1..=20).contains(&secs) && millis.div_ceil(1_000) == secs, "{head}");
    let error: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(error["error"]["code"], "rate_limit_exceeded");
    assert_eq!(error["error"]["type"], "tokens");
    let last = seen.try_iter().last().unwrap().sighting;
    assert!(
        matches!(last, Sighting::AtProvider { refused: true, charged: Tokens::ZERO, at, until, .. } if at == until)
    );
}

#[test]
fn what_makes_no_sense_is_refused_by_name_and_costs_nothing() {
    let (shell, seen) = shell();
    let ours = format!("x-request-id: {}\r\n", id(1));
    for (text, param) in [
        ("", Value::Null),
        ("[", Value::Null),
        (r#"{"messages":[{"content":"a"}],"max_tokens":1}"#, "model".into()),
        (r#"{"model":"m","max_tokens":1}"#, "messages".into()),
        (r#"{"model":"m","messages":[{"content":"a"}]}"#, "max_completion_tokens".into()),
        (r#"{"model":"m","messages":[{"content":"a"}],"max_tokens":1,"stream":true}"#, "stream".into()),
    ] {
        let (status, _, answer) = post(&shell, &ours, text);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["error"]["param"]), (400, &param), "{text}");
        assert_eq!(answer["error"]["type"], "invalid_request_error");
    }
    let (status, head, answer) =
        post(&shell, &ours, r#"{"model":"m","messages":[{"content":"a"}],"max_tokens":1000}"#);
    assert_eq!(status, 429);
    assert!(answer.contains("Request too large") && !head.contains("retry-after"), "{head}\n{answer}");
    assert_eq!(call(&shell, "GET /v1/chat/completions", "", "").0, 404);
    let all: Vec<_> = seen.try_iter().collect();
    assert_eq!(all.len(), 7);
    assert!(
        all.iter()
            .all(|a| matches!(a.sighting, Sighting::AtProvider { refused: true, charged: Tokens::ZERO, .. }))
    );
    assert_eq!(shell.strangers(), 0);
}

#[test]
fn any_carrier_will_do_and_other_runs_are_strangers() {
    let (shell, seen) = shell();
    let broken = r#"{"user":"#;
    post(&shell, &format!("traceparent: {}\r\n", id(1).traceparent().unwrap()), broken);
    post(&shell, "x-request-id: req_1\r\n", &body(&id(2).to_string()));
    let other = RequestId { run: 1, ..id(3) };
    post(&shell, &format!("x-request-id: {other}\r\n"), &body("u"));
    let carriers: Vec<_> = seen.try_iter().map(|a| (a.id.seq, a.carriers.to_string())).collect();
    assert_eq!(carriers, [(1, "traceparent".to_owned()), (2, "user".to_owned())]);
    assert_eq!(shell.strangers(), 1);
}

#[test]
fn it_is_known_when_nobody_accepts_any_more() {
    let (shell, _seen) = shell();
    assert!(shell.answers(Duration::from_secs(10)));
    assert!(call(&shell, "GET /v1/models", "", "").2.contains("rehearsal"));
    // the system accepts for a listener that nobody serves: only an answer tells
    let deaf = listen("127.0.0.1:0").unwrap();
    assert!(!answers(deaf.local_addr().unwrap(), Duration::from_millis(50)));
    let gone = deaf.local_addr().unwrap();
    drop(deaf);
    assert!(!answers(gone, Duration::from_millis(50)));
}

#[test]
fn a_port_in_use_is_told_with_the_way_out() {
    let (shell, _seen) = shell();
    let deadline = DeadlineHeader { header: "d".into(), form: DeadlineForm::RemainingS };
    let taken = config(&shell.address().to_string());
    let error = ProviderShell::start(&taken, &deadline, Clock::start(), RUN, |_| ()).unwrap_err().to_string();
    assert!(error.contains(&shell.address().to_string()) && error.contains("127.0.0.1:0"), "{error}");
}

#[tokio::test]
async fn it_can_be_started_from_a_runtime() {
    let (shell, _seen) = shell();
    assert!(shell.url().starts_with("http://127.0.0.1:"));
}

#[test]
fn what_is_kept_grows_with_requests_and_their_bodies() {
    assert_eq!(ProviderShell::keeps(1_000, Bytes::new(6_000)), Bytes::new(11_000_000));
    assert_eq!(ProviderShell::keeps(u64::MAX, Bytes::new(6_000)), Bytes::new(u64::MAX));
}
