use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Amount, Basis};
use crate::admission::bounds;
use crate::plan::Plan;
use crate::units::Tokens;

/// What may wait, from the caller's deadline down to what a fresh caller may use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        let classes = plan.requests.classes();
        let bytes = classes.iter().map(|class| class.bytes).max().unwrap_or_default();
        let declared = |part: f64| {
            let bound = &plan.policy()?.bound;
            bounds::most(&**bound, basis.drain, slack, basis.largest_hold, bytes, part)
        };
        let share = 1.0 - basis.reserve;
        let most = declared(1.0).unwrap_or_else(|| Tokens::new(basis.drain.whole_in(slack)));
        let by_deadline = most == Tokens::new(basis.drain.whole_in(slack));
        // the deadline's bound is not rounded twice
        let fresh = match declared(share) {
            Some(fresh) if !by_deadline => fresh,
            _ => Tokens::new(basis.drain.whole_in(slack.mul_f64(share))),
        };
        Self {
            deadline_only: within(basis.deadline),
            with_service: within(served),
            with_margin: Amount::new(most, basis),
            effective: Amount::new(fresh, basis),
        }
    }
}
