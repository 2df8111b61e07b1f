//! The pacing thread: it sleeps to absolute instants and blocks on nothing else.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;

use super::pacer::{Departure, Fate, Pacer};
use super::{Clock, Seen};
use crate::observe::{Sighting, Unsent};
use crate::units::Moment;
use crate::workload::Arrival;

/// The last stretch before an instant is slept precisely; before it the thread listens for returning callers.
const PRECISE: Duration = Duration::from_millis(1);

/// The longest the thread listens without looking whether the run was stopped.
const LISTEN: Duration = Duration::from_millis(100);

/// What the pacing thread shares with the others.
#[derive(Debug, Default)]
pub(super) struct Paced {
    /// Everything due before this instant (in nanoseconds) has been said to be due.
    until: AtomicU64,
    /// Returning callers whose time comes after the last phase.
    pub(super) not_waited_for: AtomicU64,
    /// Ends the thread.
    pub(super) stop: AtomicBool,
    /// Attempts that may still lead to another: those that have not ended, and callers on their way back.
    owed: AtomicU64,
}

impl Paced {
    /// Everything due before this instant has been said to be due.
    pub(super) fn until(&self) -> Moment {
        Moment::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// An attempt has begun, or a caller is on its way back: the load is not over before it is settled.
    pub(super) fn owe(&self) {
        self.owed.fetch_add(1, Ordering::AcqRel);
    }

    /// Such an attempt has ended, or such a caller has come.
    pub(super) fn settle(&self) {
        self.owed.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether nobody can come back any more.
    fn nobody_returns(&self) -> bool {
        self.owed.load(Ordering::Acquire) == 0
    }
}

/// The ends of the channels the pacing thread holds.
#[derive(Debug)]
pub(super) struct Ends {
    /// Returning callers come in here.
    pub(super) returns: Receiver<Departure>,
    /// What is due goes to the client here.
    pub(super) due: UnboundedSender<Departure>,
    /// Sightings go here.
    pub(super) out: Sender<Seen>,
}

/// Starts the thread. It ends after the last phase, or when it is stopped, and closes its channels then.
pub(super) fn start<S>(
    pacer: Pacer<S>,
    clock: Clock,
    ends: Ends,
    paced: Arc<Paced>,
) -> io::Result<JoinHandle<()>>
where
    S: Iterator<Item = Arrival> + Send + 'static,
{
    thread::Builder::new().name("pacing".into()).spawn(move || {
        super::priority::run_before_others();
        // the kernel may otherwise add 50 µs to each sleep; without the permission it does
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000));
        pace(pacer, clock, &ends, &paced);
        paced.until.store(u64::MAX, Ordering::Release);
    })
}

fn pace<S: Iterator<Item = Arrival>>(mut pacer: Pacer<S>, clock: Clock, ends: &Ends, paced: &Paced) {
    let mut turn = Vec::new();
    while !paced.stop.load(Ordering::Acquire) {
        while let Ok(departure) = ends.returns.try_recv() {
            welcome(&mut pacer, departure, paced);
        }
        let now = clock.now();
        pacer.due(now, &mut turn);
        for (departure, fate) in turn.drain(..) {
            hand_out(departure, fate, clock, ends, paced);
            if pacer.is_retry(&departure) {
                paced.settle();
            }
        }
        let wake = pacer.wake_at();
        paced.until.store(pacer.next_due().map_or(u64::MAX, Moment::as_nanos), Ordering::Release);
        let over = wake.is_none() && now >= pacer.end();
        if over && paced.nobody_returns() {
            return;
        }
        let until = wake.unwrap_or_else(|| pacer.end().max(now + LISTEN));
        let ahead = until.since(now);
        if ahead <= PRECISE * 2 {
            clock.sleep_until(until);
            continue;
        }
        match ends.returns.recv_timeout((ahead - PRECISE).min(LISTEN)) {
            Ok(departure) => welcome(&mut pacer, departure, paced),
            Err(RecvTimeoutError::Timeout) => {}
            // the client is gone, and nobody returns any more
            Err(RecvTimeoutError::Disconnected) => clock.sleep_until(now + (ahead - PRECISE).min(LISTEN)),
        }
    }
}

fn welcome<S: Iterator<Item = Arrival>>(pacer: &mut Pacer<S>, departure: Departure, paced: &Paced) {
    if !pacer.returning(departure) {
        paced.not_waited_for.fetch_add(1, Ordering::Relaxed);
    }
}

/// Says that an attempt is due and hands it to the client, or counts it as unsent. The channels never block, and are
/// only closed when the run is over.
fn hand_out(departure: Departure, fate: Fate, clock: Clock, ends: &Ends, paced: &Paced) {
    let Departure { due: at, attempt, class, sizes, probe } = departure;
    let _ = ends.out.send(Seen::Sighting(Sighting::Due { attempt, at, class, hold: sizes.hold(), probe }));
    match fate {
        Fate::Send => {
            // settled when the client has begun it: from then on it counts by itself
            paced.owe();
            let _ = ends.due.send(departure);
        }
        Fate::TooLate => {
            let unsent = Sighting::Unsent { attempt, at: clock.now(), why: Unsent::Late };
            let _ = ends.out.send(Seen::Sighting(unsent));
        }
    }
}
