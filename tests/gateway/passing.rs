//! What passes through: callers, streams, order, refusals, failures, a stop.

use serde_json::json;

use crate::support::{Caller, Running, Upstream, chat, id_of, plenty, still};

/// As in llm-d-incubation/llm-d-semantic-classifier#24: jobs of callers who had left were still run.
#[test]
fn a_caller_who_leaves_is_taken_out_of_the_queue() {
    let upstream = Upstream::start();
    let gateway = Running::start(still(), &upstream);
    let _first = gateway.call("a", &chat(200, 100));
    let _call = upstream.next();
    let second = gateway.call("b", &chat(50, 50));
    gateway.until("queue_requests", 1);
    gateway.until("queue_tokens", 100);
    drop(second);
    gateway.until("queue_requests", 0);
    gateway.until("requests_total{outcome=\"left\"}", 1);
    assert_eq!((gateway.read("queue_tokens"), gateway.read("queue_bytes")), (0, 0));
    assert_eq!(gateway.read("forwards_total"), 1, "it never went to the provider");
}

#[test]
fn a_caller_who_leaves_ends_its_call_to_the_provider() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    assert_eq!(gateway.read("in_flight_requests"), 1);
    drop(caller);
    assert!(call.was_closed(), "the provider's side of the connection has ended");
    gateway.until("unknown_requests", 1);
    assert_eq!(
        gateway.read("held_tokens"),
        100,
        "what it cost nobody knows: the hold stands until its lease ends"
    );
    assert_eq!(gateway.read("upstream_calls_total{end=\"cancelled\"}"), 1);
}

#[test]
fn a_caller_who_leaves_during_a_stream_ends_it_too() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    call.begin_stream();
    assert!(caller.read_until("data: 1").contains("200 OK"));
    assert_eq!(gateway.read("held_tokens"), 100, "the hold is kept until the body has ended");
    drop(caller);
    assert!(call.was_closed());
    gateway.until("unknown_requests", 1);
    assert_eq!(gateway.read("requests_total{outcome=\"left\"}"), 1);
}

#[test]
fn a_stream_passes_as_it_comes_and_is_settled_at_its_end() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    call.begin_stream();
    caller.read_until("data: 1");
    assert_eq!(gateway.read("in_flight_requests"), 1);
    call.end_stream();
    assert!(caller.answer().body.contains("[DONE]"));
    gateway.until("requests_total{outcome=\"completed\"}", 1);
    assert_eq!(gateway.read("held_tokens"), 0);
}

/// As in fpco/http-reverse-proxy#44: a proxy took an interim 103 for the answer and hung on it.
#[test]
fn an_interim_answer_of_the_provider_is_waited_past() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    call.write("HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n");
    call.succeed(60);
    let answer = caller.answer();
    assert_eq!((answer.status, answer.json()["usage"]["total_tokens"].as_u64()), (200, Some(60)));
    gateway.until("requests_total{outcome=\"completed\"}", 1);
    assert_eq!(gateway.read("held_tokens"), 0);
}

#[test]
fn a_refusal_names_its_reason_and_says_when_to_come_back() {
    let upstream = Upstream::start();
    let mut policy = still();
    policy["bound"] = json!("deadline");
    policy["retry_after"] = json!("room");
    let gateway = Running::start(policy, &upstream);
    let _first = gateway.call("a", &chat(200, 100));
    let _call = upstream.next();
    // 50 s less 10 ms at a token a second are 49 tokens: half of what it holds
    let mut second = gateway.call_within("b", 50_000, &chat(50, 50));
    let answer = second.answer();
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let problem = answer.json();
    assert_eq!((&problem["reason"], &problem["status"]), (&json!("shed"), &json!(503)));
    let secs: u64 = answer.header("retry-after").expect("a time").parse().expect("whole seconds");
    assert!(
        (40..=52).contains(&secs),
        "{secs} s until there is room for 51 tokens more, less what has filled since"
    );
    assert_eq!(gateway.read("queue_requests"), 0);
    assert_eq!(gateway.read("forwards_total"), 1);
}

/// Lets one at the provider block three that wait, and gives each its tokens in turn; in which order did they go?
fn order_served(order: &str) -> Vec<String> {
    let upstream = Upstream::start();
    let mut policy = still();
    policy["order"] = json!(order);
    let gateway = Running::start(policy, &upstream);
    let _blocker = gateway.call("a", &chat(200, 100));
    let mut call = upstream.next();
    let mut callers = Vec::new();
    for (n, id) in (1..).zip(["b", "c", "d"]) {
        callers.push(gateway.call(id, &chat(50, 50)));
        gateway.until("queue_requests", n);
    }
    let mut served = Vec::new();
    // 200 of the 300 tokens were used: room for one; each one after that uses none of its own
    let mut used = 200;
    for _ in 0..3 {
        call.succeed(used);
        call = upstream.next();
        served.push(id_of(&call.head));
        used = 0;
    }
    served
}

#[test]
fn fifo_serves_in_order_of_arrival() {
    assert_eq!(order_served("fifo"), ["b", "c", "d"]);
}

#[test]
fn lifo_serves_the_latest_first() {
    assert_eq!(order_served("lifo"), ["d", "c", "b"]);
}

#[test]
fn no_newcomer_overtakes_though_it_would_fit() {
    let upstream = Upstream::start();
    let gateway = Running::start(still(), &upstream);
    let _one = gateway.call("one", &chat(100, 50));
    let mut first = upstream.next();
    let _two = gateway.call("two", &chat(100, 50));
    let mut second = upstream.next();
    let _large = gateway.call("large", &chat(100, 100));
    gateway.until("queue_requests", 1);
    first.succeed(50);
    gateway.until("in_flight_requests", 1);
    assert!(gateway.read("level_tokens") >= 100);
    let _small = gateway.call("small", &chat(25, 25));
    gateway.until("queue_requests", 2);
    assert_eq!(
        gateway.read("forwards_total"),
        2,
        "50 tokens would be there, but 200 are asked for ahead of it"
    );
    second.succeed(0);
    let mut went = [id_of(&upstream.next().head), id_of(&upstream.next().head)];
    went.sort();
    assert_eq!(went, ["large", "small"]);
}

#[test]
fn a_refusal_by_the_provider_is_tried_again() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    let mut call = upstream.next();
    let body = call.body.clone();
    call.write("HTTP/1.1 429 Too Many Requests\r\nretry-after-ms: 20\r\ncontent-length: 2\r\n\r\n{}");
    let mut again = upstream.next();
    assert_eq!((id_of(&again.head).as_str(), &again.body), ("a", &body), "the whole request, as it was");
    again.succeed(100);
    assert_eq!(caller.answer().status, 200);
    assert_eq!(gateway.read("upstream_refusals_total"), 1);
    assert_eq!(gateway.read("requests_total{outcome=\"completed\"}"), 1);
}

/// As in api7/aisix#1157: a time to wait of a day is no reason to be silent for a day.
#[test]
fn a_refusal_that_the_deadline_cannot_outwait_expires() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call_within("a", 5_000, &chat(50, 50));
    upstream
        .next()
        .write("HTTP/1.1 429 Too Many Requests\r\nretry-after: 86000\r\ncontent-length: 0\r\n\r\n");
    let answer = caller.answer();
    assert_eq!((answer.status, &answer.json()["reason"]), (503, &json!("expired")));
    assert!(answer.header("retry-after").is_some());
    assert_eq!((gateway.read("held_tokens"), gateway.read("in_flight_requests")), (0, 0));
}

#[test]
fn a_provider_that_is_not_there_costs_nothing() {
    let upstream = Upstream::start();
    let gateway = Running::start(still(), &upstream);
    drop(upstream);
    let answer = gateway.call("a", &chat(100, 100)).answer();
    assert_eq!((answer.status, &answer.json()["reason"]), (502, &json!("upstream")));
    assert_eq!((gateway.read("held_tokens"), gateway.read("level_tokens")), (0, 300));
}

#[test]
fn what_the_provider_answers_passes_and_what_breaks_off_does_not() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call("a", &chat(50, 50));
    upstream.next().write("HTTP/1.1 500 Oh\r\nx-own: 1\r\nkeep-alive: 5\r\ncontent-length: 4\r\n\r\noops");
    let answer = caller.answer();
    assert_eq!((answer.status, answer.body.as_str()), (500, "oops"));
    assert_eq!((answer.header("x-own"), answer.header("keep-alive")), (Some("1"), None));
    let mut caller = gateway.call("b", &chat(50, 50));
    let mut call = upstream.next();
    call.write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
    call.cut();
    assert_eq!(caller.answer().status, 502);
    assert_eq!(gateway.read("requests_total{outcome=\"failed\"}"), 2);
}

#[test]
fn a_provider_that_is_too_slow_is_left_at_the_deadline() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let mut caller = gateway.call_within("a", 300, &chat(50, 50));
    let mut call = upstream.next();
    let answer = caller.answer();
    assert_eq!((answer.status, &answer.json()["reason"]), (504, &json!("timeout")));
    assert!(call.was_closed());
}

#[test]
fn the_provider_is_told_the_remaining_time_and_who_asks() {
    let upstream = Upstream::start();
    let gateway = Running::start(plenty(), &upstream);
    let head = "x-request-id: a-r1\r\ntraceparent: 00-7f-01-01\r\nauthorization: Bearer t\r\nx-hop: 1\r\n\
                connection: x-hop\r\nx-request-timeout-ms: 20000\r\n";
    let _caller = Caller::post(gateway.address, head, &chat(50, 50));
    let call = upstream.next();
    let header = |name: &str| {
        let line = call.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::to_owned)
    };
    let told: u64 = header("x-request-timeout-ms").expect("a budget").parse().expect("milliseconds");
    assert!(told < 20_000, "{told}");
    assert_eq!(header("x-request-id").as_deref(), Some("a-r1"));
    assert_eq!(header("traceparent").as_deref(), Some("00-7f-01-01"));
    assert_eq!(header("authorization").as_deref(), Some("Bearer t"));
    assert_eq!(header("x-hop"), None);
    assert_eq!(call.body, chat(50, 50));
}

#[test]
fn malformed_requests_are_refused_by_name_and_hold_nothing() {
    let upstream = Upstream::start();
    let mut policy = still();
    policy["max_body"] = json!("3kB");
    let gateway = Running::start(policy, &upstream);
    let post = |head: &str, body: &str| Caller::post(gateway.address, head, body).answer();
    for body in [
        "",
        "nonsense",
        r#"{"messages":[]}"#,
        r#"{"max_tokens":0}"#,
        r#"{"max_tokens":-3}"#,
        r#"{"max_tokens":"x"}"#,
    ] {
        let answer = post("", body);
        assert_eq!((answer.status, &answer.json()["reason"]), (400, &json!("malformed")), "{body}");
    }
    for deadline in ["soon", "-1", "1e9", ""] {
        let answer = post(&format!("x-request-timeout-ms: {deadline}\r\n"), &chat(5, 5));
        assert_eq!(answer.status, 400, "{deadline}");
        assert!(answer.body.contains("x-request-timeout-ms"), "{}", answer.body);
    }
    let fits_never = post("", &chat(200, 101));
    assert_eq!((fits_never.status, &fits_never.json()["reason"]), (413, &json!("never_fits")));
    assert_eq!(fits_never.header("retry-after"), None);
    assert_eq!(post("", &"x".repeat(3_001)).status, 413);
    assert_eq!(
        Caller::send(gateway.address, "GET /v1/chat/completions HTTP/1.1\r\nhost: g\r\n\r\n").answer().status,
        405
    );
    assert_eq!(
        Caller::send(gateway.address, "GET /nothing HTTP/1.1\r\nhost: g\r\n\r\n").answer().status,
        404
    );
    // no HTTP at all: whatever becomes of the connection, the gateway goes on
    drop(Caller::send(gateway.address, "\u{16}\u{3}\u{1}\u{0}garbage\r\n\r\n"));
    assert_eq!((gateway.read("queue_requests"), gateway.read("held_tokens")), (0, 0));
    assert_eq!(gateway.read("forwards_total"), 0);
    assert_eq!(gateway.read("requests_total{outcome=\"malformed\"}"), 11);
}

#[test]
fn a_stop_refuses_what_waits_and_finishes_what_is_at_the_provider() {
    let upstream = Upstream::start();
    let mut gateway = Running::start(still(), &upstream);
    let mut first = gateway.call("a", &chat(200, 100));
    let mut call = upstream.next();
    let mut second = gateway.call("b", &chat(50, 50));
    gateway.until("queue_requests", 1);
    gateway.stop();
    let refused = second.answer();
    assert_eq!((refused.status, &refused.json()["reason"]), (503, &json!("stopping")));
    call.succeed(300);
    assert_eq!(first.answer().status, 200);
    gateway.join();
}
