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
    /// Drops who can no longer be served in time, then forwards who can. Gives when the budgets will be there for who is
    /// next.
    pub(super) fn supply(&mut self, now: Moment, effects: &mut Vec<Effect>) -> Option<Moment> {
        self.queue.rouse(now);
        let mut steps = MOST_STEPS;
        let mut spend = || {
            steps = steps.saturating_sub(1);
            steps > 0
        };
        while self.config.recheck
            && let Some((deadline, id)) = self.queue.most_urgent()
            && deadline < now + self.service.get()
        {
            if !spend() {
                return self.pause(now);
            }
            self.drop_waiting(now, id, Expiry::Deadline, effects);
        }
        while now >= self.rest_until
            && let Some(head) = self.queue.next()
        {
            let (id, since) = (head.ask.id, head.since);
            if !self.ledger.is_ready(&head.ask) {
                return self.ledger.ready_at(&head.ask);
            }
            if !spend() {
                return self.pause(now);
            }
            if self.delay.as_mut().is_some_and(|delay| delay.drops(now, now.since(since))) {
                self.drop_waiting(now, id, Expiry::Delay, effects);
            } else if let Some(waiting) = self.queue.serve(id) {
                self.dispatch(now, waiting, effects);
            }
        }
        self.supply_at()
    }

    /// When the budgets will be there for who is next.
    pub(super) fn supply_at(&self) -> Option<Moment> {
        self.ledger.ready_at(&self.queue.next()?.ask)
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

    fn pause(&mut self, now: Moment) -> Option<Moment> {
        self.pause_until = now + MOMENT;
        self.supply_at()
    }
}
