//! What callers and provider see of a gateway that is faulty on purpose.

use super::*;
use crate::admission::Config;
use crate::observe::RetryAfter;
use crate::plan::{Embedded, Wanted};
use crate::simulate::replay::replay;
use crate::units::{Place, Value};

fn list(items: Vec<Node>) -> Node {
    Node { place: Place::Override("test".into()), value: Value::List(items) }
}

/// The smoke plan's policy with these faults, as `name` or `name=amount`.
fn policy(plan: &Plan, faults: &[&str], more: &[(&str, Node)]) -> Config {
    let fault = |fault: &&str| match fault.split_once('=') {
        Some((name, amount)) => testing::map(&[(name, testing::text(amount))]),
        None => testing::text(fault),
    };
    let faults = list(faults.iter().map(fault).collect());
    testing::policy(&[&[("faults", faults)], more].concat(), &plan.provider.quota)
}

fn smoke_with(faults: &[&str]) -> Vec<Record> {
    let plan = testing::plan();
    records(&plan, &policy(&plan, faults, &[])).0
}

fn refusals(records: &[Record]) -> Vec<&Record> {
    records.iter().filter(|r| matches!(r.outcome, Outcome::Shed | Outcome::Throttled)).collect()
}

/// The depth the first shed met, in tokens.
fn onset(records: &[Record]) -> u64 {
    let shed = records.iter().filter(|r| r.outcome == Outcome::Shed).min_by_key(|r| r.sent);
    shed.unwrap().depth_met.tokens.get()
}

#[test]
fn shedding_begins_where_the_fault_puts_the_bound() {
    let at = |fault| onset(&smoke_with(&[fault])) as f64 / onset(&smoke_with(&[])) as f64;
    let (early, late) = (at("early_shedding=20%"), at("late_shedding=20%"));
    assert!((0.77..0.83).contains(&early), "{early}");
    assert!((1.17..1.23).contains(&late), "{late}");
    assert_eq!(refusals(&smoke_with(&["unbounded_queue"])).len(), 0);
}

#[test]
fn a_refused_request_is_paid_for() {
    let paid = |faults: &[&str]| {
        let records = smoke_with(faults);
        let refused = refusals(&records);
        refused.iter().filter(|r| r.charged > Tokens::ZERO || r.upstream_refusals > 0).count() as f64
            / refused.len() as f64
    };
    assert!((paid(&[])).abs() < 1e-9);
    assert!((paid(&["costly_refusal"]) - 1.0).abs() < 1e-9);
    assert!((0.2..0.4).contains(&paid(&["costly_refusal=30%"])));
}

#[test]
fn what_a_refusal_says_is_what_the_fault_makes_of_it() {
    let mut plan = testing::plan();
    plan.expect.refusal.headers.clear();
    plan.expect.refusal.body = BTreeMap::from([("/type".to_owned(), Wanted::Present)]);
    let met = |fault: &str, bad: &dyn Fn(&Record) -> bool| {
        let all = |faults: &[&str]| {
            let (records, _) = records(&plan, &policy(&plan, faults, &[]));
            let refused = refusals(&records);
            (refused.iter().filter(|r| bad(r)).count(), refused.len())
        };
        let (healthy, faulty) = (all(&[]), all(&[fault]));
        assert_eq!(healthy.0, 0, "{fault}");
        assert!(faulty.1 > 300, "{fault}: {faulty:?}");
        faulty.0 as f64 / faulty.1 as f64
    };
    let unreadable = |r: &Record| matches!(r.retry_after, Some(RetryAfter::Unreadable(_)));
    let after = |r: &Record, secs| r.retry_after == Some(RetryAfter::After(Duration::from_secs(secs)));
    let all = |part: f64| (part - 1.0).abs() < 1e-9;
    assert!(all(met("mixed_refusals", &|r| r.outcome == Outcome::Throttled && r.status == Some(429))));
    assert!(all(met("wrong_error_shape", &|r| r.shape == Err("the body is no JSON".into()))));
    assert!(all(met("malformed_retry_after", &unreadable)));
    assert!((0.4..0.6).contains(&met("malformed_retry_after=50%", &unreadable)));
    assert!(all(met("missing_retry_after", &|r| r.retry_after.is_none())));
    assert!(all(met("constant_retry_after=77s", &|r| after(r, 77))));
    let together = |r: &Record| match r.retry_after {
        Some(RetryAfter::After(span)) => (r.ended + span).as_nanos() % 7_000_000_000 < 1_000_000_000,
        _ => false,
    };
    let (_, ended) = records(&plan, &policy(&plan, &["synchronized_retry_after=7s"], &[]));
    assert!(ended.events > 0);
    let records = smoke_with(&["synchronized_retry_after=7s"]);
    assert!(refusals(&records).iter().all(|r| together(r)), "within a second after a multiple of seven");
}

#[test]
fn the_provider_is_told_the_whole_deadline_anew() {
    let plan = testing::plan();
    let told = |faults: &[&str]| {
        let mut told = Vec::new();
        run(&plan, &policy(&plan, faults, &[]), &mut |sighting| {
            if let Sighting::AtProvider { budget, .. } = sighting {
                told.push(budget.unwrap());
            }
        });
        told
    };
    let whole = Duration::from_millis(4_500);
    assert!(told(&[]).iter().filter(|left| **left < whole).count() > 150);
    assert!(told(&["deadline_reset"]).iter().all(|left| *left == whole));
}

#[test]
fn who_leaves_is_served_for_nobody() {
    let mut plan = testing::plan();
    plan.requests = testing::mix(&[("patience", "1500ms")]);
    let wasted = |faults: &[&str]| {
        let mut plan = plan.clone();
        let admission = policy(&plan, faults, &[]);
        plan.target.kind =
            TargetKind::Embedded(Embedded { admission: admission.clone(), own_budgets: false });
        let (mut joiner, mut ended) = (Joiner::in_virtual_time(&plan), Vec::new());
        let mut ghosts = 0;
        run(&plan, &admission, &mut |sighting| {
            joiner.see(&sighting, &mut ended);
            ghosts += joiner.take_ghosts().len();
        });
        (count(&ended, |r| r.outcome == Outcome::Abandoned), ghosts)
    };
    let (left, ghosts) = wasted(&[]);
    assert!(left > 50 && ghosts == 0, "{left} left, {ghosts} came to the provider");
    let (left, ghosts) = wasted(&["abandoned_work"]);
    assert!(left > 50 && ghosts * 2 > left, "{left} left, {ghosts} came to the provider");
}

#[test]
fn what_is_never_given_back_is_held_at_the_end() {
    let plan = testing::plan();
    let held = |faults: &[&str]| {
        let (records, ended) = records(&plan, &policy(&plan, faults, &[]));
        let served = count(&records, |r| r.outcome == Outcome::Completed);
        assert_eq!(ended.held.tokens.get(), 1_200 * ended.held.requests, "{faults:?}");
        (ended.held.requests as usize, served)
    };
    assert_eq!(held(&[]).0, 0);
    let (open, served) = held(&["leaked_holds=100%"]);
    assert_eq!(open, served);
    let (open, served) = held(&["leaked_holds=10%"]);
    assert!(open * 20 > served && open * 5 < served, "{open} of {served}");
}

#[test]
fn a_simulation_of_faults_can_be_repeated_and_what_only_a_shell_does_is_not_in_it() {
    let plan = testing::plan();
    let seen = |faults: &[&str]| {
        let mut all = Vec::new();
        run(&plan, &policy(&plan, faults, &[]), &mut |sighting| all.push(sighting));
        all
    };
    let faults = ["missing_retry_after=10%", "leaked_holds=3%", "costly_refusal=5%", "abandoned_work=50%"];
    assert_eq!(seen(&faults), seen(&faults));
    assert_ne!(seen(&faults), seen(&[]));
    assert_eq!(seen(&["slow_refusal", "leak_per_request", "crash"]), seen(&[]));
}

#[test]
fn slots_that_are_free_too_early_let_more_flow_at_once() {
    let mut plan = testing::plan();
    plan.requests = testing::mix(&[("stream", "true")]);
    plan.provider.engine = crate::provider::Engine::Stream;
    let budgets =
        testing::map(&[("tokens_per_minute", testing::text("100M")), ("concurrent", testing::text("4"))]);
    let most = |faults: &[&str]| {
        let (mut joiner, mut most) = (Joiner::in_virtual_time(&plan), 0);
        run(&plan, &policy(&plan, faults, &[("budgets", budgets.clone())]), &mut |sighting| {
            joiner.see(&sighting, &mut Vec::new());
            most = most.max(joiner.gauge().at_provider);
        });
        most
    };
    assert_eq!(most(&[]), 4);
    assert!(most(&["early_release"]) > 8, "{}", most(&["early_release"]));
}

#[test]
fn replicas_are_together_what_one_is_and_their_sum_stays_in_the_quota() {
    let plan = testing::plan();
    let with = |faults: &[&str], replicas: &str| {
        let policy = policy(&plan, faults, &[("replicas", testing::text(replicas))]);
        let (records, _) = records(&plan, &policy);
        let served = count(&records, |r| r.outcome == Outcome::Completed) as f64;
        let kept = count(&records, |r| r.probe && r.outcome == Outcome::Completed) as f64;
        let probes = count(&records, |r| r.probe) as f64;
        let spent: u32 = records.iter().map(|r| r.upstream_refusals).sum();
        (onset(&records), served, kept / probes, spent)
    };
    let (depth, served, _, spent) = with(&[], "1");
    assert_eq!(spent, 0);
    for replicas in ["2", "3", "5"] {
        let (other, others, kept, spent) = with(&[], replicas);
        // each has its own first that does not fit
        let holds = replicas.parse::<u64>().unwrap() * 1_200;
        assert!(depth.abs_diff(other) <= holds, "{replicas}: {other} instead of {depth}");
        // a part of the bound is a dozen requests, of which one more or less is 8 %
        assert!((others / served - 1.0).abs() < 0.08, "{replicas}: {others} instead of {served}");
        assert!(kept > 0.95, "{replicas}: {kept}");
        assert_eq!(spent, 0, "{replicas}");
    }
    let (_, _, _, spent) = with(&["per_replica_quotas"], "3");
    assert!(spent > 50, "{spent}");
}

#[test]
fn a_replay_goes_by_what_is_declared() {
    let plan = testing::plan();
    let faulty = policy(&plan, &["unbounded_queue", "costly_refusal"], &[]);
    let (records, _) = records(&plan, &faulty);
    let by_fault = replay(&plan, &faulty, &records);
    assert_eq!(by_fault, replay(&plan, &faulty.declared(), &records));
    assert!(by_fault.boundary.beyond(1.0) > 100, "the declared policy sheds: {by_fault:?}");
}
