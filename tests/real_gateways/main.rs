//! Gateways that nobody here wrote, rehearsed with the plans of `plans/real`. A test of one that is not installed says
//! that it was skipped.
#![cfg(feature = "cli")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop there")]

mod balancers;
mod limiters;
mod llm;
mod support;
