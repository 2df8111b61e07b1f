//! What must happen, in closed form: the bound, the onset of shedding, the share that must be refused, the drain,
//! the memory, and the story of a queue without a bound.
//!
//! The formulas take a plan as it stands: [`Forecast::of`] the event as written, or of [`Plan::rehearsed`] for what a
//! rehearsal shall show. Symbols, throughout: λ callers a second, h tokens a request holds, x = λh tokens offered a
//! second, r tokens drained a second, μ requests the provider serves a second, D the caller's deadline, s the service
//! time, B the bucket at the start, Q what may wait.
//!
//! With a mix of classes the means are used for what arrives (x, μ), the largest hold and the slowest service for what
//! must fit, the smallest hold where many small requests would need more memory, and the shortest deadline for the
//! bound: its class is refused first.

mod amount;
mod basis;
mod bound;
mod drain;
pub mod levers;
mod memory;
mod onset;
mod parts;
mod prediction;
mod recovery;
mod retries;
mod slots;
mod tenants;
mod unbounded;
mod walk;
mod warnings;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use amount::Amount;
pub use basis::{Basis, Bottleneck};
pub use bound::QueueBound;
pub use drain::Drain;
pub use memory::{Memory, NOMINAL_BASELINE};
pub use onset::Onset;
pub use parts::class_parts;
pub use prediction::{Prediction, SCHEMA};
pub use recovery::Recovery;
pub use retries::{Retries, recovery, success_per_attempt};
pub use tenants::{TenantShare, fair_shares};
pub use unbounded::Unbounded;
pub use warnings::Warning;

use crate::plan::Plan;
use crate::units::Bytes;

/// What arithmetic says of a plan. Its keys are those of `predict --format json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// Callers a minute, the mean over the event (over the whole plan on a quiet day).
    pub offered_per_min: f64,
    /// Requests a minute that get through: the provider's quota over the mean hold, or what the gateway's own limits let
    /// through where that is less.
    pub serviceable_per_min: f64,
    /// Requests a minute the provider's quota alone would serve.
    #[serde(default)]
    pub capacity_per_min: f64,
    /// Which of them it is.
    #[serde(default)]
    pub bottleneck: Bottleneck,
    /// Offered over serviceable.
    pub load_ratio: f64,
    /// The share that must be refused in the long run, whatever the queue: 1 − 1/`load_ratio`, none below capacity.
    pub shed_share: f64,
    /// What is held for each token that is used: more than one where answers are shorter than they may be.
    #[serde(default = "one")]
    pub hold_factor: f64,
    /// What may wait.
    pub queue_bound: QueueBound,
    /// When shedding begins; absent where the plan offers no more than is served.
    pub onset: Option<Onset>,
    /// How long the backlog lasts after the event.
    pub drain: Drain,
    /// What the waiting requests need.
    pub memory: Memory,
    /// What would happen without any bound.
    pub unbounded: Unbounded,
    /// What callers who come again do to the load; absent where nobody does.
    #[serde(default)]
    pub retries: Option<Retries>,
    /// When everyone is served in time again after the event; absent where the event refuses nobody, or nothing that is
    /// less than what is served comes after it.
    #[serde(default)]
    pub recovery: Option<Recovery>,
    /// What each declared tenant is served.
    #[serde(default)]
    pub tenants: Vec<TenantShare>,
    /// Where a number is fragile.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// The numbers it was computed from.
    #[serde(skip)]
    pub basis: Basis,
}

const fn one() -> f64 {
    1.0
}

impl Forecast {
    /// The forecast for `plan` as it stands.
    pub fn of(plan: &Plan) -> Self {
        let plan = &*plan.as_in_event();
        let basis = Basis::of(plan);
        let ratio = basis.offered / basis.served;
        let bound = QueueBound::of(plan, &basis);
        let onset = Onset::of(plan, &basis, bound.effective.tokens);
        let queue_bound = bound.at(onset.as_ref(), &basis);
        let drain = Drain::of(&basis, &queue_bound);
        let retries = Retries::of(plan, &basis);
        Self {
            offered_per_min: basis.offered * 60.0,
            serviceable_per_min: basis.served * 60.0,
            capacity_per_min: basis.capacity * 60.0,
            bottleneck: basis.bottleneck,
            load_ratio: ratio,
            shed_share: (1.0 - 1.0 / ratio).max(0.0),
            hold_factor: basis.hold_factor,
            memory: Memory::of(plan, &basis, &queue_bound),
            unbounded: Unbounded::of(plan, &basis),
            recovery: Recovery::of(plan, &basis, &drain, onset.as_ref(), retries.as_ref()),
            retries,
            tenants: TenantShare::all(plan, &basis),
            warnings: warnings::of(plan, &basis, &queue_bound, &drain),
            queue_bound,
            onset,
            drain,
            basis,
        }
    }

    /// Whether more is offered than can be served, so that somebody must be refused.
    pub const fn overload(&self) -> bool {
        self.onset.is_some()
    }

    /// The most memory the target may use if it used `baseline` before the load.
    pub fn ceiling(&self, baseline: Bytes) -> Bytes {
        baseline + Bytes::new(self.memory.growth_bytes)
    }

    /// What is served a second at best: the provider's capacity, or what the calls made at once let through where that is
    /// less. A gateway's own budget of tokens or requests is no excuse: it may be a wrong belief.
    pub fn granted_per_s(&self) -> f64 {
        let most = self.capacity_per_min / 60.0;
        self.basis.at_once.map_or(most, |at_once| most.min(at_once))
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
