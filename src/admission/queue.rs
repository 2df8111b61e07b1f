//! The waiting requests, findable by age and by deadline.

use std::collections::{BTreeMap, BTreeSet};

use super::{Ask, Id};
use crate::units::{Bytes, Moment, Tokens};

/// The waiting requests. Every operation takes at most log n steps.
#[derive(Debug, Default)]
pub struct Queue {
    by_age: BTreeMap<Id, Ask>,
    by_deadline: BTreeSet<(Moment, Id)>,
    tokens: Tokens,
    bytes: Bytes,
}

impl Queue {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.by_age.is_empty()
    }

    /// The sum of their holds.
    pub const fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// The sum of their bodies.
    pub const fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Who came first.
    pub fn oldest(&self) -> Option<Id> {
        self.by_age.first_key_value().map(|(id, _)| *id)
    }

    /// Who came last.
    pub fn newest(&self) -> Option<Id> {
        self.by_age.last_key_value().map(|(id, _)| *id)
    }

    /// Whose deadline is next, and when.
    pub fn most_urgent(&self) -> Option<(Moment, Id)> {
        self.by_deadline.first().copied()
    }

    /// One of them.
    pub fn get(&self, id: Id) -> Option<&Ask> {
        self.by_age.get(&id)
    }

    pub(super) fn insert(&mut self, ask: Ask) {
        self.tokens += ask.hold();
        self.bytes += ask.bytes;
        self.by_deadline.insert((ask.deadline, ask.id));
        self.by_age.insert(ask.id, ask);
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Ask> {
        let ask = self.by_age.remove(&id)?;
        self.by_deadline.remove(&(ask.deadline, id));
        self.tokens = self.tokens - ask.hold();
        self.bytes = self.bytes - ask.bytes;
        Some(ask)
    }
}
