//! Calls that are repeated, and calls that never are.

use std::net::TcpListener;

use serde_json::json;

use crate::support::{Running, Upstream, chat, plenty, still, with};

/// How many calls to the provider ended so.
fn ends(gateway: &Running, end: &str) -> u64 {
    gateway.read(&format!("upstream_calls_total{{end=\"{end}\"}}"))
}

#[test]
fn a_provider_that_is_back_in_time_is_called_again() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    let patient = json!({ "upstream": { "attempts": 100, "backoff": "300ms", "budget": "100%" } });
    let gateway = Running::start_towards(with(plenty(), patient), address);
    let head = "x-request-id: a\r\nidempotency-key: k\r\nx-request-timeout-ms: 60000\r\n";
    let mut caller = gateway.send(head, &chat(50, 50));
    gateway.until_at_least("upstream_calls_total{end=\"connect\"}", 1);
    assert_eq!(gateway.read("held_tokens"), 0, "what was not sent holds nothing");
    let upstream = Upstream::start_at(address);
    let mut call = upstream.next();
    assert!(call.head.contains("x-request-id: a") && call.head.contains("idempotency-key: k"));
    call.succeed(100);
    assert_eq!(caller.answer().status, 200);
    assert_eq!(gateway.read("requests_total{outcome=\"completed\"}"), 1);
}

#[test]
fn an_overloaded_provider_is_called_again_within_limits() {
    let upstream = Upstream::start();
    let policy = json!({ "upstream": { "attempts": 3, "backoff": "10ms", "budget": "100%" } });
    let gateway = Running::start(with(plenty(), policy), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    let body = call.body.clone();
    call.answer(503, "retry-after: 1\r\n", "{}");
    let mut call = upstream.next();
    assert_eq!(call.body, body, "the whole request, as it was");
    call.answer(529, "", "{}");
    upstream.next().succeed(100);
    assert_eq!(caller.answer().status, 200);
    let mut caller = gateway.call("b", &chat(50, 50));
    (0..3).for_each(|_| upstream.next().answer(503, "", "{}"));
    let answer = caller.answer();
    assert_eq!((answer.status, &answer.json()["reason"]), (502, &json!("upstream")));
    assert!(answer.body.contains("503"), "{}", answer.body);
    assert_eq!((ends(&gateway, "busy"), gateway.read("forwards_total")), (5, 6));
    assert_eq!((gateway.read("held_tokens"), gateway.read("unknown_requests")), (0, 0));
}

#[test]
fn what_may_have_cost_something_is_never_repeated() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    call.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
    call.cut();
    assert_eq!(caller.answer().status, 502);
    let mut caller = gateway.call("b", &chat(50, 50));
    upstream.next().cut();
    assert_eq!(caller.answer().status, 502);
    let mut caller = gateway.call("c", &chat(50, 50));
    upstream.next().answer(500, "", "{}");
    assert_eq!(caller.answer().status, 500);
    assert_eq!((gateway.read("forwards_total"), gateway.read("unknown_requests")), (3, 3));
    assert_eq!(gateway.read("held_tokens"), 300, "until it is known, or their leases end");
}

#[test]
fn a_hold_of_unknown_end_comes_back_when_its_lease_ends() {
    let upstream = Upstream::start();
    let policy = json!({ "upstream": { "lease": "300ms" }, "budgets": { "concurrent": 1 } });
    let gateway = Running::start(with(still(), policy), &upstream);
    let caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    drop(caller);
    assert!(call.was_closed());
    gateway.until("unknown_requests", 0);
    assert_eq!((gateway.read("in_flight_requests"), gateway.read("held_tokens")), (0, 0));
    let mut caller = gateway.call("b", &chat(50, 50));
    upstream.next().succeed(100);
    assert_eq!(caller.answer().status, 200, "its slot is free again");
}

/// As in envoyproxy/envoy#15168.
#[test]
fn a_full_queue_is_not_a_broken_provider() {
    let upstream = Upstream::start();
    let gateway = Running::start(
        with(still(), json!({ "bound": { "requests": 1 }, "retry_after": "room" })),
        &upstream,
    );
    let mut calls = Vec::new();
    let mut callers = Vec::new();
    for _ in 0..3 {
        callers.push(gateway.call("a", &chat(50, 50)));
        calls.push(upstream.next());
    }
    let _waits = gateway.call("w", &chat(50, 50));
    gateway.until("queue_requests", 1);
    for _ in 0..5 {
        let shed = gateway.call("s", &chat(50, 50)).answer();
        assert_eq!((shed.status, &shed.json()["reason"]), (503, &json!("shed")));
        assert!(shed.header("retry-after").is_some());
    }
    calls.into_iter().for_each(|call| call.cut());
    for caller in &mut callers {
        let failed = caller.answer();
        assert_eq!((failed.status, &failed.json()["reason"]), (502, &json!("upstream")));
        assert_eq!(failed.header("retry-after"), None);
    }
    assert_eq!(gateway.read("requests_total{outcome=\"shed\"}"), 5);
    assert_eq!(gateway.read("requests_total{outcome=\"failed\"}"), 3);
}

/// As in alexfernandez/loadtest#204.
#[test]
fn every_way_a_call_can_end_has_a_name_and_a_count() {
    let upstream = Upstream::start();
    let once = json!({ "upstream": { "attempts": 1 } });
    let gateway = Running::start(with(plenty(), once), &upstream);
    let call = |id: &str| (gateway.call(id, &chat(5, 5)), upstream.next());
    let (mut a, mut to) = call("answered");
    to.succeed(10);
    a.answer();
    let (mut b, to) = call("broken");
    to.cut();
    b.answer();
    let (mut c, mut to) = call("busy");
    to.answer(503, "", "");
    c.answer();
    let (d, mut to) = call("cancelled");
    drop(d);
    assert!(to.was_closed());
    let (mut e, mut to) = call("client_error");
    to.answer(404, "", "");
    e.answer();
    let (mut f, mut to) = call("server_error");
    to.answer(500, "", "");
    f.answer();
    let (mut g, mut to) = (gateway.call_within("timeout", 200, &chat(5, 5)), upstream.next());
    assert_eq!(g.answer().status, 504);
    assert!(to.was_closed());
    let (mut h, mut to) = call("refused");
    to.answer(429, "retry-after: 3600\r\n", "");
    assert_eq!(h.answer().status, 503);
    drop(upstream);
    // the provider asked for a rest, which the next call must not wait for
    let named =
        ["answered", "broken", "busy", "cancelled", "client_error", "refused", "server_error", "timeout"];
    named.iter().for_each(|end| gateway.until(&format!("upstream_calls_total{{end=\"{end}\"}}"), 1));
    assert_eq!((gateway.read("forwards_total"), ends(&gateway, "connect")), (8, 0));
}
