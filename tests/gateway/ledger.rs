//! Budgets over real sockets: what is taken, what is given back, and when.

use serde_json::json;

use crate::support::{Caller, Running, Upstream, chat, plenty, still, with};

/// So many calls at the provider at once, and tokens for any number.
fn slots(count: u32) -> serde_json::Value {
    let budgets = json!({ "tokens_per_minute": "6M", "burst": "1s", "concurrent": count });
    with(plenty(), json!({ "bound": "none", "budgets": budgets }))
}

/// As in BerriAI/litellm#18730 and envoyproxy/ai-gateway#680.
#[test]
fn parallel_requests_never_pass_the_budget_before_any_is_counted() {
    let upstream = Upstream::start();
    let gateway = Running::start(still(), &upstream);
    let _callers: Vec<_> = (0..30).map(|n| gateway.call(&format!("r{n}"), &chat(60, 40))).collect();
    gateway.until("queue_requests", 27);
    assert_eq!((gateway.read("forwards_total"), gateway.read("held_tokens")), (3, 300));
    let mut calls: Vec<_> = (0..3).map(|_| upstream.next()).collect();
    // what was less than reserved is given back, and lets exactly as many go as it pays for
    calls[0].succeed(0);
    let mut last = upstream.next();
    gateway.until("queue_requests", 26);
    calls[1].succeed(50);
    gateway.until("in_flight_requests", 2);
    assert_eq!(gateway.read("queue_requests"), 26, "50 are not enough for 100");
    last.succeed(50);
    upstream.next();
    assert_eq!(gateway.read("forwards_total"), 5);
}

/// As in BerriAI/litellm#27001: refused requests leaked the tokens that were held for them.
#[test]
fn refused_requests_take_from_no_budget() {
    let upstream = Upstream::start();
    let policy = json!({ "bound": { "requests": 1 }, "retry_after": "room", "tenants": [{ "name": "a", "requests": "3/min", "burst": "60s" }] });
    let gateway = Running::start(with(still(), policy), &upstream);
    let send = |prompt| gateway.send("x-tenant: a\r\n", &chat(prompt, 100));
    let mut first = send(200);
    let mut call = upstream.next();
    let mut second = send(200);
    gateway.until("queue_requests", 1);
    for _ in 0..20 {
        assert_eq!(send(100).answer().status, 503);
        assert_eq!(send(201).answer().status, 413);
    }
    call.succeed(0);
    assert_eq!(first.answer().status, 200);
    let mut call = upstream.next();
    assert_eq!(gateway.read("held_tokens"), 300);
    call.succeed(0);
    assert_eq!(second.answer().status, 200);
    assert_eq!((gateway.read("level_tokens"), gateway.read("held_tokens")), (300, 0));
    let mut third = send(200);
    upstream.next().succeed(0);
    assert_eq!(third.answer().status, 200, "the third of three: 40 refusals took none of them");
}

/// As in BerriAI/litellm#39309.
#[test]
fn a_refusal_for_concurrency_costs_no_request() {
    let upstream = Upstream::start();
    let policy = json!({ "bound": { "requests": 0 }, "tenants": [{ "name": "t", "requests": "2/min", "burst": "60s" }] });
    let gateway = Running::start(with(slots(1), policy), &upstream);
    let send = || gateway.send("x-tenant: t\r\n", &chat(5, 5));
    let mut a = send();
    let mut call = upstream.next();
    assert_eq!(send().answer().status, 503, "B");
    call.succeed(10);
    assert_eq!(a.answer().status, 200);
    let mut c = send();
    upstream.next().succeed(10);
    assert_eq!(c.answer().status, 200);
    assert_eq!(send().answer().status, 429, "and that were its two");
}

/// As in BerriAI/litellm#16011.
#[test]
fn the_provider_never_sees_more_calls_at_once_than_configured() {
    let upstream = Upstream::start();
    let gateway = Running::start(slots(10), &upstream);
    let _callers: Vec<_> = (0..40).map(|n| gateway.call(&format!("r{n}"), &chat(5, 5))).collect();
    gateway.until("queue_requests", 30);
    let mut calls: Vec<_> = (0..10).map(|_| upstream.next()).collect();
    for n in 0..30 {
        assert_eq!((gateway.read("in_flight_requests"), gateway.read("forwards_total")), (10, 10 + n));
        calls[usize::try_from(n).expect("a small number")].succeed(10);
        calls.push(upstream.next());
    }
}

#[test]
fn a_slot_is_held_until_the_last_byte_of_a_stream() {
    let upstream = Upstream::start();
    let gateway = Running::start(slots(1), &upstream);
    let mut first = gateway.call("a", &chat(5, 5));
    let mut call = upstream.next();
    call.begin_stream();
    first.read_until("data: 1");
    let _second = gateway.call("b", &chat(5, 5));
    gateway.until("queue_requests", 1);
    assert_eq!(gateway.read("forwards_total"), 1, "the head of an answer frees nothing");
    call.end_stream();
    upstream.next();
    assert_eq!(gateway.read("forwards_total"), 2);
}

/// As in BerriAI/litellm#13774.
#[test]
fn ten_callers_who_give_up_leave_nothing_at_the_provider() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let callers: Vec<_> = (0..10).map(|n| gateway.call(&format!("r{n}"), &chat(5, 5))).collect();
    let mut calls: Vec<_> = (0..10).map(|_| upstream.next()).collect();
    drop(callers);
    assert!(calls.iter_mut().all(|call| call.was_closed()), "each call was ended by the gateway");
    gateway.until("upstream_calls_total{end=\"cancelled\"}", 10);
}

/// What is unknown stays held until an operator says what became of it.
#[test]
fn what_became_of_a_call_can_be_said_by_whoever_knows() {
    let upstream = Upstream::start();
    let gateway = Running::start(with(slots(1), json!({ "upstream": { "lease": "1h" } })), &upstream);
    let caller = gateway.call("a", &chat(60, 40));
    let mut call = upstream.next();
    drop(caller);
    assert!(call.was_closed());
    gateway.until("unknown_requests", 1);
    let _waits = gateway.call("b", &chat(5, 5));
    gateway.until("queue_requests", 1);
    assert_eq!(gateway.read("held_tokens"), 100);

    let operator = |method: &str, path: &str, body: &str| {
        let length = body.len();
        let text = format!("{method} {path} HTTP/1.1\r\nhost: g\r\ncontent-length: {length}\r\n\r\n{body}");
        Caller::send(gateway.address, &text)
    };
    let list = operator("GET", "/unknown", "").answer().json();
    let listed = &list["unknown"][0];
    assert_eq!((&listed["hold_tokens"], &listed["tenant"]), (&json!(100), &json!("")));
    assert!(listed["held_for_s"].as_f64().is_some_and(|left| left > 3_500.0 && left <= 3_600.0));
    let path = format!("/unknown/{}", listed["id"]);
    for (method, path, body, status) in [
        ("GET", path.as_str(), "", 405),
        ("POST", &path, "{}", 400),
        ("POST", &path, r#"{"used_tokens": -1}"#, 400),
        ("POST", &path, r#"{"used_tokens": 1, "more": 2}"#, 400),
        ("POST", &path, &" ".repeat(1_025), 413),
        ("POST", "/unknown/77", r#"{"used_tokens": 1}"#, 404),
        ("POST", "/unknown/x", r#"{"used_tokens": 1}"#, 404),
    ] {
        assert_eq!(operator(method, path, body).answer().status, status, "{method} {path} {body}");
    }
    assert_eq!(gateway.read("held_tokens"), 100, "none of these gave anything back");
    operator("POST", &path, r#"{"used_tokens": 70}"#).read_until("HTTP/1.1 204 ");
    upstream.next();
    gateway.until("unknown_requests", 0);
    assert_eq!((gateway.read("held_tokens"), gateway.read("in_flight_requests")), (10, 1), "the slot is b's");
    assert_eq!(operator("POST", &path, r#"{"used_tokens": 70}"#).answer().status, 404, "it is settled");
}
