//! The reference gateway over real sockets: its callers and its provider are scripted here, byte by byte.
//!
//! Nothing depends on how fast this machine is: a request that shall wait waits for tokens that only an answer gives
//! back, and what is asked of the gateway's state is asked until it is so.

#![cfg(feature = "live")]

mod deadlines;
mod entitlement;
mod faults;
mod ledger;
mod operations;
mod passing;
mod repetition;
mod streams;
mod support;
