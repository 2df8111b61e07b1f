//! The waiting by deadline, with the two questions earliest-deadline-first has to answer in log n steps: how much work
//! is due before a given deadline, and how much more could be put before it without making anyone after it late.
//!
//! A treap whose nodes carry two aggregates of their subtree: the sum of the holds, and the least of
//! `allowed − prefix` over its members, where `allowed` is what the drain can deliver until a member's deadline
//! (counted from the epoch) and `prefix` the holds of the members up to and with it. Time enters only when a question
//! is asked: both sides of the test move by the same amount as time passes and as the head is served.

use crate::admission::Id;
use crate::units::{Moment, Rate, Tokens};

const NONE: u32 = u32::MAX;

/// A member's place: by deadline, then by age.
type Place = (Moment, Id);

#[derive(Debug)]
struct Node {
    place: Place,
    hold: i128,
    allowed: i128,
    priority: u32,
    left: u32,
    right: u32,
    sum: i128,
    least: i128,
}

/// See the module's head. Amounts inside are tokens times the rate's denominator, so nothing is rounded.
#[derive(Debug)]
pub(crate) struct Urgency {
    rate: Rate,
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
}

impl Urgency {
    /// Nobody waits; the queue drains at `rate`.
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, nodes: Vec::new(), free: Vec::new(), root: NONE }
    }

    pub(crate) fn insert(&mut self, place: Place, hold: Tokens) {
        let hold = self.scaled(hold);
        let allowed = self.allowed(place.0);
        let node = Node {
            place,
            hold,
            allowed,
            priority: spread(place.1.0),
            left: NONE,
            right: NONE,
            sum: hold,
            least: allowed - hold,
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
        let (before, after) = self.split(self.root, place);
        let before = self.merge(before, at);
        self.root = self.merge(before, after);
    }

    pub(crate) fn remove(&mut self, place: Place) {
        let (before, rest) = self.split(self.root, place);
        let (one, after) = self.split(rest, (place.0, Id(place.1.0.saturating_add(1))));
        self.root = self.merge(before, after);
        if one != NONE {
            self.free.push(one);
        }
    }

    /// Who is most urgent.
    pub(crate) fn first(&self) -> Option<Id> {
        let mut at = self.node(self.root)?;
        while let Some(left) = self.node(at.left) {
            at = left;
        }
        Some(at.place.1)
    }

    /// The holds of those due before `place`.
    pub(crate) fn ahead_of(&self, place: Place) -> Tokens {
        let (mut at, mut sum) = (self.root, 0);
        while let Some(node) = self.node(at) {
            if node.place < place {
                sum += self.sum(node.left) + node.hold;
                at = node.right;
            } else {
                at = node.left;
            }
        }
        self.tokens(sum)
    }

    /// How much could be put before everyone due after `place` without making one of them late, if what is needed
    /// after the head of the line was served by `ready` is what the drain delivers from then on, `level` being there
    /// already. `None` if nobody is due after it.
    pub(crate) fn room_before(&self, place: Place, ready: Moment, level: Tokens) -> Option<Tokens> {
        let (mut at, mut ahead, mut least) = (self.root, 0, None::<i128>);
        while let Some(node) = self.node(at) {
            let prefix = ahead + self.sum(node.left) + node.hold;
            if node.place < place {
                ahead = prefix;
                at = node.right;
                continue;
            }
            let here = node.allowed - prefix;
            let later = self.node(node.right).map(|right| right.least - prefix);
            least = least.into_iter().chain([here]).chain(later).min();
            at = node.left;
        }
        let spare = least? - self.allowed(ready) + self.scaled(level);
        Some(self.tokens(spare.max(0)))
    }

    fn node(&self, at: u32) -> Option<&Node> {
        self.nodes.get(at as usize)
    }

    fn sum(&self, at: u32) -> i128 {
        self.node(at).map_or(0, |node| node.sum)
    }

    fn scaled(&self, tokens: Tokens) -> i128 {
        i128::from(tokens.get()) * i128::from(self.rate.per_nanos())
    }

    fn tokens(&self, scaled: i128) -> Tokens {
        Tokens::new(u64::try_from(scaled / i128::from(self.rate.per_nanos())).unwrap_or(u64::MAX))
    }

    fn allowed(&self, until: Moment) -> i128 {
        i128::from(until.as_nanos()) * i128::from(self.rate.count())
    }

    /// Recomputes the aggregates of `at` from its children.
    fn weigh(&mut self, at: u32) {
        let node = &self.nodes[at as usize];
        let before = self.sum(node.left);
        let own = before + node.hold;
        let least = [
            self.node(node.left).map(|left| left.least),
            Some(node.allowed - own),
            self.node(node.right).map(|right| right.least - own),
        ];
        let least = least.into_iter().flatten().min().unwrap_or(0);
        let sum = own + self.sum(node.right);
        let node = &mut self.nodes[at as usize];
        (node.sum, node.least) = (sum, least);
    }

    /// Splits into those before `place` and the rest.
    fn split(&mut self, at: u32, place: Place) -> (u32, u32) {
        let Some(node) = self.node(at) else { return (NONE, NONE) };
        if node.place < place {
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

/// A heap priority that depends on the id alone, so the shape of the tree is the same in every run (Fibonacci hashing
/// with a final mix).
const fn spread(id: u64) -> u32 {
    let mixed = (id ^ (id >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ (mixed >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32) as u32
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
            steps in proptest::collection::vec((0..200u64, 1..50u64, any::<bool>(), 0..250u64), 1..120),
        ) {
            let rate = Rate::new(1, std::time::Duration::from_nanos(1)).unwrap();
            let (mut tree, mut plain) = (Urgency::new(rate), Plain(Vec::new()));
            for (id, (deadline, hold, remove, ask)) in (0u64..).zip(steps) {
                if remove && !plain.0.is_empty() {
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
                let first = plain.0.iter().map(|(place, _)| *place).min().map(|(_, id)| id);
                prop_assert_eq!(tree.first(), first);
            }
        }
    }
}
