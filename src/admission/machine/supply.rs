//! What becomes possible as time passes and budgets fill.

use std::time::Duration;

use super::{Admission, Flying};
use crate::admission::queue::Waiting;
use crate::admission::{Effect, Expiry};
use crate::units::Moment;

/// How many requests one event may drop or forward. What is left is done a moment later, so that no event takes long.
const MOST_STEPS: u32 = 1_000;

/// That moment.
const MOMENT: Duration = Duration::from_micros(1);

impl Admission {
    /// Drops who can no longer be served in time, then forwards who can.
    pub(super) fn supply(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        self.queue.rouse(now);
        let mut steps = MOST_STEPS;
        let mut spend = || {
            steps = steps.saturating_sub(1);
            steps > 0
        };
        while let Some((deadline, id)) = self.queue.most_urgent() {
            if !self.config.recheck || deadline >= now + self.service.get() {
                break;
            }
            if !spend() {
                return self.pause(now);
            }
            self.drop_waiting(now, id, Expiry::Deadline, effects);
        }
        while now >= self.rest_until
            && let Some(head) = self.queue.next()
        {
            let (id, waited) = (head.ask.id, now.since(head.since));
            if self.ledger.ready_at(&head.ask).is_none_or(|at| at > now) {
                return;
            }
            if !spend() {
                return self.pause(now);
            }
            if self.delay.as_mut().is_some_and(|delay| delay.drops(now, waited)) {
                self.drop_waiting(now, id, Expiry::Delay, effects);
            } else {
                self.forward(now, effects);
            }
        }
    }

    /// Forwards the head of the line, whose budgets are there.
    fn forward(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        if let Some(waiting) = self.queue.serve() {
            self.dispatch(now, waiting, effects);
        }
    }

    /// Forwards a request whose budgets are there.
    pub(super) fn dispatch(&mut self, now: Moment, waiting: Waiting, effects: &mut Vec<Effect>) {
        let Waiting { ask, tries, .. } = waiting;
        self.ledger.hold(&ask);
        if tries == 0 {
            self.retries.first_call();
        }
        effects.push(Effect::Forward { id: ask.id, remaining: ask.deadline.since(now) });
        self.flying.insert(
            ask.id.0,
            Flying { ask, since: now, tries: tries.saturating_add(1), released: false, lease: Moment::ZERO },
        );
    }

    const fn pause(&mut self, now: Moment) {
        self.pause_until = Moment::from_nanos(now.as_nanos() + MOMENT.as_nanos() as u64);
    }
}
