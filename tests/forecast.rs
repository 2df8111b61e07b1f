//! The forecast against virtual time: where shedding begins, by every kind of window and limit.

use std::time::Duration;

use tenfold::forecast::Forecast;
use tenfold::measure::{Fold, Measures};
use tenfold::observe::Outcome;
use tenfold::plan::{Plan, parse};
use tenfold::simulate;

/// The flash promotion with some keys changed, its event five minutes long.
fn plan(overrides: &[&str]) -> Plan {
    parsed(include_str!("../plans/flash-promotion.yaml"), overrides)
}

fn parsed(text: &str, overrides: &[&str]) -> Plan {
    // the provider refuses nothing the gateway's own windows let through at once
    let all = ["load.phases.promotion.for=5m", "provider.quota.burst=60s"].iter().chain(overrides);
    let all: Vec<String> = all.map(|text| (*text).to_owned()).collect();
    parse(text, &all, &|_| None).unwrap_or_else(|faults| panic!("{faults:?}")).plan
}

fn simulated(plan: &Plan) -> Measures {
    let mut fold = Fold::new(plan);
    let policy = plan.policy().expect("the plan has a policy");
    let ended = simulate::run(plan, policy, &mut |sighting| fold.see(sighting));
    fold.finish(ended.at)
}

/// The instant of the first shed in the event and the depth it met, forecast and simulated.
fn onsets(plan: &Plan) -> [(f64, f64); 2] {
    let forecast = Forecast::of(plan).onset.expect("the event is an overload");
    let measures = simulated(plan);
    let seen = measures.onset.expect("somebody was shed");
    let start = plan.load.event().expect("there is an event").start;
    [
        (forecast.after_s, forecast.depth_tokens as f64 / 1_200.0),
        (seen.sent.since(start).as_secs_f64(), seen.depth_met.requests as f64),
    ]
}

#[test]
fn shedding_begins_where_the_supply_function_says() {
    for (what, overrides) in [
        ("a bucket", &["target.embedded.retry_after=room"][..]),
        ("a bucket and a part kept", &[]),
        ("a fixed window too long to wait for", &["target.embedded.budgets.window={fixed: 60s}"]),
        (
            "a fixed window within reach",
            &[
                "target.embedded.budgets.window={fixed: 60s}",
                "requests.0.deadline=1m10s",
                "requests.0.patience=70s",
            ],
        ),
        ("a short fixed window", &["target.embedded.budgets.window={fixed: 10s}"]),
        ("a sliding window", &["target.embedded.budgets.window={sliding: 60s}"]),
        ("requests", &["target.embedded.budgets.requests_per_minute=300"]),
        ("a bound of its own", &["target.embedded.bound={requests: 40}"]),
    ] {
        let [(at, depth), (seen_at, seen_depth)] = onsets(&plan(overrides));
        assert!((at - seen_at).abs() <= 0.15, "{what}: after {at} s, simulated {seen_at} s");
        assert!((depth - seen_depth).abs() <= 2.0, "{what}: at depth {depth}, simulated {seen_depth}");
    }
}

/// Slots that are free are taken at once and give nothing back for the time of an answer: the closed form takes the two
/// for equal, which is right to within one turn of the slots.
#[test]
fn slots_shed_at_the_depth_they_drain() {
    let plan = plan(&["target.embedded.budgets.concurrent=15", "target.embedded.retry_after=room"]);
    let forecast = Forecast::of(&plan);
    assert!((forecast.serviceable_per_min - 300.0).abs() < 1e-3);
    let [(at, depth), (seen_at, seen_depth)] = onsets(&plan);
    assert!((at - seen_at).abs() <= 1.0, "after {at} s, simulated {seen_at} s");
    assert!((depth - seen_depth).abs() <= 15.0, "at depth {depth}, simulated {seen_depth}");
}

/// What is refused in the long run is what conservation says, and the unbounded queue is as long as it says.
#[test]
fn the_shares_and_the_backlog_are_those_of_virtual_time() {
    let plain = plan(&["target.embedded.retry_after=room", "rehearsal.probes.every=0"]);
    let (forecast, measures) = (Forecast::of(&plain), simulated(&plain));
    let shed = measures.arrivals.get(Outcome::Shed) as f64 / measures.offered as f64;
    // the burst of a minute and the queue serve some at first, and nobody is refused outside the event
    let event = forecast.unbounded.offered_requests as f64;
    let first = (forecast.basis.burst.get() + forecast.queue_bound.effective.tokens) as f64 / 1_200.0;
    let expected = (event * forecast.shed_share - first) / measures.offered as f64;
    assert!((shed - expected).abs() < 0.003, "{shed} instead of {expected}");

    let open = plan(&[
        "target.embedded.bound=none",
        "target.embedded.recheck=false",
        "requests.0.patience=10h",
        "load.phases.after.for=1s",
        "target.embedded.budgets.burst=60s",
    ]);
    let backlog = Forecast::of(&open).unbounded.backlog_requests as f64;
    let peak = simulated(&open).depths.peak.requests as f64;
    assert!((peak - backlog).abs() <= 3.0, "{peak} waited at most, forecast {backlog}");
    assert_eq!(Forecast::of(&open).basis.lasts, Duration::from_secs(300));
}

/// A gateway that is told nothing else keeps to its provider's windows: it is refused by none, and sheds where the forecast
/// of them says.
#[test]
fn the_gateways_own_windows_follow_the_providers() {
    for window in
        ["window: {sliding: 60s}", "window: {fixed: 60s}", "window: {fixed: 60s}, sub_windows: [20s]"]
    {
        let flash = include_str!("../plans/flash-promotion.yaml");
        let named = "budgets: { tokens_per_minute: 500_000, burst: 900ms }";
        assert!(flash.contains(named));
        let quota = format!("provider.quota={{tokens_per_minute: 500_000, {window}}}");
        let plan = parsed(&flash.replace(named, ""), &[&quota]);
        let [(at, depth), (seen_at, seen_depth)] = onsets(&plan);
        assert!((at - seen_at).abs() <= 0.5, "{window}: after {at} s, simulated {seen_at} s");
        assert!((depth - seen_depth).abs() <= 2.0, "{window}: at depth {depth}, simulated {seen_depth}");
        let upstream = simulated(&plan).upstream;
        assert_eq!((upstream.refused, upstream.forwards > 300), (0, true), "{window}: {upstream:?}");
    }
}

/// The event is forecast by the mix it has, and not by that of the time around it.
#[test]
fn a_heavier_mix_in_the_event_is_forecast() {
    let requests = "requests=[{name: light, prompt: {tokens: 400}, max_tokens: 200, deadline: 25s}, \
                    {name: heavy, weight: 0, prompt: {tokens: 1600}, max_tokens: 400, deadline: 25s}]";
    let mix = "load.phases.promotion.mix={heavy: 1}";
    let (usual, shifted) = (plan(&[requests]), plan(&[requests, mix]));
    assert!((Forecast::of(&usual).serviceable_per_min - 500_000.0 / 600.0).abs() < 0.01);
    assert!((Forecast::of(&shifted).serviceable_per_min - 250.0).abs() < 0.01);
    let [(at, _), (seen_at, _)] = onsets(&shifted);
    assert!((at - seen_at).abs() <= 0.5, "after {at} s, simulated {seen_at} s");
}
