//! The live evaluator of a plan: real sockets, real time.
//!
//! Both sides are played here: the callers, and the provider behind the gateway. What either side sees becomes a
//! [`crate::observe::Sighting`] on one time line, that of the run's [`Clock`].

mod clock;
pub mod provider;

pub use clock::Clock;
pub use provider::{Arrived, Carriers, ProviderError, ProviderShell};
