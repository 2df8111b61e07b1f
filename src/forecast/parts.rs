use super::tenants::fair_shares;
use crate::plan::Plan;

/// Tokens a second that each class of the mix is served in the event, of `supply` tokens a second, by the declared
/// policy.
///
/// Where tenants share by weight, each class gets its part of what its tenant gets; where tiers are strict, a tier gets
/// what the ones before it leave. Within a tier or a tenant, and where there is neither, a class gets a part in proportion
/// to what it asks for: a queue knows no other difference between those that it lets in.
pub fn class_parts(plan: &Plan, supply: f64) -> Vec<f64> {
    let classes = plan.requests.classes();
    let total: f64 = classes.iter().map(|class| f64::from(class.weight)).sum();
    let (mut callers, mut lasts) = (0.0, 0.0);
    for (phase, span) in plan.load.spans().filter(|(phase, _)| phase.event || plan.load.event().is_none()) {
        callers += phase.rate.per_sec_f64() * span.length().as_secs_f64();
        lasts += span.length().as_secs_f64();
    }
    let rate = callers / lasts / total;
    let asks: Vec<f64> = classes.iter().map(|class| rate * f64::from(class.weight) * class.hold()).collect();
    let policy = plan.policy();
    let by_weight = policy.filter(|policy| policy.share.name() != "none" && !policy.tenants.is_empty());
    let strict = policy.is_some_and(|policy| policy.tiers.strict);
    let mut parts = vec![0.0; classes.len()];
    let mut tiers: Vec<u8> = if strict { classes.iter().map(|class| class.tier).collect() } else { vec![0] };
    tiers.sort_unstable();
    tiers.dedup();
    let mut left = supply;
    for tier in tiers {
        let here: Vec<usize> = (0..classes.len()).filter(|at| !strict || classes[*at].tier == tier).collect();
        let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
        match by_weight {
            Some(policy) => {
                for (nth, tenant) in policy.tenants.iter().enumerate() {
                    // a class of no declared tenant is the first one's
                    let of = |at: &usize| {
                        let name = &classes[*at].tenant;
                        policy.tenants.iter().position(|it| it.name == *name).unwrap_or(0) == nth
                    };
                    groups.push((f64::from(tenant.weight), here.iter().copied().filter(of).collect()));
                }
            }
            None => groups.push((1.0, here)),
        }
        let wants: Vec<(f64, f64)> =
            groups.iter().map(|(weight, of)| (*weight, of.iter().map(|at| asks[*at]).sum())).collect();
        for ((_, of), share) in groups.iter().zip(fair_shares(left, &wants)) {
            let asked: f64 = of.iter().map(|at| asks[*at]).sum();
            for at in of {
                parts[*at] = if asked > 0.0 { share * asks[*at] / asked } else { 0.0 };
            }
        }
        left -= wants_served(&parts, &groups);
    }
    parts
}

fn wants_served(parts: &[f64], groups: &[(f64, Vec<usize>)]) -> f64 {
    groups.iter().flat_map(|(_, of)| of).map(|at| parts[*at]).sum()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::measure::testing::{request, smoke};

    /// The smoke plan's 80 callers a second against 24,000 tokens a second, as three classes of 1,200 tokens each.
    fn parts(change: fn(&mut serde_json::Value), policy: &serde_json::Value) -> Vec<f64> {
        let mut sketch = smoke();
        let mut classes: Vec<_> = ["a", "b", "c"]
            .into_iter()
            .enumerate()
            .map(|(at, name)| {
                let mut class = request(name, 1, "6kB", "4500ms");
                (class["tenant"], class["tier"]) = (json!(name), json!(at + 1));
                class
            })
            .collect();
        change(&mut classes[0]);
        sketch.requests = json!(classes);
        for (key, value) in policy.as_object().unwrap() {
            sketch.policy[key] = value.clone();
        }
        class_parts(&sketch.plan(), 24_000.0)
    }

    #[test]
    fn whoever_asks_for_more_gets_more_where_nothing_else_tells_them_apart() {
        let loose = json!({ "tiers": { "strict": false, "evict": false } });
        let twice = parts(|class| class["weight"] = json!(2), &loose);
        assert!((twice[0] - 12_000.0).abs() < 1e-6 && (twice[1] - 6_000.0).abs() < 1e-6, "{twice:?}");
    }

    #[test]
    fn a_strict_tier_is_served_before_the_next() {
        let strict = parts(|class| class["weight"] = json!(1), &json!({ "tiers": { "strict": true } }));
        // 26.7 callers a second of 1,200 tokens are more than there is
        assert!((strict[0] - 24_000.0).abs() < 1e-6, "{strict:?}");
        assert!(strict[2].abs() < 1e-6, "{strict:?}");
    }

    #[test]
    fn tenants_get_theirs_by_weight() {
        let tenants = json!({
            "tiers": { "strict": false, "evict": false },
            "tenants": [{ "name": "a", "weight": 2 }, { "name": "b", "weight": 1 }, { "name": "c", "weight": 1 }],
            "share": "drr",
        });
        let shares = parts(|_| {}, &tenants);
        assert!((shares[0] - 12_000.0).abs() < 1e-6 && (shares[2] - 6_000.0).abs() < 1e-6, "{shares:?}");
    }
}
