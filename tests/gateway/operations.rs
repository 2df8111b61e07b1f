//! Idempotency keys: whatever is sent twice, the provider is called once.

use serde_json::json;

use crate::support::{Caller, Running, Upstream, chat, plenty, still, with};

/// Sends a request under a key.
fn keyed(gateway: &Running, key: &str, body: &str) -> Caller {
    gateway.send(&format!("idempotency-key: {key}\r\nx-request-timeout-ms: 60000\r\n"), body)
}

#[test]
fn all_four_kinds_of_a_request_with_a_key_come_to_one_call() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut first = keyed(&gateway, "k", &chat(50, 50));
    let mut call = upstream.next();
    assert!(call.head.contains("idempotency-key: k"), "the provider may know it too");
    let mut second = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("attached_requests", 1);
    let conflict = keyed(&gateway, "k", &chat(50, 51)).answer();
    assert_eq!((conflict.status, &conflict.json()["reason"]), (422, &json!("conflict")));
    call.answer(200, "x-own: 1\r\n", r#"{"usage":{"total_tokens":70}}"#);
    let (first, second) = (first.answer(), second.answer());
    let third = keyed(&gateway, "k", &chat(50, 50)).answer();
    assert_eq!((first.status, first.header("idempotency-replayed")), (200, None));
    for answer in [&second, &third] {
        assert_eq!((answer.status, &answer.body), (200, &first.body), "byte for byte");
        assert_eq!(
            (answer.header("x-own"), answer.header("idempotency-replayed")),
            (Some("1"), Some("true"))
        );
    }
    let conflict = keyed(&gateway, "k", &chat(50, 51)).answer();
    assert_eq!(conflict.status, 422, "also when it has ended");
    assert_eq!((gateway.read("forwards_total"), gateway.read("kept_answers")), (1, 1));
    for (outcome, count) in [("completed", 1), ("replayed", 2), ("conflict", 2)] {
        assert_eq!(gateway.read(&format!("requests_total{{outcome=\"{outcome}\"}}")), count, "{outcome}");
    }
    assert_eq!(gateway.read("held_tokens"), 0);
}

#[test]
fn one_key_of_two_tenants_is_two_operations() {
    let upstream = Upstream::start();
    let gateway =
        Running::start(with(plenty(), json!({ "tenants": [{ "name": "a" }, { "name": "b" }] })), &upstream);
    let _a = gateway.send("x-tenant: a\r\nidempotency-key: k\r\n", &chat(5, 5));
    let _b = gateway.send("x-tenant: b\r\nidempotency-key: k\r\n", &chat(5, 5));
    gateway.until("forwards_total", 2);
}

#[test]
fn a_call_goes_on_for_those_who_wait_for_its_answer() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let first = keyed(&gateway, "k", &chat(50, 50));
    let mut call = upstream.next();
    let mut second = keyed(&gateway, "k", &chat(50, 50));
    let third = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("attached_requests", 2);
    drop(first);
    drop(third);
    gateway.until("attached_requests", 1);
    call.succeed(60);
    assert_eq!(second.answer().status, 200);
    assert_eq!((gateway.read("forwards_total"), gateway.read("unknown_requests")), (1, 0));
    assert_eq!(gateway.read("requests_total{outcome=\"completed\"}"), 1, "the run, whoever began it");
    assert_eq!(gateway.read("requests_total{outcome=\"left\"}"), 1);
}

#[test]
fn a_call_ends_when_the_last_who_waits_has_left() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let first = keyed(&gateway, "k", &chat(50, 50));
    let mut call = upstream.next();
    let second = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("attached_requests", 1);
    drop(first);
    drop(second);
    assert!(call.was_closed(), "nobody pays for what nobody reads");
    gateway.until("unknown_requests", 1);
    gateway.until("requests_total{outcome=\"left\"}", 2);
    let third = keyed(&gateway, "k", &chat(50, 50)).answer();
    assert_eq!(
        (third.status, &third.json()["reason"]),
        (409, &json!("duplicate_active")),
        "what it did nobody knows"
    );
    assert_eq!(third.header("retry-after"), Some("1"));
    assert_eq!(gateway.read("forwards_total"), 1);
}

#[test]
fn a_waiting_request_whose_callers_have_left_is_forgotten() {
    let upstream = Upstream::start();
    let gateway = Running::start(still(), &upstream);
    let _blocker = gateway.call("a", &chat(200, 100));
    let _call = upstream.next();
    let first = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("queue_requests", 1);
    let second = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("attached_requests", 1);
    drop(first);
    drop(second);
    gateway.until("queue_requests", 0);
    gateway.until("requests_total{outcome=\"left\"}", 2);
    let _again = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("queue_requests", 1);
    assert_eq!(gateway.read("attached_requests"), 0, "a fresh operation");
}

#[test]
fn a_waiting_request_stays_for_those_who_follow_it() {
    let upstream = Upstream::start();
    let gateway = Running::start(still(), &upstream);
    let _blocker = gateway.call("a", &chat(200, 100));
    let mut call = upstream.next();
    let first = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("queue_requests", 1);
    let mut second = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("attached_requests", 1);
    drop(first);
    call.succeed(0);
    upstream.next().succeed(10);
    assert_eq!(second.answer().status, 200);
}

#[test]
fn a_stream_is_given_once() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut first = keyed(&gateway, "k", &chat(50, 50));
    let mut call = upstream.next();
    let mut early = keyed(&gateway, "k", &chat(50, 50));
    gateway.until("attached_requests", 1);
    call.begin_stream();
    assert_eq!((early.answer().status, first.read_until("data: 1").contains("200 OK")), (409, true));
    let late = keyed(&gateway, "k", &chat(50, 50)).answer();
    assert_eq!((late.status, &late.json()["reason"]), (409, &json!("duplicate_active")));
    assert_eq!(gateway.read("held_tokens"), 100, "the first goes on");
    call.end_stream();
    assert!(first.answer().body.contains("[DONE]"));
    gateway.until("requests_total{outcome=\"completed\"}", 1);
    assert_eq!((gateway.read("kept_answers"), gateway.read("attached_requests")), (0, 0));
    let _again = keyed(&gateway, "k", &chat(50, 50));
    upstream.next();
    assert_eq!(gateway.read("forwards_total"), 2, "an answer that was not kept cannot be given again");
}

#[test]
fn a_stream_whose_caller_leaves_is_cancelled() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut first = keyed(&gateway, "k", &chat(50, 50));
    let mut call = upstream.next();
    call.begin_stream();
    first.read_until("data: 1");
    drop(first);
    assert!(call.was_closed());
    gateway.until("unknown_requests", 1);
    assert_eq!(gateway.read("requests_total{outcome=\"left\"}"), 1);
}

#[test]
fn those_who_follow_share_a_failure_and_a_refusal_too() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let pair = |key: &str| {
        let first = keyed(&gateway, key, &chat(50, 50));
        let call = upstream.next();
        let second = keyed(&gateway, key, &chat(50, 50));
        gateway.until("attached_requests", 1);
        (first, second, call)
    };
    let (mut first, mut second, mut call) = pair("a");
    call.answer(400, "", "no");
    for answer in [first.answer(), second.answer()] {
        assert_eq!((answer.status, answer.body.as_str()), (400, "no"));
    }
    assert_eq!(gateway.read("kept_answers"), 0);
    // it cost nothing, so its key is free again
    let (mut first, mut second, call) = pair("a");
    call.cut();
    for answer in [first.answer(), second.answer()] {
        assert_eq!((answer.status, &answer.json()["reason"]), (502, &json!("upstream")));
    }
    assert_eq!(keyed(&gateway, "a", &chat(50, 50)).answer().status, 409, "not repeated while nobody knows");
    assert_eq!(gateway.read("forwards_total"), 2);
}

#[test]
fn whoever_follows_has_a_deadline_of_its_own() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut first = keyed(&gateway, "k", &chat(50, 50));
    let mut call = upstream.next();
    let hasty = "idempotency-key: k\r\nx-request-timeout-ms: 200\r\n";
    let answer = gateway.send(hasty, &chat(50, 50)).answer();
    assert_eq!((answer.status, &answer.json()["reason"]), (504, &json!("timeout")));
    assert_eq!(gateway.read("attached_requests"), 0);
    call.succeed(100);
    assert_eq!(first.answer().status, 200);
}

#[test]
fn duplicates_can_be_told_instead() {
    let upstream = Upstream::start();
    let gateway = Running::start(with(plenty(), json!({ "duplicates": "tell" })), &upstream);
    let mut first = keyed(&gateway, "k", &chat(50, 50));
    let mut call = upstream.next();
    assert_eq!(keyed(&gateway, "k", &chat(50, 50)).answer().status, 409);
    call.succeed(100);
    assert_eq!(first.answer().status, 200);
    assert_eq!(keyed(&gateway, "k", &chat(50, 50)).answer().status, 200, "the kept answer");
}

#[test]
fn answers_are_kept_up_to_a_number_and_a_size() {
    let upstream = Upstream::start();
    let gateway = Running::start(with(plenty(), json!({ "keep": { "number": 1 } })), &upstream);
    for key in ["a", "b"] {
        let mut caller = keyed(&gateway, key, &chat(50, 50));
        upstream.next().succeed(100);
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(gateway.read("kept_answers"), 1);
    assert_eq!(keyed(&gateway, "b", &chat(50, 50)).answer().status, 200);
    // more than a mebibyte passes through, and is not kept
    let mut caller = keyed(&gateway, "c", &chat(50, 50));
    let mut call = upstream.next();
    let body = "x".repeat((1 << 20) + 1);
    let write = std::thread::spawn(move || call.answer(200, "", &body));
    assert_eq!(caller.answer().body.len(), (1 << 20) + 1);
    write.join().expect("it was all taken");
    gateway.until("requests_total{outcome=\"completed\"}", 3);
    assert_eq!((gateway.read("kept_answers"), gateway.read("forwards_total")), (1, 3));
}

#[test]
fn a_stop_refuses_those_who_wait_and_serves_those_who_follow_a_call() {
    let upstream = Upstream::start();
    let mut gateway = Running::start(still(), &upstream);
    let mut first = keyed(&gateway, "k", &chat(200, 100));
    let mut call = upstream.next();
    let mut follows = keyed(&gateway, "k", &chat(200, 100));
    let mut waits = keyed(&gateway, "l", &chat(50, 50));
    gateway.until("queue_requests", 1);
    let mut waits_too = keyed(&gateway, "l", &chat(50, 50));
    gateway.until("attached_requests", 2);
    gateway.stop();
    for caller in [&mut waits, &mut waits_too] {
        let refused = caller.answer();
        assert_eq!((refused.status, &refused.json()["reason"]), (503, &json!("stopping")));
    }
    call.succeed(300);
    assert_eq!((first.answer().status, follows.answer().status), (200, 200));
    gateway.join();
}
