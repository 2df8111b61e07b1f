use std::collections::BTreeMap;

use crate::admission::Id;

/// How many numbers a word holds.
const WORD: u64 = 64;

/// Numbers in order of age, of which any may go at any time: a bit each, in words of 64. Every step takes log n steps
/// of a tree that is 64 times smaller than n, however far apart the numbers are.
#[derive(Debug, Default)]
pub(super) struct Ages {
    words: BTreeMap<u64, u64>,
    len: usize,
}

impl Ages {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn first(&self) -> Option<Id> {
        let (word, bits) = self.words.first_key_value()?;
        Some(Id(word * WORD + u64::from(bits.trailing_zeros())))
    }

    pub(super) fn last(&self) -> Option<Id> {
        let (word, bits) = self.words.last_key_value()?;
        Some(Id(word * WORD + u64::from(bits.ilog2())))
    }

    /// Adds `id`; one that is there stays.
    pub(super) fn insert(&mut self, id: Id) {
        let bits = self.words.entry(id.0 / WORD).or_default();
        let bit = 1 << (id.0 % WORD);
        self.len += usize::from(*bits & bit == 0);
        *bits |= bit;
    }

    /// Takes out `id`; false if it was not there.
    pub(super) fn remove(&mut self, id: Id) -> bool {
        let (word, bit) = (id.0 / WORD, 1 << (id.0 % WORD));
        let Some(bits) = self.words.get_mut(&word).filter(|bits| **bits & bit != 0) else { return false };
        *bits &= !bit;
        if *bits == 0 {
            self.words.remove(&word);
        }
        self.len -= 1;
        true
    }

    /// Those that are there, in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Id> {
        self.words.iter().flat_map(|(word, bits)| {
            (0..WORD).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| Id(word * WORD + bit))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_the_set_it_stands_for_whatever_the_order(
            steps in proptest::collection::vec((prop_oneof![0..300u64, Just(u64::MAX), 1_000_000..1_000_070u64], 0..3u8), 1..400),
        ) {
            let (mut ages, mut set) = (Ages::default(), BTreeSet::new());
            for (number, kind) in steps {
                if kind == 0 {
                    prop_assert_eq!(ages.remove(Id(number)), set.remove(&Id(number)));
                } else {
                    ages.insert(Id(number));
                    set.insert(Id(number));
                }
                prop_assert_eq!((ages.first(), ages.last()), (set.first().copied(), set.last().copied()));
                prop_assert_eq!(ages.len(), set.len());
            }
            prop_assert!(ages.iter().eq(set.iter().copied()));
            prop_assert!(ages.iter().rev().eq(set.iter().rev().copied()));
        }
    }
}
