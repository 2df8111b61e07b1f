//! What may be on its way between the two sides, and so be counted on either.

use std::time::Duration;

use super::Scene;
use crate::admission::bounds;
use crate::units::{Rate, Tokens};
use crate::workload::Class;

/// How long a request travels where no ping has measured it.
pub(super) const TRANSIT: Duration = Duration::from_millis(2);

/// λ·ε: how many requests can arrive while one travels, at the event's rate; none in virtual time.
pub(super) fn requests(scene: &Scene<'_>) -> f64 {
    if !scene.live {
        return 0.0;
    }
    let median = scene.measures.vitals.pings.took.quantile(0.5);
    let transit = median.map_or(TRANSIT, |median| median.max(TRANSIT));
    scene.forecast.basis.offered * transit.as_secs_f64()
}

/// The same in tokens: whole requests of the largest hold, at least one of a live run. Of replicas, each of which has its
/// own part of the bound, the sum may differ by what they stand [`apart`] as well.
pub(super) fn tokens(scene: &Scene<'_>) -> Tokens {
    let whole = if scene.live { requests(scene).ceil().max(1.0) as u64 } else { 0 };
    Tokens::new((whole + apart(scene)).saturating_mul(scene.forecast.basis.largest_hold.get()))
}

/// By how many holds the sum over N replicas may differ from the bound when one of them is at its own: N − 1, none of one
/// machine or where nothing is declared.
pub(super) fn apart(scene: &Scene<'_>) -> u64 {
    scene.plan.policy().map_or(0, |policy| u64::from(policy.replicas.saturating_sub(1)))
}

/// From which side a bound that is not known to the token is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// At least so much may wait.
    Least,
    /// At most.
    Most,
}

/// What may wait by the declared bound when a request of `class` comes that may use `part` of it, itself included and the
/// bucket's level not; `None` without a bound. The gateway's estimate of the service time lies between what it starts from
/// and what answers take, and that of what holds come to between one and the hold factor.
pub(super) fn room(scene: &Scene<'_>, class: &Class, part: f64, side: Side) -> Option<Tokens> {
    let (plan, basis) = (scene.plan, &scene.forecast.basis);
    let policy = plan.policy()?;
    let answers =
        plan.requests.classes().iter().map(|class| plan.provider.service.time_for(class.output.most()));
    let start = policy.service.start;
    let (service, drain, hold) = match side {
        Side::Least => {
            let slower = Rate::new((basis.drain.per_sec_f64() / basis.hold_factor * 1e3) as u64, THOUSAND);
            (answers.fold(start, Duration::max), slower?, class.smallest_hold())
        }
        Side::Most => (answers.fold(start, Duration::min), basis.drain, class.largest_hold()),
    };
    let slack = class.deadline.saturating_sub(service).saturating_sub(policy.margin);
    bounds::most(&*policy.bound, drain, slack, hold, class.most_bytes(), part)
}

const THOUSAND: Duration = Duration::from_secs(1_000);
