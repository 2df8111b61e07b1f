//! The reference gateway: an HTTP shell around [`crate::admission`].
//!
//! It is a program of its own, run as a child process so that its memory is its own. It counts a request's tokens,
//! asks the machine, and does as it is told: forward, let wait, refuse. A hold is kept until the provider's answer has
//! ended, a caller who leaves is taken out of the queue and its call to the provider is cancelled, and a 429 from the
//! provider puts the request back in its old place. Requests with an idempotency key run in tasks of their own, so that
//! whoever sends the same again can have the same answer; whole answers are kept for them as long as the machine says.
//!
//! One thread, one machine, no locks: what is shared is behind a `RefCell` that is never held over an `await`. The
//! clock is an argument here too.

mod ask;
mod body;
mod call;
mod config;
mod faults;
mod forward;
mod metrics;
mod operation;
mod problem;
mod refusal;
mod reply;
mod runs;
mod server;
mod shell;
mod ticket;
mod unknown;
mod upstream;

pub use config::{Config, Deadline};
pub use server::{Bound, ServeError};
