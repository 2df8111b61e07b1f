/// A map of a few keys: a sorted row, quick to look at from the front.
#[derive(Debug)]
pub(super) struct Few<K, V>(Vec<(K, V)>);

impl<K, V> Default for Few<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Copy + Ord, V> Few<K, V> {
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The smallest key and its value.
    pub(super) fn first(&self) -> Option<(K, &V)> {
        self.0.first().map(|(key, value)| (*key, value))
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.place(key).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.place(key).ok().map(|at| &mut self.0[at].1)
    }

    /// The value of `key`, made if there is none.
    pub(super) fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let at = self.place(key).unwrap_or_else(|at| {
            self.0.insert(at, (key, make()));
            at
        });
        &mut self.0[at].1
    }

    pub(super) fn remove(&mut self, key: K) {
        if let Ok(at) = self.place(key) {
            self.0.remove(at);
        }
    }

    /// All of them, by key.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (K, &V)> {
        self.0.iter().map(|(key, value)| (*key, value))
    }

    /// All values, by key.
    pub(super) fn values(&self) -> impl DoubleEndedIterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }

    fn place(&self, key: K) -> Result<usize, usize> {
        match self.0.first() {
            // most often there is one
            Some((first, _)) if *first == key => Ok(0),
            _ => self.0.binary_search_by_key(&key, |(key, _)| *key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_and_come_in_order() {
        let mut few = Few::default();
        for key in [5u8, 1, 9, 5, 3] {
            *few.get_or_insert_with(key, || 0) += 1;
        }
        assert_eq!(
            few.iter().map(|(key, n)| (key, *n)).collect::<Vec<_>>(),
            [(1, 1), (3, 1), (5, 2), (9, 1)]
        );
        few.remove(1);
        few.remove(4);
        *few.get_mut(9).unwrap() = 7;
        assert_eq!((few.first(), few.get(9), few.get(1), few.len()), (Some((3, &1)), Some(&7), None, 3));
        assert_eq!(few.values().rev().copied().collect::<Vec<_>>(), [7, 2, 1]);
    }
}
