use super::ages::Ages;
use super::urgency::Urgency;
use crate::admission::{Ask, Id};
use crate::units::{Moment, Rate, Tokens};

/// What a newcomer would find in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlook {
    /// The holds of those who would be served before it, if nobody else came.
    pub ahead: Tokens,
    /// How much could be put before those who would be served after it without making one of them late; `None` for no
    /// limit.
    pub room: Option<Tokens>,
}

/// The waiting of one tenant in one tier.
#[derive(Debug)]
pub struct Lane {
    by_age: Ages,
    urgency: Option<Urgency>,
    tokens: Tokens,
    /// Whether the newest is served first, for orders that change (adaptive LIFO).
    stacked: bool,
}

impl Lane {
    /// An empty lane; `drain` if the order asks about deadlines.
    pub(super) fn new(drain: Option<Rate>) -> Self {
        Self {
            by_age: Ages::default(),
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

    /// What a newcomer would find: everyone before it.
    pub const fn outlook(&self) -> Outlook {
        Outlook { ahead: self.tokens, room: None }
    }

    /// What a newcomer would find if the earliest deadline comes first. `ready` is the present instant plus the service
    /// time, `level` what can be spent at once. Everyone is before it where the order does not ask about deadlines.
    pub fn outlook_by_deadline(&self, ask: &Ask, ready: Moment, level: Tokens) -> Outlook {
        let by_deadline = self.urgency.as_ref();
        by_deadline
            .map_or_else(|| self.outlook(), |urgency| urgency.outlook((ask.deadline, ask.id), ready, level))
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
