//! A gateway that is faulty on purpose: each fault of what is said and done over HTTP shows on the wire.

use std::time::Duration;

use serde_json::{Value, json};
use tenfold::live::Clock;
use tenfold::units::Moment;

use crate::support::{Answered, Call, Caller, Running, Upstream, chat, header_of, plenty, still, with};

/// A gateway with these faults whose 300 tokens are held, and in which one more may wait and does.
struct Full {
    gateway: Running,
    upstream: Upstream,
    _held: Vec<(Caller, Call)>,
    waiting: Caller,
}

impl Full {
    fn new(faults: Value) -> Self {
        let upstream = Upstream::start();
        let policy =
            json!({ "bound": { "requests": 1 }, "retry_after": { "constant": "40s" }, "faults": faults });
        let gateway = Running::start(with(still(), policy), &upstream);
        let held =
            (0..3).map(|n| (gateway.call(&format!("held-{n}"), &chat(50, 50)), upstream.next())).collect();
        let waiting = gateway.call("waits", &chat(50, 50));
        gateway.until("queue_requests", 1);
        Self { gateway, upstream, _held: held, waiting }
    }

    fn refused(&self) -> Answered {
        self.gateway.call("refused", &chat(50, 50)).answer()
    }
}

#[test]
fn how_a_refusal_is_told() {
    let refused = |faults| Full::new(faults).refused();
    let healthy = refused(json!([]));
    assert_eq!((healthy.status, healthy.header("retry-after")), (503, Some("40")));
    assert_eq!(healthy.header("content-type"), Some("application/problem+json"));
    let told = |fault: &str| {
        let answer = refused(json!([fault]));
        let again = answer.header("retry-after").map(str::to_owned);
        (answer.status, again, answer.header("content-type") == Some("application/problem+json"))
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(told("constant_retry_after"), (503, some("1"), true));
    assert_eq!(told("short_retry_after"), (503, some("35"), true));
    assert_eq!(told("missing_retry_after"), (503, None, true));
    assert_eq!(told("malformed_retry_after"), (503, some("${retry_after}"), true));
    assert_eq!(told("mixed_refusals"), (429, some("40"), true));
    assert_eq!(told("wrong_error_shape"), (503, some("40"), false));
    let at_once: u64 = told("synchronized_retry_after").1.expect("a time").parse().expect("seconds");
    assert!((1..=30).contains(&at_once), "{at_once}");
    let line = refused(json!(["wrong_error_shape"]));
    assert!(
        serde_json::from_str::<Value>(&line.body).is_err() && line.body.lines().count() == 1,
        "{}",
        line.body
    );
    let mixed = refused(json!(["mixed_refusals"]));
    assert_eq!((&mixed.json()["status"], &mixed.json()["reason"]), (&json!(429), &json!("shed")));
}

#[test]
fn a_wait_nobody_keeps_goes_without_its_sign() {
    let sign = |faults: Value| {
        let upstream = Upstream::start();
        let policy =
            json!({ "bound": { "requests": 0 }, "retry_after": { "constant": "90s" }, "faults": faults });
        let gateway = Running::start(with(still(), policy), &upstream);
        let _held: Vec<_> = (0..3).map(|_| (gateway.call("a", &chat(50, 50)), upstream.next())).collect();
        let refused = gateway.call("b", &chat(50, 50)).answer();
        assert_eq!(refused.header("retry-after"), Some("90"));
        refused.header("x-should-retry").map(str::to_owned)
    };
    assert_eq!(sign(json!([])).as_deref(), Some("false"));
    assert_eq!(sign(json!(["unmarked_long_waits"])), None);
}

#[test]
fn a_refusal_is_slow() {
    let full = Full::new(json!([{ "slow_refusal": "300ms" }]));
    let clock = Clock::start();
    assert_eq!(full.refused().status, 503);
    assert!(clock.now().since(Moment::ZERO) >= Duration::from_millis(300));
}

#[test]
fn a_refused_request_comes_to_the_provider_as_it_was() {
    let full = Full::new(json!(["costly_refusal"]));
    assert_eq!(full.refused().status, 503);
    let mut call = full.upstream.next();
    assert!(call.head.contains("x-request-id: refused"), "{}", call.head);
    assert_eq!(call.body, chat(50, 50));
    call.succeed(100);
    assert_eq!(full.gateway.read("forwards_total"), 3, "the machine knows nothing of it");
}

#[test]
fn the_provider_is_told_a_fresh_deadline() {
    for (faults, fresh) in [(json!([]), false), (json!(["deadline_reset"]), true)] {
        let mut full = Full::new(faults);
        std::thread::sleep(Duration::from_millis(20));
        full._held[0].1.succeed(100);
        // what it held is used up, and what the next one holds comes with the minutes: a call that cost nothing goes on
        full._held[1].1.answer(400, "", "{}");
        let call = full.upstream.next();
        let told: u64 =
            header_of(&call.head, "x-request-timeout-ms").expect("a budget").parse().expect("milliseconds");
        assert_eq!(told >= 60_000, fresh, "{told}");
        assert!(call.head.contains("x-request-id: waits"));
        drop(full.waiting);
    }
}

#[test]
fn two_requests_of_one_key_are_two_calls() {
    let upstream = Upstream::start();
    let gateway = Running::start(with(plenty(), json!({ "faults": ["duplicate_calls"] })), &upstream);
    let head = "idempotency-key: k\r\nx-request-timeout-ms: 60000\r\n";
    let mut callers: Vec<_> = (0..2).map(|_| gateway.send(head, &chat(5, 5))).collect();
    for _ in 0..2 {
        upstream.next().succeed(10);
    }
    for caller in &mut callers {
        let answer = caller.answer();
        assert_eq!((answer.status, answer.header("idempotency-replayed")), (200, None));
    }
    assert_eq!((gateway.read("forwards_total"), gateway.read("kept_answers")), (2, 0));
}

#[test]
fn a_slot_is_free_at_the_head_of_a_stream() {
    let upstream = Upstream::start();
    let keys = json!({ "budgets": { "tokens_per_minute": "6M", "burst": "1s", "concurrent": 1 }, "faults": ["early_release"] });
    let gateway = Running::start(with(plenty(), keys), &upstream);
    let mut first = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    let _second = gateway.call("b", &chat(50, 50));
    gateway.until("queue_requests", 1);
    call.begin_stream();
    first.read_until("data: 1");
    let mut other = upstream.next();
    assert!(other.head.contains("x-request-id: b"), "while the first still streams");
    call.end_stream();
    other.succeed(100);
    gateway.until("requests_total{outcome=\"completed\"}", 2);
    assert_eq!((gateway.read("held_tokens"), gateway.read("in_flight_requests")), (0, 0));
}

#[test]
fn who_left_is_served_all_the_same() {
    let mut full = Full::new(json!(["abandoned_work"]));
    drop(full.waiting);
    let (first, call) = &mut full._held[0];
    // a call that cost nothing gives its hold to the one whose caller is gone
    call.answer(400, "", "{}");
    assert_eq!(first.answer().status, 400);
    let mut waited = full.upstream.next();
    assert!(waited.head.contains("x-request-id: waits"));
    let (second, mut call) = full._held.remove(1);
    drop(second);
    call.succeed(100);
    waited.succeed(100);
    full.gateway.until("requests_total{outcome=\"completed\"}", 2);
    assert_eq!((full.gateway.read("held_tokens"), full.gateway.read("kept_answers")), (100, 0));
}

#[test]
fn what_was_answered_is_still_held() {
    let upstream = Upstream::start();
    let gateway =
        Running::start(with(plenty(), json!({ "faults": [{ "leaked_holds": "100%" }] })), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    upstream.next().succeed(100);
    assert_eq!(caller.answer().status, 200);
    gateway.until("requests_total{outcome=\"completed\"}", 1);
    assert_eq!((gateway.read("held_tokens"), gateway.read("in_flight_requests")), (100, 1));
}

#[test]
fn replicas_take_turns_and_each_has_its_part() {
    let upstream = Upstream::start();
    let keys = json!({ "bound": { "requests": 2 }, "replicas": 2, "retry_after": "room" });
    let gateway = Running::start(with(still(), keys), &upstream);
    // 150 tokens each: one is forwarded and one waits
    let mut forwarded: Vec<_> = (0..2).map(|_| (gateway.call("a", &chat(50, 50)), upstream.next())).collect();
    let _waiting: Vec<_> = (0..2).map(|_| gateway.call("w", &chat(50, 50))).collect();
    gateway.until("queue_requests", 2);
    assert_eq!(gateway.call("s", &chat(50, 50)).answer().status, 503);
    assert_eq!(gateway.read("held_tokens"), 200);
    for (caller, call) in &mut forwarded {
        call.answer(400, "", "{}");
        assert_eq!(caller.answer().status, 400);
        upstream.next().succeed(100);
    }
    gateway.until("requests_total{outcome=\"completed\"}", 2);
    assert_eq!((gateway.read("held_tokens"), gateway.read("forwards_total")), (0, 4));
}
