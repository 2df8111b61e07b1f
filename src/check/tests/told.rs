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

fn simulated(plan: &Plan, measures: &Measures, id: &str) -> Finding {
    let forecast = Forecast::of(plan);
    let scene = Scene { plan, forecast: &forecast, measures, agreement: None, live: false, setting: None };
    find(id).unwrap_or_else(|| panic!("{id}")).judge(&scene)
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
