use std::time::Duration;

use crate::units::{Moment, Tokens};

/// The whole amount of a period at the instant it ends, and nothing between: who waits then is served, who comes later
/// waits for the next. What nobody takes is lost.
#[derive(Debug, Clone)]
pub struct Round {
    amount: Tokens,
    period: Duration,
    /// The latest end of a period, or the beginning.
    edge: Moment,
    used: Tokens,
    at: Moment,
}

impl Round {
    /// A first period that begins at `now`. A period of zero is taken as a nanosecond.
    pub(super) fn new(amount: Tokens, period: Duration, now: Moment) -> Self {
        // nothing is given out at the very beginning: no period has ended
        Self { amount, period: period.max(Duration::from_nanos(1)), edge: now, used: amount, at: now }
    }

    pub(super) fn advance(&mut self, now: Moment) {
        self.at = self.at.max(now);
        let passed = self.at.since(self.edge).as_nanos() / self.period.as_nanos();
        if passed > 0 {
            self.used = Tokens::ZERO;
            self.edge = self.edge + self.periods(passed);
        }
    }

    pub(super) const fn at(&self) -> Moment {
        self.at
    }

    pub(super) const fn size(&self) -> Tokens {
        self.amount
    }

    pub(super) fn tokens(&self) -> Tokens {
        if self.at == self.edge { self.amount - self.used } else { Tokens::ZERO }
    }

    pub(super) fn take(&mut self, amount: Tokens) -> bool {
        let enough = self.tokens() >= amount;
        if enough {
            self.used += amount;
        }
        enough
    }

    pub(super) fn charge(&mut self, amount: Tokens) {
        self.used += amount;
    }

    /// What was taken at an earlier edge is not given back to this one beyond its amount.
    pub(super) fn refund(&mut self, amount: Tokens) {
        self.used = self.used - amount;
    }

    pub(super) fn empty(&mut self) {
        self.used = self.used.max(self.amount);
    }

    pub(super) fn time_until(&self, amount: Tokens) -> Option<Duration> {
        match amount {
            _ if amount > self.amount => None,
            _ if amount <= self.tokens() => Some(Duration::ZERO),
            _ => Some((self.edge + self.period).since(self.at)),
        }
    }

    pub(super) fn supply(&self, span: Duration) -> Tokens {
        let edges = (self.at + span).since(self.edge).as_nanos() / self.period.as_nanos();
        let edges = u64::try_from(edges).unwrap_or(u64::MAX);
        self.tokens() + Tokens::new(self.amount.get().saturating_mul(edges))
    }

    fn periods(&self, count: u128) -> Duration {
        Duration::from_nanos(u64::try_from(self.period.as_nanos().saturating_mul(count)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_gives_out_at_its_end_and_never_between() {
        let tokens = Tokens::new;
        let mut round = Round::new(tokens(100), Duration::from_secs(1), Moment::ZERO);
        assert_eq!(round.time_until(tokens(1)), Some(Duration::from_secs(1)));
        round.advance(Moment::from_millis(500));
        assert!(!round.take(tokens(1)));
        assert_eq!(round.time_until(tokens(1)), Some(Duration::from_millis(500)));
        assert_eq!(round.time_until(tokens(101)), None);
        assert_eq!(round.supply(Duration::from_millis(499)), Tokens::ZERO);
        assert_eq!(round.supply(Duration::from_millis(1_500)), tokens(200));
        round.advance(Moment::from_secs(1));
        assert!(round.take(tokens(70)) && !round.take(tokens(31)) && round.take(tokens(30)));
        round.advance(Moment::from_millis(1_001));
        assert_eq!(round.tokens(), Tokens::ZERO);
        round.advance(Moment::from_millis(7_900));
        assert_eq!(round.time_until(tokens(100)), Some(Duration::from_millis(100)));
    }
}
