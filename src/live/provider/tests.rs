use std::sync::mpsc::{Receiver, channel};

use serde_json::Value;

use super::*;
use crate::plan::DeadlineForm;
use crate::provider::wire::anthropic::Anthropic;
use crate::provider::wire::openai::{self, OpenAi};
use crate::provider::wire::{Api, Said, sse};
use crate::provider::{Count, Engine, Quota, Service};
use crate::units::{Rate, Tokens};

mod faults;
mod quota;

const RUN: u32 = 0x9f3c_2a11;

fn config(listen: &str) -> Config {
    Config {
        listen: listen.into(),
        advertise: None,
        engine: Engine::Wiremock,
        api: &OpenAi,
        count: Count::Words,
        // two requests of 10 + 10 tokens at once; the next one fits twenty seconds later
        quota: Quota::of_tokens(Rate::per_minute(60).unwrap(), Duration::from_secs(40)),
        service: Service::fixed(Duration::from_millis(20), Duration::from_millis(1)),
        slots: None,
        faults: Vec::new(),
    }
}

fn start(config: &Config) -> (ProviderShell, Receiver<Arrived>) {
    let (sender, seen) = channel();
    let deadline = DeadlineHeader { header: "x-request-timeout-ms".into(), form: DeadlineForm::RemainingMs };
    let tell = move |arrived| sender.send(arrived).unwrap();
    (ProviderShell::start(config, &deadline, Clock::start(), RUN, tell).unwrap(), seen)
}

fn shell() -> (ProviderShell, Receiver<Arrived>) {
    start(&config("127.0.0.1:0"))
}

/// One of each engine.
fn shells() -> [(ProviderShell, Receiver<Arrived>); 2] {
    [Engine::Wiremock, Engine::Stream].map(|engine| start(&Config { engine, ..config("127.0.0.1:0") }))
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
    OpenAi.request("rehearsal", &openai::prompt(10, 60), Tokens::new(10), user, false)
}

#[test]
fn an_answer_has_the_words_its_id_asks_for_and_is_seen_arriving() {
    for (shell, seen) in shells() {
        let id = id(412);
        let headers = format!(
            "x-request-id: {id}\r\ntraceparent: {}\r\nx-request-timeout-ms: 4321\r\n",
            id.traceparent().unwrap()
        );
        let (status, head, text) = post(&shell, &headers, &body(&id.to_string()));
        assert_eq!(status, 200, "{text}");
        assert!(
            head.contains("content-type: application/json")
                && head.contains("x-ratelimit-remaining-tokens: 20")
        );
        let answer: Value = serde_json::from_str(&text).unwrap();
        let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
        assert_eq!(content.split(' ').count(), 7);
        assert_eq!(answer["usage"]["total_tokens"], 17);
        let arrived = seen.recv().unwrap();
        assert_eq!(
            (arrived.id, arrived.carriers.to_string().as_str()),
            (id, "x-request-id, traceparent, user")
        );
        let Sighting::AtProvider { attempt, at, until, charged, refused, budget, .. } = arrived.sighting
        else {
            panic!()
        };
        assert_eq!((attempt.seq, attempt.nth, charged, refused), (412, 0, Tokens::new(20), false));
        assert_eq!(until.since(at), Duration::from_millis(27));
        assert_eq!(budget, Some(Duration::from_millis(4_321)));
        assert!(seen.try_recv().is_err());
    }
}

#[test]
fn a_spent_quota_is_told_in_the_documented_form() {
    for (shell, seen) in shells() {
        let send = |seq| post(&shell, &format!("x-request-id: {}\r\n", id(seq)), &body("u"));
        assert_eq!((send(1).0, send(2).0), (200, 200));
        let (status, head, text) = send(3);
        assert_eq!(status, 429);
        let header = |name: &str| {
            head.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned))
        };
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
    for (shell, seen) in shells() {
        let broken = r#"{"user":"#;
        post(&shell, &format!("traceparent: {}\r\n", id(1).traceparent().unwrap()), broken);
        post(&shell, "x-request-id: req_1\r\n", &body(&id(2).to_string()));
        let other = RequestId { run: 1, ..id(3) };
        post(&shell, &format!("x-request-id: {other}\r\n"), &body("u"));
        let carriers: Vec<_> = seen.try_iter().map(|a| (a.id.seq, a.carriers.to_string())).collect();
        assert_eq!(carriers, [(1, "traceparent".to_owned()), (2, "user".to_owned())]);
        assert_eq!(shell.strangers(), 1);
    }
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
    assert_eq!(ProviderShell::keeps(1_000, Bytes::new(6_000)), Bytes::new(20_000_000));
    assert_eq!(ProviderShell::keeps(u64::MAX, Bytes::new(6_000)), Bytes::new(u64::MAX));
}

const STREAMED: &str = r#"{"model":"m","messages":[{"content":"a b"}],"max_tokens":5,"stream":true,"stream_options":{"include_usage":true}}"#;

fn streaming() -> Config {
    Config { engine: Engine::Stream, ..config("127.0.0.1:0") }
}

/// What a streamed answer said, event by event.
fn heard(api: &dyn Api, text: &str) -> Vec<Said> {
    let (mut reader, mut said) = (sse::Reader::new(), Vec::new());
    // the sizes of the chunks are lines of their own, which no event has
    reader.feed(text.as_bytes(), |event| said.push(api.said(&event))).unwrap();
    said
}

#[test]
fn an_answer_is_streamed_token_by_token_and_says_what_it_used() {
    let (shell, seen) = start(&streaming());
    let (status, head, text) = post(&shell, &format!("x-request-id: {}\r\n", id(1)), STREAMED);
    assert_eq!(status, 200, "{text}");
    assert!(
        head.contains("content-type: text/event-stream") && head.contains("x-ratelimit-remaining-tokens")
    );
    let said = heard(&OpenAi, &text);
    assert_eq!(said.iter().filter(|said| said.content).count(), 5, "7 were wanted, 5 allowed: {text}");
    assert!(said.last().is_some_and(|said| said.end));
    assert!(said.iter().any(|said| said.used == Some(Tokens::new(7))), "{said:?}");
    let arrived = seen.recv().unwrap();
    assert!(
        matches!(arrived.sighting, Sighting::AtProvider { charged, refused: false, .. } if charged == Tokens::new(7))
    );
    assert_eq!(shell.cut(), 0);
}

#[test]
fn the_other_api_is_spoken_by_both_engines_and_streamed_by_one() {
    let request = |stream: bool| {
        format!(
            r#"{{"model":"m","system":"a","messages":[{{"role":"user","content":"b"}}],"max_tokens":3,"stream":{stream},"metadata":{{"user_id":"{}"}}}}"#,
            id(1)
        )
    };
    for engine in [Engine::Wiremock, Engine::Stream] {
        let (shell, seen) = start(&Config { engine, api: &Anthropic, ..config("127.0.0.1:0") });
        let ask = |body: &str| call(&shell, "POST /v1/messages", "", body);
        let (status, head, text) = ask(&request(false));
        assert_eq!((status, Anthropic.used(text.as_bytes())), (200, Some(Tokens::new(5))), "{text}");
        assert!(
            head.contains("anthropic-ratelimit-tokens-reset: 20") && head.contains("request-id: req_"),
            "{head}"
        );
        assert_eq!(seen.recv().unwrap().carriers.to_string(), "user");
        assert_eq!(call(&shell, "POST /v1/chat/completions", "", "{}").0, 404);
        let (status, _, text) = ask("{");
        assert!(
            status == 400 && text.contains(r#""type":"error""#) && text.contains("invalid_request_error")
        );
        let (status, _, text) = ask(&request(true));
        if engine == Engine::Wiremock {
            assert!(status == 400 && text.contains("stream"), "{text}");
        } else {
            let said = heard(&Anthropic, &text);
            assert_eq!(said.iter().filter(|said| said.content).count(), 3, "{text}");
            assert!(said.iter().any(|said| said.used == Some(Tokens::new(5))), "{said:?}");
            assert!(said.last().is_some_and(|said| said.end), "{said:?}");
        }
    }
}

#[test]
fn callers_who_leave_before_the_end_are_seen_leaving() {
    let slow = Service::fixed(Duration::from_secs(600), Duration::ZERO);
    let (shell, seen) = start(&Config { service: slow, ..streaming() });
    let mut callers = Vec::new();
    for (seq, body) in [(1, STREAMED.to_owned()), (2, body("u"))] {
        let mut stream = TcpStream::connect(shell.address()).unwrap();
        let head = format!("POST {} HTTP/1.1\r\nhost: p\r\nx-request-id: {}", openai::PATH, id(seq));
        stream
            .write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .unwrap();
        seen.recv().unwrap();
        callers.push(stream);
    }
    // what is answered after both came shows that neither was taken for cut
    assert!(shell.answers(Duration::from_secs(10)));
    assert_eq!(shell.cut(), 0);
    drop(callers);
    for _ in 0..2_000 {
        if shell.cut() == 2 {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} seen leaving", shell.cut());
}

#[test]
fn a_body_larger_than_any_request_is_refused() {
    let (shell, _seen) = start(&streaming());
    let mut stream = TcpStream::connect(shell.address()).unwrap();
    let head = format!("POST {} HTTP/1.1\r\nhost: p\r\ncontent-length: 70000000\r\n\r\n", openai::PATH);
    stream.write_all(head.as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 413");
}

/// As in LukeMathWalker/wiremock-rs#133: at a raw socket a stream comes in pieces, each in its time.
#[test]
fn a_stream_comes_in_chunks_each_in_its_time() {
    let service = Service::fixed(Duration::from_millis(200), Duration::from_millis(50));
    let (shell, _seen) = start(&Config { service, ..streaming() });
    let clock = Clock::start();
    let body = r#"{"model":"m","messages":[{"content":"a"}],"max_tokens":20,"stream":true}"#;
    let mut stream = TcpStream::connect(shell.address()).unwrap();
    let head = format!("POST {} HTTP/1.1\r\nhost: p\r\ncontent-length: {}\r\n\r\n", openai::PATH, body.len());
    let begun = clock.now();
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let (mut text, mut buffer, mut reads, mut first, mut last) =
        (String::new(), [0; 8 << 10], 0, None, begun);
    while !text.contains("[DONE]") {
        let read = stream.read(&mut buffer).unwrap();
        let piece = std::str::from_utf8(&buffer[..read]).unwrap();
        if piece.contains("word") {
            reads += 1;
            last = clock.now();
            first = first.or(Some(last));
        }
        text.push_str(piece);
    }
    let head = text.split("\r\n\r\n").next().unwrap().to_lowercase();
    assert!(head.contains("transfer-encoding: chunked") && !head.contains("content-length"), "{head}");
    let (first, last) = (first.unwrap().since(begun), last.since(begun));
    assert!(
        first >= Duration::from_millis(200) && last >= Duration::from_millis(1_150),
        "{first:?} {last:?}"
    );
    // a machine that stands still for a second would join some
    assert!(reads >= 15 || clock.now().since(begun) > Duration::from_secs(2), "{reads} reads");
}

#[test]
fn what_a_cut_off_call_cost_is_told_to_the_run() {
    let service = Service::fixed(Duration::from_millis(1), Duration::from_secs(60));
    let (shell, seen) = start(&Config { service, ..streaming() });
    let mut stream = TcpStream::connect(shell.address()).unwrap();
    let head = format!("POST {} HTTP/1.1\r\nhost: p\r\nx-request-id: {}", openai::PATH, id(3));
    stream
        .write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{STREAMED}", STREAMED.len()).as_bytes())
        .unwrap();
    assert!(matches!(seen.recv().unwrap().sighting, Sighting::AtProvider { .. }));
    let (mut text, mut buffer) = (String::new(), [0; 4_096]);
    while !text.contains("word") {
        let read = stream.read(&mut buffer).unwrap();
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
    }
    drop(stream);
    let arrived = seen.recv_timeout(Duration::from_secs(20)).unwrap();
    let Sighting::CutOff { attempt, spent, .. } = arrived.sighting else { panic!("{arrived:?}") };
    assert_eq!((arrived.id, attempt.seq), (id(3), 3));
    assert_eq!(spent, Tokens::new(3), "two words asked, one answered");
}
