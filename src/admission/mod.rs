//! What a gateway decides: who is forwarded, who waits, who is refused and what they are told.
//!
//! [`Admission`] is a pure machine: events go in with the present instant, effects come out. It knows no clock, no
//! socket and no randomness of its own (what it spreads it draws from the request's id), so the simulator and the
//! reference gateway drive the very same code.
//!
//! The laws it keeps, property-tested: every [`Event::Arrive`] ends exactly once; every [`Effect::Forward`] is closed
//! exactly once; [`Admission::next_wake`] lies in the future after [`Event::Wake`]; a refusal takes from no budget;
//! when all is quiet nothing is held.
//!
//! To add a bound, an order or a Retry-After strategy: one file in its folder, two lines in that folder's `mod.rs`.

use std::time::Duration;

use crate::units::{Bytes, Moment, Reader, Tokens};

pub mod bounds;
mod config;
mod estimate;
#[cfg(test)]
mod laws;
mod ledger;
mod machine;
pub mod orders;
pub mod queue;
pub mod retry_after;

pub use config::{Budgets, Config, Estimate};
pub use machine::Admission;

/// A request inside the machine: numbers given in order of arrival, never twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

/// What a request asks of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Its number.
    pub id: Id,
    /// Who is calling: the same number for every attempt of one caller (a hash of its id without the attempt).
    pub caller: u64,
    /// Tokens of the prompt.
    pub prompt: Tokens,
    /// The most tokens of the answer.
    pub max_output: Tokens,
    /// Bytes of the body.
    pub bytes: Bytes,
    /// When an answer is of no more use.
    pub deadline: Moment,
}

impl Ask {
    /// Tokens reserved for it: prompt and the most it may answer.
    pub fn hold(&self) -> Tokens {
        self.prompt + self.max_output
    }
}

/// What happens to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A request came in.
    Arrive(Ask),
    /// The provider's answer to a forwarded request has ended.
    Settled {
        /// Which.
        id: Id,
        /// What it really used; `None` if the answer did not say.
        used: Option<Tokens>,
    },
    /// The provider refused a forwarded request for its quota.
    Refused {
        /// Which.
        id: Id,
        /// What it said of when to come back.
        retry_after: Option<Duration>,
    },
    /// A forwarded request failed otherwise.
    Failed {
        /// Which.
        id: Id,
        /// True if it is sure that the provider did no work for it.
        known: bool,
    },
    /// The caller went away.
    Left {
        /// Which.
        id: Id,
    },
    /// The instant of [`Admission::next_wake`] has come.
    Wake,
}

/// What the shell has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Send it to the provider.
    Forward {
        /// Which.
        id: Id,
        /// What is left of its time.
        remaining: Duration,
    },
    /// Refuse it for scarcity (503).
    Shed {
        /// Which.
        id: Id,
        /// When to come back.
        retry_after: Option<Duration>,
    },
    /// Tell its caller that it waited in vain (503, another reason).
    Expire {
        /// Which.
        id: Id,
        /// Why.
        why: Expiry,
        /// When to come back.
        retry_after: Option<Duration>,
    },
    /// Refuse it for good (413): it could never fit.
    Reject {
        /// Which.
        id: Id,
        /// What it asked for.
        hold: Tokens,
        /// The most that can ever be granted.
        most: Tokens,
    },
}

/// Why an admitted request was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expiry {
    /// Its deadline could no longer be met.
    Deadline,
    /// The provider refused it and its deadline allows no other try.
    Upstream,
}

/// The machine's state in numbers, as `/metrics` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gauge {
    /// Requests waiting.
    pub waiting: u64,
    /// Their holds.
    pub waiting_tokens: Tokens,
    /// Their bodies.
    pub waiting_bytes: Bytes,
    /// Requests forwarded and not closed.
    pub in_flight: u64,
    /// Tokens held for them.
    pub held: Tokens,
    /// Tokens that could be spent at once.
    pub level: Tokens,
    /// The present estimate of the service time.
    pub service: Duration,
    /// Open appointments.
    pub promises: u64,
    /// θ: the share of refused callers believed to come back.
    pub returning: f64,
}

/// For policies without settings: reports anything that stands under the name.
fn no_settings(name: &str, inner: Option<&Reader<'_>>) -> Option<()> {
    match inner {
        None => Some(()),
        Some(reader) => {
            reader.fault(format!("`{name}` has no settings"));
            None
        }
    }
}
