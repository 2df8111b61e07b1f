use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use crate::observe::{Joiner, Outcome, Record};
use crate::plan::{TargetKind, testing};
use crate::units::{Node, Rate, Tokens};
use crate::workload::{Phase, Schedule};

mod faults;
mod gateway_faults;

fn records(plan: &Plan, policy: &admission::Config) -> (Vec<Record>, Ended) {
    let (mut joiner, mut all) = (Joiner::in_virtual_time(plan), Vec::new());
    let ended = run(plan, policy, &mut |sighting| joiner.see(&sighting, &mut all));
    joiner.finish(ended.at, &mut all);
    (all, ended)
}

fn smoke(changes: &[(&str, Node)]) -> (Vec<Record>, Ended) {
    let plan = testing::plan();
    records(&plan, &testing::policy(changes, &plan.provider.quota))
}

fn count(records: &[Record], which: impl Fn(&Record) -> bool) -> usize {
    records.iter().filter(|r| which(r)).count()
}

#[test]
fn the_smoke_plan_sheds_at_its_bound_and_keeps_its_promises() {
    let plan = testing::plan();
    let event = plan.load.event().unwrap();
    let (records, ended) = smoke(&[]);
    let first = records.iter().filter(|r| r.outcome == Outcome::Shed).min_by_key(|r| r.sent).unwrap();
    let after = first.due.since(event.start).as_secs_f64();
    assert!((0.80..0.90).contains(&after), "first shed {after} s into the event");
    assert!((37..=39).contains(&first.depth_met.requests), "at depth {}", first.depth_met.requests);
    let probes = count(&records, |r| r.probe);
    let kept = count(&records, |r| r.probe && r.outcome == Outcome::Completed);
    let inside = count(&records, |r| r.probe && event.contains(r.due));
    assert!(probes >= 50 && kept == probes, "{kept} of {probes} probes kept");
    assert!(inside >= 20, "{inside} inside the overload");
    assert_eq!(
        count(&records, |r| matches!(r.outcome, Outcome::Unfinished | Outcome::Late | Outcome::Abandoned)),
        0
    );
    assert!(ended.at >= plan.load.end());
}

#[test]
fn the_same_plan_gives_the_same_run() {
    let (a, b) = (smoke(&[]), smoke(&[]));
    assert_eq!(a.0, b.0);
    assert_eq!(a.1, b.1);
}

#[test]
fn without_bound_and_recheck_nothing_is_in_time() {
    let plan = testing::plan();
    let event = plan.load.event().unwrap();
    let late = |r: &Record| r.due > event.start + Duration::from_secs(6) && r.due < event.end;
    let (records, _) = smoke(&[("bound", testing::text("none")), ("recheck", testing::text("false"))]);
    assert_eq!(count(&records, |r| late(r) && r.outcome == Outcome::Completed), 0);
    assert!(records.iter().map(|r| r.wasted).sum::<Tokens>() > Tokens::new(100_000));
    let (records, _) = smoke(&[("bound", testing::text("none"))]);
    let good = count(&records, |r| late(r) && r.outcome == Outcome::Completed);
    assert!(good >= 90, "the recheck alone keeps goodput at capacity: {good} of 100");
}

#[test]
fn a_constant_or_memoryless_answer_is_not_kept() {
    for told in
        [testing::map(&[("constant", testing::text("1s"))]), testing::text("room"), testing::text("drain")]
    {
        let plan = testing::plan();
        let event = plan.load.event().unwrap();
        let (records, _) = smoke(&[("retry_after", told.clone())]);
        let inside = |r: &Record| r.probe && event.contains(r.due);
        let (kept, all) =
            (count(&records, |r| inside(r) && r.outcome == Outcome::Completed), count(&records, inside));
        assert!(all >= 20 && kept * 2 < all, "{told:?}: {kept} of {all}");
    }
}

#[test]
fn a_gateway_that_believes_in_twice_the_quota_is_refused_by_the_provider_and_loses_nothing() {
    let plan = testing::plan();
    let budgets = testing::map(&[("tokens_per_minute", testing::text("2400k"))]);
    let (records, _) = smoke(&[("budgets", budgets)]);
    let refusals: u32 = records.iter().map(|r| r.upstream_refusals).sum();
    assert!(refusals > 20, "{refusals}");
    let arrivals = Schedule::new(&plan.load, &plan.requests).count();
    assert_eq!(count(&records, |r| r.attempt.nth == 0), arrivals);
}

#[test]
fn lifo_serves_the_same_share_and_answers_at_once() {
    let plan = testing::plan();
    let event = plan.load.event().unwrap();
    let (records, _) = smoke(&[("order", testing::text("lifo"))]);
    let steady: Vec<_> = records
        .iter()
        .filter(|r| event.contains(r.due) && r.due > event.start + Duration::from_secs(2))
        .filter(|r| r.outcome == Outcome::Completed && !r.probe)
        .collect();
    let mut waits: Vec<_> = steady.iter().map(|r| r.at_provider.unwrap().since(r.due)).collect();
    waits.sort_unstable();
    assert!(steady.len() >= 150, "{}", steady.len());
    assert!(waits[waits.len() / 2] < Duration::from_millis(200), "median wait {:?}", waits[waits.len() / 2]);
}

#[test]
fn the_budget_told_to_the_provider_is_what_remains() {
    let plan = testing::plan();
    let TargetKind::Embedded(embedded) = &plan.target.kind else { panic!("embedded") };
    let mut due = BTreeMap::new();
    run(&plan, &embedded.admission, &mut |sighting| match sighting {
        Sighting::Due { attempt, at, .. } => {
            due.insert(attempt, at);
        }
        Sighting::AtProvider { attempt, at, budget, .. } => {
            let left = Duration::from_millis(4_500) - at.since(due[&attempt]);
            assert_eq!(budget, Some(left));
        }
        _ => {}
    });
}

/// The flash promotion at half scale: 1,000/min offered for 60 s against 250,000 tokens a minute, deadline `deadline`.
fn flash(deadline: &str, every: u32) -> Plan {
    let mut plan = testing::plan();
    let phase = |name: &str, rate: &str, secs, event| Phase {
        name: name.into(),
        rate: Rate::parse(rate).unwrap(),
        lasts: Duration::from_secs(secs),
        event,
        mix: None,
    };
    plan.load.phases = vec![
        phase("before", "100/min", 20, false),
        phase("event", "1000/min", 60, true),
        phase("after", "100/min", 50, false),
    ];
    plan.requests = testing::mix(&[("deadline", deadline)]);
    plan.provider.quota.tokens = Rate::per_minute(250_000).unwrap();
    plan.provider.service.first_token = Duration::from_millis(600);
    plan.provider.service.per_token = Duration::from_millis(6);
    plan.probes.every = every;
    plan
}

#[test]
fn promises_are_kept_whatever_the_share_of_callers_that_return() {
    for (deadline, every) in [("25s", 12), ("20s", 12), ("25s", 5), ("25s", 3), ("25s", 30)] {
        let plan = flash(deadline, every);
        let event = plan.load.event().unwrap();
        let service = testing::map(&[("start", testing::text("3s"))]);
        let (records, _) = records(&plan, &testing::policy(&[("service", service)], &plan.provider.quota));
        let kept = count(&records, |r| r.probe && r.outcome == Outcome::Completed);
        let probes = count(&records, |r| r.probe);
        let inside = count(&records, |r| r.probe && event.contains(r.due));
        assert!(probes >= 20 && kept == probes, "{deadline}, one in {every}: {kept} of {probes} kept");
        assert!(inside >= 20, "{deadline}, one in {every}: {inside} inside the overload");
    }
}

/// As in earendil-works/pi#3671: a caller who is told to come back in two days is not waited for, and is counted, as in a
/// run with sockets.
#[test]
fn a_retry_after_the_last_phase_is_counted_and_not_waited_for() {
    let retrying = |told: &str| {
        let sets = [
            "requests.0.on_refusal={ retry: { attempts: 2 } }".to_owned(),
            format!("target.embedded.retry_after.constant={told}"),
        ];
        let text = include_str!("../../plans/smoke.yaml");
        let plan = crate::plan::parse(text, &sets, &|_| None).unwrap().plan;
        let mut again = 0;
        let policy = plan.policy().unwrap();
        let ended = run(&plan, policy, &mut |s| again += u64::from(matches!(s, Sighting::Again { .. })));
        let (measures, _) = measure(&plan, policy);
        assert_eq!(measures.returns.censored, ended.censored);
        (plan.load.end(), ended, again)
    };
    let (end, ended, again) = retrying("55h");
    assert_eq!(again, 0);
    assert!(ended.censored > 100 && ended.at < end + Duration::from_secs(60), "{ended:?}");
    let (end, ended, again) = retrying("2s");
    assert!(again > 100 && ended.at < end + Duration::from_secs(60), "{again}, {ended:?}");
}

/// The smoke plan with streamed answers.
fn streaming(changes: &[(&str, &str)]) -> Plan {
    let mut plan = testing::plan();
    plan.provider.engine = crate::provider::Engine::Stream;
    let changes: Vec<_> = [("stream", "true")].into_iter().chain(changes.iter().copied()).collect();
    plan.requests = testing::mix(&changes);
    plan
}

#[test]
fn streams_begin_and_go_on_as_the_service_model_says_and_change_nothing_else() {
    let whole = testing::plan();
    let policy = testing::policy(&[], &whole.provider.quota);
    let (plain, _) = records(&whole, &policy);
    let plan = streaming(&[]);
    let (streamed, _) = records(&plan, &policy);
    let ends = |records: &[Record]| {
        records.iter().map(|r| (r.attempt, r.ended, r.outcome, r.wasted)).collect::<Vec<_>>()
    };
    assert_eq!(ends(&plain), ends(&streamed));
    assert!(plain.iter().all(|r| r.first_token.is_none() && r.tokens == 0));
    let service = plan.provider.service;
    for record in &streamed {
        let first = record
            .at_provider
            .filter(|_| record.outcome == Outcome::Completed)
            .map(|at| at + service.first_token);
        assert_eq!(record.first_token, first);
        assert_eq!(record.tokens, if first.is_some() { 400 } else { 0 });
        let used = record.streamed.as_ref().and_then(|streamed| streamed.used);
        assert_eq!(used, first.map(|_| Tokens::new(1_200)));
    }
    let (measures, _) = measure(&plan, &policy);
    let streams = &measures.streams;
    assert_eq!(streams.gaps.count(), 399 * streams.whole);
    assert_eq!((streams.gaps.min(), streams.gaps.max()), (Some(2_000), streams.gaps.number_at(0.5)));
    assert_eq!((streams.flawed, streams.without_usage), (0, 0));
}

#[test]
fn whoever_leaves_a_stream_has_read_a_part_and_wastes_no_more_than_was_made() {
    // whoever is served at once reads 0.3 s of tokens, 2 ms apart, and leaves before the others come
    let plan = streaming(&[("patience", "500ms")]);
    let policy = testing::policy(&[], &plan.provider.quota);
    let (all, _) = records(&plan, &policy);
    let left: Vec<_> =
        all.iter().filter(|r| r.outcome == Outcome::Abandoned && r.first_token.is_some()).collect();
    assert!(left.len() > 20, "{}", left.len());
    for record in &left {
        let (at, first) = (record.at_provider.unwrap(), record.first_token.unwrap());
        assert_eq!(first, at + plan.provider.service.first_token);
        let read = record.ended.since(first).as_nanos() / 2_000_000 + 1;
        assert_eq!(u128::from(record.tokens), read);
        assert_eq!(record.wasted, Tokens::new(800 + record.tokens), "the prompt, and what was made");
    }
    let whole = Plan {
        requests: testing::mix(&[("patience", "500ms")]),
        provider: testing::plan().provider,
        ..plan.clone()
    };
    let wasted = |plan| measure(plan, &policy).0.upstream.wasted;
    assert!(wasted(&plan) < wasted(&whole), "a provider that does not see them leave makes it all");
}

#[test]
fn a_stream_that_has_begun_is_not_asked_for_again() {
    let retry = |stream: &str| {
        let mut plan = streaming(&[]);
        let like = testing::map(&[("like", testing::text("openai-python"))]);
        let retry = ("on_refusal", testing::map(&[("retry", like)]));
        plan.requests = testing::mix_with(&[("patience", "500ms"), ("stream", stream)], &[retry]);
        let policy = testing::policy(&[], &plan.provider.quota);
        records(&plan, &policy).0
    };
    let again = |records: &[Record]| count(records, |r| r.again && r.first_token.is_some());
    assert_eq!(again(&retry("true")), 0);
    let begun = |r: &Record| r.again && r.outcome == Outcome::Abandoned && r.at_provider.is_some();
    assert!(count(&retry("false"), begun) > 20, "whole answers are asked for again");
}
