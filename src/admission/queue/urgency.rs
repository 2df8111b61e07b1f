//! The waiting by deadline, with the two questions earliest-deadline-first has to answer in log n steps: how much work
//! is due before a given deadline, and how much more could be put before it without making anyone after it late.
//!
//! Work is counted in the nanoseconds its tokens take at the drain rate (rounded up, so the answer errs by a nanosecond
//! a request on the safe side). For a member let its spare be its deadline less all work up to and with it, as if that
//! began at the epoch; the least spare of those behind a newcomer says how much may be put before them. Time enters
//! only when the question is asked: both sides move alike as time passes and as the head is served.
//!
//! A B+ tree: leaves hold members in order, and a branch keeps of each child its last place, the sum of its work and
//! its least spare. A way down looks into one node a level, all of whose neighbours lie side by side in memory, so that
//! it stays cheap when a million wait in no order of arrival.

use std::time::Duration;

use super::lane::Outlook;
use crate::admission::Id;
use crate::units::{Moment, Rate, Tokens};

/// The most members of a leaf and children of a branch. A node with under a quarter of it joins a neighbour.
const MOST: usize = 32;

/// A member's place: by deadline, then by age.
type Place = (Moment, Id);

#[derive(Debug, Clone, Copy)]
struct Member {
    place: Place,
    work: u64,
}

/// What a branch knows of a child.
#[derive(Debug, Clone, Copy)]
struct Child {
    last: Place,
    weight: Weight,
    at: u32,
}

/// The work of a run of members, and the least spare among them as if nothing came before.
#[derive(Debug, Clone, Copy)]
struct Weight {
    sum: u64,
    least: i64,
}

impl Weight {
    const ZERO: Self = Self { sum: 0, least: i64::MAX };

    /// Of one run followed by another.
    fn then(self, next: Self) -> Self {
        let behind = next.least.saturating_sub_unsigned(self.sum);
        let least = if next.least == i64::MAX { self.least } else { self.least.min(behind) };
        Self { sum: self.sum.saturating_add(next.sum), least }
    }

    fn of(member: &Member) -> Self {
        let deadline = i64::try_from(member.place.0.as_nanos()).unwrap_or(i64::MAX - 1);
        Self { sum: member.work, least: deadline.saturating_sub_unsigned(member.work) }
    }

    fn of_members(members: &[Member]) -> Self {
        members.iter().map(Self::of).fold(Self::ZERO, Self::then)
    }

    fn of_children(children: &[Child]) -> Self {
        children.iter().map(|child| child.weight).fold(Self::ZERO, Self::then)
    }
}

/// Nodes of one kind by number; a number that is given back is given out again.
#[derive(Debug)]
struct Nodes<T> {
    all: Vec<Vec<T>>,
    free: Vec<u32>,
}

impl<T> Nodes<T> {
    const fn new() -> Self {
        Self { all: Vec::new(), free: Vec::new() }
    }

    fn get(&self, at: u32) -> &[T] {
        &self.all[at as usize]
    }

    fn get_mut(&mut self, at: u32) -> &mut Vec<T> {
        &mut self.all[at as usize]
    }

    fn keep(&mut self, node: Vec<T>) -> u32 {
        if let Some(at) = self.free.pop() {
            self.all[at as usize] = node;
            return at;
        }
        self.all.push(node);
        u32::try_from(self.all.len() - 1).expect("four thousand million nodes do not fit into memory")
    }

    fn give_back(&mut self, at: u32) -> Vec<T> {
        self.free.push(at);
        std::mem::take(&mut self.all[at as usize])
    }

    /// Moves the upper half of a node that has grown too large into one of its own.
    fn halve(&mut self, at: u32) -> Option<u32> {
        let node = &mut self.all[at as usize];
        if node.len() <= MOST {
            return None;
        }
        let upper = node.split_off(MOST / 2);
        Some(self.keep(upper))
    }

    /// Puts what `right` holds at the end of `left`, if one is small and there is room. `right` is given back then.
    fn join(&mut self, left: u32, right: u32) -> bool {
        let (a, b) = (self.get(left).len(), self.get(right).len());
        let joined = a.min(b) < MOST / 4 && a + b <= MOST * 3 / 4;
        if joined {
            let mut moved = self.give_back(right);
            self.get_mut(left).append(&mut moved);
        }
        joined
    }
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Urgency {
    rate: Rate,
    leaves: Nodes<Member>,
    branches: Nodes<Child>,
    root: u32,
    /// Levels above the leaves.
    height: u32,
}

impl Urgency {
    /// Nobody waits; the queue drains at `rate`.
    pub(crate) fn new(rate: Rate) -> Self {
        let mut leaves = Nodes::new();
        let root = leaves.keep(Vec::new());
        Self { rate, leaves, branches: Nodes::new(), root, height: 0 }
    }

    pub(crate) fn insert(&mut self, place: Place, hold: Tokens) {
        let member = Member { place, work: self.work(hold) };
        if let Some(upper) = self.insert_at(self.height, self.root, member) {
            let halves = vec![self.child(self.height, self.root), self.child(self.height, upper)];
            self.root = self.branches.keep(halves);
            self.height += 1;
        }
    }

    pub(crate) fn remove(&mut self, place: Place) {
        self.remove_at(self.height, self.root, place);
        while self.height > 0 && self.branches.get(self.root).len() == 1 {
            self.root = self.branches.give_back(self.root)[0].at;
            self.height -= 1;
        }
    }

    /// Who is most urgent, and its deadline.
    pub(crate) fn first(&self) -> Option<Place> {
        let mut at = self.root;
        for _ in 0..self.height {
            at = self.branches.get(at)[0].at;
        }
        self.leaves.get(at).first().map(|member| member.place)
    }

    /// What one due at `place` would find, if an answer takes until `ready` from now on and `level` can be spent at
    /// once: the holds of those due before it, in tokens of the drain, and how much could be put before those due after
    /// it without making one of them late.
    pub(crate) fn outlook(&self, place: Place, ready: Moment, level: Tokens) -> Outlook {
        // what comes before and what comes behind, gathered on the way down
        let (mut at, mut ahead, mut behind) = (self.root, 0u64, Weight::ZERO);
        for _ in 0..self.height {
            let children = self.branches.get(at);
            let until = children.partition_point(|child| child.last < place);
            ahead = children[..until].iter().fold(ahead, |sum, child| sum.saturating_add(child.weight.sum));
            let Some(child) = children.get(until) else {
                // only at the root: nobody is due after it
                return Outlook { ahead: self.tokens(ahead), room: None };
            };
            behind = Weight::of_children(&children[until + 1..]).then(behind);
            at = child.at;
        }
        let members = self.leaves.get(at);
        let until = members.partition_point(|member| member.place < place);
        ahead = members[..until].iter().fold(ahead, |sum, member| sum.saturating_add(member.work));
        behind = Weight::of_members(&members[until..]).then(behind);
        let room = (behind.least != i64::MAX).then(|| {
            let spare = behind.least.saturating_sub_unsigned(ahead).saturating_sub_unsigned(ready.as_nanos());
            let spare = spare.saturating_add_unsigned(self.work(level));
            self.tokens(u64::try_from(spare).unwrap_or(0))
        });
        Outlook { ahead: self.tokens(ahead), room }
    }

    /// The nanoseconds that `hold` takes.
    fn work(&self, hold: Tokens) -> u64 {
        u64::try_from(self.rate.time_for(hold.get()).as_nanos()).unwrap_or(u64::MAX)
    }

    fn tokens(&self, work: u64) -> Tokens {
        Tokens::new(self.rate.whole_in(Duration::from_nanos(work)))
    }

    /// What a branch is to know of the node `at`, which is not empty and stands `level` levels above the leaves.
    fn child(&self, level: u32, at: u32) -> Child {
        if level == 0 {
            let members = self.leaves.get(at);
            Child { last: members[members.len() - 1].place, weight: Weight::of_members(members), at }
        } else {
            let children = self.branches.get(at);
            Child { last: children[children.len() - 1].last, weight: Weight::of_children(children), at }
        }
    }

    /// Puts `member` into the subtree. If its root is then too large, it keeps the lower half; the node with the upper
    /// one is given.
    fn insert_at(&mut self, level: u32, at: u32, member: Member) -> Option<u32> {
        if level == 0 {
            let members = self.leaves.get_mut(at);
            let place = members.partition_point(|other| other.place < member.place);
            members.insert(place, member);
            return self.leaves.halve(at);
        }
        let children = self.branches.get(at);
        let place = children.partition_point(|child| child.last < member.place).min(children.len() - 1);
        let below = children[place].at;
        let upper = self.insert_at(level - 1, below, member);
        self.branches.get_mut(at)[place] = self.child(level - 1, below);
        if let Some(upper) = upper {
            let upper = self.child(level - 1, upper);
            self.branches.get_mut(at).insert(place + 1, upper);
        }
        self.branches.halve(at)
    }

    /// Takes `place` out of the subtree, if it is there.
    fn remove_at(&mut self, level: u32, at: u32, place: Place) {
        if level == 0 {
            let members = self.leaves.get_mut(at);
            if let Ok(found) = members.binary_search_by_key(&place, |member| member.place) {
                members.remove(found);
            }
            return;
        }
        let children = self.branches.get(at);
        let within = children.partition_point(|child| child.last < place);
        let Some(below) = children.get(within).map(|child| child.at) else { return };
        self.remove_at(level - 1, below, place);
        self.tidy(level - 1, at, within);
    }

    /// Brings up to date what the branch `at` knows of its child `within`, which has lost a member: one that is empty
    /// goes, and one that is small joins a neighbour.
    fn tidy(&mut self, level: u32, at: u32, within: usize) {
        let below = self.branches.get(at)[within].at;
        if self.is_empty(level, below) {
            self.give_back(level, below);
            self.branches.get_mut(at).remove(within);
            return;
        }
        let left = within.min(self.branches.get(at).len().saturating_sub(2));
        let children = self.branches.get(at);
        let (lower, upper) = (children[left].at, children.get(left + 1).map(|child| child.at));
        let joined = upper.is_some_and(|upper| match level {
            0 => self.leaves.join(lower, upper),
            _ => self.branches.join(lower, upper),
        });
        let (changed, node) = if joined { (left, lower) } else { (within, below) };
        if joined {
            self.branches.get_mut(at).remove(left + 1);
        }
        let known = self.child(level, node);
        self.branches.get_mut(at)[changed] = known;
    }

    fn is_empty(&self, level: u32, at: u32) -> bool {
        if level == 0 { self.leaves.get(at).is_empty() } else { self.branches.get(at).is_empty() }
    }

    fn give_back(&mut self, level: u32, at: u32) {
        if level == 0 {
            self.leaves.give_back(at);
        } else {
            self.branches.give_back(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same answers by looking at everyone.
    struct Plain(Vec<(Place, u64)>);

    impl Plain {
        fn ahead_of(&self, place: Place) -> u64 {
            self.0.iter().filter(|(p, _)| *p < place).map(|(_, hold)| hold).sum()
        }

        fn room_before(&self, place: Place, ready: u64, level: u64) -> Option<u64> {
            let later = self.0.iter().filter(|(p, _)| *p >= place);
            let spare = later.map(|(p, hold)| {
                // one token a nanosecond
                i128::from(p.0.as_nanos()) - i128::from(self.ahead_of(*p) + hold) - i128::from(ready)
                    + i128::from(level)
            });
            spare.min().map(|spare| u64::try_from(spare.max(0)).unwrap())
        }
    }

    proptest! {
        #[test]
        fn the_tree_answers_as_a_plain_list_does(
            steps in proptest::collection::vec((0..2_000u64, 1..50u64, 0..4u8, 0..2_500u64), 1..600),
        ) {
            let rate = Rate::new(1, Duration::from_nanos(1)).unwrap();
            let (mut tree, mut plain) = (Urgency::new(rate), Plain(Vec::new()));
            for (id, (deadline, hold, kind, ask)) in (0u64..).zip(steps) {
                if kind == 0 && !plain.0.is_empty() {
                    let (place, _) = plain.0.swap_remove(usize::try_from(deadline).unwrap() % plain.0.len());
                    tree.remove(place);
                } else {
                    let place = (Moment::from_nanos(deadline), Id(id));
                    tree.insert(place, Tokens::new(hold));
                    plain.0.push((place, hold));
                }
                let place = (Moment::from_nanos(ask), Id(id));
                let outlook = tree.outlook(place, Moment::from_nanos(20), Tokens::new(7));
                prop_assert_eq!(outlook.ahead.get(), plain.ahead_of(place));
                prop_assert_eq!(outlook.room.map(Tokens::get), plain.room_before(place, 20, 7));
                let first = plain.0.iter().map(|(place, _)| *place).min();
                prop_assert_eq!(tree.first(), first);
            }
        }
    }
}
