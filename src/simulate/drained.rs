use std::time::Duration;

use super::world::World;
use crate::admission;
use crate::plan::Plan;
use crate::units::{Moment, show_duration};
use crate::workload::Phase;

/// How long the last phase's rate is gone on with at most.
const LONGEST: Duration = Duration::from_secs(14 * 86_400);
/// And for how many callers.
const MOST_CALLERS: u64 = 5_000_000;

/// A queue that does not get empty.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "load.phases: {} after the last phase the queue is still not empty, with its rate of {rate} going on",
    show_duration(*after)
)]
pub struct NeverDrains {
    /// How long was looked ahead.
    pub after: Duration,
    /// The last phase's rate.
    pub rate: crate::units::Rate,
}

/// The plan with its last phase's rate going on until nobody waits any more; the plan itself if nobody waits at its end.
pub fn until_drained(plan: &Plan, policy: &admission::Config) -> Result<Plan, NeverDrains> {
    within(plan, policy, MOST_CALLERS)
}

fn within(plan: &Plan, policy: &admission::Config, callers: u64) -> Result<Plan, NeverDrains> {
    let mut longer = plan.clone();
    let Some(last) = plan.load.phases.last() else { return Ok(longer) };
    let (rate, end) = (last.rate, plan.load.end());
    let most = LONGEST.min(rate.time_for(callers));
    let mut phase = Phase { name: "until drained".to_owned(), rate, lasts: most, event: false, mix: None };
    longer.load.phases.push(phase.clone());
    let ended = World::new(&longer, policy, &mut |_| {}).run(end);
    if ended.at >= end + most {
        return Err(NeverDrains { after: most, rate });
    }
    phase.lasts = ended.at.since(end);
    longer.load.phases.pop();
    if phase.lasts > Duration::ZERO {
        longer.load.phases.push(phase);
    }
    debug_assert!(longer.load.end() >= end && end > Moment::ZERO, "phases last more than nothing");
    Ok(longer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing;
    use crate::simulate::measure;

    fn plan(bound: &str) -> (Plan, admission::Config) {
        let plan = testing::plan();
        let changes = [("bound", testing::text(bound)), ("recheck", testing::text("false"))];
        let policy = testing::policy(&changes, &plan.provider.quota);
        (plan, policy)
    }

    #[test]
    fn the_tail_goes_on_exactly_until_nobody_waits() {
        let (plan, policy) = plan("none");
        let longer = until_drained(&plan, &policy).unwrap();
        // callers leave after 4.5 s, so the queue is soon gone
        let ends = longer.load.end();
        assert!(ends >= plan.load.end());
        let (measures, _) = measure(&longer, &policy);
        assert!(measures.sums_are_exact());
        let again = until_drained(&longer, &policy).unwrap();
        assert_eq!(again.load.end(), ends, "drained is drained");
    }

    #[test]
    fn a_tail_above_capacity_never_drains() {
        let (mut plan, mut policy) = plan("none");
        policy.cancel = false;
        plan.load.phases.truncate(2);
        let said = within(&plan, &policy, 20_000).unwrap_err();
        assert!(said.to_string().starts_with("load.phases: "), "{said}");
    }
}
