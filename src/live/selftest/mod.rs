//! The generator alone against a plain server: what it can keep up with on this machine.

mod drive;
mod plain;
mod spacing;

pub use drive::{Driven, drive};
pub use plain::{Manner, Plain};
pub use spacing::Spacing;
