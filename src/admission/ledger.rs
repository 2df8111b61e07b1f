use crate::units::{Level, Moment, Tokens};

use super::config::Budgets;

/// What may be spent: a bucket of tokens, and what is held of it for requests at the provider.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    bucket: Level,
    held: Tokens,
}

impl Ledger {
    pub(crate) fn new(budgets: &Budgets, now: Moment) -> Self {
        Self { bucket: Level::full(budgets.tokens, budgets.burst_tokens(), now), held: Tokens::ZERO }
    }

    /// The bucket, filled up to the last [`Self::advance`].
    pub(crate) const fn bucket(&self) -> &Level {
        &self.bucket
    }

    /// Tokens held for requests at the provider.
    pub(crate) const fn held(&self) -> Tokens {
        self.held
    }

    pub(crate) fn advance(&mut self, now: Moment) {
        self.bucket.advance(now);
    }

    /// Takes the hold of a request if it is there.
    pub(crate) fn hold(&mut self, hold: Tokens) -> bool {
        let taken = self.bucket.take(hold);
        if taken {
            self.held += hold;
        }
        taken
    }

    /// Replaces a hold by what was really used.
    pub(crate) fn settle(&mut self, hold: Tokens, used: Tokens) {
        self.held = self.held - hold;
        self.bucket.refund(hold - used);
        self.bucket.charge(used - hold);
    }

    /// Gives a hold back whole: the provider did no work for it.
    pub(crate) fn release(&mut self, hold: Tokens) {
        self.settle(hold, Tokens::ZERO);
    }

    /// The provider says its quota is spent, whatever this ledger believed.
    pub(crate) fn believe_empty(&mut self) {
        self.bucket.empty();
    }
}
