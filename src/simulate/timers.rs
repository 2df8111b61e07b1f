use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::admission::Id;
use crate::units::Moment;
use crate::workload::{ClassId, Sizes};

/// More different patiences than this are kept in the heap.
const MOST_ROWS: usize = 16;

/// Something that will happen. The order of the variants is their order within an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// A streamed answer begins.
    Begins(Id),
    /// The provider has finished.
    Done(Id),
    /// The provider's answer breaks off, or has come and is none.
    Breaks(Id, bool),
    /// The caller's patience ends.
    Leave(Id),
    /// A refused caller comes back as told.
    Probe(u64, ClassId, Sizes),
    /// A copy of an arrival's first attempt comes.
    Copy(u64, ClassId, Sizes),
    /// A caller tries again by its own rule, for the so-manieth time.
    Retry(u64, ClassId, u16, Sizes),
}

/// What will happen, soonest first.
///
/// Where every answer takes as long they end in the order they began, and callers of one patience leave in the order they
/// came, so a row for the answers and for each patience needs no sorting; and since nearly all are answered before they
/// leave, what is no longer needed is dropped when it comes to the front.
#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(Moment, Due)>>,
    answers: VecDeque<(Moment, Due)>,
    rows: Vec<(Duration, VecDeque<(Moment, Id)>)>,
}

impl Timers {
    /// Nothing will happen yet; these are the patiences there are.
    pub(super) fn new(patiences: impl Iterator<Item = Duration>) -> Self {
        let mut different: Vec<Duration> = patiences.collect();
        different.sort_unstable();
        different.dedup();
        if different.len() > MOST_ROWS {
            different.clear();
        }
        let rows = different.into_iter().map(|patience| (patience, VecDeque::new()));
        Self { heap: BinaryHeap::new(), answers: VecDeque::new(), rows: rows.collect() }
    }

    /// `due` happens at `at`.
    pub(super) fn add(&mut self, at: Moment, due: Due) {
        let in_order = || self.answers.back().is_none_or(|last| *last <= (at, due));
        if matches!(due, Due::Done(_)) && in_order() {
            self.answers.push_back((at, due));
        } else {
            self.heap.push(Reverse((at, due)));
        }
    }

    /// `id`, sent at `now`, leaves after `patience`. Instants of sending come in order. Callers for whom `here` is false
    /// have left already.
    pub(super) fn leave_after(&mut self, now: Moment, patience: Duration, id: Id, here: impl Fn(Id) -> bool) {
        let Some((_, row)) = self.rows.iter_mut().find(|(row, _)| *row == patience) else {
            return self.add(now + patience, Due::Leave(id));
        };
        while row.front().is_some_and(|(_, first)| !here(*first)) {
            row.pop_front();
        }
        row.push_back((now + patience, id));
    }

    /// What happens next, and when, if that is not after `limit`.
    pub(super) fn peek(&mut self, limit: Moment, here: impl Fn(Id) -> bool) -> Option<(Moment, Due)> {
        let due = |timer: &&(Moment, Due)| timer.0 <= limit;
        let answer = self.answers.front().filter(due);
        let other = self.heap.peek().map(|Reverse(timer)| timer).filter(due);
        let mut soonest = match (answer, other) {
            (Some(answer), Some(other)) => Some(*answer.min(other)),
            (answer, other) => answer.or(other).copied(),
        };
        for (_, row) in &mut self.rows {
            while let Some((at, id)) = row.front().copied().filter(|(at, _)| *at <= limit) {
                if here(id) {
                    let leave = (at, Due::Leave(id));
                    soonest = Some(soonest.map_or(leave, |timer| timer.min(leave)));
                    break;
                }
                row.pop_front();
            }
        }
        soonest
    }

    /// Takes out what [`Self::peek`] gave.
    pub(super) fn pop(&mut self, timer: (Moment, Due)) {
        if self.answers.front() == Some(&timer) {
            self.answers.pop_front();
            return;
        }
        if self.heap.peek() == Some(&Reverse(timer)) {
            self.heap.pop();
            return;
        }
        let row = self
            .rows
            .iter_mut()
            .find(|(_, row)| row.front().is_some_and(|(at, id)| (*at, Due::Leave(*id)) == timer));
        if let Some((_, row)) = row {
            row.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_soonest_comes_first_and_who_is_gone_is_dropped() {
        let secs = Duration::from_secs;
        let mut timers = Timers::new([secs(5), secs(2), secs(5)].into_iter());
        let here = |id| id != Id(0);
        timers.leave_after(Moment::ZERO, secs(5), Id(0), here);
        timers.leave_after(Moment::from_secs(1), secs(2), Id(1), here);
        timers.leave_after(Moment::from_secs(1), secs(5), Id(2), here);
        timers.leave_after(Moment::from_secs(1), secs(3), Id(3), here);
        timers.add(Moment::from_secs(3), Due::Done(Id(7)));
        timers.add(Moment::from_secs(5), Due::Done(Id(8)));
        timers.add(Moment::from_secs(2), Due::Done(Id(9)));
        assert_eq!(timers.peek(Moment::from_millis(1_999), here), None);
        let mut order = Vec::new();
        while let Some(timer) = timers.peek(Moment::NEVER, here) {
            timers.pop(timer);
            order.push((timer.0.as_nanos() / 1_000_000_000, timer.1));
        }
        let leave = |secs, id| (secs, Due::Leave(Id(id)));
        let done = |secs, id| (secs, Due::Done(Id(id)));
        assert_eq!(order, [done(2, 9), done(3, 7), leave(3, 1), leave(4, 3), done(5, 8), leave(6, 2)]);
    }
}
