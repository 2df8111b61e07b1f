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

/// How many members fill a leaf, and how many children a branch: it is halved then. One with under a quarter of it joins a
/// neighbour.
const MEMBERS: usize = 20;
const CHILDREN: usize = 16;

/// A member's place: by deadline, then by age.
type Place = (Moment, Id);

/// The place of nobody, where a node is not in use.
const NOWHERE: Place = (Moment::ZERO, Id(0));

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

/// Nodes of one kind by number, side by side; a number that is given back is given out again.
#[derive(Debug)]
struct Nodes<T, const MOST: usize> {
    all: Vec<[T; MOST]>,
    /// How much of each is in use.
    used: Vec<u8>,
    free: Vec<u32>,
    empty: T,
}

impl<T: Copy, const MOST: usize> Nodes<T, MOST> {
    const fn new(empty: T) -> Self {
        Self { all: Vec::new(), used: Vec::new(), free: Vec::new(), empty }
    }

    fn get(&self, at: u32) -> &[T] {
        &self.all[at as usize][..usize::from(self.used[at as usize])]
    }

    fn get_mut(&mut self, at: u32) -> &mut [T] {
        &mut self.all[at as usize][..usize::from(self.used[at as usize])]
    }

    /// A new node with these few.
    fn keep(&mut self, items: &[T]) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.all.push([self.empty; MOST]);
            self.used.push(0);
            u32::try_from(self.all.len() - 1).expect("four thousand million nodes do not fit into memory")
        });
        self.all[at as usize][..items.len()].copy_from_slice(items);
        self.used[at as usize] = items.len() as u8;
        at
    }

    fn give_back(&mut self, at: u32) {
        self.used[at as usize] = 0;
        self.free.push(at);
    }

    /// Puts `item` at `place`. A node that is then full keeps its lower half; the node with the upper one is given.
    fn insert(&mut self, at: u32, place: usize, item: T) -> Option<u32> {
        let (node, used) = (&mut self.all[at as usize], &mut self.used[at as usize]);
        let len = usize::from(*used);
        node.copy_within(place..len, place + 1);
        node[place] = item;
        *used += 1;
        if len + 1 < MOST {
            return None;
        }
        *used = (MOST / 2) as u8;
        let upper = *node;
        Some(self.keep(&upper[MOST / 2..]))
    }

    fn remove(&mut self, at: u32, place: usize) {
        let (node, used) = (&mut self.all[at as usize], &mut self.used[at as usize]);
        node.copy_within(place + 1..usize::from(*used), place);
        *used -= 1;
    }

    /// Puts what `right` holds at the end of `left`, if one is small and there is room. `right` is given back then.
    fn join(&mut self, left: u32, right: u32) -> bool {
        let (a, b) = (self.get(left).len(), self.get(right).len());
        let joined = a.min(b) < MOST / 4 && a + b <= MOST * 3 / 4;
        if joined {
            let moved = self.all[right as usize];
            self.all[left as usize][a..a + b].copy_from_slice(&moved[..b]);
            self.used[left as usize] = (a + b) as u8;
            self.give_back(right);
        }
        joined
    }
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Urgency {
    rate: Rate,
    leaves: Nodes<Member, MEMBERS>,
    branches: Nodes<Child, CHILDREN>,
    root: u32,
    /// Levels above the leaves.
    height: u32,
}

impl Urgency {
    /// Nobody waits; the queue drains at `rate`.
    pub(crate) fn new(rate: Rate) -> Self {
        let mut leaves = Nodes::new(Member { place: NOWHERE, work: 0 });
        let root = leaves.keep(&[]);
        let branches = Nodes::new(Child { last: NOWHERE, weight: Weight::ZERO, at: 0 });
        Self { rate, leaves, branches, root, height: 0 }
    }

    pub(crate) fn insert(&mut self, place: Place, hold: Tokens) {
        let member = Member { place, work: self.work(hold) };
        if let Some(upper) = self.insert_at(self.height, self.root, member) {
            let halves = [self.child(self.height, self.root), self.child(self.height, upper)];
            self.root = self.branches.keep(&halves);
            self.height += 1;
        }
    }

    pub(crate) fn remove(&mut self, place: Place) {
        self.remove_at(self.height, self.root, place);
        while self.height > 0 && self.branches.get(self.root).len() == 1 {
            let only = self.branches.get(self.root)[0].at;
            self.branches.give_back(self.root);
            self.root = only;
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
        // each node is read once, from one end to the other: a search would wait for memory at every step
        for _ in 0..self.height {
            let mut children = self.branches.get(at).iter();
            at = loop {
                match children.next() {
                    Some(child) if child.last < place => ahead = ahead.saturating_add(child.weight.sum),
                    Some(child) => break child.at,
                    // only at the root: nobody is due after it
                    None => return Outlook { ahead: self.tokens(ahead), room: None },
                }
            };
            behind = children.map(|child| child.weight).fold(Weight::ZERO, Weight::then).then(behind);
        }
        let mut here = Weight::ZERO;
        for member in self.leaves.get(at) {
            if member.place < place {
                ahead = ahead.saturating_add(member.work);
            } else {
                here = here.then(Weight::of(member));
            }
        }
        behind = here.then(behind);
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
            let place = self.leaves.get(at).partition_point(|other| other.place < member.place);
            return self.leaves.insert(at, place, member);
        }
        let children = self.branches.get(at);
        let place = children.partition_point(|child| child.last < member.place).min(children.len() - 1);
        let below = children[place].at;
        let upper = self.insert_at(level - 1, below, member);
        self.branches.get_mut(at)[place] = self.child(level - 1, below);
        let upper = self.child(level - 1, upper?);
        self.branches.insert(at, place + 1, upper)
    }

    /// Takes `place` out of the subtree, if it is there.
    fn remove_at(&mut self, level: u32, at: u32, place: Place) {
        if level == 0 {
            if let Ok(found) = self.leaves.get(at).binary_search_by_key(&place, |member| member.place) {
                self.leaves.remove(at, found);
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
            self.branches.remove(at, within);
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
            self.branches.remove(at, left + 1);
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
