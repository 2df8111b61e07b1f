use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Basis;
use crate::plan::Plan;
use crate::workload::Phase;

/// The first refusal of the event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Onset {
    /// Seconds from the event's start.
    pub after_s: f64,
    /// The standard deviation of that, in seconds.
    pub sd_s: f64,
    /// The depth it meets, in tokens: the effective bound, to which the level of the bucket at that instant is added.
    pub depth_tokens: u64,
}

impl Onset {
    /// t = (B + Q)/(x − r): the burst and the queue fill at the rate by which the offer exceeds the drain. For random
    /// arrivals its standard deviation is sqrt(λ·E\[h²\]·(B + Q)/(x − r)³), the first passage of a random walk with
    /// drift; evenly spaced ones have none. An event of several phases is walked phase by phase; the spread is that
    /// of the phase in which the room is gone.
    pub(super) fn of(plan: &Plan, basis: &Basis, bound: u64) -> Option<Self> {
        let r = basis.drain.per_sec_f64();
        let whole = basis.burst.get() as f64 + bound as f64;
        let (mut room, mut passed) = (whole, 0.0);
        for phase in plan.load.phases.iter().filter(|phase| phase.event || basis.event.is_none()) {
            let excess = basis.tokens_at(phase.rate.per_sec_f64()) - r;
            let lasts = phase.lasts.as_secs_f64();
            if excess > 0.0 && room / excess <= lasts {
                return Some(Self {
                    after_s: passed + room / excess,
                    sd_s: spread(phase, basis, whole, excess),
                    depth_tokens: bound,
                });
            }
            room = (room - excess * lasts).min(whole);
            passed += lasts;
        }
        None
    }
}

fn spread(phase: &Phase, basis: &Basis, room: f64, excess: f64) -> f64 {
    if basis.paced {
        0.0
    } else {
        (phase.rate.per_sec_f64() * basis.square_hold * room / excess.powi(3)).sqrt()
    }
}
