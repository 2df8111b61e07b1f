use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Basis;
use crate::units::Tokens;

/// An amount of waiting work, in three units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Amount {
    /// Tokens.
    pub tokens: u64,
    /// Whole requests of the largest hold, rounded down.
    pub requests: u64,
    /// Seconds it takes to drain.
    pub seconds: f64,
}

impl Amount {
    /// `tokens` of work.
    pub(super) fn new(tokens: Tokens, basis: &Basis) -> Self {
        let tokens = tokens.get();
        Self {
            tokens,
            requests: tokens / basis.largest_hold.get().max(1),
            seconds: tokens as f64 / basis.drain.per_sec_f64(),
        }
    }
}
