use serde::{Deserialize, Serialize};

use super::Flow;
use crate::plan::{Plan, Pull, levers};
use crate::units::Share;

/// Halvings of an interval after which two neighbouring numbers are left of it.
const HALVINGS: u32 = 200;

/// The most a quota is multiplied by: what takes more can't be bought.
const MOST_QUOTA: f64 = 1e6;

/// What is measured against a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The share refused of the tiers that are let in.
    KeptShedShare,
    /// The share refused of all that is offered.
    ShedShare,
}

/// What is to be reached.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// What is measured.
    pub measure: Measure,
    /// What it may be at most.
    pub at_most: Share,
}

impl Goal {
    /// Reads `shed_share=5%` or `kept_shed_share=5%`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((name, value)) = text.split_once('=') else {
            return Err(format!("`{text}` is no goal (write shed_share=5%)"));
        };
        let measure = match name.trim() {
            "kept_shed_share" => Measure::KeptShedShare,
            "shed_share" => Measure::ShedShare,
            other => {
                return Err(format!(
                    "`{other}` is no goal of a forecast (known: kept_shed_share, shed_share)"
                ));
            }
        };
        Share::parse(value.trim()).map(|at_most| Self { measure, at_most })
    }
}

/// How much of a lever.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Of all requests, 0 to 1.
    Share(f64),
    /// Tokens a minute of the quota, in all.
    TokensPerMin(f64),
    /// Tokens a request holds, on average.
    TokensPerRequest(f64),
    /// This tier and those less important.
    Tier(u8),
}

/// What a goal takes of one lever, with the others of the plan as they stand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Needed {
    /// The lever's name, or that of its kind where the plan has none.
    pub lever: String,
    /// Its kind.
    pub kind: String,
    /// What is measured.
    pub measure: Measure,
    /// The share that may be refused.
    pub at_most: f64,
    /// What is refused without it.
    pub without: f64,
    /// How much of it; absent where it can't reach the goal however far it is pulled, or is not needed.
    pub amount: Option<Amount>,
    /// What is refused with that much of it: the goal; or with as much of it as there is, where that is not enough.
    pub reached: f64,
}

impl Needed {
    /// Whether the goal is reached, with or without the lever.
    pub fn possible(&self) -> bool {
        self.reached <= self.at_most
    }
}

/// How much of each lever called `name` (its name or its kind) `goal` takes: of every lever of the plan without one, or of
/// every kind where the plan has none. A kind that the plan does not use is pulled last.
pub fn needed(plan: &Plan, goal: &Goal, name: Option<&str>) -> Result<Vec<Needed>, String> {
    let kinds: Vec<&str> = levers::ALL.iter().map(|kind| kind.name).collect();
    let solve_kind = |kind: &str| Solver::new(plan, goal, plan.levers.len(), kind, kind).solve();
    let of_plan = plan.levers.iter().enumerate();
    let solved: Vec<Needed> = of_plan
        .filter(|(_, lever)| name.is_none_or(|name| lever.name == name))
        .map(|(at, lever)| Solver::new(plan, goal, at, lever.pull.kind(), &lever.name).solve())
        .collect();
    match (solved.is_empty(), name) {
        (false, _) => Ok(solved),
        (true, None) => Ok(kinds.into_iter().map(solve_kind).collect()),
        (true, Some(name)) if kinds.contains(&name) => {
            let same = plan.levers.iter().position(|lever| lever.pull.kind() == name);
            let at = same.unwrap_or(plan.levers.len());
            Ok(vec![Solver::new(plan, goal, at, name, name).solve()])
        }
        (true, Some(name)) => {
            let own: Vec<&str> = plan.levers.iter().map(|lever| lever.name.as_str()).collect();
            let own = if own.is_empty() { "none".to_owned() } else { own.join(", ") };
            Err(format!("no lever is named `{name}` (in the plan: {own}; kinds: {})", kinds.join(", ")))
        }
    }
}

/// One lever being pulled, between those before and those after it.
struct Solver<'a> {
    name: String,
    kind: String,
    measure: Measure,
    at_most: f64,
    before: Flow,
    after: Vec<&'a Pull>,
}

impl<'a> Solver<'a> {
    fn new(plan: &'a Plan, goal: &Goal, at: usize, kind: &str, name: &str) -> Self {
        let before = plan.levers[..at].iter().fold(Flow::of(plan), |flow, lever| flow.pulled(&lever.pull));
        let after = plan.levers.iter().skip(at + 1).map(|lever| &lever.pull).collect();
        let (measure, at_most) = (goal.measure, goal.at_most.get());
        Self { name: name.to_owned(), kind: kind.to_owned(), measure, at_most, before, after }
    }

    fn solve(&self) -> Needed {
        let (measure, goal) = (self.measure, self.at_most);
        let without = self.shed(self.before.clone());
        let done = |amount, reached| Needed {
            lever: self.name.clone(),
            kind: self.kind.clone(),
            measure,
            at_most: goal,
            without,
            amount,
            reached,
        };
        if without <= goal {
            return done(None, without);
        }
        match self.kind.as_str() {
            "shed_tier" => {
                let with = |tier: &u8| self.shed(self.before.clone().without(*tier));
                let tiers = self.before.tiers();
                match tiers.iter().find(|tier| with(tier) <= goal) {
                    Some(tier) => done(Some(Amount::Tier(*tier)), with(tier)),
                    None => done(None, tiers.iter().map(with).fold(without, f64::min)),
                }
            }
            "more_quota" => match self.least(0.0, MOST_QUOTA, goal, |flow, by| flow.more(1.0 + by)) {
                Ok((by, reached)) => {
                    done(Some(Amount::TokensPerMin(self.before.quota() * (1.0 + by) * 60.0)), reached)
                }
                Err(best) => done(None, best),
            },
            "shrink_tokens" => {
                // less than a token is no request
                let most = 1.0 - 1.0 / self.before.mean_hold().max(1.0);
                match self.least(0.0, most, goal, Flow::smaller) {
                    Ok((share, reached)) => {
                        let tokens = self.before.mean_hold() * (1.0 - share);
                        done(Some(Amount::TokensPerRequest(tokens)), reached)
                    }
                    Err(best) => done(None, best),
                }
            }
            _ => match self.least(0.0, 1.0, goal, Flow::fewer) {
                Ok((share, reached)) => done(Some(Amount::Share(share)), reached),
                Err(best) => done(None, best),
            },
        }
    }

    /// The least amount between `none` and `most` that reaches `goal`, to the last bit, and what is refused then; or what
    /// is refused at the most. What is refused never grows with the amount.
    fn least(
        &self,
        none: f64,
        most: f64,
        goal: f64,
        pull: impl Fn(Flow, f64) -> Flow,
    ) -> Result<(f64, f64), f64> {
        let shed = |amount: f64| self.shed(pull(self.before.clone(), amount));
        if shed(most) > goal {
            return Err(shed(most));
        }
        let (mut low, mut high) = (none, most);
        for _ in 0..HALVINGS {
            let middle = low + (high - low) / 2.0;
            if shed(middle) <= goal { high = middle } else { low = middle }
        }
        Ok((high, shed(high)))
    }

    fn shed(&self, flow: Flow) -> f64 {
        let flow = self.after.iter().fold(flow, |flow, pull| flow.pulled(pull));
        match self.measure {
            Measure::KeptShedShare => flow.kept_shed_share(),
            Measure::ShedShare => flow.shed_share(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::measure::testing::{flash, request};
    use crate::plan::Lever;
    use crate::units::Tokens;

    fn goal() -> Goal {
        Goal::parse("shed_share=5%").unwrap()
    }

    fn amount(plan: &Plan, name: &str) -> Option<Amount> {
        needed(plan, &goal(), Some(name)).unwrap()[0].amount
    }

    fn near(got: Option<Amount>, want: Amount) {
        let value = |amount| match amount {
            Amount::Share(v) | Amount::TokensPerMin(v) | Amount::TokensPerRequest(v) => v,
            Amount::Tier(tier) => tier.into(),
        };
        let got = got.unwrap();
        assert_eq!(std::mem::discriminant(&got), std::mem::discriminant(&want));
        assert!((value(got) / value(want) - 1.0).abs() < 1e-12, "{got:?} instead of {want:?}");
    }

    /// Against 1 − μ/(λ(1 − a)) = 5 % and its like, solved by hand.
    #[test]
    fn each_lever_alone_takes_what_the_closed_form_says() {
        let plan = flash().plan();
        let mu = 500_000.0 / 1_200.0;
        near(amount(&plan, "answer_from_cache"), Amount::Share(1.0 - mu / 1_900.0));
        near(amount(&plan, "defer"), Amount::Share(1.0 - mu / 1_900.0));
        near(amount(&plan, "more_quota"), Amount::TokensPerMin(2_000.0 * 0.95 * 1_200.0));
        near(amount(&plan, "shrink_tokens"), Amount::TokensPerRequest(500_000.0 / 1_900.0));
        assert_eq!(amount(&plan, "shed_tier"), None);
        let all = needed(&plan, &goal(), None).unwrap();
        assert_eq!(all.len(), levers::ALL.len());
        assert!(all.iter().all(|needed| needed.possible() == (needed.kind != "shed_tier")), "{all:?}");
    }

    #[test]
    fn the_other_levers_stay_as_they_are_whether_before_or_after() {
        let mut plan = flash().plan();
        let cache =
            Lever { name: "static answers".into(), pull: Pull::AnswerFromCache(Share::new(0.4).unwrap()) };
        let shrink = Lever { name: "shorter".into(), pull: Pull::ShrinkTokens(Tokens::new(675)) };
        plan.levers = vec![cache, shrink];
        let mu = 500_000.0 / 675.0;
        near(amount(&plan, "static answers"), Amount::Share(1.0 - mu / 1_900.0));
        near(amount(&plan, "answer_from_cache"), Amount::Share(1.0 - mu / 1_900.0));
        near(amount(&plan, "shorter"), Amount::TokensPerRequest(500_000.0 / (1_200.0 * 0.95)));
        near(amount(&plan, "more_quota"), Amount::TokensPerMin(1_200.0 * 0.95 * 675.0));
        assert_eq!(needed(&plan, &goal(), None).unwrap().len(), 2);
        let said = needed(&plan, &goal(), Some("longer")).unwrap_err();
        assert!(said.contains("in the plan: static answers, shorter; kinds: answer_from_cache,"), "{said}");
    }

    #[test]
    fn what_a_lever_cannot_do_is_said_with_how_far_it_goes() {
        let mut sketch = flash();
        sketch.policy = json!({ "service": { "start": "3s" },
            "budgets": { "tokens_per_minute": "500k", "concurrent": 10 } });
        let quota = &needed(&sketch.plan(), &goal(), Some("more_quota")).unwrap()[0];
        assert!(!quota.possible() && quota.amount.is_none());
        assert!((quota.reached - 0.9).abs() < 1e-9, "10 slots of 3 s serve 200 a minute: {quota:?}");
        // a quiet day needs nothing
        sketch.phases[1] = ("190/min", "40m");
        let quiet = &needed(&sketch.plan(), &goal(), Some("more_quota")).unwrap()[0];
        assert!(quiet.possible() && quiet.amount.is_none() && quiet.without < 1e-9);
    }

    #[test]
    fn a_tier_of_large_requests_may_be_what_it_takes() {
        let mut sketch = flash();
        sketch.phases[1] = ("500/min", "40m");
        let mut bulk = request("bulk", 1, "100kB", "25s");
        bulk["tier"] = json!(3);
        bulk["prompt"]["tokens"] = json!(11_600);
        sketch.requests = json!([request("ask", 24, "6kB", "25s"), bulk]);
        let tier = &needed(&sketch.plan(), &goal(), Some("shed_tier")).unwrap()[0];
        assert!(tier.without > 0.05, "{tier:?}");
        let large = Goal::parse("shed_share=14%").unwrap();
        assert!(needed(&sketch.plan(), &large, Some("shed_tier")).unwrap()[0].amount.is_none());
        // 20 of 500 a minute are bulk: without them 417 of the 480 others are served
        let reached = Goal::parse("shed_share=17%").unwrap();
        let tier = &needed(&sketch.plan(), &reached, Some("shed_tier")).unwrap()[0];
        assert_eq!(tier.amount, Some(Amount::Tier(3)), "{tier:?}");
        assert!((tier.reached - (1.0 - 416.666_666_7 / 500.0)).abs() < 1e-9, "{tier:?}");
        // of those let in, 13 % are refused
        let kept = Goal::parse("kept_shed_share=14%").unwrap();
        let tier = &needed(&sketch.plan(), &kept, Some("shed_tier")).unwrap()[0];
        assert_eq!(tier.amount, Some(Amount::Tier(3)), "{tier:?}");
    }

    #[test]
    fn a_goal_has_a_name_and_a_share() {
        for (text, says) in [
            ("shed_share", "write shed_share=5%"),
            ("shed=5%", "no goal of a forecast (known: kept_shed_share, shed_share)"),
            ("shed_share=500%", "no share between 0 and 1"),
        ] {
            assert!(Goal::parse(text).unwrap_err().contains(says), "{text}");
        }
    }
}
