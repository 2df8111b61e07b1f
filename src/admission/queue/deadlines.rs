use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::admission::Id;
use crate::units::Moment;

/// A deadline, and whose it is.
pub(super) type Deadline = (Moment, Id);

/// Deadlines, of which the next is asked for: those that come in order stand in a row, the others in a heap.
///
/// Whoever goes stays in it as one of the gone until it is the next, or until the gone are the larger part: nothing is
/// searched for. So an addition and a removal take log n steps at most, spread over many; the owner says who is there.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// In rising order. The first is there.
    row: VecDeque<Deadline>,
    /// The first is there.
    others: BinaryHeap<Reverse<Deadline>>,
}

impl Deadlines {
    /// The next deadline of one who is there.
    pub(super) fn first(&self) -> Option<Deadline> {
        match (self.row.front(), self.others.peek()) {
            (Some(row), Some(Reverse(other))) => Some(*row.min(other)),
            (row, other) => row.copied().or_else(|| other.map(|Reverse(other)| *other)),
        }
    }

    /// Adds the deadline of one who is there from now on. One who comes back may be in it already.
    pub(super) fn insert(&mut self, deadline: Deadline) {
        if self.row.back().is_none_or(|last| *last < deadline) {
            self.row.push_back(deadline);
        } else {
            self.others.push(Reverse(deadline));
        }
    }

    /// Says that the one with `deadline` has gone. `there` tells who is there, of whom there are `len` at most.
    pub(super) fn gone(&mut self, deadline: Deadline, len: usize, there: impl Fn(Deadline) -> bool) {
        while self.row.back() == Some(&deadline) {
            self.row.pop_back();
        }
        if self.row.front() == Some(&deadline) {
            while self.row.front().is_some_and(|first| !there(*first)) {
                self.row.pop_front();
            }
        }
        if self.others.peek() == Some(&Reverse(deadline)) {
            while self.others.peek().is_some_and(|Reverse(first)| !there(*first)) {
                self.others.pop();
            }
        }
        if self.row.len() + self.others.len() > 2 * len + 64 {
            self.forget(there);
        }
    }

    /// Drops all that are gone, and what is in it twice.
    fn forget(&mut self, there: impl Fn(Deadline) -> bool) {
        self.row.retain(|deadline| there(*deadline));
        let mut others = std::mem::take(&mut self.others).into_vec();
        others.retain(|Reverse(deadline)| there(*deadline));
        others.sort_unstable();
        others.dedup();
        self.others = others.into();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Deadlines, and the set they stand for.
    #[derive(Default)]
    struct Both {
        deadlines: Deadlines,
        set: BTreeSet<Deadline>,
    }

    impl Both {
        fn insert(&mut self, deadline: Deadline) {
            if self.set.insert(deadline) {
                self.deadlines.insert(deadline);
            }
        }

        fn remove(&mut self, deadline: Deadline) {
            if self.set.remove(&deadline) {
                self.deadlines.gone(deadline, self.set.len(), |deadline| self.set.contains(&deadline));
            }
        }

        fn agree(&mut self) {
            assert_eq!(self.deadlines.first(), self.set.first().copied());
            let kept = self.deadlines.row.len() + self.deadlines.others.len();
            assert!(kept <= 2 * self.set.len() + 64, "{kept} for {}", self.set.len());
        }
    }

    /// Numbers that look random, from `seed` on.
    fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        }
    }

    /// Many come and go: `late` is how far out of order a deadline may be, `which` picks the one that goes.
    fn come_and_go(late: u64, which: impl Fn(&BTreeSet<Deadline>, &mut dyn FnMut(u64) -> u64) -> Deadline) {
        let (mut both, mut random) = (Both::default(), numbers(3 + late));
        let mut gone: Vec<Deadline> = Vec::new();
        for step in 0..30_000u64 {
            if both.set.len() < 300 || random(2) == 0 {
                both.insert((Moment::from_nanos(step * 10 + random(late)), Id(step)));
            } else {
                let key = which(&both.set, &mut random);
                both.remove(key);
                gone.push(key);
            }
            if random(9) == 0
                && let Some(back) = gone.pop()
            {
                both.insert(back);
            }
            both.agree();
        }
        while let Some(last) = both.set.last().copied() {
            both.remove(last);
            both.agree();
        }
    }

    #[test]
    fn the_next_is_that_of_the_set_they_stand_for_whoever_goes() {
        for late in [1, 300, 100_000] {
            come_and_go(late, |set, _| *set.first().unwrap());
            come_and_go(late, |set, _| *set.last().unwrap());
            come_and_go(late, |set, random| {
                let from = (Moment::from_nanos(random(400_000)), Id(0));
                *set.range(from..).next().unwrap_or_else(|| set.first().unwrap())
            });
        }
    }

    #[test]
    fn one_who_comes_and_goes_again_and_again_is_kept_once() {
        let mut both = Both::default();
        for number in 0..100 {
            both.insert((Moment::from_nanos(1_000 - number), Id(number)));
        }
        for _ in 0..10_000 {
            both.remove((Moment::from_nanos(950), Id(50)));
            both.insert((Moment::from_nanos(950), Id(50)));
            both.agree();
        }
    }
}
