use std::collections::BTreeMap;
use std::time::Duration;

use super::Reserve;
use super::calendar::Calendar;
use crate::units::{Moment, Row, Tokens};

/// How long after the page of its time an appointment is given up: with half that page, a second after its time.
const GRACE: Duration = Duration::from_millis(866);

/// The most appointments kept at once; beyond them nobody's is written down.
pub const MOST: usize = 100_000;

/// How many callers the row reaches back; the promises to earlier ones are kept aside.
const ROW: usize = 4 * MOST;

/// The row is trimmed when it has become so much longer.
const STRIDE: usize = 64;

/// The open appointments, and what they taught about how many refused callers come back.
///
/// θ = (1 + came) / (20 + closed): a promise closes when its caller returns, or a second after its time, give or take
/// half a page of the calendar.
#[derive(Debug)]
pub(crate) struct Promises {
    reserve: Option<Reserve>,
    /// θ, as of the last promise that was closed.
    returning: f64,
    /// The number of the first caller of the row.
    base: u64,
    /// What each was told, callers being numbered in the order they come. A promise that is closed stays until it is at
    /// the front: whether one is open is for the calendar to say.
    row: Row<Promise>,
    /// How many it has grown by since it was trimmed.
    untrimmed: usize,
    /// The same for callers who are out of that order.
    aside: BTreeMap<u64, Promise>,
    /// The last of them there ever was.
    last_aside: u64,
    calendar: Calendar,
    came: u64,
    closed: u64,
}

/// To come at this time with so much work.
#[derive(Debug, Clone, Copy)]
struct Promise {
    time: Moment,
    tokens: Tokens,
}

/// Nobody's promise: its time is long over.
const NONE: Promise = Promise { time: Moment::ZERO, tokens: Tokens::ZERO };

impl Promises {
    /// None yet, under this rule.
    pub(crate) fn new(reserve: Option<Reserve>) -> Self {
        Self {
            reserve,
            returning: reserve.map_or(0.0, |reserve| reserve.start.get()),
            base: 0,
            row: Row::default(),
            untrimmed: 0,
            aside: BTreeMap::new(),
            last_aside: 0,
            calendar: Calendar::default(),
            came: 0,
            closed: 0,
        }
    }

    /// Closes the promises whose time has passed at `now`.
    pub(crate) fn advance(&mut self, now: Moment) {
        let closed = self.calendar.close_before(now - GRACE);
        if closed > 0 {
            self.closed += closed;
            self.learn();
        }
    }

    /// Some promises were closed.
    fn learn(&mut self) {
        if let Some(Reserve { start, learn: true, .. }) = self.reserve {
            // the start counts as twenty callers seen
            self.returning = (20.0 * start.get() + self.came as f64) / (20.0 + self.closed as f64);
        }
    }

    /// Whether `caller` was told to come at or before `now`. If so its promise is closed.
    pub(crate) fn redeem(&mut self, caller: u64, now: Moment) -> bool {
        let due = self.get(caller).is_some_and(|promise| promise.time <= now);
        if due {
            self.remove(caller);
            self.closed += 1;
            self.came += 1;
            self.learn();
        }
        due
    }

    /// Whether a promise to `caller` is open.
    pub(crate) fn expects(&self, caller: u64) -> bool {
        self.get(caller).is_some()
    }

    /// Notes that `caller` was told to come at `time` with `tokens` of work.
    pub(crate) fn add(&mut self, caller: u64, time: Moment, tokens: Tokens) {
        if caller < self.base + self.row.len() as u64 || caller <= self.last_aside {
            self.remove(caller);
        }
        if self.len() >= MOST || !self.calendar.add(time, tokens) {
            return;
        }
        let promise = Promise { time, tokens };
        if self.row.is_empty() {
            self.base = caller;
        }
        match self.place(caller) {
            Some(place) if place < self.row.len() => {
                if let Some(entry) = self.row.get_mut(place) {
                    *entry = promise;
                }
            }
            Some(place) if place < self.row.len() + ROW => {
                self.untrimmed += place + 1 - self.row.len();
                while self.row.len() < place {
                    self.row.push_back(NONE);
                }
                self.row.push_back(promise);
                if self.untrimmed >= STRIDE {
                    self.trim();
                }
            }
            _ => {
                self.put_aside(caller, promise);
                self.sweep();
            }
        }
    }

    /// Tokens promised and not yet come for.
    pub(crate) const fn open(&self) -> Tokens {
        self.calendar.tokens()
    }

    /// How many are open.
    pub(crate) const fn len(&self) -> usize {
        self.calendar.len()
    }

    /// θ: the share of refused callers that come back.
    pub(crate) const fn returning(&self) -> f64 {
        self.returning
    }

    /// Where in the row `caller` has its place, if it is not before it.
    fn place(&self, caller: u64) -> Option<usize> {
        usize::try_from(caller.checked_sub(self.base)?).ok()
    }

    /// The open promise to `caller`.
    fn get(&self, caller: u64) -> Option<Promise> {
        let open = |promise: &&Promise| self.calendar.is_open(promise.time);
        let in_row = self.place(caller).and_then(|place| self.row.get(place)).filter(open);
        if in_row.is_some() || caller > self.last_aside {
            return in_row.copied();
        }
        self.aside.get(&caller).filter(open).copied()
    }

    fn remove(&mut self, caller: u64) {
        let Some(Promise { time, tokens }) = self.get(caller) else { return };
        self.calendar.remove(time, tokens);
        let calendar = &self.calendar;
        let place = self.place(caller);
        match place.and_then(|place| self.row.get_mut(place)).filter(|it| calendar.is_open(it.time)) {
            Some(promise) => *promise = NONE,
            None => {
                self.aside.remove(&caller);
            }
        }
    }

    /// Drops what is closed from the front of the row, and keeps aside what makes it too long.
    fn trim(&mut self) {
        self.untrimmed = 0;
        while let Some(first) = self.row.front().copied() {
            let open = self.calendar.is_open(first.time);
            if open && self.row.len() <= ROW - STRIDE {
                break;
            }
            self.row.pop_front();
            if open {
                self.put_aside(self.base, first);
            }
            self.base += 1;
        }
        self.sweep();
    }

    fn put_aside(&mut self, caller: u64, promise: Promise) {
        self.last_aside = self.last_aside.max(caller);
        self.aside.insert(caller, promise);
    }

    /// Drops what is closed from aside, once that may be half of it.
    fn sweep(&mut self) {
        if self.aside.len() > 2 * self.len() + MOST / 100 {
            let calendar = &self.calendar;
            self.aside.retain(|_, promise| calendar.is_open(promise.time));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::super::calendar::page;
    use super::*;
    use crate::units::Share;

    #[test]
    fn the_share_that_returns_is_learned_from_those_who_do() {
        let share = |v| Share::new(v).unwrap();
        let reserve = Reserve { share: share(0.25), start: share(0.05), learn: true };
        let mut promises = Promises::new(Some(reserve));
        assert!((promises.returning() - 0.05).abs() < 1e-12);
        for caller in 0..100 {
            promises.add(caller, Moment::from_secs(10), Tokens::new(5));
        }
        assert_eq!(promises.open(), Tokens::new(500));
        assert!(!promises.redeem(0, Moment::from_secs(9)), "too early is no return");
        for caller in 0..10 {
            assert!(promises.redeem(caller, Moment::from_millis(10_250)));
        }
        promises.advance(Moment::from_millis(10_866));
        assert_eq!(promises.len(), 90, "a second of grace, less half a page at most");
        promises.advance(Moment::from_millis(11_135));
        assert_eq!((promises.len(), promises.open()), (0, Tokens::ZERO));
        assert!((promises.returning() - 11.0 / 120.0).abs() < 1e-12);
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
        let (mut promises, mut plain) = (Promises::new(None), Plain::default());
        let (mut now, mut state, mut closed) = (Moment::ZERO, 9u64, 0);
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for caller in 0..30_000u64 {
            now = now + Duration::from_millis(random(40));
            promises.advance(now);
            let over = |at: Moment| page(at) < page(now - GRACE);
            while let Some((time, caller)) = plain.1.first().copied().filter(|(at, _)| over(*at)) {
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
    fn beyond_the_most_nobody_is_written_down_and_nothing_piles_up() {
        let mut promises = Promises::new(None);
        for caller in 0..2 * MOST as u64 {
            promises.add(caller, Moment::from_millis(1_000 + caller), Tokens::new(1));
        }
        assert_eq!((promises.len(), promises.open()), (MOST, Tokens::new(MOST as u64)));
        promises.advance(Moment::from_millis(MOST as u64 + 3_000));
        assert_eq!((promises.len(), promises.open()), (0, Tokens::ZERO));
        for told in 0..3 * MOST as u64 {
            promises.add(7, Moment::from_secs(1_000 + told % 1_000), Tokens::new(1));
        }
        assert_eq!(promises.len(), 1, "one caller who is told again and again");
    }

    #[test]
    fn callers_in_no_order_are_kept_aside_and_the_row_stays_short() {
        let mut promises = Promises::new(None);
        let late = Moment::from_secs(50_000);
        promises.add(0, late, Tokens::new(1));
        for caller in 1..3 * ROW as u64 {
            let now = Moment::from_millis(caller);
            promises.advance(now);
            promises.add(caller, now + Duration::from_secs(2), Tokens::new(1));
            if caller % 3 == 0 {
                promises.add(caller << 40, now + Duration::from_secs(2), Tokens::new(1));
            }
        }
        assert!(promises.row.len() <= ROW && promises.aside.len() < MOST, "{}", promises.aside.len());
        assert!(promises.redeem(0, late), "the first is there still");
        let one = (3 * ROW as u64 - 3) << 40;
        assert!(promises.redeem(one, late) && !promises.redeem(one, late));
    }

    #[test]
    fn a_caller_far_ahead_is_found_when_the_row_has_come_to_it() {
        let mut promises = Promises::new(None);
        let (time, far) = (Moment::from_secs(100), 2 * ROW as u64);
        promises.add(0, time, Tokens::new(1));
        promises.add(far, time, Tokens::new(1));
        assert!(promises.aside.contains_key(&far));
        promises.add(ROW as u64 - 1, time, Tokens::new(1));
        promises.add(far + 1, time, Tokens::new(1));
        promises.add(far, Moment::from_secs(200), Tokens::new(5));
        assert_eq!((promises.len(), promises.open()), (4, Tokens::new(8)), "told anew, once");
        assert!(!promises.redeem(far, time) && promises.redeem(far, Moment::from_secs(200)));
    }
}
