use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Amount, Basis, Onset};
use crate::admission::bounds;
use crate::plan::Plan;
use crate::units::{Tokens, Window};

/// What may wait, from the caller's deadline down to what a fresh caller may use.
///
/// Where the budget is a bucket these follow from its rate. A fixed window of W tokens grants W at each renewal: here
/// stands the most that may wait at any instant, W for every renewal within the time there is, and under `effective`
/// what waits when the first is refused, which may be nothing. A sliding window grants at its mean rate, and never
/// more than its whole.
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
        let within = |span: Duration| Amount::new(supply(basis, span), basis);
        let served = basis.deadline.saturating_sub(basis.service);
        let slack = served.saturating_sub(basis.margin);
        let classes = plan.requests.classes();
        let bytes = classes.iter().map(crate::workload::Class::most_bytes).max().unwrap_or_default();
        let declared = |part: f64| {
            let bound = &plan.policy()?.bound;
            bounds::most(&**bound, basis.drain, slack, basis.largest_hold, bytes, part)
        };
        let share = 1.0 - basis.reserve;
        let own = declared(1.0).filter(|most| *most != Tokens::new(basis.drain.whole_in(slack)));
        let most = own.unwrap_or_else(|| supply(basis, slack));
        // the deadline's bound is not rounded twice
        let fresh = match (own.and_then(|_| declared(share)), basis.window) {
            (Some(fresh), _) => fresh,
            (None, Window::Bucket { .. }) => supply(basis, slack.mul_f64(share)),
            (None, Window::Fixed { .. } | Window::Round { .. } | Window::Sliding { .. }) => {
                Tokens::new((most.get() as f64 * share) as u64)
            }
        };
        Self {
            deadline_only: within(basis.deadline),
            with_service: within(served),
            with_margin: Amount::new(most, basis),
            effective: Amount::new(fresh, basis),
        }
    }

    /// The same, with what waits at the first refusal as the effective bound where the instant decides about it.
    pub(super) fn at(self, onset: Option<&Onset>, basis: &Basis) -> Self {
        match (basis.window, onset) {
            (Window::Fixed { .. } | Window::Round { .. } | Window::Sliding { .. }, Some(onset)) => {
                Self { effective: Amount::new(Tokens::new(onset.depth_tokens), basis), ..self }
            }
            _ => self,
        }
    }
}

/// The most that is granted within `span` while a queue stands.
fn supply(basis: &Basis, span: Duration) -> Tokens {
    let drained = |span| Tokens::new(basis.drain.whole_in(span));
    match basis.window {
        Window::Bucket { .. } => drained(span),
        Window::Sliding { period } => drained(span.min(period)),
        Window::Fixed { period } | Window::Round { period } => {
            let renewals = span.as_nanos().div_ceil(period.as_nanos().max(1));
            let whole = u128::from(drained(period).get()).saturating_mul(renewals);
            Tokens::new(u64::try_from(whole).unwrap_or(u64::MAX))
        }
    }
}
