use std::time::Duration;

use crate::units::{Moment, Tokens};

/// The whole amount of a period at its start; what is left at its end is lost. Periods follow one another from the
/// instant it was made. Twice the amount can pass across an edge, as with the real thing.
#[derive(Debug, Clone)]
pub struct Fixed {
    amount: Tokens,
    period: Duration,
    start: Moment,
    used: Tokens,
    at: Moment,
}

impl Fixed {
    /// An unused window that begins at `now`. A period of zero is taken as a nanosecond.
    pub(super) fn new(amount: Tokens, period: Duration, now: Moment) -> Self {
        Self { amount, period: period.max(Duration::from_nanos(1)), start: now, used: Tokens::ZERO, at: now }
    }

    pub(super) fn advance(&mut self, now: Moment) {
        self.at = self.at.max(now);
        let passed = self.at.since(self.start).as_nanos() / self.period.as_nanos();
        if passed > 0 {
            self.used = Tokens::ZERO;
            self.start = self.start + self.periods(passed);
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

    /// What was taken in an earlier period is not given back to this one beyond its amount.
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
            _ => Some((self.start + self.period).since(self.at)),
        }
    }

    pub(super) fn supply(&self, span: Duration) -> Tokens {
        let resets = (self.at + span).since(self.start).as_nanos() / self.period.as_nanos();
        let resets = u64::try_from(resets).unwrap_or(u64::MAX);
        self.tokens() + Tokens::new(self.amount.get().saturating_mul(resets))
    }

    fn periods(&self, count: u128) -> Duration {
        Duration::from_nanos(u64::try_from(self.period.as_nanos().saturating_mul(count)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_period_starts_clean_and_the_old_count_is_not_carried_over() {
        let mut window = Fixed::new(Tokens::new(100), Duration::from_secs(60), Moment::ZERO);
        assert!(window.take(Tokens::new(100)) && !window.take(Tokens::new(1)));
        window.advance(Moment::from_secs(59));
        assert_eq!(window.time_until(Tokens::new(1)), Some(Duration::from_secs(1)));
        window.advance(Moment::from_secs(60));
        assert_eq!(window.tokens(), Tokens::new(100));
        window.advance(Moment::from_secs(185));
        assert_eq!(window.time_until(Tokens::new(101)), None);
        assert!(window.take(Tokens::new(60)));
        assert_eq!(window.time_until(Tokens::new(60)), Some(Duration::from_secs(55)));
        assert_eq!(window.supply(Duration::from_secs(55)), Tokens::new(140));
    }
}
