//! The live evaluator of a plan: real sockets, real time.
//!
//! Both sides are played here: the callers, and the provider behind the gateway. What either side sees becomes a
//! [`crate::observe::Sighting`] on one time line, that of the run's [`Clock`].

mod abort;
mod board;
mod body;
mod canary;
mod child;
mod client;
mod clock;
mod comebacks;
mod crew;
mod desk;
mod error;
mod evidence;
mod hints;
mod holds;
mod listener;
mod listening;
mod log;
mod memory;
mod metrics;
mod pacer;
mod pacing;
mod ping;
mod preflight;
mod priority;
mod prompts;
pub mod provider;
mod reading;
mod request;
mod run;
mod seen;
pub mod selftest;
mod sender;
mod spawn;
mod target;
#[cfg(test)]
mod testing;
mod trouble;
mod wall;

pub use board::{Board, Standing};
pub use child::{end_all_at_once, follow_parent};
pub use clock::Clock;
pub use crew::Generator;
pub use error::LiveError;
pub use evidence::Evidence;
pub use listener::Listener;
pub use log::{COLUMNS, Log, LogFile, Written};
pub use pacer::{Departure, Fate, Pacer};
pub use preflight::Needs;
pub use priority::{Scheduling, run_before_others, scheduling_permitted};
pub use provider::{Arrived, Carriers, ProviderError, ProviderShell};
pub use run::{Ended, Options, Run, Stop, run};
pub use seen::Seen;
pub use sender::Looked;
