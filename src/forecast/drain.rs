use serde::{Deserialize, Serialize};

use super::{Basis, QueueBound};
use crate::units::Window;

/// How long the backlog lasts once the event is over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Drain {
    /// Q/r: seconds if nobody came any more. It is also what the last one in waits.
    pub stopped_s: f64,
    /// Q/(r − x0): seconds with the traffic after the event coming in; absent if that alone is more than is drained.
    pub with_tail_s: Option<f64>,
    /// Q*/(r − x0): the same where callers who return have filled the whole bound, the part kept for them too.
    pub with_returns_s: Option<f64>,
}

impl Drain {
    /// Of a queue at its bound when the event ends.
    ///
    /// A fixed window frees everybody at once when it is renewed, which for those who were let in is at most
    /// D − s − margin away; all three are that.
    pub(super) fn of(basis: &Basis, bound: &QueueBound) -> Self {
        let r = basis.drain.per_sec_f64();
        let left = r - basis.tokens_at(basis.tail);
        if let Window::Fixed { .. } = basis.window {
            let most =
                basis.deadline.saturating_sub(basis.service).saturating_sub(basis.margin).as_secs_f64();
            let with = (left > 0.0).then_some(most);
            return Self { stopped_s: most, with_tail_s: with, with_returns_s: with };
        }
        let after = |tokens: u64| (left > 0.0).then(|| tokens as f64 / left);
        Self {
            stopped_s: bound.effective.tokens as f64 / r,
            with_tail_s: after(bound.effective.tokens),
            with_returns_s: after(bound.with_margin.tokens),
        }
    }
}
