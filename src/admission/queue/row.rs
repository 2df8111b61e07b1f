use std::collections::{BTreeSet, VecDeque};

/// Keys that were added in rising order, to be taken from either end, or seldom from the middle.
///
/// One that is taken from the middle leaves a hole, which is closed when it comes to an end, or when holes are the
/// larger part.
#[derive(Debug)]
struct Row<K> {
    /// Each with whether it is there; the first and the last always are.
    places: VecDeque<(K, bool)>,
    len: usize,
}

impl<K> Default for Row<K> {
    fn default() -> Self {
        Self { places: VecDeque::new(), len: 0 }
    }
}

impl<K: Copy + Ord> Row<K> {
    fn first(&self) -> Option<K> {
        self.places.front().map(|(key, _)| *key)
    }

    fn last(&self) -> Option<K> {
        self.places.back().map(|(key, _)| *key)
    }

    /// Adds `key` if it comes after all others; false if not.
    fn push(&mut self, key: K) -> bool {
        let after = self.last().is_none_or(|last| last < key);
        if after {
            self.places.push_back((key, true));
            self.len += 1;
        }
        after
    }

    /// Takes out `key`; false if it was not there.
    fn remove(&mut self, key: K) -> bool {
        let at = match (self.first(), self.last()) {
            (Some(first), _) if first == key => 0,
            (_, Some(last)) if last == key => self.places.len() - 1,
            _ => match self.places.binary_search_by_key(&key, |(key, _)| *key) {
                Ok(at) => at,
                Err(_) => return false,
            },
        };
        if !std::mem::replace(&mut self.places[at].1, false) {
            return false;
        }
        self.len -= 1;
        while self.places.front().is_some_and(|(_, there)| !there) {
            self.places.pop_front();
        }
        while self.places.back().is_some_and(|(_, there)| !there) {
            self.places.pop_back();
        }
        if self.places.len() > 2 * self.len + 16 {
            self.places.retain(|(_, there)| *there);
        }
        true
    }
}

/// Keys in order, most of which come in order: those that do stand in a row, the others in a tree.
#[derive(Debug)]
pub(super) struct Ordered<K> {
    row: Row<K>,
    others: BTreeSet<K>,
}

impl<K> Default for Ordered<K> {
    fn default() -> Self {
        Self { row: Row::default(), others: BTreeSet::new() }
    }
}

impl<K: Copy + Ord> Ordered<K> {
    pub(super) fn first(&self) -> Option<K> {
        match (self.row.first(), self.others.first()) {
            (Some(row), Some(other)) => Some(row.min(*other)),
            (row, other) => row.or_else(|| other.copied()),
        }
    }

    pub(super) fn insert(&mut self, key: K) {
        if !self.row.push(key) {
            self.others.insert(key);
        }
    }

    pub(super) fn remove(&mut self, key: K) -> bool {
        self.row.remove(key) || self.others.remove(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_the_set_it_stands_for_wherever_it_is_taken_from() {
        let (mut row, mut set) = (Row::default(), BTreeSet::new());
        let (mut state, mut next) = (3u64, 0u64);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..50_000 {
            match random(8) {
                0..=3 => {
                    next += 1 + random(2);
                    assert!(row.push(next) && !row.push(next) && !row.push(next - 1));
                    set.insert(next);
                }
                4 | 5 => {
                    let first = set.first().copied().unwrap_or_default();
                    assert_eq!(row.remove(first), set.remove(&first));
                }
                _ => {
                    let old = next.saturating_sub(random(200));
                    assert_eq!(row.remove(old), set.remove(&old));
                }
            }
            assert_eq!((row.first(), row.last()), (set.first().copied(), set.last().copied()));
            assert_eq!(row.len, set.len());
        }
    }

    #[test]
    fn what_comes_out_of_order_is_found_too() {
        let (mut ordered, mut set) = (Ordered::default(), BTreeSet::new());
        let mut state = 5u64;
        for step in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = step * 10 + (state >> 40) % 300;
            if state.is_multiple_of(3) && set.len() > 20 {
                let first = set.pop_first().unwrap();
                assert_eq!(ordered.first(), Some(first));
                assert!(ordered.remove(first) && !ordered.remove(first));
            } else if set.insert(key) {
                ordered.insert(key);
            }
            assert_eq!(ordered.first(), set.first().copied());
        }
    }
}
