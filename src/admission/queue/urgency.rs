//! The waiting by deadline, with the two questions earliest-deadline-first has to answer in log n steps: how much work
//! is due before a given deadline, and how much more could be put before it without making anyone after it late.
//!
//! Work is counted in the nanoseconds its tokens take at the drain rate (rounded up, so the answer errs by a nanosecond
//! a request on the safe side). For a member let its spare be its deadline less all work up to and with it, as if that
//! began at the epoch; the least spare of those behind a newcomer says how much may be put before them. Time enters
//! only when the question is asked: both sides move alike as time passes and as the head is served.
//!
//! A treap of blocks: each node holds up to 64 members in order, and for its subtree the sum of the work and the least
//! spare. Blocks keep the tree small enough for the caches when a million wait.

use crate::admission::Id;
use crate::units::{Moment, Rate, Tokens};

const NONE: u32 = u32::MAX;

/// The most members of a block.
const BLOCK: usize = 64;

/// A member's place: by deadline, then by age.
type Place = (Moment, Id);

#[derive(Debug, Clone, Copy)]
struct Member {
    place: Place,
    work: u64,
}

#[derive(Debug)]
struct Node {
    /// Of the first and the last of the block, so that a way down the tree need not look into the blocks.
    first: Place,
    last: Place,
    block: Vec<Member>,
    priority: u32,
    left: u32,
    right: u32,
    /// Of the block alone.
    own: Weight,
    /// Of the subtree.
    all: Weight,
}

impl Node {
    /// How many of the block come before `place`.
    fn before(&self, place: Place) -> usize {
        if self.last < place {
            self.block.len()
        } else {
            self.block.partition_point(|member| member.place < place)
        }
    }
}

fn work(members: &[Member]) -> u64 {
    members.iter().map(|member| member.work).sum()
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
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Urgency {
    rate: Rate,
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    made: u32,
}

impl Urgency {
    /// Nobody waits; the queue drains at `rate`.
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, nodes: Vec::new(), free: Vec::new(), root: NONE, made: 0 }
    }

    pub(crate) fn insert(&mut self, place: Place, hold: Tokens) {
        let member = Member { place, work: self.work(hold) };
        if self.root == NONE {
            self.root = self.make(vec![member]);
            return;
        }
        if let Some(upper) = self.insert_at(self.root, member) {
            let first = upper[0].place;
            let new = self.make(upper);
            let (before, after) = self.split(self.root, first);
            let before = self.merge(before, new);
            self.root = self.merge(before, after);
        }
    }

    pub(crate) fn remove(&mut self, place: Place) {
        self.root = self.remove_at(self.root, place);
    }

    /// Who is most urgent, and its deadline.
    pub(crate) fn first(&self) -> Option<Place> {
        let mut node = self.node(self.root)?;
        while let Some(left) = self.node(node.left) {
            node = left;
        }
        node.block.first().map(|member| member.place)
    }

    /// The holds of those due before `place`, in tokens of the drain.
    pub(crate) fn ahead_of(&self, place: Place) -> Tokens {
        let (mut at, mut sum) = (self.root, 0u64);
        while let Some(node) = self.node(at) {
            if node.first >= place {
                at = node.left;
                continue;
            }
            let until = node.before(place);
            sum += self.all(node.left).sum
                + if until < node.block.len() { work(&node.block[..until]) } else { node.own.sum };
            if until < node.block.len() {
                break;
            }
            at = node.right;
        }
        self.tokens(sum)
    }

    /// How much could be put before everyone due from `place` on without making one of them late, if an answer takes
    /// until `ready` from now on and `level` can be spent at once. `None` if nobody is due after it.
    pub(crate) fn room_before(&self, place: Place, ready: Moment, level: Tokens) -> Option<Tokens> {
        // what comes before and what comes behind, gathered on the way down
        let (mut at, mut ahead, mut behind) = (self.root, 0u64, Weight::ZERO);
        while let Some(node) = self.node(at) {
            if node.first >= place {
                behind = node.own.then(self.all(node.right)).then(behind);
                at = node.left;
                continue;
            }
            let until = node.before(place);
            ahead += self.all(node.left).sum
                + if until < node.block.len() { work(&node.block[..until]) } else { node.own.sum };
            if until < node.block.len() {
                let rest = node.block[until..].iter().map(Weight::of).fold(Weight::ZERO, Weight::then);
                behind = rest.then(self.all(node.right)).then(behind);
                break;
            }
            at = node.right;
        }
        if behind.least == i64::MAX {
            return None;
        }
        let spare = behind.least.saturating_sub_unsigned(ahead).saturating_sub_unsigned(ready.as_nanos());
        let spare = spare.saturating_add_unsigned(self.rate.time_for(level.get()).as_nanos() as u64);
        Some(self.tokens(u64::try_from(spare).unwrap_or(0)))
    }

    /// The nanoseconds that `hold` takes.
    fn work(&self, hold: Tokens) -> u64 {
        u64::try_from(self.rate.time_for(hold.get()).as_nanos()).unwrap_or(u64::MAX)
    }

    fn tokens(&self, work: u64) -> Tokens {
        Tokens::new(self.rate.whole_in(std::time::Duration::from_nanos(work)))
    }

    fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    fn all(&self, at: u32) -> Weight {
        self.node(at).map_or(Weight::ZERO, |node| node.all)
    }

    /// A node of its own for `block`, which is not empty.
    fn make(&mut self, block: Vec<Member>) -> u32 {
        self.made = self.made.wrapping_add(1);
        let node = Node {
            first: block[0].place,
            last: block[0].place,
            block,
            priority: spread(self.made),
            left: NONE,
            right: NONE,
            own: Weight::ZERO,
            all: Weight::ZERO,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
            }
        };
        self.weigh_block(at);
        at
    }

    fn weigh_block(&mut self, at: u32) {
        let node = &mut self.nodes[at as usize];
        (node.first, node.last) = (node.block[0].place, node.block[node.block.len() - 1].place);
        node.own = node.block.iter().map(Weight::of).fold(Weight::ZERO, Weight::then);
        self.weigh(at);
    }

    fn weigh(&mut self, at: u32) {
        let node = &self.nodes[at as usize];
        let all = self.all(node.left).then(node.own).then(self.all(node.right));
        self.nodes[at as usize].all = all;
    }

    /// Puts `member` into the block of the subtree where it belongs. A block that is then too large keeps its lower
    /// half; the upper is given back.
    fn insert_at(&mut self, at: u32, member: Member) -> Option<Vec<Member>> {
        let node = &self.nodes[at as usize];
        let (first, last) = (node.first, node.last);
        let side = match member.place {
            place if place < first && node.left != NONE => node.left,
            place if place > last && node.right != NONE => node.right,
            _ => {
                let block = &mut self.nodes[at as usize].block;
                let place = block.partition_point(|other| other.place < member.place);
                block.insert(place, member);
                let upper = (block.len() > BLOCK).then(|| block.split_off(BLOCK / 2));
                self.weigh_block(at);
                return upper;
            }
        };
        let upper = self.insert_at(side, member);
        self.weigh(at);
        upper
    }

    /// Takes `place` out of the subtree; gives its new root.
    fn remove_at(&mut self, at: u32, place: Place) -> u32 {
        let Some(node) = self.node(at) else { return NONE };
        let (left, right) = (node.left, node.right);
        if place < node.first {
            let left = self.remove_at(left, place);
            self.nodes[at as usize].left = left;
        } else if place > node.last {
            let right = self.remove_at(right, place);
            self.nodes[at as usize].right = right;
        } else {
            let block = &mut self.nodes[at as usize].block;
            if let Ok(found) = block.binary_search_by_key(&place, |member| member.place) {
                block.remove(found);
            }
            if block.is_empty() {
                self.free.push(at);
                return self.merge(left, right);
            }
            self.weigh_block(at);
            return at;
        }
        self.weigh(at);
        at
    }

    /// Splits into the blocks that begin before `place` and the rest. No block reaches across it.
    fn split(&mut self, at: u32, place: Place) -> (u32, u32) {
        let Some(node) = self.node(at) else { return (NONE, NONE) };
        if node.first < place {
            let (middle, after) = self.split(node.right, place);
            self.nodes[at as usize].right = middle;
            self.weigh(at);
            (at, after)
        } else {
            let (before, middle) = self.split(node.left, place);
            self.nodes[at as usize].left = middle;
            self.weigh(at);
            (before, at)
        }
    }

    /// Joins two trees, all of `a` before all of `b`.
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        let (Some(left), Some(right)) = (self.node(a), self.node(b)) else { return a.min(b) };
        if left.priority > right.priority {
            let joined = self.merge(left.right, b);
            self.nodes[a as usize].right = joined;
            self.weigh(a);
            a
        } else {
            let joined = self.merge(a, right.left);
            self.nodes[b as usize].left = joined;
            self.weigh(b);
            b
        }
    }
}

/// A heap priority that depends on the number alone, so the shape of the tree is the same in every run (the finaliser
/// of MurmurHash3, 32 bits).
const fn spread(number: u32) -> u32 {
    let mut z = number ^ (number >> 16);
    z = z.wrapping_mul(0x85EB_CA6B);
    z ^= z >> 13;
    z = z.wrapping_mul(0xC2B2_AE35);
    z ^ (z >> 16)
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
            let rate = Rate::new(1, std::time::Duration::from_nanos(1)).unwrap();
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
                prop_assert_eq!(tree.ahead_of(place).get(), plain.ahead_of(place));
                let room = tree.room_before(place, Moment::from_nanos(20), Tokens::new(7)).map(Tokens::get);
                prop_assert_eq!(room, plain.room_before(place, 20, 7));
                let first = plain.0.iter().map(|(place, _)| *place).min();
                prop_assert_eq!(tree.first(), first);
            }
        }
    }
}
