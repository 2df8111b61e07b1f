use std::time::Duration;

use crate::units::{Moment, Rate, Tokens};

/// When the amount of a period is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// Through the whole period. Twice the amount can pass across an edge, as with the real thing.
    Throughout,
    /// At the instant it ends, and never between: who waits then is served, who comes later waits for the next.
    AtItsEnd,
}

/// The same amount in each of the periods that follow one another from the instant it was made; what a period leaves is
/// lost.
#[derive(Debug, Clone)]
pub struct Periods {
    given: Given,
    amount: Tokens,
    /// In nanoseconds, at least one.
    period: u64,
    /// Where the present period begins.
    edge: Moment,
    used: Tokens,
    at: Moment,
}

impl Periods {
    /// Periods that begin at `now`. One of zero is taken as a nanosecond.
    pub(super) fn new(given: Given, amount: Tokens, period: Duration, now: Moment) -> Self {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        let used = match given {
            Given::Throughout => Tokens::ZERO,
            // no period has ended yet
            Given::AtItsEnd => amount,
        };
        Self { given, amount, period, edge: now, used, at: now }
    }

    pub(super) fn advance(&mut self, now: Moment) {
        self.at = self.at.max(now);
        let passed = self.edges_by(self.at);
        if passed > 0 {
            self.used = Tokens::ZERO;
            self.edge = self.edge_after(passed);
        }
    }

    pub(super) const fn at(&self) -> Moment {
        self.at
    }

    pub(super) const fn size(&self) -> Tokens {
        self.amount
    }

    pub(super) fn tokens(&self) -> Tokens {
        match self.given {
            Given::AtItsEnd if self.at > self.edge => Tokens::ZERO,
            Given::AtItsEnd | Given::Throughout => self.amount - self.used,
        }
    }

    pub(super) fn holds(&self, amount: Tokens) -> bool {
        self.tokens() >= amount
    }

    pub(super) fn take(&mut self, amount: Tokens) -> bool {
        let enough = self.holds(amount);
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

    pub(super) fn retune(&mut self, rate: Rate) {
        self.amount = Tokens::new(rate.whole_in(Duration::from_nanos(self.period)));
    }

    pub(super) fn time_until(&self, amount: Tokens) -> Option<Duration> {
        match amount {
            _ if amount > self.amount => None,
            _ if amount <= self.tokens() => Some(Duration::ZERO),
            _ => Some(self.edge_after(1).since(self.at)),
        }
    }

    pub(super) fn supply(&self, span: Duration) -> Tokens {
        let edges = self.edges_by(self.at + span);
        self.tokens() + Tokens::new(self.amount.get().saturating_mul(edges))
    }

    /// How many periods end by `then`, the present one the first.
    const fn edges_by(&self, then: Moment) -> u64 {
        then.nanos_since(self.edge) / self.period
    }

    fn edge_after(&self, periods: u64) -> Moment {
        self.edge + Duration::from_nanos(self.period.saturating_mul(periods))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn tokens(count: u64) -> Tokens {
        Tokens::new(count)
    }

    /// As in BerriAI/litellm#24677: the last window's count made for a false 429 at the edge.
    #[test]
    fn a_new_period_starts_clean_and_the_old_count_is_not_carried_over() {
        let mut window = Periods::new(Given::Throughout, tokens(100), Duration::from_secs(60), Moment::ZERO);
        assert!(window.take(tokens(100)) && !window.take(tokens(1)));
        window.advance(Moment::from_secs(59));
        assert_eq!(window.time_until(tokens(1)), Some(Duration::from_secs(1)));
        window.advance(Moment::from_secs(60));
        assert_eq!(window.tokens(), tokens(100));
        window.advance(Moment::from_secs(185));
        assert_eq!(window.time_until(tokens(101)), None);
        assert!(window.take(tokens(60)));
        assert_eq!(window.time_until(tokens(60)), Some(Duration::from_secs(55)));
        assert_eq!(window.supply(Duration::from_secs(55)), tokens(140));
    }

    #[test]
    fn a_round_gives_out_at_its_end_and_never_between() {
        let mut round = Periods::new(Given::AtItsEnd, tokens(100), Duration::from_secs(1), Moment::ZERO);
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
