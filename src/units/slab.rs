/// How many entries are made at a time: growing copies nothing and wastes at most one chunk.
const CHUNK: usize = 1_024;

/// Entries under small numbers that are used again.
#[derive(Debug, Clone)]
pub(super) struct Slab<T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
    len: usize,
}

impl<T> Slab<T> {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), len: 0 }
    }

    /// Keeps `value`; gives its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        self.len += 1;
        if let Some(at) = self.free.pop() {
            if let Some(slot) = self.slot(at) {
                *slot = Some(value);
            }
            return at;
        }
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(Some(value)),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(Some(value));
                self.chunks.push(chunk);
            }
        }
        let (full, last) = (self.chunks.len() - 1, self.chunks.last().map_or(0, Vec::len));
        u32::try_from(full * CHUNK + last - 1).unwrap_or(u32::MAX)
    }

    /// The entry under `at`.
    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.chunks.get(at as usize / CHUNK)?.get(at as usize % CHUNK)?.as_ref()
    }

    /// The entry under `at`, to be changed.
    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.slot(at)?.as_mut()
    }

    /// How many entries there are.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Takes the entry under `at` out; its number is free again.
    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        let taken = self.slot(at)?.take();
        if taken.is_some() {
            self.len -= 1;
            self.free.push(at);
        }
        taken
    }

    fn slot(&mut self, at: u32) -> Option<&mut Option<T>> {
        self.chunks.get_mut(at as usize / CHUNK)?.get_mut(at as usize % CHUNK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_nothing_moves() {
        let mut slab = Slab::new();
        let numbers: Vec<u32> = (0..3_000).map(|n| slab.insert(n)).collect();
        assert_eq!(numbers, (0..3_000).collect::<Vec<u32>>());
        assert_eq!((slab.remove(7), slab.remove(7), slab.get(7)), (Some(7), None, None));
        assert_eq!(slab.insert(9_000), 7);
        assert_eq!((slab.get(7), slab.get(2_999), slab.get(3_000)), (Some(&9_000), Some(&2_999), None));
    }
}
