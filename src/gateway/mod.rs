//! The reference gateway: an HTTP shell around [`crate::admission`].
//!
//! It is a program of its own, run as a child process so that its memory is its own. It counts a request's tokens,
//! asks the machine, and does as it is told: forward, let wait, refuse. A hold is kept until the provider's answer has
//! ended, a caller who leaves is taken out of the queue and its call to the provider is cancelled, and a 429 from the
//! provider puts the request back in its old place.
//!
//! One thread, one machine, no locks: what is shared is behind a `RefCell` that is never held over an `await`. The
//! clock is an argument here too.

mod ask;
mod body;
mod call;
mod config;
mod metrics;
mod refusal;
mod server;
mod shell;
mod upstream;

pub use config::{Config, Deadline, DeadlineForm};
pub use server::{Bound, ServeError};
