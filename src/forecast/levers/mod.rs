//! What could be done about the event: each lever of a plan pulled on what the ones before it left, and how much of one
//! a goal takes.

mod flow;
mod until;

use serde::{Deserialize, Serialize};

pub use flow::Flow;
pub use until::{Amount, Goal, Measure, Needed, needed};

use crate::plan::Plan;

/// How the event stands once a lever, and all before it, are pulled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Pulled {
    /// The lever's name.
    pub name: String,
    /// Requests a minute that still ask for an answer of the model in the event.
    pub offered_per_min: f64,
    /// Of the requests that are let in, those a minute that can be served.
    pub serviceable_per_min: f64,
    /// The share of those offered that is refused, tiers that are shut out included.
    pub shed_share: f64,
    /// The share refused of the tiers that are still let in; the same where none is shut out.
    pub kept_shed_share: f64,
}

/// One line for each lever of `plan`, in its order.
pub fn pulled(plan: &Plan) -> Vec<Pulled> {
    let mut flow = Flow::of(plan);
    let lines = plan.levers.iter().map(|lever| {
        flow = std::mem::replace(&mut flow, Flow::none()).pulled(&lever.pull);
        Pulled {
            name: lever.name.clone(),
            offered_per_min: flow.offered() * 60.0,
            serviceable_per_min: flow.served() * 60.0,
            shed_share: flow.shed_share(),
            kept_shed_share: flow.kept_shed_share(),
        }
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::flash;
    use crate::plan::{Lever, Pull};
    use crate::units::{Rate, Ratio, Share, Tokens};

    fn lever(name: &str, pull: Pull) -> Lever {
        Lever { name: name.into(), pull }
    }

    fn part(value: f64) -> Share {
        Share::new(value).unwrap()
    }

    fn lines(levers: &[Pull]) -> Vec<(f64, f64, f64)> {
        let mut plan = flash().plan();
        plan.levers = levers.iter().map(|pull| lever("it", *pull)).collect();
        let round = |share: f64| (share * 1_000.0).round() / 10.0;
        let lines = pulled(&plan).into_iter();
        lines
            .map(|line| {
                (line.offered_per_min.round(), line.serviceable_per_min.round(), round(line.shed_share))
            })
            .collect()
    }

    /// The levers that turn 2,000 against 417 into 1,200 against "about 740", which sheds 38 %. Two ways lead there:
    /// 675 tokens a request, or 900 and a third more quota.
    #[test]
    fn the_levers_of_the_flash_promotion_shed_38_percent() {
        let cache = Pull::AnswerFromCache(part(0.4));
        assert_eq!(
            lines(&[cache, Pull::ShrinkTokens(Tokens::new(675))]),
            [(1_200.0, 417.0, 65.3), (1_200.0, 741.0, 38.3)]
        );
        assert_eq!(
            lines(&[cache, Pull::ShrinkTokensBy(part(0.25)), Pull::MoreQuotaBy(Ratio::new(1, 3).unwrap())]),
            [(1_200.0, 417.0, 65.3), (1_200.0, 556.0, 53.7), (1_200.0, 741.0, 38.3)]
        );
        let quota = Pull::MoreQuota(Rate::per_minute(888_889).unwrap());
        assert_eq!(lines(&[cache, quota])[1], (1_200.0, 741.0, 38.3));
        // a quarter from the cache, then a fifth of the rest put off: 0.75 · 0.8 = 0.6
        let both = [Pull::AnswerFromCache(part(0.25)), Pull::Defer(part(0.2))];
        assert_eq!(lines(&both)[1], (1_200.0, 417.0, 65.3));
    }

    #[test]
    fn nothing_is_refused_once_all_can_be_served_and_nobody_may_ask() {
        assert_eq!(lines(&[Pull::AnswerFromCache(part(0.8))]), [(400.0, 417.0, 0.0)]);
        assert_eq!(lines(&[Pull::Defer(part(1.0))]), [(0.0, 417.0, 0.0)]);
        assert!(lines(&[]).is_empty());
    }
}
