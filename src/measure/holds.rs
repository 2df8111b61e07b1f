use crate::units::Tokens;

/// What the gateway's machine still held for calls when everything had ended, calls of unknown end left out: those keep
/// their holds for a while, as they should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holds {
    /// Calls it believed to be open.
    pub requests: u64,
    /// Tokens held for its calls.
    pub tokens: Tokens,
}

impl Holds {
    /// Adds another part of the same run.
    pub(super) fn add(held: &mut Option<Self>, other: Option<Self>) {
        let Some(other) = other else { return };
        let held = held.get_or_insert_default();
        held.requests += other.requests;
        held.tokens += other.tokens;
    }
}
