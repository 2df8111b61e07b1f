//! The generator against a plain server, and what this machine can keep up with.
//!
//! [`drive()`] plays a plan's callers with nothing behind them but what is called, [`Plain`] is a server that only notes when
//! requests come, [`Spacing`] says how evenly they came, and [`Limits`] tries both until they fall short.

mod drive;
mod limits;
mod plain;
mod plans;
mod spacing;

pub use drive::{Driven, drive};
pub use limits::{Kept, Limits, SCHEMA};
pub use plain::{Manner, Plain};
pub use spacing::Spacing;
