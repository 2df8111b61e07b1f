//! What the provider behind the gateway decides: is there quota, what does it cost, how long does it take.
//!
//! [`Provider`] is a pure machine: the instant is an argument. The simulator and the wiremock shell drive the same
//! one. The wire formats it speaks are in [`wire`].

mod config;
mod flow;
mod machine;
mod slots;
pub mod wire;

pub use config::{Charge, Config, Count, Engine, Fault, Law, Quota, Service, Slots, Window};
pub use flow::Flow;
pub use machine::{Answer, Call, Limits, Provider};
