use super::*;
use crate::admission::Config;
use crate::measure::{Closed, Fold};
use crate::plan::testing;
use crate::simulate::run;

/// The records of a simulated run, in the order they end.
fn records(plan: &Plan, policy: &Config) -> Vec<Record> {
    let (out, seen) = std::sync::mpsc::channel();
    let mut fold = Fold::in_virtual_time(plan).telling(move |closed| {
        if let Closed::Request(record) = closed {
            let _ = out.send(record.clone());
        }
    });
    let ended = run(plan, policy, &mut |sighting| fold.see(sighting));
    fold.finish(ended.at);
    seen.iter().collect()
}

fn bent(plan: &Plan, key: &str, value: crate::units::Node) -> Config {
    testing::policy(&[(key, value)], &plan.provider.quota)
}

fn bound(requests: &str) -> crate::units::Node {
    testing::map(&[("requests", testing::text(requests))])
}

#[test]
fn a_recording_of_the_policy_itself_agrees_whole() {
    let plan = testing::plan();
    let policy = plan.policy().unwrap();
    let records = records(&plan, policy);
    let agreement = replay(&plan, policy, &records);
    assert_eq!((agreement.boundary.all(), agreement.limits.all(), agreement.by_return), (0, 0, 0));
    assert!(agreement.count(Met::Shed, Met::Shed) > 500);
    assert_eq!((agreement.compared(), agreement.overtaken), (records.len() as u64, 0));
    assert!(agreement.first_shed.0.is_some() && agreement.first_shed.0 == agreement.first_shed.1);
    assert!((agreement.share() - 1.0).abs() < 1e-12);
}

#[test]
fn a_little_jitter_moves_verdicts_only_at_the_edge() {
    let plan = testing::plan();
    let policy = plan.policy().unwrap();
    let mut records = records(&plan, policy);
    for (n, record) in records.iter_mut().enumerate() {
        let late = Duration::from_micros((n as u64 * 7_919) % 2_000);
        record.sent = record.sent.map(|sent| sent + late);
        record.at_provider = record.at_provider.map(|at| at + late);
        record.ended = record.ended + late;
    }
    records.sort_by_key(|record| record.ended);
    let agreement = replay(&plan, policy, &records);
    assert!(agreement.share() > 0.9 && agreement.boundary.all() > 0, "{agreement:?}");
    // 80 a second and 2 ms: a request more or less
    assert_eq!(agreement.boundary.beyond(1.16), 0, "{:?}", agreement.boundary);
}

#[test]
fn a_bound_that_is_too_small_is_found_out_by_every_place_it_lacks() {
    let plan = testing::plan();
    let policy = bent(&plan, "bound", bound("40"));
    let few = bent(&plan, "bound", bound("32"));
    let agreement = replay(&plan, &policy, &records(&plan, &few));
    let (theirs, ours) = agreement.first_shed;
    assert!(theirs.unwrap() < ours.unwrap_or(u64::MAX), "{theirs:?} {ours:?}");
    // a quarter is kept for those who return: 24 of 32 against 30 of 40
    assert!(agreement.boundary.beyond(5.0) > 500 && agreement.boundary.beyond(6.0) == 0, "{agreement:?}");
    let example = agreement.boundary.examples(1.0).next().unwrap();
    assert_eq!((example.recorded, example.declared, example.margin), (Met::Shed, Met::Admitted, Some(6)));
    assert_eq!(agreement.boundary.examples(1.0).count(), 20);
}

#[test]
fn a_queue_without_a_bound_is_found_out_by_every_request_beyond_it() {
    let plan = testing::plan();
    let unbounded = bent(&plan, "bound", testing::text("none"));
    let agreement = replay(&plan, plan.policy().unwrap(), &records(&plan, &unbounded));
    assert_eq!(agreement.recorded(Met::Shed), 0);
    assert!(agreement.count(Met::Admitted, Met::Shed) > 500);
    assert!(agreement.boundary.beyond(1.0) > 500, "each stands further over: {agreement:?}");
}

#[test]
fn a_bound_that_is_off_by_a_twentieth_is_seen() {
    let plan = testing::plan();
    let (policy, less) = (bent(&plan, "bound", bound("40")), bent(&plan, "bound", bound("38")));
    assert!(replay(&plan, &policy, &records(&plan, &less)).boundary.beyond(1.0) > 0);
    let more = bent(&plan, "bound", bound("43"));
    assert!(replay(&plan, &policy, &records(&plan, &more)).boundary.beyond(1.0) > 0);
}

#[test]
fn what_waits_for_its_turn_is_what_may_be_open() {
    let plan = testing::plan();
    let policy = plan.policy().unwrap();
    let records = records(&plan, policy);
    let mut replay = Replay::new(&plan, policy);
    let mut most = 0;
    for record in &records {
        replay.see(record);
        most = most.max(replay.coming.len());
    }
    // 80 a second for 4.5 s and a second more, and those who return
    assert!((100..600).contains(&most), "{most} of {}", records.len());
}

#[test]
fn one_that_ends_too_late_for_its_turn_is_counted_and_changes_nothing() {
    let plan = testing::plan();
    let policy = plan.policy().unwrap();
    let mut records = records(&plan, policy);
    let late = records.remove(5);
    records.push(late);
    let agreement = replay(&plan, policy, &records);
    assert_eq!(agreement.overtaken, 1);
    assert_eq!(agreement.compared(), records.len() as u64 - 1);
}
