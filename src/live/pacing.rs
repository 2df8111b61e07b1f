//! The path of what is due: a timer of the kernel, set to absolute instants, on the thread that sends.
//!
//! The timer wakes the client's runtime itself, and what is due is begun before anything that came in with it. A thread
//! of its own that hands departures over was measured beside it: on one core each hand-over is a change of threads,
//! which costs as much as the precision it was to bring.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedReceiver;

use super::pacer::{Departure, Fate, Pacer};
use super::{Clock, Scheduling, Seen};
use crate::observe::{Sighting, Unsent};
use crate::units::Moment;
use crate::workload::Arrival;

/// What the pacing path shares with the others.
#[derive(Debug, Default)]
pub(super) struct Paced {
    /// Everything due before this instant (in nanoseconds) has been said to be due.
    until: AtomicU64,
    /// Returning callers whose time comes after the last phase.
    pub(super) not_waited_for: AtomicU64,
    /// How the thread that sends is scheduled, once that is known.
    pub(super) scheduling: OnceLock<Scheduling>,
}

impl Paced {
    /// Everything due before this instant has been said to be due.
    pub(super) fn until(&self) -> Moment {
        Moment::from_nanos(self.until.load(Ordering::Acquire))
    }

    /// Nothing more will be due.
    pub(super) fn over(&self) {
        self.until.store(u64::MAX, Ordering::Release);
    }
}

/// The ends of the channels the pacing path holds.
#[derive(Debug)]
pub(super) struct Ends {
    /// Returning callers come in here.
    pub(super) returns: UnboundedReceiver<Departure>,
    /// Sightings go here.
    pub(super) out: Sender<Seen>,
}

/// A timer of the kernel: no slack is added to it, and an instant that has passed fires at once.
#[derive(Debug)]
pub(super) struct Timer {
    fd: AsyncFd<OwnedFd>,
    clock: Clock,
}

impl Timer {
    /// One for instants of `clock`. Must be called within a runtime.
    #[expect(
        deprecated,
        reason = "it warns of types that close what they lend; an OwnedFd does not, and its successor is unsafe"
    )]
    pub(super) fn new(clock: Clock) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self { fd: AsyncFd::with_interest(fd, Interest::READABLE)?, clock })
    }

    /// Waits until `at`. Ends early or late by what the kernel is late by only: the caller looks at the clock.
    async fn until(&self, at: Moment) -> io::Result<()> {
        let spec = Itimerspec { it_interval: Timespec::default(), it_value: self.clock.timespec(at) };
        // setting it forgets an expiry that nobody waited for
        timerfd_settime(self.fd.get_ref().as_fd(), TimerfdTimerFlags::ABSTIME, &spec)?;
        self.fd.readable().await?.clear_ready();
        Ok(())
    }
}

/// Hands everything that falls due to `begin`, until the last phase is over.
///
/// # Errors
/// If the kernel's timer fails, which leaves the load unfinished.
pub(super) async fn pace<S: Iterator<Item = Arrival>>(
    mut pacer: Pacer<S>,
    timer: Timer,
    mut ends: Ends,
    paced: &Paced,
    mut begin: impl FnMut(Departure),
) -> io::Result<()> {
    let mut turn = Vec::new();
    loop {
        while let Ok(departure) = ends.returns.try_recv() {
            welcome(&mut pacer, departure, paced);
        }
        let now = timer.clock.now();
        pacer.due(now, &mut turn);
        for (departure, fate) in turn.drain(..) {
            hand_out(departure, fate, timer.clock, &ends.out, &mut begin);
        }
        let wake = pacer.wake_at();
        paced.until.store(pacer.next_due().map_or(u64::MAX, Moment::as_nanos), Ordering::Release);
        if wake.is_none() && now >= pacer.end() {
            return Ok(());
        }
        // until the last phase is over somebody may come back
        let until = wake.unwrap_or_else(|| pacer.end());
        tokio::select! {
            biased;
            fired = timer.until(until) => fired?,
            Some(departure) = ends.returns.recv() => welcome(&mut pacer, departure, paced),
        }
    }
}

fn welcome<S: Iterator<Item = Arrival>>(pacer: &mut Pacer<S>, departure: Departure, paced: &Paced) {
    // a copy is no caller of its own
    if !pacer.returning(departure) && !departure.attempt.is_copy() {
        paced.not_waited_for.fetch_add(1, Ordering::Relaxed);
    }
}

/// Says that an attempt is due and begins it, or counts it as unsent.
fn hand_out(
    departure: Departure,
    fate: Fate,
    clock: Clock,
    out: &Sender<Seen>,
    begin: &mut impl FnMut(Departure),
) {
    let Departure { due: at, attempt, class, sizes, probe } = departure;
    // nobody listens any more once the run is over
    let _ = out.send(Seen::Sighting(Sighting::Due { attempt, at, class, hold: sizes.hold(), probe }));
    match fate {
        Fate::Send => begin(departure),
        Fate::TooLate => {
            let unsent = Sighting::Unsent { attempt, at: clock.now(), why: Unsent::Late };
            let _ = out.send(Seen::Sighting(unsent));
        }
    }
}
