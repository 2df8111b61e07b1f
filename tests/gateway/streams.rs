//! Streamed answers: what they hold, what they cost, and how they end.

use serde_json::json;

use crate::support::{Call, Caller, Running, Upstream, chat, plenty, still, with};

const TOKEN: &str = r#"{"choices":[{"index":0,"delta":{"content":"word "}}]}"#;

/// The chunk that says so many tokens were used.
fn usage(used: u64) -> String {
    json!({ "choices": [], "usage": { "total_tokens": used } }).to_string()
}

/// A gateway whose 300 tokens the first of two callers holds, while its answer streams and the other waits for 100.
fn streaming(upstream: &Upstream) -> (Running, Caller, Caller, Call) {
    let gateway = Running::start(still(), upstream);
    let mut first = gateway.call("a", &chat(200, 100));
    let mut call = upstream.next();
    let second = gateway.call("b", &chat(50, 50));
    gateway.until("queue_requests", 1);
    call.begin_stream();
    call.event(TOKEN);
    first.read_until("word");
    (gateway, first, second, call)
}

#[test]
fn a_stream_is_settled_by_what_it_says_it_used() {
    let upstream = Upstream::start();
    let (gateway, mut first, mut second, mut call) = streaming(&upstream);
    call.event(&usage(200));
    first.read_until("usage");
    assert_eq!(gateway.read("held_tokens"), 300, "not before its last byte");
    call.end_stream();
    assert!(first.answer().body.contains("[DONE]"));
    // a third of its hold came back: enough for the other
    let mut other = upstream.next();
    other.succeed(100);
    assert_eq!(second.answer().status, 200);
}

/// The public reference: "if the stream is interrupted, you may not receive the final usage chunk".
#[test]
fn a_stream_that_ends_without_a_word_of_its_use_has_used_its_hold() {
    let upstream = Upstream::start();
    let (gateway, mut first, _second, mut call) = streaming(&upstream);
    call.write("0\r\n\r\n");
    assert!(!first.answer().body.contains("[DONE]"), "the gateway makes up no end");
    gateway.until("requests_total{outcome=\"completed\"}", 1);
    assert_eq!((gateway.read("held_tokens"), gateway.read("queue_requests")), (0, 1));
    assert_eq!(gateway.read("forwards_total"), 1);
}

#[test]
fn a_stream_that_breaks_off_after_its_usage_is_settled_by_it() {
    let upstream = Upstream::start();
    let (gateway, mut first, _second, mut call) = streaming(&upstream);
    call.event(&usage(200));
    first.read_until("usage");
    call.cut();
    let _other = upstream.next();
    assert_eq!((gateway.read("unknown_requests"), gateway.read("held_tokens")), (0, 100));
}

/// A caller that reads the last event and closes has had its answer: official clients do so.
#[test]
fn a_caller_who_closes_after_the_last_event_has_not_left() {
    let upstream = Upstream::start();
    let (gateway, mut first, _second, mut call) = streaming(&upstream);
    call.event(&usage(200));
    call.event("[DONE]");
    first.read_until("[DONE]");
    drop(first);
    let _other = upstream.next();
    assert_eq!(gateway.read("requests_total{outcome=\"completed\"}"), 1);
    assert_eq!(gateway.read("requests_total{outcome=\"left\"}"), 0);
}

/// As in anthropics/anthropic-sdk-python#1258: an overload after the head has the status 200.
#[test]
fn an_error_inside_a_stream_passes_and_is_a_failure() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    call.begin_stream();
    call.event(r#"{"error":{"message":"overloaded"}}"#);
    call.write("0\r\n\r\n");
    assert!(caller.answer().body.contains("overloaded"));
    gateway.until("requests_total{outcome=\"failed\"}", 1);
    assert_eq!(gateway.read("upstream_calls_total{end=\"server_error\"}"), 1);
    assert_eq!(gateway.read("held_tokens"), 100, "what it cost nobody knows");
}

/// A whole answer that comes too late is a 504. A stream has its status already: it ends with an event that says why.
#[test]
fn a_stream_whose_time_is_up_ends_with_an_error_and_its_call_with_it() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call_within("a", 1_500, &chat(50, 50));
    let mut call = upstream.next();
    call.begin_stream();
    call.event(TOKEN);
    let answer = caller.answer();
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("word") && answer.body.contains(r#""type":"timeout""#), "{}", answer.body);
    assert!(call.was_closed(), "nothing is made any more");
    assert_eq!(gateway.read("upstream_calls_total{end=\"timeout\"}"), 1);
    assert_eq!(gateway.read("requests_total{outcome=\"failed\"}"), 1);
}

/// As in vllm-project/router#280 and constructorfabric/gears-rust#4880: a slot that is free again when the head has come
/// bounds nothing.
#[test]
fn a_slot_is_held_until_the_last_byte() {
    let upstream = Upstream::start();
    let policy =
        with(plenty(), json!({ "budgets": { "tokens_per_minute": "6M", "burst": "1s", "concurrent": 1 } }));
    let gateway = Running::start(policy, &upstream);
    let mut first = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    let _second = gateway.call("b", &chat(50, 50));
    gateway.until("queue_requests", 1);
    call.begin_stream();
    first.read_until("data: 1");
    call.event(TOKEN);
    first.read_until("word");
    assert_eq!((gateway.read("queue_requests"), gateway.read("forwards_total")), (1, 1));
    call.end_stream();
    let _other = upstream.next();
    assert_eq!(gateway.read("in_flight_requests"), 1);
}
