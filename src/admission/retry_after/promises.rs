use std::time::Duration;

use super::Reserve;
use super::calendar::Calendar;
use crate::units::{Dense, Moment, Tokens};

/// How long after its time an unkept appointment is given up.
const GRACE: Duration = Duration::from_secs(1);

/// The most appointments kept at once (about 10 MB); the latest, to the second, are forgotten first.
pub const MOST: usize = 100_000;

/// The open appointments, and what they taught about how many refused callers come back.
///
/// θ = (1 + came) / (20 + closed): a promise closes when its caller returns, or one second after its time.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    by_caller: Dense<(Moment, Tokens)>,
    /// Every open one, and some that are open no more.
    by_time: Calendar,
    open: Tokens,
    came: u64,
    closed: u64,
}

impl Promises {
    /// Closes the promises whose time has passed at `now`.
    pub(crate) fn advance(&mut self, now: Moment) {
        while let Some((time, caller)) = self.by_time.pop_before(now - GRACE) {
            if let Some((_, tokens)) = self.by_caller.remove_if(caller, |(promised, _)| *promised == time) {
                self.open = self.open - tokens;
                self.closed += 1;
            }
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

    /// Whether a promise to `caller` is open.
    pub(crate) fn expects(&self, caller: u64) -> bool {
        self.by_caller.get(caller).is_some()
    }

    /// Notes that `caller` was told to come at `time` with `tokens` of work.
    pub(crate) fn add(&mut self, caller: u64, time: Moment, tokens: Tokens) {
        self.remove(caller);
        while self.len() >= MOST
            && let Some((time, last)) = self.by_time.pop_latest()
        {
            if self.stands(time, last) {
                self.remove(last);
            }
        }
        self.by_caller.insert(caller, (time, tokens));
        self.by_time.add(time, caller);
        self.open += tokens;
        if self.by_time.len() > 2 * self.len() + MOST / 100 {
            let by_caller = &self.by_caller;
            self.by_time.retain(|time, caller| stands(by_caller, time, caller));
        }
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

    fn stands(&self, time: Moment, caller: u64) -> bool {
        stands(&self.by_caller, time, caller)
    }

    fn remove(&mut self, caller: u64) {
        if let Some((_, tokens)) = self.by_caller.remove(caller) {
            self.open = self.open - tokens;
        }
    }
}

/// Whether the promise to `caller` is still the one of `time`.
fn stands(by_caller: &Dense<(Moment, Tokens)>, time: Moment, caller: u64) -> bool {
    by_caller.get(caller).is_some_and(|(promised, _)| *promised == time)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

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
    /// The promises as two plain maps.
    #[derive(Default)]
    struct Plain(BTreeMap<u64, Moment>, BTreeSet<(Moment, u64)>);

    impl Plain {
        fn remove(&mut self, caller: u64) -> bool {
            self.0.remove(&caller).is_some_and(|time| self.1.remove(&(time, caller)))
        }
    }

    #[test]
    fn it_is_the_list_it_stands_for_whatever_is_told_and_whoever_returns() {
        let (mut promises, mut plain) = (Promises::default(), Plain::default());
        let (mut now, mut state, mut closed) = (Moment::ZERO, 9u64, 0);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for caller in 0..30_000u64 {
            now = now + Duration::from_millis(random(40));
            promises.advance(now);
            while let Some((time, caller)) = plain.1.first().copied().filter(|(at, _)| *at + GRACE < now) {
                closed += u64::from(plain.remove(caller));
                assert!(time < now);
            }
            let told = if random(50) == 0 { 900 } else { 1 + random(20) };
            let caller = if random(4) == 0 { caller.saturating_sub(random(500)) } else { caller };
            let returns = plain.0.get(&caller).is_some_and(|time| *time <= now);
            assert_eq!(promises.redeem(caller, now), returns);
            closed += u64::from(returns && plain.remove(caller));
            let time = now + Duration::from_secs(told);
            promises.add(caller, time, Tokens::new(3));
            plain.remove(caller);
            plain.0.insert(caller, time);
            plain.1.insert((time, caller));
            assert_eq!((promises.len(), promises.closed), (plain.0.len(), closed));
            assert_eq!(promises.open(), Tokens::new(3 * plain.0.len() as u64));
        }
        assert!(promises.came > 100 && closed > promises.came + 10_000, "{} of {closed}", promises.came);
    }

    #[test]
    fn the_latest_are_forgotten_where_there_are_too_many_and_nothing_piles_up() {
        let mut promises = Promises::default();
        for caller in 0..2 * MOST as u64 {
            promises.add(caller, Moment::from_millis(1_000 + caller), Tokens::new(1));
        }
        assert_eq!((promises.len(), promises.open()), (MOST, Tokens::new(MOST as u64)));
        // all but the one that was told last
        promises.advance(Moment::from_millis(MOST as u64 + 3_000));
        assert!(promises.len() < 1_000, "{} later than the first {MOST}", promises.len());
        for told in 0..3 * MOST as u64 {
            promises.add(7, Moment::from_secs(1_000 + told), Tokens::new(1));
        }
        assert!(promises.by_time.len() <= 2 * MOST, "one caller who is told again and again");
    }
}
