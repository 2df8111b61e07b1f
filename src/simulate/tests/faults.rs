//! What callers see of a provider that is not as usual.

use super::*;
use crate::provider::{Fault, What};
use crate::units::{Ratio, Share};

/// The smoke plan with `what` wrong from 4 s to 8 s, in the middle of its event (2 s to 14 s).
fn with(what: What) -> Vec<Record> {
    let mut plan = testing::plan();
    plan.provider.faults = vec![Fault { at: Duration::from_secs(4), lasts: Duration::from_secs(4), what }];
    let policy = testing::policy(&[], &plan.provider.quota);
    let (records, _) = records(&plan, &policy);
    let arrivals = Schedule::new(&plan.load, &plan.requests).count();
    assert_eq!(count(&records, |r| r.attempt.nth == 0), arrivals, "every arrival ends once: {what:?}");
    records
}

fn at_provider_during(record: &Record) -> bool {
    let during = Moment::from_secs(4)..Moment::from_secs(8);
    record.at_provider.is_some_and(|at| during.contains(&at))
}

fn part(value: f64) -> Share {
    Share::new(value).unwrap()
}

#[test]
fn an_error_of_the_providers_is_the_callers_and_keeps_its_hold() {
    let records = with(What::Errors { status: 500, share: part(0.5), retry_after: None });
    let failed = count(&records, |r| r.outcome == Outcome::Failed && r.status == Some(500));
    let reached = count(&records, at_provider_during);
    assert!(failed >= 10 && failed * 10 > reached * 3, "{failed} of {reached}");
    assert_eq!(count(&records, |r| r.outcome == Outcome::Failed && !at_provider_during(r)), 0);
    assert!(records.iter().all(|r| r.outcome != Outcome::Failed || r.charged == Tokens::ZERO));
}

/// A burst of 429 that has nothing to do with the quota: the gateway rests as long as it is told, and nothing of it is
/// counted as spent quota.
#[test]
fn a_burst_of_429_makes_the_gateway_rest_as_long_as_it_is_told() {
    let told = |secs| Some(Duration::from_secs(secs));
    let served = |retry_after| {
        let records = with(What::Errors { status: 429, share: part(1.0), retry_after });
        assert_eq!(records.iter().map(|r| r.upstream_refusals).sum::<u32>(), 0);
        assert_eq!(count(&records, |r| r.outcome == Outcome::Failed), 0);
        count(&records, |r| r.outcome == Outcome::Completed)
    };
    let (short, long) = (served(told(1)), served(told(10)));
    assert!(long + 20 < short, "{long} with a long rest, {short} with a short one");
    let untold = with(What::Errors { status: 429, share: part(1.0), retry_after: None });
    let tired = |r: &Record| r.upstream_attempts > 1 && r.outcome == Outcome::Expired;
    assert!(count(&untold, tired) > 0, "without a header it tries again soon, and not for ever");
}

#[test]
fn a_busy_provider_is_tried_again() {
    let share = part(0.3);
    let busy = with(What::Errors { status: 529, share, retry_after: None });
    let failed = count(&busy, |r| r.outcome == Outcome::Failed);
    assert_eq!(count(&busy, |r| r.outcome == Outcome::Failed && r.status == Some(502)), failed);
    assert!(count(&busy, |r| r.upstream_attempts > 1 && r.outcome == Outcome::Completed) > 0);
}

#[test]
fn what_breaks_the_answer_is_a_failure_and_what_never_comes_makes_its_caller_leave() {
    let half = part(0.5);
    for (what, status) in
        [(What::Cuts(half), Some(502)), (What::Garbage(half), Some(200)), (What::Resets(half), Some(502))]
    {
        let records = with(what);
        let failed: Vec<_> = records.iter().filter(|r| r.outcome == Outcome::Failed).collect();
        assert!(failed.len() >= 10, "{what:?}: {}", failed.len());
        assert!(failed.iter().all(|r| r.status == status && at_provider_during(r)), "{what:?}");
    }
    let stalled = with(What::Stalls(half));
    let left: Vec<_> = stalled.iter().filter(|r| r.outcome == Outcome::Abandoned).collect();
    assert!(left.len() >= 10 && left.iter().all(|r| at_provider_during(r)), "{}", left.len());
    assert!(left.iter().all(|r| r.ended.since(r.due) == Duration::from_millis(4_500)), "at their patience");
}

#[test]
fn less_capacity_serves_less_and_slower_answers_come_later() {
    let completed = |what| count(&with(what), |r| r.outcome == Outcome::Completed && r.attempt.nth == 0);
    let usual = count(&smoke(&[]).0, |r| r.outcome == Outcome::Completed && r.attempt.nth == 0);
    let half = completed(What::Capacity(Ratio::parse("1/2").unwrap()));
    // half of 20 a second for 4 s
    assert!((25..=55).contains(&(usual - half)), "{usual} and {half}");
    let slow = with(What::Latency { times: Ratio::parse("2").unwrap(), plus: Duration::ZERO });
    let took = slow.iter().filter(|r| r.outcome == Outcome::Completed && at_provider_during(r));
    assert!(took.clone().count() > 20);
    assert!(took.map(|r| r.ended.since(r.at_provider.unwrap())).all(|span| span == Duration::from_secs(2)));
}
