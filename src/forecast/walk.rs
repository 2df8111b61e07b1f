//! When shedding begins where the budget comes in windows instead of flowing: the supply function walked along the
//! arrivals, as a mean request after another.

use std::time::Duration;

use super::Basis;
use crate::admission::bounds::{self, Bound, Scene};
use crate::plan::Plan;
use crate::units::{Bytes, Meter, Moment, Tokens};
use crate::workload::Schedule;

/// Steps of a walk at most; where more requests come, each step is several of them.
const STEPS: f64 = 1e6;

/// The first refusal in the event: the instant, and the depth it meets in tokens. `None` if there is none.
pub(super) fn first_shed(plan: &Plan, basis: &Basis) -> Option<(Moment, u64)> {
    if plan.load.arrivals.trace().is_some() {
        return first_shed_of_trace(plan, basis);
    }
    let together = (plan.load.expected() / STEPS).ceil().max(1.0);
    let mut walk = Walk::new(plan, basis, together);
    for (phase, span) in plan.load.spans() {
        let gap = together / phase.rate.per_sec_f64();
        let steps = (span.length().as_secs_f64() / gap).ceil() as u64;
        for step in 0..steps {
            let into = Duration::try_from_secs_f64(step as f64 * gap).unwrap_or_default();
            let at = span.start + into;
            let counts = basis.event.is_none_or(|event| event.contains(at));
            if !walk.arrives(at, walk.hold) && counts {
                return Some((at, walk.waiting));
            }
        }
    }
    None
}

/// The same along the rows of a trace, each with its own hold.
fn first_shed_of_trace(plan: &Plan, basis: &Basis) -> Option<(Moment, u64)> {
    let mut walk = Walk::new(plan, basis, 1.0);
    for arrival in Schedule::new(&plan.load, &plan.requests) {
        let hold = arrival.sizes.hold();
        let counts = basis.event.is_none_or(|event| event.contains(arrival.due));
        if !walk.arrives(arrival.due, hold) && counts {
            return Some((arrival.due, walk.waiting));
        }
    }
    None
}

/// The bound of a plan's policy, and what it looks at besides the queue.
pub(super) struct Room<'p> {
    bound: Option<&'p dyn Bound>,
    basis: &'p Basis,
    bytes: f64,
}

impl<'p> Room<'p> {
    pub(super) fn new(plan: &'p Plan, basis: &'p Basis) -> Self {
        let declared = plan.policy().map(|policy| &*policy.bound);
        let slack = basis.deadline.saturating_sub(basis.service).saturating_sub(basis.margin);
        let bytes = plan.requests.mean(|class| class.bytes.get() as f64);
        let (hold, body) = (basis.largest_hold, Bytes::new(bytes as u64));
        // a policy without a bound declares nothing: the deadline stays what its callers need
        let bound =
            declared.filter(|bound| bounds::most(*bound, basis.drain, slack, hold, body, 1.0).is_some());
        Self { bound, basis, bytes }
    }

    fn slack(&self) -> Duration {
        self.basis.deadline.saturating_sub(self.basis.service).saturating_sub(self.basis.margin)
    }

    /// What flows off within the time a caller may wait.
    pub(super) fn drained(&self) -> Tokens {
        Tokens::new(self.basis.drain.whole_in(self.slack()))
    }

    /// Whether so many requests and tokens may stand there, the last of them included. `level` can be spent at once,
    /// `supply` until the slack ends.
    pub(super) fn takes(&self, level: Tokens, supply: Tokens, requests: u64, wanted: Tokens) -> bool {
        let part = 1.0 - self.basis.reserve;
        let Some(bound) = self.bound else {
            let to_come = (supply - level).get() as f64 * part;
            return wanted <= level + Tokens::new(to_come as u64);
        };
        let scene = Scene {
            drain: self.basis.drain.per_sec_f64(),
            slack: self.slack(),
            level,
            supply,
            wanted,
            requests,
            tokens: wanted,
            bytes: Bytes::new((requests as f64 * self.bytes) as u64),
            part,
        };
        bound.excess(&scene).fits()
    }
}

struct Walk<'p> {
    meter: Meter,
    room: Room<'p>,
    hold: Tokens,
    together: f64,
    waiting: u64,
}

impl<'p> Walk<'p> {
    fn new(plan: &'p Plan, basis: &'p Basis, together: f64) -> Self {
        Self {
            meter: Meter::new(basis.drain, basis.window, Moment::ZERO),
            room: Room::new(plan, basis),
            hold: Tokens::new((basis.mean_hold * together).round() as u64),
            together,
            waiting: 0,
        }
    }

    /// A step's requests arrive at `at`: whether they are taken in.
    fn arrives(&mut self, at: Moment, wanted: Tokens) -> bool {
        // who waits is served in requests of mean size
        let hold = self.hold.get();
        self.meter.advance(at);
        while self.waiting >= hold && self.meter.take(self.hold) {
            self.waiting -= hold;
        }
        if self.waiting > 0 && self.waiting < hold && self.meter.take(Tokens::new(self.waiting)) {
            self.waiting = 0;
        }
        if self.waiting == 0 && self.meter.take(wanted) {
            return true;
        }
        let fits = self.fits(wanted);
        if fits {
            self.waiting += wanted.get();
        }
        fits
    }

    fn fits(&self, next: Tokens) -> bool {
        let (level, supply) = (self.meter.tokens(), self.meter.supply(self.room.slack()));
        let wanted = Tokens::new(self.waiting) + next;
        let requests = wanted.get() as f64 / self.hold.get().max(1) as f64 * self.together;
        self.room.takes(level, supply, requests as u64, wanted)
    }
}
