//! Which connection a request goes out on, and whether a new one is opened for it: no sockets in it.
//!
//! A place is the right to send one request on a connection: one over HTTP/1.1, several over HTTP/2. Requests that find
//! none wait in line, and a place that becomes free goes to the first of them. A connection is opened only if those that
//! are being opened have fewer places than there are requests waiting, and only so many are opened at once. A sender that
//! is late finds more requests waiting than usual, and would otherwise open a connection for each of them and be later
//! still: while its thread has had no rest, it opens [`WHILE_BUSY`] at once and no more.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use crate::live::trouble::Trouble;
use crate::units::Moment;

/// Without rest for so long, the sending thread is what is slow, and not the network.
const BUSY_AFTER: Duration = Duration::from_millis(5);
/// Connections opened at once by a busy thread.
const WHILE_BUSY: usize = 2;

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Requests a connection carries at once.
    pub(super) places: usize,
    /// Connections in all.
    pub(super) connections: usize,
    /// Connections being opened at once.
    pub(super) opening: usize,
    /// How long a free place may lie unused before it is let go.
    pub(super) idle_for: Duration,
}

/// Whether the sending thread keeps up. Stretches of work are from one rest to the next.
#[derive(Debug, Default)]
pub(super) struct Haste {
    /// When the present stretch began, in nanoseconds.
    since: AtomicU64,
    /// How long all long stretches together were, in nanoseconds.
    busy: AtomicU64,
}

impl Haste {
    /// It has nothing to do.
    pub(super) fn rest(&self, now: Moment) {
        self.busy.store(u64::try_from(self.busy(now).as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.wake(now);
    }

    /// It has something to do again.
    pub(super) fn wake(&self, now: Moment) {
        self.since.store(now.as_nanos(), Ordering::Relaxed);
    }

    fn stretch(&self, now: Moment) -> Duration {
        now.since(Moment::from_nanos(self.since.load(Ordering::Relaxed)))
    }

    /// Whether it has long had something to do.
    pub(super) fn is_behind(&self, now: Moment) -> bool {
        self.stretch(now) > BUSY_AFTER
    }

    /// How long it has been behind until now, all in all.
    pub(super) fn busy(&self, now: Moment) -> Duration {
        let present = if self.is_behind(now) { self.stretch(now) } else { Duration::ZERO };
        Duration::from_nanos(self.busy.load(Ordering::Relaxed)) + present
    }
}

/// The places of a sender.
#[derive(Debug)]
pub(super) struct Pool<P> {
    bounds: Bounds,
    haste: Arc<Haste>,
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    /// Free places, the last used last.
    free: VecDeque<(Moment, P)>,
    waiting: VecDeque<oneshot::Sender<Result<P, Trouble>>>,
    opening: usize,
    open: usize,
}

/// What a request that wants a place is told.
#[derive(Debug)]
pub(super) enum Turn<P> {
    /// Here is one.
    Take(P),
    /// Wait for one. If `open` is true, open a connection first, and tell [`Pool::opened`] or [`Pool::failed`].
    Wait { place: oneshot::Receiver<Result<P, Trouble>>, open: bool },
}

impl<P> Pool<P> {
    pub(super) fn new(bounds: Bounds, haste: Arc<Haste>) -> Self {
        let state = State { free: VecDeque::new(), waiting: VecDeque::new(), opening: 0, open: 0 };
        Self { bounds, haste, state: Mutex::new(state) }
    }

    /// How many connections may be opened at once.
    fn at_once(&self, now: Moment) -> usize {
        let behind = self.haste.is_behind(now);
        if behind { WHILE_BUSY.min(self.bounds.opening) } else { self.bounds.opening }
    }

    fn state(&self) -> MutexGuard<'_, State<P>> {
        // a panic of another leaves it whole
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a request, or a place in line. `usable` tells whether a free place's connection still stands.
    pub(super) fn turn(&self, now: Moment, usable: impl Fn(&P) -> bool) -> Turn<P> {
        let state = &mut *self.state();
        while let Some((since, place)) = state.free.pop_back() {
            if now.since(since) > self.bounds.idle_for {
                // those before it are older still
                state.free.clear();
                break;
            }
            if usable(&place) {
                return Turn::Take(place);
            }
        }
        let (tell, place) = oneshot::channel();
        state.waiting.push_back(tell);
        Turn::Wait { place, open: state.wants_another(self.bounds, self.at_once(now)) }
    }

    /// A place is free again.
    pub(super) fn give(&self, now: Moment, place: P) {
        let state = &mut *self.state();
        while state.free.front().is_some_and(|(since, _)| now.since(*since) > self.bounds.idle_for) {
            state.free.pop_front();
        }
        state.hand(now, place);
    }

    /// A connection was opened; these are its places. Gives whether another is wanted.
    pub(super) fn opened(&self, now: Moment, places: impl IntoIterator<Item = P>) -> bool {
        let state = &mut *self.state();
        state.opening = state.opening.saturating_sub(1);
        state.open += 1;
        places.into_iter().for_each(|place| state.hand(now, place));
        state.wants_another(self.bounds, self.at_once(now))
    }

    /// A connection could not be opened. The first in line is told so. Gives whether another is wanted.
    pub(super) fn failed(&self, now: Moment, why: Trouble) -> bool {
        let state = &mut *self.state();
        state.opening = state.opening.saturating_sub(1);
        while let Some(first) = state.waiting.pop_front() {
            if first.send(Err(why)).is_ok() {
                break;
            }
        }
        state.wants_another(self.bounds, self.at_once(now))
    }

    /// A connection that was opened has ended. Gives whether another is wanted.
    pub(super) fn ended(&self, now: Moment) -> bool {
        let state = &mut *self.state();
        state.open = state.open.saturating_sub(1);
        state.wants_another(self.bounds, self.at_once(now))
    }
}

impl<P> State<P> {
    /// Gives a place to the first in line who still waits, or keeps it.
    fn hand(&mut self, now: Moment, mut place: P) {
        while let Some(first) = self.waiting.pop_front() {
            match first.send(Ok(place)) {
                Ok(()) => return,
                Err(Ok(back)) => place = back,
                Err(Err(_)) => return,
            }
        }
        self.free.push_back((now, place));
    }

    /// Whether a connection is to be opened now; if so, it counts as being opened.
    fn wants_another(&mut self, bounds: Bounds, at_once: usize) -> bool {
        while self.waiting.front().is_some_and(oneshot::Sender::is_closed) {
            self.waiting.pop_front();
        }
        let wants = self.waiting.len() > self.opening * bounds.places
            && self.opening < at_once
            && self.open + self.opening < bounds.connections;
        self.opening += usize::from(wants);
        wants
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::observe::Broken;

    fn pool(places: usize, connections: usize) -> Pool<u32> {
        let bounds = Bounds { places, connections, opening: 8, idle_for: Duration::from_secs(3) };
        Pool::new(bounds, Arc::default())
    }

    fn waits(turn: Turn<u32>) -> (oneshot::Receiver<Result<u32, Trouble>>, bool) {
        let Turn::Wait { place, open } = turn else { panic!("there was a place") };
        (place, open)
    }

    #[test]
    fn a_free_place_is_used_before_a_connection_is_opened_and_the_last_used_first() {
        let (pool, now) = (pool(1, 100), Moment::ZERO);
        let (mut place, open) = waits(pool.turn(now, |_| true));
        assert!(open, "there is none yet");
        assert!(!pool.opened(now, [7]));
        assert_eq!(place.try_recv().unwrap().unwrap(), 7);
        pool.give(now, 7);
        pool.give(now, 8);
        assert!(matches!(pool.turn(now, |_| true), Turn::Take(8)));
        assert!(matches!(pool.turn(now, |_| true), Turn::Take(7)));
        // an old one may be closed by the server just as it is used
        pool.give(now, 9);
        assert!(waits(pool.turn(now + Duration::from_secs(4), |_| true)).1);
    }

    #[test]
    fn a_place_whose_connection_is_gone_is_not_used() {
        let (pool, now) = (pool(1, 100), Moment::ZERO);
        pool.give(now, 1);
        pool.give(now, 2);
        assert!(matches!(pool.turn(now, |place| *place == 1), Turn::Take(1)));
        assert!(waits(pool.turn(now, |_| true)).1);
    }

    #[test]
    fn those_who_wait_are_served_in_order_and_those_who_left_are_passed_over() {
        let (pool, now) = (pool(1, 1), Moment::ZERO);
        let turns: Vec<_> = (0..3).map(|_| waits(pool.turn(now, |_| true))).collect();
        assert_eq!(
            turns.iter().map(|(_, open)| *open).collect::<Vec<_>>(),
            [true, false, false],
            "one at most"
        );
        let mut places: Vec<_> = turns.into_iter().map(|(place, _)| place).collect();
        drop(places.remove(1));
        pool.opened(now, [5]);
        assert_eq!(places[0].try_recv().unwrap().unwrap(), 5);
        assert!(places[1].try_recv().is_err(), "still waiting");
        pool.give(now, 5);
        assert_eq!(places[1].try_recv().unwrap().unwrap(), 5);
    }

    /// As in grafana/k6#1346 and the like: whoever is late must not open a connection for each late request.
    #[test]
    fn a_busy_thread_opens_few_connections_however_many_wait() {
        let pool = pool(1, usize::MAX);
        let mut line = Vec::new();
        let mut opened = |now| {
            let turns = (0..1_000).map(|_| waits(pool.turn(now, |_| true)));
            let (places, open): (Vec<_>, Vec<_>) = turns.unzip();
            line.extend(places);
            open.into_iter().filter(|open| *open).count()
        };
        let late = Moment::from_millis(50);
        assert_eq!(opened(late), WHILE_BUSY);
        pool.haste.rest(late);
        assert_eq!(opened(late), 8 - WHILE_BUSY, "rested: the network is what is slow");
    }

    #[test]
    fn a_thread_that_sleeps_is_not_behind_and_what_it_was_behind_adds_up() {
        let (haste, ms) = (Haste::default(), Moment::from_millis);
        haste.rest(ms(1));
        haste.wake(ms(500));
        assert!(!haste.is_behind(ms(504)) && haste.busy(ms(504)).is_zero(), "it slept");
        assert!(haste.is_behind(ms(530)));
        haste.rest(ms(600));
        haste.wake(ms(600));
        haste.rest(ms(603));
        assert_eq!(haste.busy(ms(603)), Duration::from_millis(100), "short stretches are none");
        haste.wake(ms(700));
        assert_eq!(haste.busy(ms(720)), Duration::from_millis(120), "the present one counts, too");
    }

    #[test]
    fn streams_are_places_and_a_second_connection_is_opened_only_for_more_than_the_first_will_carry() {
        let (pool, now) = (pool(100, 3), Moment::ZERO);
        let mut turns: Vec<_> = (0..301).map(|_| waits(pool.turn(now, |_| true))).collect();
        let asked: Vec<_> = turns.iter().enumerate().filter(|(_, (_, open))| *open).map(|(n, _)| n).collect();
        assert_eq!(asked, [0, 100, 200], "and no fourth");
        assert!(!pool.opened(now, (0..100).collect::<Vec<_>>()));
        let served = turns.iter_mut().filter_map(|(place, _)| place.try_recv().ok()).count();
        assert_eq!(served, 100);
    }

    proptest! {
        /// Whatever happens in whatever order: no place is handed out twice, none is lost while its connection stands,
        /// nobody waits while a place is free, and there are never more connections than allowed.
        #[test]
        fn places_are_conserved(steps in prop::collection::vec(0u8..6, 1..200)) {
            let pool = pool(2, 4);
            let now = Moment::ZERO;
            let (mut next, mut opening, mut open) = (0u32, 0usize, 0usize);
            let (mut held, mut waiting) = (Vec::new(), Vec::new());
            for step in steps {
                let mut wanted = false;
                match step {
                    0 | 1 => match pool.turn(now, |_| true) {
                        Turn::Take(place) => held.push(place),
                        Turn::Wait { place, open } => {
                            waiting.push(place);
                            wanted = open;
                        }
                    },
                    2 => if let Some(place) = held.pop() { pool.give(now, place) },
                    3 if opening > 0 => {
                        opening -= 1;
                        open += 1;
                        wanted = pool.opened(now, [next, next + 1]);
                        next += 2;
                    }
                    4 if opening > 0 => {
                        opening -= 1;
                        wanted = pool.failed(now, Trouble::Broken(Broken::Refused));
                    }
                    5 => drop(waiting.pop()),
                    _ => {}
                }
                opening += usize::from(wanted);
                prop_assert!(open + opening <= 4);
                waiting.retain_mut(|place| match place.try_recv() {
                    Ok(Ok(got)) => { held.push(got); false }
                    Ok(Err(_)) => false,
                    Err(oneshot::error::TryRecvError::Empty) => true,
                    Err(oneshot::error::TryRecvError::Closed) => false,
                });
                let free = pool.state().free.len();
                prop_assert!(free == 0 || waiting.is_empty());
                let mut seen = held.clone();
                seen.sort_unstable();
                seen.dedup();
                prop_assert_eq!(seen.len(), held.len());
            }
        }
    }
}
