//! The live evaluator of a plan: real sockets, real time.
//!
//! Both sides are played here: the callers, and the provider behind the gateway. What either side sees becomes a
//! [`crate::observe::Sighting`] on one time line, that of the run's [`Clock`].

mod abort;
mod body;
mod child;
mod client;
mod clock;
mod error;
mod evidence;
mod memory;
mod pacer;
mod pacing;
mod ping;
pub mod provider;
mod reading;
mod request;
mod seen;
mod target;
#[cfg(test)]
mod testing;
mod trouble;
mod wall;

pub use child::follow_parent;
pub use clock::Clock;
pub use error::LiveError;
pub use evidence::Evidence;
pub use pacer::{Departure, Fate, Pacer};
pub use provider::{Arrived, Carriers, ProviderError, ProviderShell};
pub use seen::Seen;
