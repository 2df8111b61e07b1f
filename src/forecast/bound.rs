use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Amount, Basis};
use crate::admission::bounds;
use crate::plan::Plan;
use crate::units::Tokens;

/// What may wait, from the caller's deadline down to what a fresh caller may use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueueBound {
    /// Q = r·D: what drains while a caller is patient.
    pub deadline_only: Amount,
    /// Q = r·(D − s): … and still leaves the time of an answer.
    pub with_service: Amount,
    /// Q* = r·(D − s − margin), or the plan's own bound where it names one: what may wait in all.
    pub with_margin: Amount,
    /// (1 − reserve)·Q*: what a fresh caller may use, since the rest is kept for those who return. Here shedding
    /// should begin.
    pub effective: Amount,
}

impl QueueBound {
    /// Of the class with the shortest deadline. A policy that has no bound, or none that is known, declares nothing:
    /// the deadline stays what its callers need.
    pub(super) fn of(plan: &Plan, basis: &Basis) -> Self {
        let within = |span: Duration| Amount::new(Tokens::new(basis.drain.whole_in(span)), basis);
        let served = basis.deadline.saturating_sub(basis.service);
        let slack = served.saturating_sub(basis.margin);
        let scene = bounds::Scene { drain: basis.drain, slack };
        let declared = plan.policy().and_then(|policy| policy.bound.most(&scene));
        let most = declared.unwrap_or_else(|| Tokens::new(basis.drain.whole_in(slack)));
        let share = 1.0 - basis.reserve;
        // the deadline's bound is not rounded twice
        let fresh = match most == Tokens::new(basis.drain.whole_in(slack)) {
            true => Tokens::new(basis.drain.whole_in(slack.mul_f64(share))),
            false => Tokens::new((most.get() as f64 * share) as u64),
        };
        Self {
            deadline_only: within(basis.deadline),
            with_service: within(served),
            with_margin: Amount::new(most, basis),
            effective: Amount::new(fresh, basis),
        }
    }
}
