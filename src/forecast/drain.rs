use serde::{Deserialize, Serialize};

use super::Basis;

/// How long the backlog lasts once the event is over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drain {
    /// Q/r: seconds if nobody came any more. It is also what the last one in waits.
    pub stopped_s: f64,
    /// Q/(r − x0): seconds with the traffic after the event coming in; absent if that alone is more than is drained.
    pub with_tail_s: Option<f64>,
}

impl Drain {
    /// Of a queue that stands at `bound` tokens when the event ends.
    pub(super) fn of(basis: &Basis, bound: u64) -> Self {
        let (r, bound) = (basis.drain.per_sec_f64(), bound as f64);
        let left = r - basis.tokens_at(basis.tail);
        Self { stopped_s: bound / r, with_tail_s: (left > 0.0).then(|| bound / left) }
    }
}
