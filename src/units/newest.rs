use super::Dense;

/// A map from rising numbers, as [`Dense`] is one, for what is mostly taken out again at once: the newest stands apart and
/// is put among the others when the next one comes, if it is still there.
#[derive(Debug, Clone)]
pub struct Newest<T> {
    /// Its number is kept when it is taken out.
    newest: (u64, Option<T>),
    others: Dense<T>,
    /// The largest number there ever was.
    largest: u64,
}

impl<T> Default for Newest<T> {
    fn default() -> Self {
        Self { newest: (0, None), others: Dense::default(), largest: 0 }
    }
}

impl<T> Newest<T> {
    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.newest.1.is_none() && self.others.is_empty()
    }

    /// The entry of `number`.
    #[inline]
    pub fn get(&self, number: u64) -> Option<&T> {
        if self.newest.0 == number { self.newest.1.as_ref() } else { self.others.get(number) }
    }

    /// The entry of `number`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        if self.newest.0 == number { self.newest.1.as_mut() } else { self.others.get_mut(number) }
    }

    /// Sets the entry of `number`.
    #[inline]
    pub fn insert(&mut self, number: u64, value: T) {
        if self.newest.0 != number {
            if let Some(before) = self.newest.1.take() {
                self.others.insert(self.newest.0, before);
            }
            if number <= self.largest {
                self.others.remove(number);
            }
        }
        self.largest = self.largest.max(number);
        self.newest = (number, Some(value));
    }

    /// Takes out the entry of `number`.
    #[inline]
    pub fn remove(&mut self, number: u64) -> Option<T> {
        if self.newest.0 == number { self.newest.1.take() } else { self.others.remove(number) }
    }

    /// The numbers that have an entry, in rising order.
    pub fn numbers(&self) -> Vec<u64> {
        let mut all = self.others.numbers();
        all.extend(self.newest.1.as_ref().map(|_| self.newest.0));
        all.sort_unstable();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn it_is_the_map_it_stands_for_whatever_the_order() {
        let (mut newest, mut map) = (Newest::default(), BTreeMap::new());
        let mut state = 5u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut next = 0u64;
        for step in 0..100_000u64 {
            let near = next.saturating_sub(random(20));
            match random(8) {
                0..3 => {
                    next += random(3);
                    newest.insert(next, step);
                    map.insert(next, step);
                }
                3 => {
                    newest.insert(near, step);
                    map.insert(near, step);
                }
                4 => assert_eq!(newest.remove(next), map.remove(&next), "the newest, {step}"),
                5 => assert_eq!(newest.remove(near), map.remove(&near), "{step}"),
                _ => assert_eq!(newest.get_mut(near), map.get_mut(&near), "{step}"),
            }
            assert_eq!((newest.get(near), newest.is_empty()), (map.get(&near), map.is_empty()));
        }
        assert_eq!(newest.numbers(), map.keys().copied().collect::<Vec<_>>());
    }
}
