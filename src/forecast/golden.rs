//! The figures of public articles on overload, from plans that say what they say. Where an article contradicts its own
//! numbers, the right one stands here and the comment names the one it replaces.

use std::time::Duration;

use serde_json::json;

use super::Forecast;
use super::levers::pulled;
use crate::measure::testing::{Sketch, flash, smoke};
use crate::plan::{Lever, Plan, Pull};
use crate::units::{Share, Tokens, Window};

fn near(got: f64, want: f64, within: f64) {
    assert!((got - want).abs() <= within, "{got} instead of {want}");
}

/// A plan whose budgets hold nothing when the event begins.
fn without_burst(sketch: &Sketch) -> Plan {
    let mut plan = sketch.plan();
    plan.provider.quota.window = Window::Bucket { burst: Duration::ZERO };
    plan
}

/// "Queueing a request the user has abandoned is not serving it": 200 a minute become 2,000 for forty minutes, 500,000
/// tokens a minute at 1,200 a request, callers who leave after 25 s.
mod queueing_a_request_the_user_has_abandoned {
    use super::*;

    #[test]
    fn the_event() {
        let forecast = Forecast::of(&flash().plan());
        near(forecast.serviceable_per_min, 416.67, 0.01);
        near(forecast.load_ratio, 4.8, 1e-9);
        // "Roughly 79 percent"
        near(forecast.shed_share, 0.7917, 5e-5);
        // "at most 208,000 tokens", to the thousand
        assert_eq!(forecast.queue_bound.deadline_only.tokens, 208_333);
        // "the first 174 in the queue": 173.6 fit, so that 173 are taken in and the 174th is the first refused
        assert_eq!(forecast.queue_bound.deadline_only.requests, 173);
        // the article's own code subtracts the service time, its prose does not
        assert_eq!(forecast.queue_bound.with_service.requests, 152);
    }

    #[test]
    fn the_unbounded_queue() {
        // 63,320 is for 417 a minute; at 416.67 it is 63,333, less the 7 that the burst serves
        assert_eq!(Forecast::of(&without_burst(&flash())).unbounded.backlog_requests, 63_333);
        let unbounded = Forecast::of(&flash().plan()).unbounded;
        assert_eq!((unbounded.offered_requests, unbounded.backlog_requests), (80_000, 63_326));
        // "292 minutes": the time until the queue is empty
        near(unbounded.empty_after_s.unwrap() / 60.0, 292.3, 0.1);
        // replaces "waits about five hours": in order of arrival the last one in waits for those before it only
        near(unbounded.last_wait_s.unwrap() / 60.0, 152.0, 0.1);
        // replaces "99.8 percent": the queue reaches its 25 s only after some 200 callers, who are all in time
        near(unbounded.late_share, 0.9975, 2e-4);
        near(unbounded.wasted_tokens as f64, 76.0e6, 0.05e6);
        // replaces "its entire token quota for five hours generating 76 million": that is the backlog alone; those late
        // in the event and those who come behind are late too
        near(unbounded.wasted_in_all_tokens.unwrap() as f64, 165.7e6, 0.2e6);
    }

    #[test]
    fn the_bodies() {
        near(Forecast::of(&flash().plan()).unbounded.queue_bytes as f64, 380e6, 0.1e6);
        let mut sketch = flash();
        sketch.requests[0]["prompt"]["bytes"] = json!("40kB");
        near(Forecast::of(&sketch.plan()).unbounded.queue_bytes as f64, 2.533e9, 0.001e9);
    }

    /// "2,000 offered requests per minute into 1,200 against a capacity of about 740, which sheds 38 percent"
    #[test]
    fn the_levers() {
        let mut plan = flash().plan();
        let lever = |name: &str, pull| Lever { name: name.into(), pull };
        plan.levers = vec![
            lever("cache", Pull::AnswerFromCache(Share::new(0.4).unwrap())),
            lever("shorter", Pull::ShrinkTokens(Tokens::new(675))),
        ];
        let last = pulled(&plan).pop().unwrap();
        near(last.offered_per_min, 1_200.0, 1e-9);
        near(last.serviceable_per_min, 740.74, 0.01);
        near(last.shed_share, 0.3827, 5e-5);
    }

    /// "174 at 200 a minute hold 52 seconds", "25 seconds of work": the same queue in the unit that means anything.
    #[test]
    fn a_bound_is_seconds_of_work() {
        let bound = Forecast::of(&flash().plan()).queue_bound.deadline_only;
        near(bound.seconds, 25.0, 1e-3);
        near(174.0 / 200.0 * 60.0, 52.2, 1e-9);
    }
}

/// "Handle overload and fair scheduling": ten arrivals a second against six completions grow by four a second, whatever
/// the queue holds; a larger one only hides it longer. (Its weights of 2:1:1 are tested where tenants are.)
#[test]
fn a_queue_is_not_capacity() {
    let mut sketch = smoke();
    sketch.phases = [("6/s", "10s"), ("10/s", "10m"), ("6/s", "10s")];
    sketch.quota = "432_000"; // 6 a second of 1,200
    let growth = Forecast::of(&without_burst(&sketch)).unbounded.backlog_requests;
    assert_eq!(growth, 4 * 600);
    for (bound, after) in [(12, 3.0), (1_200, 300.0)] {
        sketch.policy = json!({ "service": { "start": "1s" }, "bound": { "requests": bound },
            "retry_after": "room" });
        let onset = Forecast::of(&without_burst(&sketch)).onset.unwrap();
        near(onset.after_s, after, 1e-6);
        assert_eq!(onset.depth_tokens, bound * 1_200);
    }
}

/// "Why AI Requests Wait: Bounded Queues and Deadlines"
mod why_ai_requests_wait {
    use super::*;

    fn burst(
        offered: &'static str,
        lasts: &'static str,
        quota: &'static str,
        tail: &'static str,
    ) -> Forecast {
        let mut sketch = smoke();
        sketch.phases = [("1/s", "1s"), (offered, lasts), (tail, "1m")];
        sketch.quota = quota;
        Forecast::of(&without_burst(&sketch))
    }

    /// 30 a second for 4 s against 10: 80 wait, 8 s of work. Then 5 come and 5 more could: 16 s. The last one in waits
    /// 8 s of them, not 16.
    #[test]
    fn the_example() {
        let unbounded = burst("30/s", "4s", "720_000", "5/s").unbounded;
        assert_eq!(unbounded.backlog_requests, 80);
        near(unbounded.last_wait_s.unwrap(), 8.0, 1e-9);
        near(unbounded.empty_after_s.unwrap(), 16.0, 1e-9);
    }

    /// 24 a second for 2 s against 12, then 8.
    #[test]
    fn the_exercise() {
        let unbounded = burst("24/s", "2s", "864_000", "8/s").unbounded;
        assert_eq!(unbounded.backlog_requests, 24);
        near(unbounded.empty_after_s.unwrap(), 6.0, 1e-9);
    }

    /// "20 waiting requests … roughly two seconds of full-rate work"
    #[test]
    fn a_bound_of_20_is_two_seconds_of_work() {
        let mut sketch = smoke();
        sketch.quota = "720_000";
        sketch.policy =
            json!({ "service": { "start": "1s" }, "bound": { "requests": 20 }, "retry_after": "room" });
        let bound = Forecast::of(&sketch.plan()).queue_bound.effective;
        assert_eq!(bound.requests, 20);
        near(bound.seconds, 2.0, 1e-9);
    }
}

/// A service of 60 slots and 50 ms whose clients give up after 2 s, and whose load triples: where should the excess wait?
#[test]
fn sixty_slots_of_50_ms() {
    let mut sketch = smoke();
    sketch.phases = [("1200/s", "10s"), ("3600/s", "10s"), ("600/s", "10s")];
    sketch.quota = "200_000k"; // no limit here: the slots are
    sketch.service = ["50ms", "0s"];
    sketch.requests[0]["deadline"] = json!("2s");
    let with = |bound: serde_json::Value| {
        json!({ "service": { "start": "50ms" }, "margin": "0ms", "bound": bound, "retry_after": "room",
            "budgets": { "tokens_per_minute": "200_000k", "concurrent": 60 } })
    };
    sketch.policy = with(json!("deadline"));
    let forecast = Forecast::of(&sketch.plan());
    near(forecast.serviceable_per_min / 60.0, 1_200.0, 1e-6);
    near(forecast.load_ratio, 3.0, 1e-9);
    near(forecast.shed_share, 2.0 / 3.0, 1e-9);
    assert_eq!(forecast.queue_bound.deadline_only.requests, 2_400);
    // "the hard ceiling" of 2,400 leaves no time for the work itself
    assert_eq!(forecast.queue_bound.with_service.requests, 2_340);
    assert_eq!(forecast.warnings[0].id, "concurrency_bound");
    // "for a 400 ms p99 target … 480 slots", which are 420 if the 50 ms of the work itself count
    for (objective, requests) in [("400ms", 480), ("350ms", 420)] {
        sketch.policy = with(json!(["deadline", { "seconds": objective }]));
        assert_eq!(Forecast::of(&sketch.plan()).queue_bound.effective.requests, requests);
    }
    // "roughly one second of work" is 1,200: two and a half times the 480
    sketch.policy = with(json!({ "seconds": "1s" }));
    assert_eq!(Forecast::of(&sketch.plan()).queue_bound.effective.requests, 1_200);
}
