//! Requests that are sent twice under one key: a copy gets the answer of its original, or is one of its own.

use std::collections::BTreeMap;

use super::timers::Due;
use super::world::World;
use crate::admission::{Id, Operation};
use crate::observe::{Answer, Attempt, Sighting};
use crate::units::Bytes;
use crate::workload::{Arrival, ClassId, Copies};

/// Who waits for whose answer.
#[derive(Debug, Default)]
pub(super) struct Attached(BTreeMap<Id, Vec<Id>>);

impl Attached {
    /// Whether somebody waits for the answer of `id`.
    pub(super) fn wait_for(&self, id: Id) -> bool {
        self.0.contains_key(&id)
    }

    /// `id` waits for the answer of `to`.
    fn attach(&mut self, id: Id, to: Id) {
        self.0.entry(to).or_default().push(id);
    }

    /// Those who wait for the answer of `of`; nobody does any more.
    fn take(&mut self, of: Id) -> Vec<Id> {
        if self.0.is_empty() { Vec::new() } else { self.0.remove(&of).unwrap_or_default() }
    }
}

/// What the key of arrival `seq` says of it, if it is one that has a copy.
pub(super) fn operation(copies: &Copies, class: ClassId, seq: u64) -> Option<Box<Operation>> {
    if !copies.are_any() {
        return None;
    }
    let number = u128::from(seq);
    copies.after(class, seq).map(|_| Box::new(Operation { key: number, body: number }))
}

/// The size of an answer that is kept for a copy: what its tokens take as words.
pub(super) const fn size_of(tokens: u64) -> Bytes {
    Bytes::new(tokens.saturating_mul(6))
}

impl<See: FnMut(Sighting)> World<'_, See> {
    /// An arrival's copy follows it, if it has one.
    pub(super) fn copy(&mut self, arrival: &Arrival) {
        if let Some(after) = self.copies.after(arrival.class, arrival.seq) {
            self.timers.add(self.now + after, Due::Copy(arrival.seq, arrival.class, arrival.sizes));
        }
    }

    /// `id` gets the answer that `to` will get.
    pub(super) fn attach(&mut self, id: Id, to: Id) {
        self.attached.attach(id, to);
    }

    /// Everybody who waits for the answer of `of` gets it.
    pub(super) fn relay(&mut self, of: Id, answer: &Answer) {
        for id in self.attached.take(of) {
            if let Some(open) = self.open.remove(id.0).filter(|open| open.here) {
                (self.see)(Sighting::Answered {
                    attempt: open.attempt,
                    at: self.now,
                    answer: answer.clone(),
                });
            }
        }
    }

    /// Whether the caller of `attempt`, of an arrival of `class`, comes once: no copy, and nobody who has one.
    pub(super) fn comes_once(&self, class: ClassId, attempt: Attempt) -> bool {
        attempt.nth == 0 && (!self.copies.are_any() || self.copies.after(class, attempt.seq).is_none())
    }
}
