use std::time::Duration;

use crate::units::Moment;

/// When the tokens of an answer are there: the first, each other a gap after the one before, and the end a gap after the
/// last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// When the answer ends.
    pub until: Moment,
    /// From one token to the next.
    pub gap: Duration,
    /// How many there are.
    pub tokens: u64,
}

impl Flow {
    /// When the `nth` token is there, the first being 0.
    pub fn due(&self, nth: u64) -> Moment {
        self.until - self.gaps(self.tokens.saturating_sub(nth))
    }

    /// How many tokens are there at `now`.
    pub fn by(&self, now: Moment) -> u64 {
        if now >= self.until {
            return self.tokens;
        }
        let (left, gap) = (self.until.since(now).as_nanos(), self.gap.as_nanos());
        // without gaps they all come at the end
        let missing = if gap == 0 { u128::MAX } else { left.div_ceil(gap) };
        let there = u128::from(self.tokens).saturating_add(1).saturating_sub(missing);
        u64::try_from(there).unwrap_or(u64::MAX).min(self.tokens)
    }

    fn gaps(&self, count: u64) -> Duration {
        let nanos = self.gap.as_nanos().saturating_mul(u128::from(count));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As in LukeMathWalker/wiremock-rs#133: 20 tokens 50 ms apart, the first after 200 ms.
    #[test]
    fn twenty_tokens_come_one_by_one() {
        let flow = Flow { until: Moment::from_millis(1_200), gap: Duration::from_millis(50), tokens: 20 };
        assert_eq!((flow.due(0), flow.due(19)), (Moment::from_millis(200), Moment::from_millis(1_150)));
        let by =
            [0, 199, 200, 249, 250, 1_149, 1_150, 1_200, 9_000].map(|ms| flow.by(Moment::from_millis(ms)));
        assert_eq!(by, [0, 0, 1, 1, 2, 19, 20, 20, 20]);
    }

    proptest! {
        #[test]
        fn what_is_due_is_there_and_what_is_not_is_not(
            until in 0u64..10_000, gap in 0u64..500, tokens in 0u64..50, now in 0u64..12_000,
        ) {
            let flow = Flow { until: Moment::from_millis(until), gap: Duration::from_millis(gap), tokens };
            let now = Moment::from_millis(now);
            let due = (0..tokens).filter(|nth| flow.due(*nth) <= now).count() as u64;
            prop_assert_eq!(flow.by(now), due);
        }
    }
}
