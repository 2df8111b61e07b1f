//! Both sides of every request, joined by its id.
//!
//! An evaluator emits [`Sighting`]s; a [`Joiner`] keeps the requests that are open, each in exactly one state (in the
//! gateway, at the provider, ended, or a ghost), and hands out a [`Record`] for each that has ended. Queue depth is what
//! stands in the first state: seen from outside, with no instrument in the gateway.

mod gaps;
mod joiner;
mod outcome;
mod record;
mod sighting;
mod told;

pub use gaps::Gaps;
pub use joiner::{Gauge, Ghost, Inverted, Joiner, Spared};
pub use record::{Depth, Outcome, Record};
pub use sighting::{Answer, Attempt, Broken, Reason, Sighting, Streamed, Unsent};
pub use told::{Fraction, Hint, HintSet, RetryAfter, Says};
