//! What each tenant is served while all of them wait: shares by weight, in which what one does not need goes to the
//! others (weighted max-min fairness).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Basis;
use crate::plan::Plan;

/// One tenant's part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantShare {
    /// The tenant, as the plan names it.
    pub tenant: String,
    /// Its weight.
    pub weight: u32,
    /// Its callers a minute in the event.
    pub offered_per_min: f64,
    /// Those of them that are served.
    pub served_per_min: f64,
    /// Its part of the tokens that are served.
    pub token_share: f64,
}

impl TenantShare {
    /// Of each declared tenant, where a policy shares by weight; none where it does not.
    pub(super) fn all(plan: &Plan, basis: &Basis) -> Vec<Self> {
        let Some(policy) = plan.policy().filter(|policy| policy.share.name() != "none") else {
            return Vec::new();
        };
        let total = plan.requests.mean(|_| 1.0);
        let of = |name: &str, value: fn(&crate::workload::Class) -> f64| {
            plan.requests.mean(|class| if class.tenant == name { value(class) } else { 0.0 }) / total
        };
        let demands: Vec<(f64, f64)> = policy
            .tenants
            .iter()
            .map(|tenant| {
                let wanted = basis.offered * of(&tenant.name, crate::workload::Class::hold);
                (f64::from(tenant.weight), tenant.tokens.map_or(wanted, |own| wanted.min(own.per_sec_f64())))
            })
            .collect();
        let shares = fair_shares(basis.drain.per_sec_f64(), &demands);
        let served: f64 = shares.iter().sum();
        let each = policy.tenants.iter().zip(shares).map(|(tenant, tokens)| {
            let part = of(&tenant.name, |_| 1.0);
            let hold = of(&tenant.name, crate::workload::Class::hold) / part;
            Self {
                tenant: tenant.name.clone(),
                weight: tenant.weight,
                offered_per_min: basis.offered * part * 60.0,
                served_per_min: if part > 0.0 { tokens / hold * 60.0 } else { 0.0 },
                token_share: if served > 0.0 { tokens / served } else { 0.0 },
            }
        });
        each.collect()
    }
}

/// `supply` divided among those who want (weight, amount): by weight, but nobody more than it wants, and what one leaves
/// goes to the others by their weights.
pub fn fair_shares(supply: f64, wants: &[(f64, f64)]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by(|a, b| (wants[*a].1 / wants[*a].0).total_cmp(&(wants[*b].1 / wants[*b].0)));
    let (mut left, mut weights) = (supply, wants.iter().map(|(weight, _)| weight).sum::<f64>());
    let mut shares = vec![0.0; wants.len()];
    for at in order {
        let (weight, wanted) = wants[at];
        shares[at] = if weights > 0.0 { wanted.min(left * weight / weights) } else { 0.0 };
        left -= shares[at];
        weights -= weight;
    }
    shares
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::forecast::Forecast;
    use crate::measure::testing::{request, smoke};

    #[test]
    fn what_one_leaves_goes_to_the_others_by_weight() {
        assert_eq!(fair_shares(100.0, &[(2.0, 1e9), (1.0, 1e9), (1.0, 1e9)]), [50.0, 25.0, 25.0]);
        assert_eq!(fair_shares(100.0, &[(2.0, 10.0), (1.0, 1e9), (2.0, 1e9)]), [10.0, 30.0, 60.0]);
        assert_eq!(fair_shares(100.0, &[(1.0, 10.0), (1.0, 20.0)]), [10.0, 20.0]);
        assert_eq!(fair_shares(100.0, &[]), [] as [f64; 0]);
    }

    /// Weights of 2, 1 and 1 give a half and two quarters of the tokens. Requests of unlike size are no equal share of
    /// answers then.
    #[test]
    fn three_tenants_of_2_1_1_get_half_and_two_quarters() {
        let mut sketch = smoke();
        let of = |name: &str, tokens: u64| {
            let mut class = request(name, 1, "20kB", "4500ms");
            class["tenant"] = json!(name);
            class["prompt"]["tokens"] = json!(tokens);
            class
        };
        sketch.requests = json!([of("a", 200), of("b", 800), of("c", 2_600)]);
        sketch.policy = json!({ "service": { "start": "1s" }, "share": { "drr": { "quantum": 1200 } }, "tenants": [
            { "name": "a", "weight": 2 }, { "name": "b", "weight": 1 }, { "name": "c", "weight": 1 } ] });
        let tenants = Forecast::of(&sketch.plan()).tenants;
        let shares: Vec<f64> = tenants.iter().map(|tenant| tenant.token_share).collect();
        assert_eq!(shares, [0.5, 0.25, 0.25]);
        let served: Vec<f64> = tenants.iter().map(|tenant| tenant.served_per_min.round()).collect();
        assert_eq!(served, [1_000.0, 250.0, 100.0]);
        sketch.policy = json!({ "service": { "start": "1s" } });
        assert!(Forecast::of(&sketch.plan()).tenants.is_empty());
    }
}
