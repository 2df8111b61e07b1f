use super::*;
use crate::measure::testing::{flash, request, smoke};
use serde_json::json;

fn near(got: f64, want: f64, within: f64) {
    assert!((got - want).abs() <= within, "{got} instead of {want}");
}

/// The golden numbers of the event the tool was made for.
#[test]
fn the_flash_promotion_is_offered_4_8_times_what_its_account_serves() {
    let forecast = Forecast::of(&flash().plan());
    near(forecast.offered_per_min, 2_000.0, 1e-6);
    near(forecast.serviceable_per_min, 416.67, 0.01);
    near(forecast.load_ratio, 4.8, 1e-6);
    near(forecast.shed_share, 0.7917, 1e-4);
    let bound = &forecast.queue_bound;
    assert_eq!((bound.deadline_only.tokens, bound.deadline_only.requests), (208_333, 173));
    assert_eq!((bound.with_service.tokens, bound.with_service.requests), (183_333, 152));
    assert_eq!((bound.with_margin.tokens, bound.with_margin.requests), (179_166, 149));
    assert_eq!((bound.effective.tokens, bound.effective.requests), (134_375, 111));
    near(bound.deadline_only.seconds, 25.0, 1e-3);
    near(forecast.onset.unwrap().after_s, 4.48, 0.01);
    near(forecast.drain.with_tail_s.unwrap(), 31.0, 0.1);
    near(forecast.drain.stopped_s, 16.1, 0.1);
    near(forecast.drain.with_returns_s.unwrap(), 41.3, 0.1);
}

#[test]
fn at_half_scale_the_bound_is_half_and_the_onset_the_same() {
    let forecast = Forecast::of(&flash().rehearsed());
    let effective = forecast.queue_bound.effective;
    assert_eq!((effective.tokens, effective.requests), (67_187, 55));
    near(forecast.load_ratio, 4.8, 1e-6);
    near(forecast.onset.unwrap().after_s, 4.48, 0.01);
}

#[test]
fn the_smoke_plan_sheds_after_0_83_seconds_at_37_requests() {
    let forecast = Forecast::of(&smoke().plan());
    let effective = forecast.queue_bound.effective;
    assert_eq!((effective.tokens, effective.requests), (45_000, 37));
    let onset = forecast.onset.unwrap();
    near(onset.after_s, 0.829, 0.001);
    near(onset.sd_s, 0.0, 0.0);
    assert_eq!(onset.depth_tokens, 45_000);
}

#[test]
fn no_bound_declares_nothing_and_a_wrong_belief_moves_no_expectation() {
    let mut sketch = smoke();
    sketch.policy = json!({ "service": { "start": "1s" }, "bound": "none" });
    assert_eq!(Forecast::of(&sketch.plan()).queue_bound.effective.tokens, 45_000);
    sketch.policy = json!({ "service": { "start": "1s" }, "budgets": { "tokens_per_minute": "2400k" } });
    assert_eq!(Forecast::of(&sketch.plan()).queue_bound.effective.tokens, 45_000);
    sketch.policy = json!({ "service": { "start": "1s" }, "retry_after": { "constant": "1s" } });
    assert_eq!(
        Forecast::of(&sketch.plan()).queue_bound.effective.tokens,
        60_000,
        "nothing is kept for returns"
    );
}

#[test]
fn the_unbounded_story_of_the_flash_promotion() {
    let unbounded = Forecast::of(&flash().plan()).unbounded;
    assert_eq!(unbounded.offered_requests, 80_000);
    assert_eq!(unbounded.backlog_requests, 63_326);
    assert_eq!(unbounded.served_requests, 16_674);
    near(unbounded.last_wait_s.unwrap() / 60.0, 152.0, 0.1);
    near(unbounded.empty_after_s.unwrap() / 60.0, 292.3, 0.1);
    near(unbounded.late_share, 0.9975, 2e-4);
    near(unbounded.wasted_tokens as f64, 76.0e6, 0.1e6);
    near(unbounded.queue_bytes as f64, 380e6, 1e6);
}

/// Simulated: 5.789 s with a standard deviation of 0.526 for a bucket of nothing and Poisson arrivals.
#[test]
fn random_arrivals_spread_the_onset() {
    let mut sketch = flash();
    sketch.arrivals = "poisson";
    sketch.quota = "500_000";
    let onset = Forecast::of(&sketch.plan()).onset.unwrap();
    // sqrt(33.33 · 1200² · 141874 / 31666.7³)
    near(onset.sd_s, 0.463, 0.001);
}

#[test]
fn a_quiet_day_sheds_nobody_and_has_no_infinite_number() {
    let mut sketch = smoke();
    sketch.phases[1] = ("600/min", "12s");
    let forecast = Forecast::of(&sketch.plan());
    assert!(forecast.onset.is_none() && forecast.shed_share == 0.0);
    assert_eq!(forecast.unbounded.backlog_requests, 0);
    sketch.phases = [("5000/min", "2s"), ("4800/min", "12s"), ("6000/min", "8s")];
    let forecast = Forecast::of(&sketch.plan());
    assert_eq!(forecast.drain.with_tail_s, None, "the tail alone is more than is served: it never drains");
    let text = serde_json::to_string(&forecast).unwrap();
    assert!(text.contains("\"with_tail_s\":null"), "{text}");
}

#[test]
fn a_mix_uses_means_for_the_load_and_the_largest_for_the_holds() {
    let mut sketch = smoke();
    let mut large = request("large", 1, "20kB", "9s");
    large["prompt"]["tokens"] = json!(2_000);
    sketch.requests = json!([request("ask", 3, "6kB", "4500ms"), large]);
    let forecast = Forecast::of(&sketch.plan());
    near(forecast.serviceable_per_min, 1_200_000.0 / 1_500.0, 1e-6);
    let effective = forecast.queue_bound.effective;
    assert_eq!((effective.tokens, effective.requests), (45_000, 18), "the impatient class, the largest hold");
}
