//! What refused callers are told, judged on simulated runs: the reference gateway, and gateways that tell no truth.

use super::*;
use crate::simulate;

/// The flash promotion as it is rehearsed, with some keys set.
fn flash(sets: &[&str]) -> Plan {
    let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
    let text = include_str!("../../../plans/flash-promotion.yaml");
    crate::plan::parse(text, &sets, &|_| None).unwrap().plan.rehearsed()
}

/// What a simulated run of `plan` comes to under its own policy.
fn measured(plan: &Plan) -> Measures {
    simulate::measure(plan, plan.policy().unwrap()).0
}

/// Everyone comes back as told, so waits grow to minutes.
const LONG: &str = "rehearsal.probes.every=1";

#[test]
fn waits_that_no_client_keeps_say_not_to_try_again() {
    let plan = flash(&[LONG]);
    let measures = measured(&plan);
    let finding = simulated(&plan, &measures, "retry_after.usable");
    assert!(measures.refusals.overlong > 50, "{}", finding.because);
    assert_eq!(finding.verdict, Verdict::Pass, "{}", finding.because);

    let mut unmarked = plan.policy().unwrap().clone();
    unmarked.give_up_above = Duration::MAX;
    let measures = simulate::measure(&plan, &unmarked).0;
    let finding = simulated(&plan, &measures, "retry_after.usable");
    assert_eq!((finding.verdict, finding.examples.len()), (Verdict::Fail, 20), "{}", finding.because);

    // a plan's own rule looks for no mark
    let ruled = flash(&[LONG, "requests.ask.on_refusal={ retry: { attempts: 3 } }"]);
    let measures = simulate::measure(&ruled, &unmarked).0;
    assert_eq!(measures.refusals.overlong, 0);
    assert_eq!(simulated(&ruled, &measures, "retry_after.usable").verdict, Verdict::Pass);
}

/// As in earendil-works/pi#3671: a wait of two days, seven hours and five minutes, where the provider's window is ten seconds.
#[test]
fn a_wait_of_days_is_held_against_the_providers_window() {
    // whether they give up, or obey whatever they are told
    for reaction in [json!("give_up"), json!({ "retry": { "attempts": 3 } })] {
        let mut sketch = smoke();
        sketch.requests[0]["on_refusal"] = reaction;
        let mut plan = sketch.plan();
        plan.provider.quota.window = crate::units::Window::Fixed { period: Duration::from_secs(10) };
        let mut measures = Measures::new(&plan);
        each_shed(&mut measures, 0..20, |r| {
            r.retry_after = Some(RetryAfter::After(Duration::from_secs(198_300)));
        });
        let finding = judged(&plan, &measures, "retry_after.usable");
        assert_eq!(finding.verdict, Verdict::Fail);
        assert!(
            finding.because.contains("up to 2 d 7 h 5 min, 19,830 times the provider's window"),
            "{}",
            finding.because
        );
    }
}

/// Every question about the truth of an announced time.
const TRUTH: [&str; 5] = [
    "retry_after.follows_state",
    "retry_after.calibrated",
    "retry_after.honoured",
    "retry_after.no_echo",
    "retry_after.usable",
];

fn verdicts(plan: &Plan, measures: &Measures) -> [Verdict; 5] {
    TRUTH.map(|id| simulated(plan, measures, id).verdict)
}

#[test]
fn the_reference_gateway_tells_the_truth_however_its_callers_arrive() {
    use Verdict::Pass;
    for arrivals in ["constant", "poisson"] {
        for seed in [7, 8, 9] {
            let sets = [format!("load.arrivals={arrivals}"), format!("load.seed={seed}")];
            let plan = flash(&[&sets[0], &sets[1]]);
            assert_eq!(verdicts(&plan, &measured(&plan)), [Pass; 5], "{arrivals}, {seed}");
        }
    }
    // and where more come back than it believed at first
    for every in [1, 3] {
        let plan = flash(&[&format!("rehearsal.probes.every={every}")]);
        assert_eq!(verdicts(&plan, &measured(&plan)), [Pass; 5], "one in {every}");
    }
}

#[test]
fn a_time_without_a_memory_is_told_too_early_and_calls_back_a_storm() {
    use Verdict::{Fail, NotApplicable, Pass};
    for strategy in ["=room", "=drain", ".constant=1s"] {
        let plan = flash(&[&format!("target.embedded.retry_after{strategy}")]);
        let measures = measured(&plan);
        assert_eq!(verdicts(&plan, &measures), [NotApplicable, Fail, Fail, Fail, Pass], "{strategy}");
        let still = simulated(&plan, &measures, "retry_after.follows_state").because;
        assert!(still.contains("stood still"), "{still}");
    }
}

#[test]
fn who_declares_appointments_and_tells_everyone_a_second_is_found_out() {
    let plan = flash(&[]);
    let other = flash(&["target.embedded.retry_after.constant=1s"]);
    let measures = simulate::measure(&plan, other.policy().unwrap()).0;
    for id in &TRUTH[..3] {
        let finding = simulated(&plan, &measures, id);
        assert_eq!(finding.verdict, Verdict::Fail, "{id}: {}", finding.because);
        assert!(!finding.examples.is_empty(), "{id}");
    }
}

#[test]
fn times_that_bring_everybody_back_at_once_are_an_echo() {
    let plan = flash(&[]);
    let mut fold = crate::measure::Fold::in_virtual_time(&plan);
    let ended = simulate::run(&plan, plan.policy().unwrap(), &mut |mut sighting| {
        if let crate::observe::Sighting::Answered { at, answer, .. } = &mut sighting
            && let Some(RetryAfter::After(told)) = &mut answer.retry_after
        {
            // the next multiple of thirty seconds
            *told = Duration::from_secs(30 - at.as_nanos() / 1_000_000_000 % 30);
        }
        fold.see(sighting);
    });
    let finding = simulated(&plan, &fold.finish(ended.at), "retry_after.no_echo");
    assert_eq!(finding.verdict, Verdict::Fail, "{}", finding.because);
    assert!(finding.measured > finding.expected.map(|allowed| 5.0 * allowed), "{}", finding.because);
}

/// Refusals half a second apart from the beginning of the event on, the n-th meeting and told what is said.
fn refusing(plan: &Plan, met: fn(u64) -> u64, told: fn(u64) -> u64) -> Measures {
    let mut measures = Measures::new(plan);
    for n in 0..100 {
        let mut record = record(n, 20_000 + 500 * n, 1, Outcome::Shed);
        record.depth_met = depth(met(n));
        record.retry_after = Some(RetryAfter::After(Duration::from_secs(told(n))));
        arrive(&mut measures, &record);
        measures.stand(record.due, &gauge(met(n)));
    }
    measures
}

#[test]
fn each_strategy_is_held_to_what_it_goes_by() {
    // 250,000 tokens a minute are 3.47 requests a second
    let follows = |strategy: &str, met: fn(u64) -> u64, told: fn(u64) -> u64| {
        let plan = flash(&[&format!("target.embedded.retry_after{strategy}")]);
        simulated(&plan, &refusing(&plan, met, told), "retry_after.follows_state").verdict
    };
    let deeper = |n| 10 + n * 2;
    for strategy in ["=drain", ".constant=9s"] {
        assert_eq!(follows(strategy, deeper, |n| 3 + n / 2), Verdict::Pass, "{strategy}");
        assert_eq!(follows(strategy, deeper, |_| 9), Verdict::Fail, "{strategy}");
        assert_eq!(follows(strategy, deeper, |n| 90 - n / 2), Verdict::Fail, "{strategy}");
        assert_eq!(follows(strategy, |_| 74, |_| 9), Verdict::NotApplicable, "{strategy}");
    }
    assert_eq!(follows("=room", deeper, |n| 1 + (n * 2).saturating_sub(64) / 3), Verdict::Pass);
    assert_eq!(follows("=room", deeper, |_| 1), Verdict::Fail);
    assert_eq!(follows("=room", |_| 60, |_| 1), Verdict::NotApplicable);
}

#[test]
fn a_true_time_in_a_short_overload_is_calibrated_and_one_far_longer_is_not() {
    let plan = flash(&["target.embedded.retry_after=drain"]);
    let calibrated = |told: fn(u64) -> u64| {
        let mut measures = refusing(&plan, |_| 74, told);
        // fifty seconds later there is room again
        (0..20).for_each(|n| {
            arrive(&mut measures, &record(500 + n, 70_000 + 100 * n, 3_000, Outcome::Completed))
        });
        simulated(&plan, &measures, "retry_after.calibrated")
    };
    assert_eq!(calibrated(|n| 50 - n / 2).verdict, Verdict::Pass, "{}", calibrated(|n| 50 - n / 2).because);
    assert_eq!(calibrated(|n| 20 - n / 5).verdict, Verdict::Fail);
    let far = calibrated(|_| 400);
    assert_eq!((far.verdict, far.measured), (Verdict::Fail, Some(0.0)), "{}", far.because);
    let measures = refusing(&plan, |_| 74, |n| 50 - n / 2);
    let mut ended = refusing(&plan, |_| 74, |n| 50 - n / 2);
    ended.stand(Moment::from_secs(70), &gauge(0));
    ended.close(Moment::from_secs(75), &gauge(0), 0);
    assert_eq!(
        simulated(&plan, &ended, "retry_after.calibrated").verdict,
        Verdict::Pass,
        "nothing stood there any more"
    );
    let open = simulated(&plan, &measures, "retry_after.calibrated");
    assert_eq!((open.verdict, open.measured), (Verdict::Fail, Some(1.0)), "nobody was let in before the end");
    assert!(open.because.contains("for 100 the run ended first"), "{}", open.because);
}

#[test]
fn where_nobody_returns_or_nothing_is_announced_there_is_nothing_to_judge() {
    let silent = flash(&["target.embedded.retry_after=none"]);
    let all = verdicts(&silent, &measured(&silent));
    assert_eq!(all, [Verdict::NotApplicable; 5]);
    let alone = flash(&["rehearsal.probes.every=0"]);
    let measures = measured(&alone);
    assert_eq!(simulated(&alone, &measures, "retry_after.calibrated").verdict, Verdict::NotApplicable);
    // few refusals in an overload are missing data
    let plan = flash(&[]);
    let mut few = Measures::new(&plan);
    (0..5).for_each(|n| arrive(&mut few, &record(n, 30_000 + n, 1, Outcome::Shed)));
    for id in ["retry_after.follows_state", "retry_after.calibrated", "retry_after.no_echo"] {
        assert_eq!(simulated(&plan, &few, id).verdict, Verdict::NoData, "{id}");
    }
}

#[test]
fn who_heeds_no_retry_after_is_no_echo_of_it() {
    let sets =
        |honour: &str| format!("requests.ask.on_refusal={{ retry: {{ attempts: 3, honour: {honour} }} }}");
    let plan = flash(&[&sets("false")]);
    let found = verdicts(&plan, &measured(&plan));
    assert_eq!(found[..4], [Verdict::NotApplicable; 4]);
    let plan = flash(&[&sets("true")]);
    assert_eq!(simulated(&plan, &measured(&plan), "retry_after.follows_state").verdict, Verdict::Pass);
}

#[test]
fn coming_back_as_told_is_laid_beside_coming_fresh() {
    let lift = |sets: &[&str]| {
        let plan = flash(sets);
        simulated(&plan, &measured(&plan), "retry_after.honoured").because
    };
    let found = lift(&[]);
    let figure = found.split_once("(lift ").and_then(|(_, rest)| rest.split(')').next()?.parse::<f64>().ok());
    assert!(figure.is_some_and(|figure| figure > 5.0), "{found}");
    let drain = lift(&["target.embedded.retry_after=drain"]);
    assert!(drain.contains("the wait was worth nothing"), "{drain}");
}
