use std::collections::VecDeque;

/// How many entries are made at a time.
const CHUNK: usize = 256;

/// A queue with places that grows at its back without moving what is in it: one that grows by doubling copies all of it
/// and touches memory anew each time.
#[derive(Debug, Clone)]
pub struct Row<T> {
    chunks: VecDeque<Box<[T]>>,
    /// Places of the first chunk that were taken out.
    gone: usize,
    len: usize,
}

impl<T> Default for Row<T> {
    fn default() -> Self {
        Self { chunks: VecDeque::new(), gone: 0, len: 0 }
    }
}

impl<T: Copy> Row<T> {
    /// How many entries there are.
    #[inline]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is none.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first entry.
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The entry at this place, counted from the front.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&T> {
        if place >= self.len {
            return None;
        }
        let at = self.gone + place;
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// The same, to be changed.
    #[inline]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        if place >= self.len {
            return None;
        }
        let at = self.gone + place;
        self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)
    }

    /// Puts one more at the back.
    #[inline]
    pub fn push_back(&mut self, value: T) {
        let at = self.gone + self.len;
        if at / CHUNK == self.chunks.len() {
            // what is filled with is never looked at
            self.chunks.push_back(vec![value; CHUNK].into_boxed_slice());
        } else if let Some(entry) =
            self.chunks.get_mut(at / CHUNK).and_then(|chunk| chunk.get_mut(at % CHUNK))
        {
            *entry = value;
        }
        self.len += 1;
    }

    /// Takes the first out.
    pub fn pop_front(&mut self) {
        if self.len == 0 {
            return;
        }
        (self.gone, self.len) = (self.gone + 1, self.len - 1);
        if self.gone == CHUNK {
            self.chunks.pop_front();
            self.gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_queue_it_stands_for() {
        let (mut row, mut queue) = (Row::default(), VecDeque::new());
        let mut state = 3u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for step in 0..60_000u64 {
            // it grows, shrinks to nothing, and grows again
            if random(10) < if step / 10_000 % 2 == 0 { 7 } else { 3 } {
                row.push_back(step);
                queue.push_back(step);
            } else {
                row.pop_front();
                queue.pop_front();
            }
            let place = random(queue.len() as u64 + 2) as usize;
            if let (Some(a), Some(b)) = (row.get_mut(place), queue.get_mut(place)) {
                (*a, *b) = (step * 2, step * 2);
            }
            assert_eq!((row.len(), row.is_empty()), (queue.len(), queue.is_empty()));
            assert_eq!((row.get(place), row.front()), (queue.get(place), queue.front()));
        }
        let chunks = (row.gone + row.len()).div_ceil(CHUNK);
        assert!(row.chunks.len() <= chunks.max(1), "what is taken out is given back");
    }
}
