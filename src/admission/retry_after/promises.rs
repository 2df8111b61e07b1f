use std::collections::BTreeSet;
use std::time::Duration;

use super::Reserve;
use crate::units::{Dense, Moment, Tokens};

/// How long after its time an unkept appointment is given up.
const GRACE: Duration = Duration::from_secs(1);

/// The most appointments kept at once (about 10 MB); the latest are forgotten first.
const MOST: usize = 100_000;

/// The open appointments, and what they taught about how many refused callers come back.
///
/// θ = (1 + came) / (20 + closed): a promise closes when its caller returns, or one second after its time.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    by_caller: Dense<(Moment, Tokens)>,
    by_time: BTreeSet<(Moment, u64)>,
    open: Tokens,
    came: u64,
    closed: u64,
}

impl Promises {
    /// Closes the promises whose time has passed at `now`.
    pub(crate) fn advance(&mut self, now: Moment) {
        while let Some((time, caller)) = self.by_time.first().copied() {
            if time + GRACE >= now {
                break;
            }
            self.remove(caller);
            self.closed += 1;
        }
    }

    /// Whether `caller` was told to come at or before `now`. If so its promise is closed.
    pub(crate) fn redeem(&mut self, caller: u64, now: Moment) -> bool {
        let due = self.by_caller.get(caller).is_some_and(|(time, _)| *time <= now);
        if due {
            self.remove(caller);
            self.closed += 1;
            self.came += 1;
        }
        due
    }

    /// Notes that `caller` was told to come at `time` with `tokens` of work.
    pub(crate) fn add(&mut self, caller: u64, time: Moment, tokens: Tokens) {
        self.remove(caller);
        if self.by_caller.len() >= MOST
            && let Some((_, last)) = self.by_time.last().copied()
        {
            self.remove(last);
        }
        self.by_caller.insert(caller, (time, tokens));
        self.by_time.insert((time, caller));
        self.open += tokens;
    }

    /// Tokens promised and not yet come for.
    pub(crate) const fn open(&self) -> Tokens {
        self.open
    }

    /// How many are open.
    pub(crate) fn len(&self) -> usize {
        self.by_caller.len()
    }

    /// θ: the share of refused callers that come back.
    pub(crate) fn returning(&self, reserve: &Reserve) -> f64 {
        if !reserve.learn {
            return reserve.start.get();
        }
        // the start counts as twenty callers seen
        (20.0 * reserve.start.get() + self.came as f64) / (20.0 + self.closed as f64)
    }

    fn remove(&mut self, caller: u64) {
        if let Some((time, tokens)) = self.by_caller.remove(caller) {
            self.by_time.remove(&(time, caller));
            self.open = self.open - tokens;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Share;

    #[test]
    fn the_share_that_returns_is_learned_from_those_who_do() {
        let share = |v| Share::new(v).unwrap();
        let reserve = Reserve { share: share(0.25), start: share(0.05), learn: true };
        let mut promises = Promises::default();
        assert!((promises.returning(&reserve) - 0.05).abs() < 1e-12);
        for caller in 0..100 {
            promises.add(caller, Moment::from_secs(10), Tokens::new(5));
        }
        assert_eq!(promises.open(), Tokens::new(500));
        assert!(!promises.redeem(0, Moment::from_secs(9)), "too early is no return");
        for caller in 0..10 {
            assert!(promises.redeem(caller, Moment::from_millis(10_250)));
        }
        promises.advance(Moment::from_millis(11_000));
        assert_eq!(promises.len(), 90, "a second of grace");
        promises.advance(Moment::from_millis(11_001));
        assert_eq!((promises.len(), promises.open()), (0, Tokens::ZERO));
        assert!((promises.returning(&reserve) - 11.0 / 120.0).abs() < 1e-12);
    }
}
