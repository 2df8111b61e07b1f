use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Basis, QueueBound};
use crate::plan::Plan;
use crate::units::Bytes;

/// What the reference gateway uses before the load, where no run has measured it.
pub const NOMINAL_BASELINE: Bytes = Bytes::new(12_000_000);

/// What an open request needs besides its body: a connection with its read and write buffers, a task, a call to the
/// provider with the same. Measured on the reference gateway as the growth of its anonymous memory over the number of
/// requests that waited, less their bodies: 16.6 kB with bodies of 6 kB (500 to 2,000 waiting), 37 kB with bodies of
/// 40 kB (417 waiting; the read buffers grow with the bodies). Rounded up.
const PER_REQUEST: u64 = 40_000;

/// What may grow once and for all, whatever the number of requests: the allocator's arenas and threads' stacks.
const ALLOCATOR: u64 = 4_000_000;

/// Bytes of an answer for one token of it.
const PER_TOKEN: u64 = 8;

/// What the waiting and the forwarded requests need.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Bodies of a full queue.
    pub queue_bytes: u64,
    /// What the target may grow by over what it used before the load.
    pub growth_bytes: u64,
    /// Growth and the nominal baseline; a run puts the measured one in its place.
    pub ceiling_bytes: u64,
}

impl Memory {
    /// Growth = N_q·(b + o) + N_f·(b + o + answer) + λ·t·o + what the allocator keeps, with N_q the most requests that
    /// fit the whole bound (returning callers may use all of it), N_f those at the provider (μ·s and the burst), b the
    /// largest body, o what a request needs besides, and t the longest a refusal may take.
    pub(super) fn of(plan: &Plan, basis: &Basis, bound: &QueueBound) -> Self {
        let hold = basis.smallest_hold.get().max(1);
        let may_wait = bound.with_margin.tokens.saturating_add(more_patient(plan, basis));
        let waiting = may_wait / hold + 1;
        let flying =
            (basis.served * basis.service.as_secs_f64()).ceil() as u64 + basis.burst.get() / hold + 1;
        let refusing = (basis.offered * plan.expect.refusal.fast_within.as_secs_f64()).ceil() as u64;
        let classes = plan.requests.classes();
        let body = classes.iter().map(|class| class.most_bytes().get()).max().unwrap_or(0);
        let answer = classes
            .iter()
            .map(|class| class.output.most().get())
            .max()
            .unwrap_or(0)
            .saturating_mul(PER_TOKEN);
        let growth_bytes = (waiting + flying)
            .saturating_mul(body + PER_REQUEST)
            .saturating_add(flying.saturating_mul(answer))
            .saturating_add(refusing.saturating_mul(PER_REQUEST))
            .saturating_add(ALLOCATOR);
        Self {
            queue_bytes: (may_wait / hold).saturating_mul(body),
            growth_bytes,
            ceiling_bytes: growth_bytes.saturating_add(NOMINAL_BASELINE.get()),
        }
    }
}

/// What those of the longest deadline may put into the queue beyond where those of the shortest are refused: r times what
/// their deadlines differ by. Nothing under a bound that does not follow from the deadline.
fn more_patient(plan: &Plan, basis: &Basis) -> u64 {
    if plan.policy().is_some_and(|policy| policy.bound.name() != "deadline") {
        return 0;
    }
    let longest = plan.requests.classes().iter().map(|class| plan.believed(class)).max().unwrap_or_default();
    basis.drain.whole_in(longest.saturating_sub(basis.deadline))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::Forecast;
    use crate::measure::testing::{flash, request};
    use serde_json::json;

    #[test]
    fn a_queue_without_bound_and_large_bodies_rises_above_the_ceiling() {
        let mut sketch = flash();
        sketch.requests = json!([request("ask", 1, "40kB", "25s")]);
        let forecast = Forecast::of(&sketch.rehearsed());
        // without a bound about 330 requests wait at a time, until their callers leave: the bodies, and as little as
        // 10 kB besides for each
        let unbounded = 330 * (40_000 + 10_000);
        assert!(forecast.memory.growth_bytes < unbounded, "{}", forecast.memory.growth_bytes);
        let baseline = Bytes::new(10_000_000);
        assert_eq!(forecast.ceiling(baseline).get(), 10_000_000 + forecast.memory.growth_bytes);
    }

    #[test]
    fn the_bodies_of_a_full_queue_are_counted() {
        let forecast = Forecast::of(&flash().plan());
        assert_eq!(forecast.memory.queue_bytes, 149 * 6_000);
    }
}
