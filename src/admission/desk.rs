use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Id, Operation};
use crate::units::{Bytes, Moment};

/// What is kept of operations that have ended, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// At most so many.
    pub number: u64,
    /// At most so many bytes of answers.
    pub bytes: Bytes,
    /// At most so old.
    pub age: Duration,
}

impl Default for Kept {
    fn default() -> Self {
        Self { number: 10_000, bytes: Bytes::new(64 << 20), age: Duration::from_secs(600) }
    }
}

/// What an operation's key says of a request that carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Never seen, or forgotten: the only one that may reach the provider.
    Fresh,
    /// The same operation is running as this request.
    Active(Id),
    /// It ended as this request; its answer is kept.
    Completed(Id),
    /// The same key with another body.
    Conflict,
}

/// Operations by their idempotency keys.
#[derive(Debug)]
pub(crate) struct Desk {
    kept: Kept,
    operations: BTreeMap<u128, Entry>,
    done: BTreeSet<(Moment, u128)>,
    bytes: Bytes,
}

#[derive(Debug)]
struct Entry {
    body: u128,
    id: Id,
    /// When it ended and how large its answer is; `None` while it runs.
    done: Option<(Moment, Bytes)>,
}

impl Desk {
    pub(crate) const fn new(kept: Kept) -> Self {
        Self { kept, operations: BTreeMap::new(), done: BTreeSet::new(), bytes: Bytes::ZERO }
    }

    /// What is known of `operation`.
    pub(crate) fn seen(&self, operation: &Operation) -> Seen {
        match self.operations.get(&operation.key) {
            None => Seen::Fresh,
            Some(entry) if entry.body != operation.body => Seen::Conflict,
            Some(Entry { id, done: None, .. }) => Seen::Active(*id),
            Some(Entry { id, done: Some(_), .. }) => Seen::Completed(*id),
        }
    }

    /// `operation` runs as `id`.
    pub(crate) fn start(&mut self, operation: &Operation, id: Id) {
        self.operations.insert(operation.key, Entry { body: operation.body, id, done: None });
    }

    /// It ended without an answer to keep: the next request with its key is fresh.
    pub(crate) fn drop(&mut self, operation: &Operation) {
        self.operations.remove(&operation.key);
    }

    /// It ended at `now` with an answer of `bytes`. Gives the requests whose answers are to be forgotten for it, which
    /// may be this one itself.
    pub(crate) fn finish(&mut self, operation: &Operation, now: Moment, bytes: Bytes) -> Vec<Id> {
        if let Some(entry) = self.operations.get_mut(&operation.key) {
            entry.done = Some((now, bytes));
            self.done.insert((now, operation.key));
            self.bytes += bytes;
        }
        self.trim(now)
    }

    /// Forgets what is too old, too many or too large by `now`; gives the requests it ran as.
    pub(crate) fn trim(&mut self, now: Moment) -> Vec<Id> {
        let mut forgotten = Vec::new();
        while let Some((at, key)) = self.done.first().copied() {
            let old = now.since(at) >= self.kept.age;
            if !old && self.done.len() as u64 <= self.kept.number && self.bytes <= self.kept.bytes {
                break;
            }
            self.done.remove(&(at, key));
            if let Some(Entry { id, done: Some((_, bytes)), .. }) = self.operations.remove(&key) {
                self.bytes = self.bytes - bytes;
                forgotten.push(id);
            }
        }
        forgotten
    }

    /// When the next answer is too old.
    pub(crate) fn next_trim(&self) -> Option<Moment> {
        self.done.first().map(|(at, _)| *at + self.kept.age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_kept_up_to_a_number_a_size_and_an_age() {
        let kept = Kept { number: 2, bytes: Bytes::new(100), age: Duration::from_secs(10) };
        let mut desk = Desk::new(kept);
        let operation = |key| Operation { key, body: 1 };
        let finish = |desk: &mut Desk, key: u128, secs, bytes| {
            desk.start(&operation(key), Id(u64::try_from(key).unwrap()));
            desk.finish(&operation(key), Moment::from_secs(secs), Bytes::new(bytes))
        };
        assert_eq!(finish(&mut desk, 1, 0, 40), []);
        assert_eq!(finish(&mut desk, 2, 1, 40), []);
        assert_eq!(finish(&mut desk, 3, 2, 40), [Id(1)], "three are too many");
        assert_eq!(finish(&mut desk, 4, 3, 90), [Id(2), Id(3)], "130 bytes are too many");
        assert_eq!(desk.seen(&operation(4)), Seen::Completed(Id(4)));
        assert_eq!(desk.seen(&Operation { key: 4, body: 2 }), Seen::Conflict);
        assert_eq!(desk.next_trim(), Some(Moment::from_secs(13)));
        assert_eq!(desk.trim(Moment::from_secs(13)), [Id(4)]);
        assert_eq!(desk.seen(&operation(4)), Seen::Fresh);
        assert_eq!(finish(&mut desk, 5, 20, 101), [Id(5)], "larger than all that may be kept");
    }
}
