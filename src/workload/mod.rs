//! Who calls, when, and with what: the schedule of a run and the habits of its callers.
//!
//! A [`Load`] (phases of an arrival process) and a [`Mix`] of request classes give a [`Schedule`]: an iterator of
//! [`Arrival`]s with absolute due times, never a list, so that an hour at a high rate needs no more memory than a
//! second. The same seed gives the same arrivals, and each purpose draws from a stream of its own ([`stream`]), so a
//! changed mix does not move a due time.
//!
//! To add an arrival process: one file in `arrivals/`, two lines in `arrivals/mod.rs`; a distribution of sizes, a format
//! of traces: the same in `sizes/` and `traces/`.

pub mod arrivals;
mod callers;
mod copies;
mod mix;
mod phases;
pub mod retry;
mod schedule;
pub mod sizes;
mod skew;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod traces;

pub use callers::{Cohort, OnRefusal, Probes};
pub use copies::Copies;
pub use mix::{Class, ClassId, MOST_BYTES, Mix};
pub use phases::{Late, Load, Phase, Span};
pub use retry::{Allowance, Honour, Manner, Retry, Rule, Signs};
pub use schedule::{Arrival, Schedule, Sizes};
pub use sizes::Size;
pub use skew::Skew;
