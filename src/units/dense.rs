use std::collections::{BTreeMap, VecDeque};

use super::slab::Slab;

/// How far ahead of the others a number may be and still get a place of its own in the row.
const REACH: u64 = 1 << 20;

/// No entry.
const NONE: u32 = u32::MAX;

/// A map from numbers that are given out in rising order and taken back roughly in that order, such as those of
/// arrivals. Every step takes constant time; memory is four bytes for each number between the oldest and the newest,
/// and an entry for each that is there. A number far out of order is kept aside.
#[derive(Debug, Clone)]
pub struct Dense<T> {
    /// The number of the first place of the row.
    base: u64,
    row: VecDeque<u32>,
    entries: Slab<T>,
    aside: BTreeMap<u64, T>,
}

impl<T> Default for Dense<T> {
    fn default() -> Self {
        Self { base: 0, row: VecDeque::new(), entries: Slab::new(), aside: BTreeMap::new() }
    }
}

impl<T> Dense<T> {
    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len() + self.aside.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry of `number`.
    pub fn get(&self, number: u64) -> Option<&T> {
        match self.place(number) {
            Some(at) => self.entries.get(at),
            None if self.aside.is_empty() => None,
            None => self.aside.get(&number),
        }
    }

    /// The entry of `number`, to be changed.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        match self.place(number) {
            Some(at) => self.entries.get_mut(at),
            None if self.aside.is_empty() => None,
            None => self.aside.get_mut(&number),
        }
    }

    /// Sets the entry of `number`; gives the one it had.
    pub fn insert(&mut self, number: u64, value: T) -> Option<T> {
        let next = self.base + self.row.len() as u64;
        if number == next && self.aside.is_empty() {
            // nearly always
            self.row.push_back(self.entries.insert(value));
            return None;
        }
        if let Some(entry) = self.get_mut(number) {
            return Some(std::mem::replace(entry, value));
        }
        if self.row.is_empty() {
            self.base = number;
        }
        let next = self.base + self.row.len() as u64;
        if number < self.base || number - next.min(number) > REACH {
            return self.aside.insert(number, value);
        }
        let at = self.entries.insert(value);
        let offset = (number - self.base) as usize;
        if self.row.len() <= offset {
            self.row.resize(offset, NONE);
            self.row.push_back(at);
        } else {
            self.row[offset] = at;
        }
        None
    }

    /// Takes out the entry of `number` if `such` is true of it.
    pub fn remove_if(&mut self, number: u64, such: impl FnOnce(&T) -> bool) -> Option<T> {
        match self.place(number) {
            Some(at) => self.entries.get(at).is_some_and(such).then(|| self.take(number, at)).flatten(),
            None if self.aside.get(&number).is_some_and(such) => self.aside.remove(&number),
            None => None,
        }
    }

    /// Takes out the entry of `number`.
    pub fn remove(&mut self, number: u64) -> Option<T> {
        let Some(at) = self.place(number) else {
            return if self.aside.is_empty() { None } else { self.aside.remove(&number) };
        };
        self.take(number, at)
    }

    fn take(&mut self, number: u64, at: u32) -> Option<T> {
        let offset = (number - self.base) as usize;
        self.row[offset] = NONE;
        if offset == 0 {
            while self.row.front() == Some(&NONE) {
                self.row.pop_front();
                self.base += 1;
            }
        }
        self.entries.remove(at)
    }

    /// The numbers that have an entry, in rising order.
    pub fn numbers(&self) -> Vec<u64> {
        let row = self.row.iter().zip(self.base..).filter(|(at, _)| **at != NONE).map(|(_, number)| number);
        let mut all: Vec<u64> = self.aside.keys().copied().chain(row).collect();
        all.sort_unstable();
        all
    }

    fn place(&self, number: u64) -> Option<u32> {
        let offset = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.row.get(offset).copied().filter(|at| *at != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_map_it_stands_for_whatever_the_order() {
        let (mut dense, mut map) = (Dense::default(), BTreeMap::new());
        let mut state = 7u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut next = 5u64;
        for step in 0..200_000u64 {
            let number = match random(10) {
                0..=3 => {
                    next += 1 + random(3);
                    dense.insert(next, step);
                    map.insert(next, step);
                    next
                }
                4 if random(200) == 0 => {
                    let far = next + REACH + 5 + random(1_000);
                    dense.insert(far, step);
                    map.insert(far, step);
                    far
                }
                5 if random(20) == 0 => {
                    let old = next.saturating_sub(500 + random(50));
                    dense.insert(old, step);
                    map.insert(old, step);
                    old
                }
                _ => {
                    let old = next.saturating_sub(random(300));
                    assert_eq!(dense.remove(old), map.remove(&old), "step {step}");
                    old
                }
            };
            assert_eq!(dense.get(number), map.get(&number));
            assert_eq!(dense.get_mut(number), map.get_mut(&number));
            assert_eq!(dense.len(), map.len());
        }
        assert_eq!(dense.numbers(), map.keys().copied().collect::<Vec<_>>());
    }

    #[test]
    fn memory_follows_what_is_there() {
        let mut dense = Dense::default();
        for number in 0..1_000_000u64 {
            dense.insert(number, number);
            if number >= 100 {
                dense.remove(number - 100);
            }
        }
        assert_eq!((dense.len(), dense.row.len()), (100, 100));
        assert_eq!(dense.entries.len(), 100);
    }
}
