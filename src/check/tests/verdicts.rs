//! The checks of single verdicts, on simulated runs: the gateway as declared, and one that decides by another policy.

use serde_json::{Value as Json, json};

use super::*;
use crate::measure::testing::{Sketch, request};
use crate::simulate::{self, Agreement, Following};

/// The smoke plan with these requests and this policy, besides its service time.
fn sketch(requests: Json, policy: Json) -> Sketch {
    let mut sketch = smoke();
    sketch.requests = requests;
    let (Json::Object(own), Json::Object(more)) = (&mut sketch.policy, policy) else {
        panic!("a policy is a map")
    };
    own.extend(more);
    sketch
}

/// A run of `declared` under its own policy.
fn healthy_run(declared: &Sketch) -> (Plan, Measures) {
    let plan = declared.plan();
    let (measures, _) = simulate::measure(&plan, plan.policy().unwrap());
    (plan, measures)
}

/// A run of `declared` under the policy of `bent`, and how it agrees.
fn bent_run(declared: &Sketch, bent: &Sketch) -> (Plan, Measures, Agreement) {
    let (plan, bent) = (declared.plan(), bent.plan());
    let following = Following::of(&plan).unwrap();
    let (measures, _, agreement) = simulate::measure_beside(&plan, bent.policy().unwrap(), &following);
    (plan, measures, agreement)
}

fn judged_so(plan: &Plan, measures: &Measures, agreement: Option<&Agreement>, id: &str) -> Finding {
    let forecast = Forecast::of(plan);
    let scene = Scene::simulated(plan, &forecast, measures).beside(agreement);
    find(id).unwrap().judge(&scene)
}

fn passes(declared: &Sketch, id: &str) -> Finding {
    let (plan, measures) = healthy_run(declared);
    let finding = judged_so(&plan, &measures, None, id);
    assert_eq!(finding.verdict, Verdict::Pass, "{}", finding.because);
    assert_eq!((finding.examples.len(), finding.measured.is_some()), (0, true));
    // what nobody compared is no worse beside itself
    let (plan, measures, agreement) = bent_run(declared, declared);
    let beside = judged_so(&plan, &measures, Some(&agreement), id);
    assert_eq!(beside.verdict, Verdict::Pass, "{}", beside.because);
    finding
}

/// The bent gateway fails by what is seen from outside (first) and beside the policy's verdicts (second).
fn fails(declared: &Sketch, bent: &Sketch, id: &str, by: (bool, bool)) -> Finding {
    let (plan, measures, agreement) = bent_run(declared, bent);
    let outside = judged_so(&plan, &measures, None, id);
    assert_eq!(outside.verdict == Verdict::Fail, by.0, "{}", outside.because);
    let both = judged_so(&plan, &measures, Some(&agreement), id);
    assert_eq!(both.verdict == Verdict::Fail, by.0 || by.1, "{}", both.because);
    both
}

fn ask() -> Json {
    json!([request("ask", 1, "6kB", "4500ms")])
}

fn appointments() -> Json {
    json!({ "appointment": { "reserve": 0.25, "returning": { "start": 0.05, "learn": true } } })
}

#[test]
fn a_gateway_that_keeps_its_bound_passes_and_one_that_does_not_fails() {
    let own = sketch(ask(), json!({ "retry_after": appointments() }));
    let id = "shedding.boundary";
    let finding = passes(&own, id);
    assert!(finding.because.contains("0 of"), "{}", finding.because);
    // a fifth less and a fifth more than the 2.25 s that fresh callers may use
    let bent = |seconds: &str| {
        sketch(ask(), json!({ "retry_after": appointments(), "bound": { "seconds": seconds } }))
    };
    let early = fails(&own, &bent("2400ms"), id, (true, true));
    assert!(early.measured.unwrap() > 100.0 && early.examples.len() == 20, "{}", early.because);
    fails(&own, &bent("3600ms"), id, (true, true));
    let unbounded = sketch(ask(), json!({ "retry_after": appointments(), "bound": "none" }));
    let never = fails(&own, &unbounded, id, (true, true));
    assert!(never.because.contains("nobody was shed, the policy sheds"), "{}", never.because);
}

#[test]
fn where_depth_does_not_tell_only_verdicts_do() {
    let own = sketch(ask(), json!({ "order": "lifo", "bound": { "requests": 40 }, "retry_after": "none" }));
    let (plan, measures) = healthy_run(&own);
    let id = "shedding.boundary";
    let alone = judged_so(&plan, &measures, None, id);
    assert_eq!(alone.verdict, Verdict::NotApplicable, "{}", alone.because);
    let less = sketch(ask(), json!({ "order": "lifo", "bound": { "requests": 37 }, "retry_after": "none" }));
    let told = fails(&own, &less, id, (false, true));
    assert!(told.because.contains("the furthest by 3"), "{}", told.because);
}

fn of_tier(name: &str, tier: u64, weight: u32) -> Json {
    let mut class = request(name, weight, "6kB", "4500ms");
    class["tier"] = json!(tier);
    class
}

#[test]
fn tiers_that_keep_their_order_pass_and_those_that_are_one_fail() {
    let id = "tiers.order";
    for (bound, weights) in [
        (json!("deadline"), [1, 9]),
        (json!({ "requests": 40 }), [1, 9]),
        (json!({ "requests": 40 }), [1, 1]),
    ] {
        let requests = || json!([of_tier("first", 0, weights[0]), of_tier("last", 2, weights[1])]);
        let with = |tiers: Json| {
            sketch(requests(), json!({ "bound": bound, "tiers": tiers, "retry_after": "none" }))
        };
        let own = with(json!({ "strict": true, "evict": true }));
        passes(&own, id);
        let one = with(json!({ "strict": false, "evict": false }));
        let finding = fails(&own, &one, id, (true, bound != json!("deadline")));
        assert!(finding.measured.unwrap() > 10.0 && !finding.examples.is_empty(), "{}", finding.because);
    }
}

#[test]
fn a_tier_that_fills_the_bound_by_itself_is_refused_rightly() {
    let requests = json!([of_tier("first", 0, 9), of_tier("last", 2, 1)]);
    passes(&sketch(requests, json!({ "retry_after": "none" })), "tiers.order");
}

#[test]
fn tiers_and_shares_apply_only_where_there_are_some() {
    let (plan, measures) = healthy_run(&smoke());
    for id in ["tiers.order", "fairness.tokens"] {
        assert_eq!(judged_so(&plan, &measures, None, id).verdict, Verdict::NotApplicable, "{id}");
    }
    let two = sketch(json!([of_tier("first", 0, 1), of_tier("last", 2, 1)]), json!({}));
    let plan = two.plan();
    let nothing = judged_so(&plan, &Measures::new(&plan), None, "tiers.order");
    assert_eq!(nothing.verdict, Verdict::NoData, "{}", nothing.because);
}

fn of_tenant(name: &str, tokens: u64) -> Json {
    let mut class = request(name, 1, "20kB", "4500ms");
    class["tenant"] = json!(name);
    class["prompt"]["tokens"] = json!(tokens - 400);
    class
}

#[test]
fn a_limit_of_a_tenants_own_throttles_it_and_nobody_else() {
    let id = "limits.separate";
    let requests = || json!([of_tenant("a", 1_200), of_tenant("b", 1_200)]);
    let with = |a: Json| {
        let tenants = json!([a, { "name": "b" }]);
        sketch(requests(), json!({ "tenants": tenants, "retry_after": "none" }))
    };
    let own = with(json!({ "name": "a", "requests": "6/s" }));
    let finding = passes(&own, id);
    assert!(!finding.because.starts_with("0 throttled"), "{}", finding.because);
    let lax = fails(&own, &with(json!({ "name": "a" })), id, (false, true));
    assert!(lax.because.contains("not throttled that it throttles"), "{}", lax.because);
    fails(&own, &with(json!({ "name": "a", "requests": "3/s" })), id, (false, true));
    let open = with(json!({ "name": "a" }));
    let strict = fails(&open, &own, id, (true, true));
    assert!(strict.examples.len() == 20, "{}", strict.because);
}

#[test]
fn a_refusal_with_the_status_of_another_reason_is_told_from_outside() {
    let plan = smoke().plan();
    let mut measures = healthy(&plan);
    let mut swapped = record(9_000, 5_000, 1, Outcome::Throttled);
    swapped.reason = Some(crate::observe::Reason::Shed);
    arrive(&mut measures, &swapped);
    let finding = judged_so(&plan, &measures, None, "limits.separate");
    assert_eq!(
        (finding.verdict, &finding.examples[..]),
        (Verdict::Fail, &[9_000][..]),
        "{}",
        finding.because
    );
}

#[test]
fn tokens_are_shared_by_weight_and_turns_of_requests_do_not_share_them_so() {
    let id = "fairness.tokens";
    let requests = || json!([of_tenant("a", 600), of_tenant("b", 1_200), of_tenant("c", 3_000)]);
    let tenants = json!([{ "name": "a", "weight": 2 }, { "name": "b" }, { "name": "c" }]);
    let with = |share: Json| {
        sketch(requests(), json!({ "tenants": tenants, "share": share, "retry_after": "none" }))
    };
    let own = with(json!({ "drr": { "quantum": 1_200 } }));
    let finding = passes(&own, id);
    assert!(finding.because.contains("a fair 50 %"), "{}", finding.because);
    let turns = fails(&own, &with(json!("wrr")), id, (true, true));
    assert!(turns.measured.unwrap() > 0.2, "{}", turns.because);
    fails(&own, &with(json!("none")), id, (true, true));
    let plan = own.plan();
    let nothing = judged_so(&plan, &Measures::new(&plan), None, id);
    assert_eq!(nothing.verdict, Verdict::NoData, "{}", nothing.because);
}

#[test]
fn who_asks_for_less_than_its_share_leaves_the_rest_to_the_others() {
    let mut small = of_tenant("a", 1_200);
    small["weight"] = json!(1);
    let mut large = of_tenant("b", 1_200);
    large["weight"] = json!(19);
    let tenants = json!([{ "name": "a" }, { "name": "b" }]);
    let policy =
        json!({ "tenants": tenants, "share": { "drr": { "quantum": 1_200 } }, "retry_after": "none" });
    let finding = passes(&sketch(json!([small, large]), policy), "fairness.tokens");
    assert!(finding.because.contains("b 7") || finding.because.contains("b 8"), "{}", finding.because);
}
