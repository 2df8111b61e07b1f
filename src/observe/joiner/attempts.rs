use std::collections::BTreeMap;

use crate::observe::Attempt;
use crate::units::Newest;

/// A map from attempts: nearly all are first ones, whose numbers rise.
#[derive(Debug, Clone)]
pub(super) struct Attempts<T> {
    first: Newest<T>,
    later: BTreeMap<Attempt, T>,
}

impl<T> Default for Attempts<T> {
    fn default() -> Self {
        Self { first: Newest::default(), later: BTreeMap::new() }
    }
}

impl<T> Attempts<T> {
    pub(super) fn get(&self, attempt: Attempt) -> Option<&T> {
        if attempt.nth == 0 { self.first.get(attempt.seq) } else { self.later.get(&attempt) }
    }

    pub(super) fn get_mut(&mut self, attempt: Attempt) -> Option<&mut T> {
        if attempt.nth == 0 { self.first.get_mut(attempt.seq) } else { self.later.get_mut(&attempt) }
    }

    pub(super) fn insert(&mut self, attempt: Attempt, value: T) {
        if attempt.nth == 0 {
            self.first.insert(attempt.seq, value);
        } else {
            self.later.insert(attempt, value);
        }
    }

    pub(super) fn remove(&mut self, attempt: Attempt) -> Option<T> {
        if attempt.nth == 0 { self.first.remove(attempt.seq) } else { self.later.remove(&attempt) }
    }

    /// All of them, by arrival and number.
    pub(super) fn all(&self) -> Vec<Attempt> {
        let first = self.first.numbers().into_iter().map(|seq| Attempt { seq, nth: 0 });
        let mut all: Vec<_> = first.chain(self.later.keys().copied()).collect();
        all.sort_unstable();
        all
    }
}
