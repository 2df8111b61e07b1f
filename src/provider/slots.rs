use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::Slots;
use crate::units::Moment;

/// Slots in use, and who waits for one: first come, first served.
///
/// Since a call's service time is known when it comes, so is the instant its slot is free again: waiting needs no
/// events, only the instants at which those before it begin and end.
#[derive(Debug, Clone)]
pub(super) struct Places {
    slots: Slots,
    /// When each slot in use is free for good, as far as is known now.
    free_at: BinaryHeap<Reverse<Moment>>,
    /// When those who wait begin, in order.
    begins: VecDeque<Moment>,
}

impl Places {
    pub(super) const fn new(slots: Slots) -> Self {
        Self { slots, free_at: BinaryHeap::new(), begins: VecDeque::new() }
    }

    /// Until when a call at `now` would be refused because every slot is in use and the queue is full.
    pub(super) fn full_until(&mut self, now: Moment) -> Option<Moment> {
        while self.begins.front().is_some_and(|begins| *begins <= now) {
            self.begins.pop_front();
        }
        while self.free_at.peek().is_some_and(|Reverse(free)| *free <= now) {
            self.free_at.pop();
        }
        let busy = self.free_at.len() >= self.slots.count as usize;
        let full = busy && self.begins.len() >= self.slots.queue as usize;
        let next = self.begins.front().copied().or(self.free_at.peek().map(|Reverse(free)| *free));
        next.filter(|_| full)
    }

    /// Takes a call at `now` that needs a slot for `takes`; gives the instant it ends.
    pub(super) fn take(&mut self, now: Moment, takes: Duration) -> Moment {
        let mut begins = now;
        if self.free_at.len() >= self.slots.count as usize
            && let Some(Reverse(free)) = self.free_at.pop()
        {
            begins = free.max(now);
            if begins > now {
                self.begins.push_back(begins);
            }
        }
        self.free_at.push(Reverse(begins + takes));
        begins + takes
    }
}
