//! What a gateway promises its callers and its provider, in simulated runs: the reference policy keeps it, broken ones
//! are found out.

use super::*;
use crate::measure::Fold;
use crate::observe::Sighting;
use crate::simulate;

const SMOKE: &str = include_str!("../../../plans/smoke.yaml");
const FLASH: &str = include_str!("../../../plans/flash-promotion.yaml");

fn plan(text: &str, sets: &[&str]) -> Plan {
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    crate::plan::parse(text, &sets, &|_| None).unwrap_or_else(|faults| panic!("{faults:?}")).plan
}

/// What a check says of a run of `plan` as it is declared.
fn as_declared(plan: &Plan, id: &str) -> Finding {
    let (measures, _) = simulate::measure(plan, plan.policy().unwrap());
    simulated(plan, &measures, id)
}

/// What a check says of `plan` when the gateway does as `real`'s instead.
fn in_truth(plan: &Plan, real: &Plan, id: &str) -> Finding {
    let (measures, _) = simulate::measure(plan, real.policy().unwrap());
    simulated(plan, &measures, id)
}

/// A run of which sightings are told wrong.
fn told(plan: &Plan, change: fn(&mut Sighting)) -> Measures {
    let mut fold = Fold::in_virtual_time(plan);
    let ended = simulate::run(plan, plan.policy().unwrap(), &mut |mut sighting| {
        change(&mut sighting);
        fold.see(sighting);
    });
    fold.finish(ended.at)
}

#[test]
fn the_reference_gateway_keeps_every_promise() {
    let plan = plan(SMOKE, &[]);
    for id in [
        "accounting.complete",
        "waste.none",
        "deadline.propagated",
        "retries.bounded",
        "recovery.complete",
        "goodput.floor",
    ] {
        let finding = as_declared(&plan, id);
        assert_eq!(finding.verdict, Verdict::Pass, "{id}: {}", finding.because);
    }
}

#[test]
fn answers_for_callers_who_have_left_are_waste() {
    let broken =
        ["target.embedded.bound=none", "target.embedded.recheck=false", "target.embedded.cancel=false"];
    let finding = as_declared(&plan(SMOKE, &broken), "waste.none");
    assert_eq!(finding.verdict, Verdict::Fail, "{}", finding.because);
    assert!(finding.measured.unwrap() > 0.3 && finding.examples.len() == 20, "{finding:?}");
    // one alone is enough to mend it
    let finding = as_declared(&plan(SMOKE, &broken[..1]), "waste.none");
    assert_eq!(finding.verdict, Verdict::Pass, "{}", finding.because);
}

#[test]
fn a_deadline_that_is_lost_or_begins_anew_is_found() {
    let plan = plan(SMOKE, &[]);
    let lost = told(&plan, |sighting| {
        if let Sighting::AtProvider { budget, .. } = sighting {
            *budget = None;
        }
    });
    let finding = simulated(&plan, &lost, "deadline.propagated");
    assert_eq!((finding.verdict, finding.measured), (Verdict::Fail, Some(1.0)));
    let anew = told(&plan, |sighting| {
        if let Sighting::AtProvider { budget, .. } = sighting {
            *budget = Some(Duration::from_millis(4_500));
        }
    });
    let finding = simulated(&plan, &anew, "deadline.propagated");
    assert_eq!(finding.verdict, Verdict::Fail);
    // whoever was forwarded at once was told rightly
    assert!((0.3..1.0).contains(&finding.measured.unwrap()), "{}", finding.because);
    assert!(finding.because.contains("by up to 2"), "the wait at the bound: {}", finding.because);
}

#[test]
fn calls_repeated_without_end_are_found_and_those_within_the_budget_are_not() {
    let busy = "provider.faults=[{ at: 4s, for: 8s, errors: { status: 503, share: 60% } }]";
    let declared = plan(SMOKE, &[busy]);
    let finding = as_declared(&declared, "retries.bounded");
    assert_eq!(finding.verdict, Verdict::Pass, "{}", finding.because);
    assert!(finding.measured.unwrap() > 1.0, "{}", finding.because);
    let eager = "target.embedded.upstream={ attempts: 100, budget: 100%, backoff: 10ms, longest: 10ms }";
    let finding = in_truth(&declared, &plan(SMOKE, &[busy, eager]), "retries.bounded");
    assert_eq!(finding.verdict, Verdict::Fail, "{}", finding.because);
    assert!(!finding.examples.is_empty());
    // more calls in all than the budget allows, none of them too often for one request
    let many = "target.embedded.upstream={ attempts: 5, budget: 100% }";
    let finding = in_truth(&declared, &plan(SMOKE, &[busy, many]), "retries.bounded");
    assert_eq!(finding.verdict, Verdict::Fail, "{}", finding.because);
    // a burst of 429 is announced, and repeated as told
    let spent = "provider.faults=[{ at: 4s, for: 8s, errors: { status: 429, share: 60%, retry_after: 1s } }]";
    let finding = as_declared(&plan(SMOKE, &[spent]), "retries.bounded");
    assert_eq!(finding.verdict, Verdict::Pass, "{}", finding.because);
}

/// One minute at ten times the load and then three quarters of an hour as before it, with callers who come again twice.
fn storm(tail: &str, attempts: u16, policy: &[&str]) -> (Finding, f64) {
    let phases = format!(
        "load.phases=[{{name: before, rate: {tail}, for: 2m}}, {{name: trigger, rate: 2000/min, for: 60s, event: true}}, \
         {{name: after, rate: {tail}, for: 45m}}]"
    );
    let again = format!("requests.0.on_refusal={{ retry: {{ attempts: {attempts} }} }}");
    let mut sets = vec!["rehearsal.phases={}", phases.as_str()];
    if attempts > 1 {
        sets.push(&again);
    }
    sets.extend(policy);
    let plan = plan(FLASH, &sets);
    let (measures, _) = simulate::measure(&plan, plan.policy().unwrap());
    let end = plan.load.end();
    let last = measures.windows.within(&measures.frame, end - Duration::from_secs(600), end);
    let (good, came) = last.fold((0, 0), |(good, came), window| {
        (good + window.arrivals.get(Outcome::Completed), came + window.offered)
    });
    (simulated(&plan, &measures, "recovery.complete"), good as f64 / came as f64)
}

/// Without a bound and without a look at the deadline a minute is never recovered from, as long as three attempts of all
/// who come are more than is served.
#[test]
fn a_metastable_gateway_never_recovers_and_either_remedy_does() {
    let none =
        ["target.embedded.bound=none", "target.embedded.recheck=false", "target.embedded.cancel=false"];
    let (finding, in_the_end) = storm("200/min", 3, &none);
    assert_eq!(finding.verdict, Verdict::Fail, "{}", finding.because);
    assert!(in_the_end < 0.01, "{in_the_end}: {}", finding.because);
    let (finding, in_the_end) = storm("200/min", 2, &none);
    assert_eq!((finding.verdict, in_the_end < 0.01), (Verdict::Fail, true), "{}", finding.because);
    // nobody comes again, and it recovers, but not in the time of a queue that has a bound
    let (finding, in_the_end) = storm("200/min", 1, &none);
    assert_eq!((finding.verdict, in_the_end), (Verdict::Fail, 1.0), "{}", finding.because);
    for remedy in [&none[..1], &none[1..], &[]] {
        let (finding, in_the_end) = storm("200/min", 3, remedy);
        assert_eq!((finding.verdict, in_the_end), (Verdict::Pass, 1.0), "{remedy:?}: {}", finding.because);
    }
}

#[test]
fn recovery_that_cannot_be_seen_is_not_judged() {
    let with = |set: &str| as_declared(&plan(SMOKE, &[set]), "recovery.complete").verdict;
    assert_eq!(with("load.phases.after.for=5s"), Verdict::NotApplicable, "the load ends before");
    assert_eq!(with("load.phases.after.rate=1300/min"), Verdict::NotApplicable, "more than is served");
    assert_eq!(with("load.phases.promotion.rate=600/min"), Verdict::NotApplicable, "no overload");
}

/// Half of the callers wait 2.5 s, half of them 20 s.
fn impatient(policy: &[&str]) -> Plan {
    let class = |name: &str, deadline: &str| {
        format!(
            "{{name: {name}, prompt: {{tokens: 800, bytes: 6kB}}, max_tokens: 400, output: {{tokens: 400}}, deadline: {deadline}}}"
        )
    };
    let mix = format!("requests=[{}, {}]", class("quick", "2500ms"), class("patient", "20s"));
    let long = "load.phases.promotion.for=120s";
    let sets: Vec<&str> = [mix.as_str(), long].into_iter().chain(policy.iter().copied()).collect();
    plan(SMOKE, &sets)
}

/// In a queue in which everyone may wait as long as he has, the patient stand before the others.
#[test]
fn a_queue_that_only_the_patient_stand_in_is_found_and_a_short_one_passes() {
    let finding = as_declared(&impatient(&[]), "goodput.floor");
    assert_eq!(finding.verdict, Verdict::Fail, "{}", finding.because);
    assert!(finding.because.contains("callers who wait 2.5 s"), "{}", finding.because);
    let finding = as_declared(&impatient(&["target.embedded.bound={ seconds: 700ms }"]), "goodput.floor");
    assert_eq!(finding.verdict, Verdict::Pass, "{}", finding.because);
    assert!(finding.because.contains("callers who wait"), "{}", finding.because);
}

#[test]
fn a_gateway_with_two_calls_at_once_is_held_to_what_they_let_through() {
    let slots = "target.embedded.budgets={ tokens_per_minute: 1_200_000, burst: 900ms, concurrent: 10 }";
    let finding =
        as_declared(&plan(SMOKE, &[slots, "target.embedded.bound={ requests: 20 }"]), "goodput.floor");
    assert_eq!(finding.verdict, Verdict::Pass, "{}", finding.because);
    let expected = finding.expected.unwrap();
    assert!(expected < 10.0, "ten calls of a second each: {expected}");
}
