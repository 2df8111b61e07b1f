//! Deadlines in each form: read, clamped, and passed on as what remains.

use std::time::Duration;

use serde_json::json;
use tenfold::live::Clock;

use crate::support::{Running, Upstream, chat, header_of, plenty, with};

/// What the provider is told when a caller writes `value` in a deadline of `form`.
fn told(form: &str, value: &str) -> String {
    let upstream = Upstream::start();
    let deadline =
        json!({ "deadline": { "header": "x-deadline", "form": form, "default": "7s", "longest": "60s" } });
    let gateway = Running::start(with(plenty(), deadline), &upstream);
    let head = if value.is_empty() { String::new() } else { format!("x-deadline: {value}\r\n") };
    let _caller = gateway.send(&head, &chat(5, 5));
    let call = upstream.next();
    header_of(&call.head, "x-deadline").expect("a budget").to_owned()
}

#[test]
fn what_remains_is_passed_on_in_the_same_form() {
    let ms: u64 = told("remaining_ms", "5000").parse().expect("milliseconds");
    assert!(ms < 5_000, "{ms}");
    let s: f64 = told("remaining_s", "5").parse().expect("seconds");
    assert!(s < 5.0, "{s}");
    let unix = Clock::start().unix();
    let until = (unix + Duration::from_secs(5)).as_millis();
    let at: u128 = told("absolute_ms", &until.to_string()).parse().expect("an instant");
    assert!(at <= until && at > unix.as_millis(), "{at} is an instant, and no later than {until}");
    let grpc = told("grpc", "5S");
    let (count, unit) = grpc.split_at(grpc.len() - 1);
    let count: u64 = count.parse().expect("digits");
    assert!(unit == "u" && count < 5_000_000, "{grpc}: as fine as eight digits allow");
}

/// As in llm-d/llm-d-router#1917: a huge deadline overflowed and jumped the queue.
#[test]
fn huge_ones_are_clamped_and_missing_ones_have_a_default() {
    for (form, value) in [
        ("remaining_ms", "99999999999999999999999999"),
        ("remaining_s", "999999999999.9"),
        ("absolute_ms", "99999999999999999999999999"),
        ("grpc", "99999999H"),
    ] {
        let told = told(form, value);
        let clamped = match form {
            "remaining_ms" => told.parse::<u64>().expect("milliseconds") <= 60_000,
            "remaining_s" => told.parse::<f64>().expect("seconds") <= 60.0,
            "absolute_ms" => {
                told.parse::<u128>().expect("an instant")
                    <= (Clock::start().unix() + Duration::from_secs(60)).as_millis()
            }
            _ => told.ends_with('u') && told[..told.len() - 1].parse::<u64>().expect("digits") <= 60_000_000,
        };
        assert!(clamped, "{form}: {told}");
    }
    let default: u64 = told("remaining_ms", "").parse().expect("milliseconds");
    assert!(default < 7_000 && default > 1_000, "{default} of the route's own seven seconds");
}

#[test]
fn what_makes_no_sense_or_has_passed_is_refused_by_name() {
    let upstream = Upstream::start();
    for (form, values) in [
        ("absolute_ms", &["1000", "-1", "soon", "1790000000.5"][..]),
        ("grpc", &["5", "S", "123456789S", "-5S", "5 S", "0S"]),
        ("remaining_ms", &["0", "-1", "1.5", "0x10"]),
        ("remaining_s", &["0", "0.0", "-0.1", "NaN", "inf", "5s"]),
    ] {
        let deadline = json!({ "deadline": { "header": "grpc-timeout", "form": form } });
        let gateway = Running::start(with(plenty(), deadline), &upstream);
        for value in values {
            let answer = gateway.send(&format!("grpc-timeout: {value}\r\n"), &chat(5, 5)).answer();
            assert_eq!(answer.status, 400, "{form}: {value}");
            assert!(answer.body.contains("`grpc-timeout`"), "{form}: {}", answer.body);
        }
        assert_eq!((gateway.read("held_tokens"), gateway.read("forwards_total")), (0, 0));
    }
}
