//! When shedding begins where the calls made at once are what is short: requests taken one by one, each into the slot
//! that is free first, or into the queue.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::Basis;
use super::walk::Room;
use crate::plan::Plan;
use crate::provider::Law;
use crate::units::{Moment, Tokens};
use crate::workload::{Arrival, Schedule};

/// Requests that are walked at most; of more the flow says as much.
const MOST: f64 = 1e6;

/// Whether the requests of `plan` are known one by one, with the time each takes.
pub(super) fn is_known(plan: &Plan, basis: &Basis) -> bool {
    let service = &plan.provider.service;
    let same = service.law == Law::Fixed && service.strain.is_none();
    basis.variance == 0.0 && same && plan.load.expected() <= MOST
}

/// The first refusal in the event: the instant, and the depth it meets in tokens. `None` if there is none.
pub(super) fn first_shed(plan: &Plan, basis: &Basis) -> Option<(Moment, u64)> {
    let mut slots = Slots {
        free: basis.slots?,
        ends: BinaryHeap::new(),
        waiting: VecDeque::new(),
        tokens: Tokens::ZERO,
        room: Room::new(plan, basis),
    };
    for arrival in Schedule::new(&plan.load, &plan.requests) {
        let counts = basis.event.is_none_or(|event| event.contains(arrival.due));
        let takes = plan.provider.service.time_for(arrival.sizes.output);
        if !slots.arrives(&arrival, takes) && counts {
            return Some((arrival.due, slots.tokens.get()));
        }
    }
    None
}

struct Slots<'p> {
    free: u32,
    ends: BinaryHeap<Reverse<Moment>>,
    /// The hold of each, and the time its answer takes.
    waiting: VecDeque<(Tokens, Duration)>,
    /// Of all who wait.
    tokens: Tokens,
    room: Room<'p>,
}

impl Slots<'_> {
    /// Whether `arrival` is taken in.
    fn arrives(&mut self, arrival: &Arrival, takes: Duration) -> bool {
        self.advance(arrival.due);
        if self.free > 0 {
            self.begin(arrival.due, takes);
            return true;
        }
        let hold = arrival.sizes.hold();
        let (requests, tokens) = (self.waiting.len() as u64 + 1, self.tokens + hold);
        let fits = self.room.takes(Tokens::ZERO, self.room.drained(), requests, tokens);
        if fits {
            self.waiting.push_back((hold, takes));
            self.tokens += hold;
        }
        fits
    }

    /// Answers end up to `now`, and who waits takes their places.
    fn advance(&mut self, now: Moment) {
        while let Some(&Reverse(end)) = self.ends.peek().filter(|end| end.0 <= now) {
            self.ends.pop();
            self.free += 1;
            if let Some((hold, takes)) = self.waiting.pop_front() {
                self.tokens = self.tokens - hold;
                self.begin(end, takes);
            }
        }
    }

    fn begin(&mut self, at: Moment, takes: Duration) {
        self.free -= 1;
        self.ends.push(Reverse(at + takes));
    }
}

#[cfg(test)]
mod tests {
    use crate::forecast::Forecast;
    use crate::plan::parse;

    /// Twelve callers within 120 ms at a gateway of two slots with room for `room` more.
    fn crowd(room: &str, service: &str) -> Forecast {
        let target = format!(
            "target.embedded={{bound: {room}, service: {{start: 1s}}, margin: 0s, retry_after: none, \
             budgets: {{tokens_per_minute: 60M, burst: 1s, concurrent: 2}}}}"
        );
        let overrides = [
            "load.phases=[{name: before, rate: 30/min, for: 2s}, {name: crowd, rate: 100/s, for: 120ms, event: true}]",
            "provider.quota={tokens_per_minute: 60M, burst: 1s}",
            service,
            &target,
        ];
        let overrides: Vec<_> = overrides.iter().map(|&set| set.to_owned()).collect();
        let smoke = include_str!("../../plans/smoke.yaml");
        Forecast::of(&parse(smoke, &overrides, &|_| None).unwrap().plan)
    }

    #[test]
    fn a_crowd_fills_the_slots_and_then_the_queue() {
        let onset = crowd("{requests: 3}", "load.seed=1").onset.unwrap();
        // two are forwarded, three wait: the sixth is the first to be refused, 50 ms after the first
        assert_eq!((onset.after_s, onset.sd_s, onset.depth_tokens), (0.05, 0.0, 3 * 1_200));
        // a queue of seven is full when the tenth comes
        assert!((crowd("{requests: 7}", "load.seed=1").onset.unwrap().after_s - 0.09).abs() < 1e-9);
        assert_eq!(crowd("{requests: 10}", "load.seed=1").onset, None, "all twelve fit");
    }

    #[test]
    fn a_queue_that_is_served_in_time_wastes_nothing() {
        // without a bound eleven wait, the last of them six seconds: that is in time for callers who wait ten, and not
        // for those who wait three
        let patient = crowd("none", "requests.0.deadline=10s").unbounded;
        assert_eq!((patient.backlog_requests, patient.wasted_tokens), (11, 0));
        assert!(crowd("none", "requests.0.deadline=3s").unbounded.wasted_tokens > 4 * 1_200);
    }

    #[test]
    fn answers_that_end_make_room() {
        // answers of 45 ms: both slots come free once before the sixth caller, twice before the tenth
        let quick = "provider.service={first_token: 45ms, per_token: 0s}";
        let onset = crowd("{requests: 3}", quick).onset.unwrap();
        assert!((onset.after_s - 0.07).abs() < 1e-9, "{onset:?}");
    }
}
