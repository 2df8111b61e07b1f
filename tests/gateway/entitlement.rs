//! Entitlement against scarcity: tenants, tiers, and what refused callers are told.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::support::{Running, Upstream, chat, plenty, still, with};

/// Answers the next `n` calls.
fn serve(upstream: &Upstream, n: usize) {
    (0..n).for_each(|_| upstream.next().succeed(10));
}

#[test]
fn headers_that_make_no_sense_are_refused_by_name_and_count_for_nobody() {
    let upstream = Upstream::start();
    let tenants = json!({ "tenants": [{ "name": "retail", "requests": "1/min", "burst": "60s" }] });
    let gateway = Running::start(with(plenty(), tenants), &upstream);
    let long = "k".repeat(256);
    for (head, name) in [
        ("", "x-tenant"),
        ("x-tenant: nobody\r\n", "x-tenant"),
        ("x-tenant: retail\r\nx-tenant: retail\r\n", "x-tenant"),
        ("x-tenant: retail\r\nx-tier: -1\r\n", "x-tier"),
        ("x-tenant: retail\r\nx-tier: 256\r\n", "x-tier"),
        ("x-tenant: retail\r\nidempotency-key: a b\r\n", "idempotency-key"),
        (&format!("x-tenant: retail\r\nidempotency-key: {long}\r\n"), "idempotency-key"),
        ("x-tenant: retail\r\nx-request-timeout-ms: -5\r\n", "x-request-timeout-ms"),
        ("x-tenant: retail\r\nx-request-timeout-ms: 0\r\n", "x-request-timeout-ms"),
    ] {
        let answer = gateway.send(head, &chat(5, 5)).answer();
        assert_eq!((answer.status, &answer.json()["reason"]), (400, &json!("malformed")), "{head}");
        let detail = answer.json()["detail"].to_string();
        assert!(detail.contains(&format!("`{name}`")), "{head}: {detail}");
    }
    assert_eq!(gateway.read("requests_total{outcome=\"malformed\"}"), 9);
    assert_eq!((gateway.read("forwards_total"), gateway.read("held_tokens")), (0, 0));
    // the one request of a minute is still there
    let mut caller = gateway.send("x-tenant: retail\r\n", &chat(5, 5));
    serve(&upstream, 1);
    assert_eq!(caller.answer().status, 200);
    let answer = gateway.send("x-tenant: retail\r\n", &chat(5, 5)).answer();
    assert_eq!(answer.status, 429);
}

#[test]
fn a_gateway_without_tenants_asks_nobody() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.send("x-tenant: whoever\r\n", &chat(5, 5));
    serve(&upstream, 1);
    assert_eq!(caller.answer().status, 200);
}

#[test]
fn entitlement_is_told_from_scarcity() {
    let upstream = Upstream::start();
    let tenants = json!({
        "bound": { "requests": 1 }, "retry_after": "room",
        "tenants": [{ "name": "small", "tokens_per_minute": 60, "burst": "100s" }, { "name": "large" }],
    });
    let gateway = Running::start(with(still(), tenants), &upstream);
    let small = |prompt| gateway.send("x-tenant: small\r\n", &chat(prompt, 40));
    let mut first = small(50);
    let mut call = upstream.next();
    let throttled = small(50).answer();
    assert_eq!((throttled.status, &throttled.json()["reason"]), (429, &json!("throttled")));
    assert_eq!(throttled.json()["tenant"], "small");
    assert_eq!(throttled.json()["violated-policies"], json!(["tenant_tokens"]));
    let secs: u64 = throttled.header("retry-after").expect("a time").parse().expect("whole seconds");
    assert!((60..=81).contains(&secs), "{secs} s until 80 of the 90 tokens have come back, less what passed");
    let never = small(61).answer();
    assert_eq!(
        (never.status, &never.json()["reason"]),
        (413, &json!("never_fits")),
        "100 is the most it may hold"
    );
    // 210 are left for everyone
    let _second = gateway.send("x-tenant: large\r\n", &chat(150, 50));
    upstream.next();
    let _third = gateway.send("x-tenant: large\r\n", &chat(150, 50));
    gateway.until("queue_requests", 1);
    let shed = gateway.send("x-tenant: large\r\n", &chat(150, 50)).answer();
    assert_eq!((shed.status, &shed.json()["reason"]), (503, &json!("shed")));
    assert_eq!(shed.json().get("tenant"), None);
    call.succeed(90);
    assert_eq!(first.answer().status, 200);
    assert_eq!(gateway.read("requests_total{outcome=\"throttled\"}"), 1);
    assert_eq!(gateway.read("requests_total{outcome=\"shed\"}"), 1);
}

/// As in digitalocean/nginxconfig.io#377 and go-chi/httprate#47: what is left of the window, and not the whole of it.
#[test]
fn the_time_a_throttled_caller_is_told_is_what_it_takes() {
    let upstream = Upstream::start();
    let tenants = json!({ "tenants": [{ "name": "a", "requests": "5/min", "burst": "144s" }] });
    let gateway = Running::start(with(plenty(), tenants), &upstream);
    for n in 0..12 {
        let mut caller = gateway.send("x-tenant: a\r\n", &chat(5, 5));
        serve(&upstream, 1);
        assert_eq!(caller.answer().status, 200, "{n} of a burst of 12");
    }
    let answer = gateway.send("x-tenant: a\r\n", &chat(5, 5)).answer();
    assert_eq!(answer.status, 429);
    let secs: u64 = answer.header("retry-after").expect("a time").parse().expect("whole seconds");
    assert!((1..=12).contains(&secs), "{secs} s until the next of five a minute, and not the whole window");
}

/// As in alisaifee/flask-limiter#62: whoever waited exactly as told was refused again.
#[test]
fn a_caller_who_comes_back_when_told_is_not_throttled_again() {
    let upstream = Upstream::start();
    // two a second, in windows that stand fast
    let tenants = json!({ "tenants": [{ "name": "a", "requests": "120/min", "window": { "fixed": "1s" } }] });
    let gateway = Running::start(with(plenty(), tenants), &upstream);
    let send = || {
        let mut caller = gateway.send("x-tenant: a\r\n", &chat(5, 5));
        caller.read_until("HTTP/1.1 ");
        caller
    };
    for round in 0..2 {
        let mut told = None;
        for _ in 0..20 {
            let before = gateway.read("forwards_total");
            let mut caller = gateway.send("x-tenant: a\r\n", &chat(5, 5));
            while gateway.read("forwards_total") == before
                && gateway.read("requests_total{outcome=\"throttled\"}") <= round
            {}
            if gateway.read("forwards_total") > before {
                serve(&upstream, 1);
                assert_eq!(caller.answer().status, 200);
                continue;
            }
            told = caller.answer().header("retry-after").map(|secs| secs.parse().expect("whole seconds"));
            break;
        }
        sleep(Duration::from_secs(told.expect("the third within a second is throttled")));
        // both of the new window: what the old one counted is gone
        for _ in 0..2 {
            let feed = std::thread::scope(|scope| {
                let answer = scope.spawn(|| send().answer().status);
                serve(&upstream, 1);
                answer.join().expect("an answer")
            });
            assert_eq!(feed, 200);
        }
    }
}

#[test]
fn a_more_important_newcomer_takes_a_waiting_place() {
    let upstream = Upstream::start();
    let gateway = Running::start(
        with(still(), json!({ "bound": { "requests": 1 }, "retry_after": "room" })),
        &upstream,
    );
    let _first = gateway.send("x-request-id: first\r\n", &chat(200, 100));
    let mut call = upstream.next();
    let mut low = gateway.send("x-tier: 2\r\n", &chat(50, 50));
    gateway.until("queue_requests", 1);
    let same = gateway.send("x-tier: 2\r\n", &chat(50, 50)).answer();
    assert_eq!((same.status, &same.json()["reason"]), (503, &json!("shed")), "its own tier is no reason");
    let _high = gateway.send("x-tier: 0\r\nx-request-id: high\r\n", &chat(50, 50));
    let evicted = low.answer();
    assert_eq!((evicted.status, &evicted.json()["reason"]), (503, &json!("expired")));
    assert!(evicted.json()["detail"].to_string().contains("gave way"));
    gateway.until("expired_total{why=\"evicted\"}", 1);
    assert_eq!(gateway.read("queue_requests"), 1);
    call.succeed(0);
    let next = upstream.next();
    assert!(next.head.contains("x-request-id: high") && next.head.contains("x-tier: 0"));
}

/// As in lzvxck/seri-agent#125.
#[test]
fn tenants_inside_their_limits_never_spend_more_than_the_provider_gives() {
    let upstream = Upstream::start();
    let tenant = |name: &str| json!({ "name": name, "requests": "10/min", "burst": "60s" });
    let policy = json!({
        "service": { "start": "10ms" }, "margin": "0ms", "budgets": { "requests_per_minute": 20, "burst": "60s" },
        "tenants": [tenant("a"), tenant("b"), tenant("c")],
    });
    let gateway = Running::start(policy, &upstream);
    let mut callers = Vec::new();
    for name in ["a", "b", "c"] {
        for _ in 0..10 {
            // nobody waits the three seconds until the next request of twenty a minute
            let head = format!("x-tenant: {name}\r\nx-request-timeout-ms: 1000\r\n");
            callers.push(gateway.send(&head, &chat(5, 5)));
        }
    }
    gateway.until("requests_total{outcome=\"shed\"}", 10);
    assert_eq!(gateway.read("forwards_total"), 20);
    assert_eq!(gateway.read("requests_total{outcome=\"throttled\"}"), 0);
}

#[test]
fn callers_of_the_other_api_are_answered_in_its_words() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let answer = gateway.send("anthropic-version: 2023-06-01\r\nx-request-id: req_1\r\n", "{}").answer();
    assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/problem+json")));
    assert_eq!(answer.json()["error"]["type"], "invalid_request_error");
    assert_eq!((&answer.json()["request_id"], answer.json()["error"].get("code")), (&json!("req_1"), None));
}
