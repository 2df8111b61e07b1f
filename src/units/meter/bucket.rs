use std::time::Duration;

use crate::units::{Moment, Rate, Tokens};

/// A bucket's level: it fills at a rate up to its size, and amounts are taken from it.
///
/// The level is kept as a whole number of (token × the rate's denominator), so filling is exact: a million
/// small steps give the same level as one large one. It may stand below zero when more was used than was held.
#[derive(Debug, Clone)]
pub struct Level {
    rate: Rate,
    size: Tokens,
    full: i128,
    level: i128,
    at: Moment,
}

impl Level {
    /// A full bucket of `burst` at `now`.
    pub fn full(rate: Rate, burst: Tokens, now: Moment) -> Self {
        let full = i128::from(burst.get()) * i128::from(rate.per_nanos());
        Self { rate, size: burst, full, level: full, at: now }
    }

    /// The rate it fills at.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The instant it is filled up to.
    pub const fn at(&self) -> Moment {
        self.at
    }

    /// The most it can hold.
    pub const fn size(&self) -> Tokens {
        self.size
    }

    /// Fills at another rate from now on; what is in it and what fits in stay.
    pub fn retune(&mut self, rate: Rate) {
        let (old, new) = (i128::from(self.rate.per_nanos()), i128::from(rate.per_nanos()));
        // to the next smaller part of a token that the new rate can count
        let recount =
            |amount: i128| amount.checked_mul(new).map_or(amount / old * new, |it| it.div_euclid(old));
        (self.level, self.full, self.rate) = (recount(self.level), recount(self.full), rate);
        self.size = self.to_tokens(self.full);
    }

    /// Fills up to `now`. Time that runs backwards is taken as standing still.
    pub fn advance(&mut self, now: Moment) {
        let span = now.nanos_since(self.at);
        self.at = self.at.max(now);
        if self.level == self.full {
            return;
        }
        // below 2^64 times at most 2^62
        let filled = i128::from(span) * i128::from(self.rate.count());
        self.level = self.level.saturating_add(filled).min(self.full);
    }

    /// Whole tokens in the bucket as of the last [`Self::advance`]; none if it stands below zero.
    pub fn tokens(&self) -> Tokens {
        self.to_tokens(self.level)
    }

    /// Whether `amount` is all there: what [`Self::tokens`] tells, without its division.
    pub fn holds(&self, amount: Tokens) -> bool {
        self.level >= self.scaled(amount)
    }

    /// Takes `amount` if it is all there.
    pub fn take(&mut self, amount: Tokens) -> bool {
        let enough = self.holds(amount);
        if enough {
            self.charge(amount);
        }
        enough
    }

    /// Takes `amount` whatever the level, which may go below zero.
    pub fn charge(&mut self, amount: Tokens) {
        self.level -= self.scaled(amount);
    }

    /// Gives `amount` back, up to the size.
    pub fn refund(&mut self, amount: Tokens) {
        self.level = (self.level + self.scaled(amount)).min(self.full);
    }

    /// Lowers the level to zero if it stands above.
    pub fn empty(&mut self) {
        self.level = self.level.min(0);
    }

    /// How long from the last [`Self::advance`] until `amount` is there, rounded up to the next nanosecond.
    /// `None` if it never is, because it is more than the size.
    pub fn time_until(&self, amount: Tokens) -> Option<Duration> {
        let want = self.scaled(amount);
        if want > self.full {
            return None;
        }
        let missing = u128::try_from(want - self.level).unwrap_or(0);
        Some(self.rate.time_for_parts(missing))
    }

    /// The most that can be taken from now until `span` from now.
    pub fn supply(&self, span: Duration) -> Tokens {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        // below 2^64 times at most 2^62
        let filled = i128::from(nanos) * i128::from(self.rate.count());
        self.to_tokens(self.level.saturating_add(filled))
    }

    fn scaled(&self, amount: Tokens) -> i128 {
        i128::from(amount.get()) * i128::from(self.rate.per_nanos())
    }

    fn to_tokens(&self, level: i128) -> Tokens {
        let per = self.rate.per_nanos();
        match u64::try_from(level.max(0)) {
            Ok(level) => Tokens::new(level / per),
            Err(_) => Tokens::new(u64::try_from(level.max(0) / i128::from(per)).unwrap_or(u64::MAX)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_steps_fill_like_one_large_one() {
        let rate = Rate::per_minute(500_000).unwrap();
        let mut steps = Level::full(rate, Tokens::new(100_000), Moment::ZERO);
        steps.charge(Tokens::new(100_000));
        let mut once = steps.clone();
        for i in 1..=100_000u64 {
            steps.advance(Moment::from_nanos(i * 7_777));
        }
        once.advance(Moment::from_nanos(777_700_000));
        assert_eq!(steps.level, once.level);
    }

    #[test]
    fn the_wait_ends_exactly_when_the_amount_is_there() {
        let mut level = Level::full(Rate::per_second(3).unwrap(), Tokens::new(10), Moment::ZERO);
        assert!(level.take(Tokens::new(10)));
        let wait = level.time_until(Tokens::new(1)).unwrap();
        level.advance(Moment::ZERO + wait - Duration::from_nanos(1));
        assert!(!level.take(Tokens::new(1)));
        level.advance(Moment::ZERO + wait);
        assert!(level.take(Tokens::new(1)));
        assert_eq!(level.time_until(Tokens::new(11)), None);
    }
}
