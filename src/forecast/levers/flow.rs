use crate::plan::{Plan, Pull};

/// The event's offer and what can be served of it, as rates.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    classes: Vec<Part>,
    /// Tokens a second of the provider's quota.
    quota: f64,
    /// Tokens a second of the gateway's own budget; what is not used of a hold is given back to it.
    own: Option<f64>,
    /// Requests a second of the gateway's own budget.
    requests: Option<f64>,
    /// Calls at once.
    slots: Option<f64>,
    /// The least important tier that is still let in.
    kept: u8,
}

/// A class's part of the offer.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    /// Callers a second.
    rate: f64,
    /// Tokens held.
    hold: f64,
    /// Tokens used.
    used: f64,
    /// Seconds to the first token.
    first: f64,
    /// Seconds for all of them.
    rest: f64,
    tier: u8,
}

impl Flow {
    /// The event of `plan` as it stands, no lever pulled.
    pub fn of(plan: &Plan) -> Self {
        let plan = &*plan.as_in_event();
        let (plan, part) = plan.servable();
        let plan = &*plan;
        let basis = super::super::Basis::of(plan, part);
        let total: f64 = plan.requests.classes().iter().map(|class| f64::from(class.weight)).sum();
        let service = &plan.provider.service;
        let first = service.first_token.as_secs_f64();
        let classes = plan.requests.classes().iter().map(|class| Part {
            rate: basis.offered * f64::from(class.weight) / total,
            hold: class.hold(),
            used: class.used(),
            first,
            rest: super::super::basis::mean_service(plan, class) - first,
            tier: class.tier,
        });
        let budgets = plan.policy().map(|policy| policy.budgets);
        let quota = super::super::basis::granted(plan, basis.mean_hold, basis.hold_factor).per_sec_f64();
        Self {
            classes: classes.collect(),
            quota,
            own: budgets.and_then(|b| b.tokens).map(crate::units::Rate::per_sec_f64),
            requests: budgets.and_then(|b| b.requests).map(crate::units::Rate::per_sec_f64),
            slots: budgets.and_then(|b| b.concurrent).map(f64::from),
            kept: u8::MAX,
        }
    }

    /// No offer at all.
    pub(super) const fn none() -> Self {
        Self { classes: Vec::new(), quota: 0.0, own: None, requests: None, slots: None, kept: u8::MAX }
    }

    /// After one more lever.
    pub fn pulled(self, pull: &Pull) -> Self {
        match *pull {
            Pull::AnswerFromCache(share) | Pull::Defer(share) => self.fewer(share.get()),
            Pull::MoreQuota(rate) => {
                let times = rate.per_sec_f64() / self.quota;
                self.more(times)
            }
            Pull::MoreQuotaBy(ratio) => self.more(1.0 + ratio.as_f64()),
            Pull::ShedTier(tier) => self.without(tier),
            Pull::ShrinkTokens(tokens) => {
                let share = 1.0 - tokens.get() as f64 / self.mean_hold();
                self.smaller(share.max(0.0))
            }
            Pull::ShrinkTokensBy(share) => self.smaller(share.get()),
        }
    }

    /// Without `share` of every class's callers.
    pub(super) fn fewer(mut self, share: f64) -> Self {
        self.classes.iter_mut().for_each(|part| part.rate *= 1.0 - share);
        self
    }

    /// With `times` the quota, and the gateway's budget of tokens alike.
    pub(super) fn more(mut self, times: f64) -> Self {
        self.quota *= times;
        self.own = self.own.map(|own| own * times);
        self
    }

    /// With `share` less tokens in every request and answer.
    pub(super) fn smaller(mut self, share: f64) -> Self {
        for part in &mut self.classes {
            part.hold *= 1.0 - share;
            part.used *= 1.0 - share;
            part.rest *= 1.0 - share;
        }
        self
    }

    /// With `tier` and those less important shut out.
    pub(super) fn without(mut self, tier: u8) -> Self {
        self.kept = self.kept.min(tier.saturating_sub(1));
        if tier == 0 {
            self.classes.iter_mut().for_each(|part| part.tier = part.tier.max(1));
        }
        self
    }

    /// The tiers there are, the least important first.
    pub(super) fn tiers(&self) -> Vec<u8> {
        let mut tiers: Vec<u8> = self.classes.iter().map(|part| part.tier).collect();
        tiers.sort_unstable_by(|a, b| b.cmp(a));
        tiers.dedup();
        tiers
    }

    /// λ: callers a second.
    pub fn offered(&self) -> f64 {
        self.classes.iter().map(|part| part.rate).sum()
    }

    /// Those of the tiers that are let in.
    pub fn let_in(&self) -> f64 {
        self.kept_parts().map(|part| part.rate).sum()
    }

    /// μ: requests a second that can be served, of the mix that is let in.
    pub fn served(&self) -> f64 {
        let hold = self.mean_hold();
        let factor = (hold / self.mean(|part| part.used).max(1e-9)).max(1.0);
        let service = self.mean(|part| part.first + part.rest);
        let limits = [
            Some(self.quota / hold),
            self.own.map(|own| own * factor / hold),
            self.requests,
            self.slots.map(|slots| slots / service),
        ];
        limits.into_iter().flatten().fold(f64::MAX, f64::min)
    }

    /// The share of all callers that is refused, those of tiers that are shut out included.
    pub fn shed_share(&self) -> f64 {
        let offered = self.offered();
        if offered > 0.0 { (1.0 - self.let_in().min(self.served()) / offered).max(0.0) } else { 0.0 }
    }

    /// The share refused of those that are let in.
    pub fn kept_shed_share(&self) -> f64 {
        let asked = self.let_in();
        if asked > 0.0 { (1.0 - self.served() / asked).max(0.0) } else { 0.0 }
    }

    /// h: tokens held for a request that is let in, on average.
    pub fn mean_hold(&self) -> f64 {
        self.mean(|part| part.hold)
    }

    /// Tokens a second of the quota.
    pub(super) const fn quota(&self) -> f64 {
        self.quota
    }

    /// The mean over the callers let in; over all classes alike where none is.
    fn mean(&self, value: impl Fn(&Part) -> f64) -> f64 {
        let rate = self.let_in();
        if rate > 0.0 {
            self.kept_parts().map(|part| part.rate * value(part)).sum::<f64>() / rate
        } else {
            self.classes.iter().map(&value).sum::<f64>() / self.classes.len().max(1) as f64
        }
    }

    fn kept_parts(&self) -> impl Iterator<Item = &Part> {
        self.classes.iter().filter(|part| part.tier <= self.kept)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::forecast::Forecast;
    use crate::measure::testing::{flash, request};

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() <= 1e-9 * want.abs().max(1.0), "{got} instead of {want}");
    }

    #[test]
    fn without_a_lever_it_is_the_forecast() {
        let mut sketch = flash();
        let mut large = request("large", 1, "20kB", "25s");
        large["prompt"]["tokens"] = json!(2_000);
        sketch.requests = json!([request("ask", 3, "6kB", "25s"), large]);
        for budgets in [
            json!({ "tokens_per_minute": "500k" }),
            json!({ "tokens_per_minute": "500k", "concurrent": 9 }),
            json!({ "tokens_per_minute": "500k", "requests_per_minute": 111 }),
            json!({ "tokens_per_minute": "400k" }),
        ] {
            sketch.policy = json!({ "service": { "start": "3s" }, "budgets": budgets });
            let (flow, forecast) = (Flow::of(&sketch.plan()), Forecast::of(&sketch.plan()));
            near(flow.offered() * 60.0, forecast.offered_per_min);
            near(flow.shed_share(), forecast.shed_share);
            assert!((flow.served() * 60.0 - forecast.serviceable_per_min).abs() < 1e-4);
        }
    }

    #[test]
    fn shutting_out_a_tier_decides_who_is_refused_not_how_many() {
        let mut sketch = flash();
        let mut browse = request("browse", 1, "6kB", "25s");
        browse["tier"] = json!(3);
        sketch.requests = json!([request("ask", 3, "6kB", "25s"), browse.clone()]);
        let flow = Flow::of(&sketch.plan());
        let shut = flow.clone().without(3);
        near(shut.offered(), flow.offered());
        near(shut.shed_share(), flow.shed_share());
        near(shut.kept_shed_share(), 1.0 - 416.666_666_666_666_7 / 1_500.0);
        // unless what is shut out is larger than the rest
        browse["prompt"]["tokens"] = json!(3_200);
        browse["prompt"]["bytes"] = json!("20kB");
        sketch.requests[1] = browse;
        let flow = Flow::of(&sketch.plan());
        assert!(flow.clone().without(3).shed_share() < flow.shed_share() - 0.05);
        // everybody
        near(flow.clone().without(0).shed_share(), 1.0);
        near(flow.without(0).kept_shed_share(), 0.0);
    }

    #[test]
    fn slots_do_not_care_for_quota_but_for_the_length_of_answers() {
        let mut sketch = flash();
        sketch.policy = json!({ "service": { "start": "3s" },
            "budgets": { "tokens_per_minute": "500k", "concurrent": 10 } });
        let flow = Flow::of(&sketch.plan());
        near(flow.served() * 60.0, 200.0);
        near(flow.clone().more(4.0).served() * 60.0, 200.0);
        // 600 ms to the first token, and half of the 2.4 s for the others
        near(flow.smaller(0.5).served() * 60.0, 10.0 / 1.8 * 60.0);
    }
}
