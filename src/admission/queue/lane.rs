use super::row::Row;
use super::urgency::Urgency;
use crate::admission::{Ask, Id};
use crate::units::{Moment, Rate, Tokens};

/// The waiting of one tenant in one tier.
#[derive(Debug)]
pub struct Lane {
    by_age: Row,
    urgency: Option<Urgency>,
    tokens: Tokens,
    /// Whether the newest is served first, for orders that change (adaptive LIFO).
    stacked: bool,
}

impl Lane {
    /// An empty lane; `drain` if the order asks about deadlines.
    pub(super) fn new(drain: Option<Rate>) -> Self {
        Self {
            by_age: Row::default(),
            urgency: drain.map(Urgency::new),
            tokens: Tokens::ZERO,
            stacked: false,
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.by_age.len()
    }

    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.by_age.len() == 0
    }

    /// The sum of their holds.
    pub const fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Who came first.
    pub fn oldest(&self) -> Option<Id> {
        self.by_age.first()
    }

    /// Who came last.
    pub fn newest(&self) -> Option<Id> {
        self.by_age.last()
    }

    /// Whose deadline is next; the oldest where the order does not ask about deadlines.
    pub fn most_urgent(&self) -> Option<Id> {
        self.urgency.as_ref().map_or_else(|| self.oldest(), |urgency| urgency.first().map(|(_, id)| id))
    }

    /// The next deadline, where the order asks about deadlines.
    pub(super) fn next_deadline(&self) -> Option<(Moment, Id)> {
        self.urgency.as_ref().and_then(Urgency::first)
    }

    /// The holds of those due before `ask`; everyone's where the order does not ask about deadlines.
    pub fn due_before(&self, ask: &Ask) -> Tokens {
        self.urgency.as_ref().map_or(self.tokens, |urgency| urgency.ahead_of((ask.deadline, ask.id)))
    }

    /// How much could be put before those due after `ask` without making one of them late; `None` for no limit.
    /// `ready` is the present instant plus the service time, `level` what can be spent at once.
    pub fn room_before(&self, ask: &Ask, ready: Moment, level: Tokens) -> Option<Tokens> {
        self.urgency.as_ref()?.room_before((ask.deadline, ask.id), ready, level)
    }

    /// Their ids, the oldest first.
    pub(super) fn oldest_first(&self) -> impl Iterator<Item = Id> {
        self.by_age.iter()
    }

    /// Their ids, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = Id> {
        self.by_age.iter().rev()
    }

    /// Whether the newest is served first just now.
    pub const fn stacked(&self) -> bool {
        self.stacked
    }

    pub(super) fn insert(&mut self, ask: &Ask) {
        self.tokens += ask.hold();
        self.by_age.insert(ask.id);
        if let Some(urgency) = &mut self.urgency {
            urgency.insert((ask.deadline, ask.id), ask.hold());
        }
    }

    pub(super) fn remove(&mut self, ask: &Ask) {
        if self.by_age.remove(ask.id) {
            self.tokens = self.tokens - ask.hold();
            if let Some(urgency) = &mut self.urgency {
                urgency.remove((ask.deadline, ask.id));
            }
        }
    }

    /// Serves the newest first from now on, or the oldest.
    pub const fn stack(&mut self, stacked: bool) {
        self.stacked = stacked;
    }
}
