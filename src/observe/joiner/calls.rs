use std::collections::{BTreeMap, VecDeque};

use crate::observe::Attempt;
use crate::units::Moment;

/// Whose call, and when it ends.
type Key = (Moment, Attempt);

/// The calls that run at the provider, by when they end, and whether their callers are gone.
///
/// Where every answer takes as long calls end in the order they began, so a row needs no sorting; what is out of that order
/// is kept beside it.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    row: VecDeque<(Key, bool)>,
    others: BTreeMap<Key, bool>,
    next_end: Option<Moment>,
}

impl Calls {
    /// When the next one ends.
    pub(super) const fn next_end(&self) -> Option<Moment> {
        self.next_end
    }

    /// Notes a call; gives whether its caller was gone if it was noted already.
    pub(super) fn insert(&mut self, key: Key, gone: bool) -> Option<bool> {
        self.next_end = Moment::sooner(self.next_end, Some(key.0));
        if let Some(noted) = self.others.get_mut(&key) {
            return Some(std::mem::replace(noted, gone));
        }
        if self.row.back().is_none_or(|(last, _)| *last < key) {
            self.row.push_back((key, gone));
            return None;
        }
        match self.place(key) {
            Some(noted) => Some(std::mem::replace(&mut self.row[noted].1, gone)),
            None => self.others.insert(key, gone),
        }
    }

    /// Strikes a call out; gives whether its caller was gone if it was there.
    pub(super) fn remove(&mut self, key: Key) -> Option<bool> {
        let struck = match self.others.remove(&key) {
            Some(gone) => Some(gone),
            None => self.place(key).and_then(|at| self.row.remove(at)).map(|(_, gone)| gone),
        };
        self.next_end = self.first();
        struck
    }

    /// Takes out the call that ends first.
    pub(super) fn pop_first(&mut self) -> Option<(Key, bool)> {
        let row = self.row.front().map(|(key, _)| *key);
        let other = self.others.first_key_value().map(|(key, _)| *key);
        let first = match (row, other) {
            (Some(row), Some(other)) if other < row => self.others.pop_first(),
            (None, _) => self.others.pop_first(),
            (Some(_), _) => self.row.pop_front(),
        };
        self.next_end = self.first();
        first
    }

    fn first(&self) -> Option<Moment> {
        let row = self.row.front().map(|((until, _), _)| *until);
        Moment::sooner(row, self.others.first_key_value().map(|((until, _), _)| *until))
    }

    fn place(&self, key: Key) -> Option<usize> {
        self.row.binary_search_by_key(&key, |(noted, _)| *noted).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_map_it_stands_for_whatever_the_order() {
        let (mut calls, mut map) = (Calls::default(), BTreeMap::new());
        let mut state = 11u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for step in 0..50_000u64 {
            // nearly all in order, some before or again
            let until = step / 4 + if random(9) == 0 { random(40) } else { 50 };
            let key = (Moment::from_millis(until), Attempt { seq: until % 7, nth: random(2) as u16 });
            match random(5) {
                0..3 => {
                    assert_eq!(calls.insert(key, step % 2 == 0), map.insert(key, step % 2 == 0), "{step}")
                }
                3 => assert_eq!(calls.remove(key), map.remove(&key), "{step}"),
                _ => assert_eq!(calls.pop_first(), map.pop_first(), "{step}"),
            }
            assert_eq!(calls.next_end(), map.first_key_value().map(|((until, _), _)| *until));
        }
    }
}
