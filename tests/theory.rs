//! The simulation against queueing theory: closed forms within their confidence intervals, Little's law exactly, and
//! the states that retries lead to.

use std::collections::BTreeMap;
use std::time::Duration;

use tenfold::observe::{Joiner, Outcome, Record, Sighting};
use tenfold::plan::{self, Plan};
use tenfold::simulate;
use tenfold::units::Moment;

/// A gateway before a provider whose answers take a second on average, exponentially, with these keys.
fn queue(arrivals: &str, rate: &str, lasts: &str, deadline: &str, service: &str, policy: &str) -> Plan {
    let text = format!(
        "
tenfold: 1
name: theory
load: {{ seed: 3, arrivals: {arrivals}, phases: [{{ name: all, rate: {rate}, for: {lasts} }}] }}
requests:
  - {{ name: ask, prompt: {{ tokens: 1 }}, max_tokens: 1, deadline: {deadline}, patience: 10h }}
provider:
  quota: {{ tokens_per_minute: 600M, burst: 60s }}
  service: {service}
target:
  embedded: {{ margin: 0s, retry_after: none, {policy} }}
rehearsal: {{ probes: {{ every: 0 }} }}
"
    );
    plan::parse(&text, &[], &|_| None).unwrap_or_else(|faults| panic!("{faults:?}")).plan
}

const SECOND: &str = "{ first_token: 1s, law: exponential }";

fn records(plan: &Plan) -> Vec<Record> {
    let (mut joiner, mut all) = (Joiner::in_virtual_time(plan), Vec::new());
    let ended = simulate::run(plan, plan.policy().expect("the plan has a policy"), &mut |sighting| {
        joiner.see(&sighting, &mut all)
    });
    joiner.finish(ended.at, &mut all);
    all.sort_by_key(|record| record.attempt);
    all
}

/// The mean over 20 batches and its standard error, the first tenth left out.
fn estimate(values: &[f64]) -> (f64, f64) {
    let values = &values[values.len() / 10..];
    let batches: Vec<f64> =
        values.chunks_exact(values.len() / 20).map(|b| b.iter().sum::<f64>() / b.len() as f64).collect();
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let spread = batches.iter().map(|b| (b - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (spread / n).sqrt())
}

/// Whether the estimate says `expected`: within four standard errors, which must themselves be small.
fn agrees(what: &str, values: &[f64], expected: f64) {
    let (mean, error) = estimate(values);
    assert!(error < 0.04 * expected.max(0.02), "{what}: {mean} ± {error} says too little");
    assert!((mean - expected).abs() < 4.0 * error + 1e-9, "{what}: {mean} ± {error}, not {expected}");
}

fn shares(records: &[Record], which: impl Fn(&Record) -> bool) -> Vec<f64> {
    records.iter().map(|record| f64::from(u8::from(which(record)))).collect()
}

fn waits(records: &[Record]) -> impl Iterator<Item = f64> {
    records.iter().filter_map(|r| r.at_provider.map(|at| at.since(r.due).as_secs_f64()))
}

/// M/M/1 at load 0.8: 5 s from arrival to answer, 4 in the system.
#[test]
fn one_server_at_load_four_fifths() {
    let plan = queue(
        "poisson",
        "0.8/s",
        "300000s",
        "10h",
        SECOND,
        "bound: none, recheck: false, service: { start: 1s }, budgets: { concurrent: 1 }",
    );
    let all = records(&plan);
    let times: Vec<f64> = all.iter().map(|r| r.latency().as_secs_f64()).collect();
    agrees("W", &times, 5.0);
    agrees("wait", &waits(&all).collect::<Vec<_>>(), 4.0);
    agrees("P(wait > 0)", &shares(&all, |r| r.at_provider > Some(r.due)), 0.8);
}

/// M/M/c/K with 60 slots of 50 ms, 480 places before them and 3,600 callers a second.
#[test]
fn sixty_slots_in_three_times_their_load() {
    let plan = queue(
        "poisson",
        "3600/s",
        "60s",
        "10h",
        "{ first_token: 50ms, law: exponential }",
        "bound: { requests: 480 }, recheck: false, service: { start: 50ms }, budgets: { concurrent: 60 }",
    );
    let all = records(&plan);
    agrees("blocked", &shares(&all, |r| r.outcome == Outcome::Shed), 2.0 / 3.0);
    let depths: Vec<f64> = all.iter().map(|r| r.depth_met.requests as f64).collect();
    agrees("queue", &depths, 479.5);
}

/// M/D/1/K (Brun and Garcia): K is what fits in the system.
#[test]
fn one_server_with_fixed_times_and_few_places() {
    for (rate, places, blocked) in [("0.8/s", 2, 0.103_30), ("1.5/s", 3, 0.345_86)] {
        let policy = format!(
            "bound: {{ requests: {places} }}, recheck: false, service: {{ start: 1s }}, budgets: {{ concurrent: 1 }}"
        );
        let plan = queue("poisson", rate, "100000s", "10h", "{ first_token: 1s }", &policy);
        agrees(rate, &shares(&records(&plan), |r| r.outcome == Outcome::Shed), blocked);
    }
}

/// M/M/1 whose callers give up after waiting 5 s: loss = (1 − ρ)ρe^a/(1 − ρ²e^a) with a = (λ − μ)τ.
#[test]
fn one_server_and_callers_with_patience() {
    for load in [0.9, 1.2, 2.0f64] {
        // the least of the latest service times stands in for none at all
        let policy =
            "bound: none, recheck: true, service: { start: 0s, quantile: 0.005 }, budgets: { concurrent: 1 }";
        let plan = queue("poisson", &format!("{load}/s"), "100000s", "5s", SECOND, policy);
        let a = ((load - 1.0) * 5.0).exp();
        let loss = (1.0 - load) * load * a / (1.0 - load * load * a);
        let lost = shares(&records(&plan), |r| r.outcome == Outcome::Expired);
        let (mean, error) = estimate(&lost);
        // that least is 5 ms of the 5 s
        assert!((mean - loss).abs() < 4.0 * error + 0.002, "load {load}: {mean} ± {error}, not {loss}");
    }
}

/// Erlang C: of ten servers at load eight, 0.40918 of callers wait.
#[test]
fn ten_servers_at_load_eight() {
    let plan = queue(
        "poisson",
        "8/s",
        "30000s",
        "10h",
        SECOND,
        "bound: none, recheck: false, service: { start: 1s }, budgets: { concurrent: 10 }",
    );
    agrees("P(wait)", &shares(&records(&plan), |r| r.at_provider > Some(r.due)), 0.409_18);
    // the same servers at the provider, with a queue of their own
    let mut behind = queue(
        "poisson",
        "8/s",
        "30000s",
        "10h",
        SECOND,
        "bound: none, recheck: false, service: { start: 1s }",
    );
    behind.provider.slots = Some(tenfold::provider::Slots { count: 10, queue: u32::MAX });
    let times: Vec<f64> = records(&behind).iter().map(|r| r.latency().as_secs_f64()).collect();
    // W = 1/μ + C/(cμ − λ)
    agrees("W", &times, 1.0 + 0.409_18 / 2.0);
}

/// LIFO at twice capacity: half are served, after a busy period of the swapped queue, 1/(λ − μ) on average.
#[test]
fn the_newest_first_at_twice_capacity() {
    let plan = queue(
        "poisson",
        "2/s",
        "60000s",
        "10h",
        SECOND,
        "bound: none, order: lifo, recheck: false, service: { start: 1s }, budgets: { concurrent: 1 }",
    );
    let all = records(&plan);
    let end = plan.load.end();
    // who is buried deep is served when the arrivals are over, if at all: that is no steady state
    let within = |r: &Record| r.at_provider.is_some_and(|at| at < end);
    agrees("served", &shares(&all, within), 0.5);
    let waits: Vec<f64> = waits(&all.iter().filter(|r| within(r)).cloned().collect::<Vec<_>>()).collect();
    let (mean, error) = estimate(&waits);
    // heavy-tailed: the interval is wide
    assert!((mean - 1.0).abs() < 4.0 * error && error < 0.2, "{mean} ± {error}");
}

fn smoke(changes: &[&str]) -> Plan {
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    plan::parse(include_str!("../plans/smoke.yaml"), &changes, &|_| None).expect("a plan").plan
}

/// Little's law as an identity: the depth summed over time is the time spent in the gateway summed over requests, to
/// the nanosecond.
#[test]
fn littles_law_holds_exactly() {
    let retry = "requests.0.on_refusal={ retry: { attempts: 3, honour: false } }";
    for changes in [
        &[][..],
        &["load.arrivals=poisson", "target.embedded.order=lifo"],
        &["load.arrivals=poisson", "target.embedded.order=edf", retry],
        &["target.embedded.bound=none", "target.embedded.recheck=false", retry],
        &["provider.service.law=exponential", "provider.slots={ count: 12, queue: 3 }"],
        &["target.embedded.retry_after=room", "provider.faults=[{ at: 4s, for: 5s, capacity: 1/2 }]"],
    ] {
        let plan = smoke(changes);
        let (measures, _) = simulate::measure(&plan, plan.policy().expect("the plan has a policy"));
        let depth: u128 = measures.windows.iter().map(|window| window.depth_time).sum();
        let mut inside = BTreeMap::new();
        let mut spent = 0u128;
        simulate::run(&plan, plan.policy().expect("the plan has a policy"), &mut |sighting| {
            let attempt = sighting.attempt();
            match sighting {
                Sighting::Sent { at, .. } => drop(inside.insert(attempt, at)),
                // one the provider refuses stays in the gateway
                Sighting::AtProvider { at, refused: false, .. }
                | Sighting::Answered { at, .. }
                | Sighting::Left { at, .. } => {
                    let since = inside.remove(&attempt);
                    spent += since.map_or(0, |since| at.since(since).as_nanos());
                }
                _ => {}
            }
        });
        assert!(inside.is_empty(), "the run is closed");
        assert_eq!(depth, spent, "{changes:?}");
        assert!(measures.sums_are_exact() && depth > 0, "{changes:?}");
    }
}

/// A minute at 2,000 a minute, then `tail` a minute, with callers of `attempts` attempts: the
/// share of callers of the minutes 35 to 45 served in time by any attempt, and tokens wasted and charged in millions.
fn after_a_spike(tail: u32, attempts: u32, changes: &[&str]) -> (f64, f64, f64) {
    let mut all = vec![
        format!("load.phases=[{{ name: spike, rate: 2000/min, for: 1m, event: true }}, {{ name: tail, rate: {tail}/min, for: 49m }}]"),
        format!("requests.0.on_refusal={{ retry: {{ attempts: {attempts}, honour: false }} }}"),
        "target.embedded={ bound: none, recheck: false, cancel: false, service: { start: 3s }, retry_after: room }".into(),
    ];
    all.extend(changes.iter().map(|change| (*change).to_owned()));
    let text = include_str!("../plans/flash-promotion.yaml");
    let text = &text[..text.find("\nrehearsal:").expect("the plan has a rehearsal")];
    let plan = plan::parse(text, &all, &|_| None).unwrap_or_else(|faults| panic!("{faults:?}")).plan;
    let (measures, _) = simulate::measure(&plan, plan.policy().expect("the plan has a policy"));
    let minutes = |from: u64, to: u64| {
        let windows = measures.windows.within(
            &measures.frame,
            Moment::from_secs(from * 60),
            Moment::from_secs(to * 60),
        );
        windows.fold((0, 0), |(offered, good), w| {
            (offered + w.offered, good + w.arrivals.get(Outcome::Completed))
        })
    };
    let (offered, good) = minutes(35, 45);
    let millions = |tokens: tenfold::units::Tokens| tokens.get() as f64 / 1e6;
    (good as f64 / offered as f64, millions(measures.upstream.wasted), millions(measures.upstream.charged))
}

/// After a spike of a minute, an unbounded queue of callers who retry never recovers from a load it would otherwise
/// carry; a bound, the test at dequeue or a retry budget each bring it back.
#[test]
fn retries_keep_an_unbounded_queue_down_for_good() {
    let good = |tail, attempts, changes: &[&str]| after_a_spike(tail, attempts, changes).0;
    assert!(good(200, 1, &[]) > 0.99, "one attempt recovers");
    for attempts in [2, 3] {
        let (served, wasted, charged) = after_a_spike(200, attempts, &[]);
        assert!(served < 0.005, "{attempts} attempts: {served} served in time");
        assert!(wasted > 0.95 * charged, "{wasted} of {charged} M wasted");
    }
    let cancel = "target.embedded.cancel=true";
    assert!(good(200, 3, &[cancel]) < 0.005, "ending the calls of leavers alone does not help");
    let budget = "requests.0.on_refusal.retry.budget=20%";
    assert!(good(200, 3, &[budget]) > 0.99);
    let (served, wasted, _) = after_a_spike(200, 3, &["target.embedded.recheck=true"]);
    assert!(served > 0.99 && wasted < 0.1, "{served}, {wasted} M");
    let (served, wasted, _) =
        after_a_spike(200, 3, &["target.embedded.bound=deadline", "target.embedded.margin=0s"]);
    assert!(served > 0.99 && wasted < 1.0, "{served}, {wasted} M");
    assert!(good(150, 3, &[]) < 0.005, "k λ0 = 450 is more than is served");
    let still = good(100, 3, &[]);
    assert!((0.02..0.9).contains(&still), "k λ0 = 300 is less: it recovers, slowly: {still}");
}

/// As in giltene/wrk2#54: a server that takes one request a second, offered five: from their due times answers take up to 120 s, though
/// the server takes a second for each.
#[test]
fn waiting_counts_from_the_due_time() {
    let plan = queue(
        "constant",
        "5/s",
        "30s",
        "10h",
        "{ first_token: 1s }",
        "bound: none, recheck: false, service: { start: 1s }, budgets: { concurrent: 1 }",
    );
    let (measures, ended) = simulate::measure(&plan, plan.policy().expect("the plan has a policy"));
    let hist = measures.latencies.from_due(Outcome::Completed);
    let near = |got: Option<Duration>, wanted: f64| {
        let got = got.unwrap().as_secs_f64();
        assert!((got - wanted).abs() < 0.01 * wanted, "{got} for {wanted}");
    };
    assert_eq!(hist.count(), 150);
    assert!((hist.mean().unwrap() / 1e6 - 60.6).abs() < 0.1);
    near(hist.quantile(0.5), 60.2);
    near(hist.quantile(0.95), 114.6);
    near(hist.quantile(0.99), 119.4);
    assert!((hist.max().unwrap() as f64 / 1e6 - 120.2).abs() < 0.2);
    let by_then = records(&plan).iter().filter(|r| r.ended <= Moment::from_secs(30)).count();
    assert_eq!(by_then, 30);
    assert_eq!(ended.at, Moment::from_secs(150), "120 s to drain");
    assert!(records(&plan).iter().all(|r| r.ended.since(r.at_provider.unwrap()) == Duration::from_secs(1)));
}

/// As in giltene/wrk2#138: a short run at an absurd rate has a length, and no number that is none.
#[test]
fn a_short_run_at_an_absurd_rate_is_as_long_as_it_was() {
    let plan = queue(
        "constant",
        "166614.2/s",
        "5s",
        "1s",
        "{ first_token: 1ms }",
        "bound: none, recheck: false, service: { start: 1ms }",
    );
    let (measures, ended) = simulate::measure(&plan, plan.policy().expect("the plan has a policy"));
    assert_eq!(measures.offered, 833_071);
    assert_eq!(measures.arrivals.get(Outcome::Completed), 833_071);
    assert!(ended.at >= Moment::from_secs(5));
    assert!(measures.achieved().is_some_and(|achieved| achieved <= 1.0 && achieved > 0.999));
    let most = measures.windows.iter().map(|window| window.completions).max().unwrap();
    let per_second = most as f64 / measures.frame.width.as_secs_f64();
    assert!((per_second - 166_614.2).abs() < 200.0, "{per_second}");
    let summary = simulate::Summary::of(&measures);
    assert!(summary.0.iter().flatten().all(|value| value.is_finite()));
}
