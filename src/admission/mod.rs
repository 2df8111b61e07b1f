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
//! [`Deployed`] is what a configuration makes: one machine or several replicas, with the faults it is given on purpose.
//!
//! To add a bound, an order or a Retry-After strategy: one file in its folder, two lines in that folder's `mod.rs`.

use std::time::Duration;

use crate::units::{Bytes, Moment, Reader, Tokens};

pub mod bounds;
mod codel;
mod config;
mod deployed;
mod desk;
mod estimate;
pub mod faults;
#[cfg(test)]
mod laws;
mod ledger;
mod machine;
pub mod orders;
pub mod queue;
mod replicas;
mod retries;
pub mod retry_after;
pub mod shares;
#[cfg(test)]
pub(crate) mod testing;
mod upstream;

pub use codel::Codel;
pub use config::{Budgets, Config, Counts, Duplicates, Estimate, Tenant, Tiers, Upstream, WhenFull};
pub use deployed::Deployed;
pub use desk::Kept;
use machine::draw;
pub use machine::{Admission, Met, Says};
pub use replicas::Replicas;
pub use retries::START as RETRIES_AT_START;
pub use retry_after::promises::MOST as MOST_PROMISES;
pub use upstream::Meaning;

/// A request inside the machine: numbers given in order of arrival, never twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u64);

/// A tenant, by its place in [`Config::tenants`]; 0 where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TenantId(pub u16);

/// What an idempotency key says a request is: the same key and body are the same operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// A digest of the key (with whose it is).
    pub key: u128,
    /// A digest of the body.
    pub body: u128,
}

/// Whose limit it is that a request meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Limit {
    /// Tokens of everyone together.
    #[default]
    Tokens,
    /// The tenant's own tokens.
    TenantTokens,
    /// The tenant's own requests.
    TenantRequests,
}

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
    /// On whose behalf it comes.
    pub tenant: TenantId,
    /// 0 is the most important.
    pub tier: u8,
    /// Its operation, if it carries an idempotency key; boxed, since most carry none and many wait.
    pub operation: Option<Box<Operation>>,
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
        /// The size of the answer, if it can be kept for a duplicate.
        answer: Option<Bytes>,
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
        /// How.
        how: Failure,
    },
    /// The answer to a forwarded request has begun to come, and its slot and hold are given back already. Only a gateway
    /// that errs is told ([`Deployed::minds_beginnings`]): what it counts is then less than what runs.
    Begun {
        /// Which.
        id: Id,
    },
    /// It is known at last what became of a call whose end was unknown.
    Reconciled {
        /// Which.
        id: Id,
        /// What it used; nothing if it was never served.
        used: Tokens,
    },
    /// The caller went away.
    Left {
        /// Which.
        id: Id,
    },
    /// The instant of [`Admission::next_wake`] has come.
    Wake,
}

/// How a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The provider surely did no work for it, and another call may succeed: the machine repeats it within its limits,
    /// or says [`Effect::Fail`].
    Repeatable,
    /// The provider surely did no work for it, and another call would end alike. The shell has its answer.
    Final,
    /// Nobody knows what it cost: its hold is kept until [`Event::Reconciled`] or until its lease ends. The shell has
    /// its answer.
    Unknown,
}

/// A call whose end nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unknown {
    /// Which.
    pub id: Id,
    /// On whose behalf it was made.
    pub tenant: TenantId,
    /// What stays held for it.
    pub hold: Tokens,
    /// When the lease ends, and with it the hold; unless [`Event::Reconciled`] comes before.
    pub until: Moment,
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
    /// Refuse it for entitlement (429): its tenant is over a limit of its own.
    Throttle {
        /// Which.
        id: Id,
        /// Which limit.
        limit: Limit,
        /// Until it is no more.
        retry_after: Duration,
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
        /// Whose limit that is.
        limit: Limit,
    },
    /// Answer that the provider could not be reached (502): it will not be tried again.
    Fail {
        /// Which.
        id: Id,
    },
    /// Give it the answer that `to` will get: the same operation already runs.
    Attach {
        /// Which.
        id: Id,
        /// The running one.
        to: Id,
    },
    /// Tell its caller that the same operation already runs (409).
    Running {
        /// Which.
        id: Id,
        /// The running one.
        to: Id,
    },
    /// Give it the kept answer of `of`: the same operation has ended.
    Replay {
        /// Which.
        id: Id,
        /// The one that ended.
        of: Id,
    },
    /// Refuse it (422): its key was used with another body.
    Conflict {
        /// Which.
        id: Id,
    },
    /// Nobody waits for this call any more: end it, and say [`Event::Failed`] when that is done.
    Cancel {
        /// Which.
        id: Id,
    },
    /// The kept answer of this request is not needed any more.
    Forget {
        /// Which.
        id: Id,
    },
}

/// Why an admitted request was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expiry {
    /// Its deadline could no longer be met.
    Deadline,
    /// The provider refused it and its deadline allows no other try.
    Upstream,
    /// It had waited too long by the rule of controlled delay.
    Delay,
    /// It gave way to another.
    Evicted,
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
    /// Of these, calls whose end is unknown.
    pub unknown: u64,
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
