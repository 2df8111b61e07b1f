use std::collections::VecDeque;
use std::time::Duration;

use crate::units::{Moment, Rate, Tokens};

/// At most the amount of a period in any half-open span as long as it: exact, by a log of what was taken.
///
/// The log holds one entry an instant at which something was taken in the last period.
#[derive(Debug, Clone)]
pub struct Sliding {
    amount: Tokens,
    period: Duration,
    log: VecDeque<(Moment, Tokens)>,
    used: Tokens,
    at: Moment,
}

impl Sliding {
    pub(super) fn new(amount: Tokens, period: Duration, now: Moment) -> Self {
        let period = period.max(Duration::from_nanos(1));
        Self { amount, period, log: VecDeque::new(), used: Tokens::ZERO, at: now }
    }

    pub(super) fn advance(&mut self, now: Moment) {
        self.at = self.at.max(now);
        while let Some((at, amount)) = self.log.front().copied() {
            if self.at.since(at) < self.period {
                break;
            }
            self.log.pop_front();
            self.used = self.used - amount;
        }
    }

    pub(super) const fn at(&self) -> Moment {
        self.at
    }

    pub(super) const fn size(&self) -> Tokens {
        self.amount
    }

    pub(super) fn tokens(&self) -> Tokens {
        self.amount - self.used
    }

    pub(super) fn holds(&self, amount: Tokens) -> bool {
        self.tokens() >= amount
    }

    pub(super) fn take(&mut self, amount: Tokens) -> bool {
        let enough = self.holds(amount);
        if enough {
            self.charge(amount);
        }
        enough
    }

    pub(super) fn charge(&mut self, amount: Tokens) {
        self.used += amount;
        match self.log.back_mut() {
            Some((at, sum)) if *at == self.at => *sum += amount,
            _ => self.log.push_back((self.at, amount)),
        }
    }

    /// Gives back from the newest entries on: that is the last to be free again otherwise.
    pub(super) fn refund(&mut self, amount: Tokens) {
        let mut left = amount;
        while left > Tokens::ZERO
            && let Some((_, sum)) = self.log.back_mut()
        {
            let part = left.min(*sum);
            *sum = *sum - part;
            self.used = self.used - part;
            left = left - part;
            if *sum == Tokens::ZERO {
                self.log.pop_back();
            }
        }
    }

    pub(super) fn empty(&mut self) {
        self.charge(self.tokens());
    }

    pub(super) fn retune(&mut self, rate: Rate) {
        self.amount = Tokens::new(rate.whole_in(self.period));
    }

    pub(super) fn time_until(&self, amount: Tokens) -> Option<Duration> {
        if amount > self.amount {
            return None;
        }
        let mut free = self.tokens();
        let over = self.used - self.amount;
        let mut over = over;
        let mut wait = Duration::ZERO;
        for (at, sum) in &self.log {
            if free >= amount {
                break;
            }
            // what was charged beyond the amount has to leave the window first
            let pays = over.min(*sum);
            over = over - pays;
            free += *sum - pays;
            wait = (*at + self.period).since(self.at);
        }
        Some(wait)
    }

    pub(super) fn supply(&self, span: Duration) -> Tokens {
        let whole = u64::try_from(span.as_nanos() / self.period.as_nanos()).unwrap_or(u64::MAX);
        let rest = Duration::from_nanos(u64::try_from(span.as_nanos() % self.period.as_nanos()).unwrap_or(0));
        // what is still in the window that ends `rest` from now
        let then = self.at + rest;
        let held = self.log.iter().filter(|(at, _)| then.since(*at) < self.period).map(|(_, sum)| *sum).sum();
        Tokens::new(self.amount.get().saturating_mul(whole)) + (self.amount - held)
    }
}
