//! What the provider behind the gateway decides: is there quota, what does it cost, how long does it take.
//!
//! [`Provider`] is a pure machine: the instant is an argument. The simulator and the wiremock shell drive the same
//! one. The wire formats it speaks are in [`wire`].

mod account;
mod config;
mod flow;
mod machine;
mod slots;
pub mod wire;

pub use config::{Charge, Config, Count, Engine, Fault, FaultKind, Law, Quota, Service, Slots, Strain, What};
pub use flow::Flow;
pub use machine::{AccountId, Answer, Call, Failing, Limits, Provider, RequestLimits, Spoilt, Work};
