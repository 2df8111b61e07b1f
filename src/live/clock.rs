use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

use crate::units::Moment;

/// The run's clock: the one place that reads the time of this machine.
///
/// It counts from an epoch on `CLOCK_MONOTONIC`, which never steps. Both sides of a run hold copies of one clock, so
/// their instants are on one time line.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    /// The epoch, in nanoseconds of `CLOCK_MONOTONIC`.
    epoch: u64,
}

impl Clock {
    /// A clock whose epoch is this instant.
    pub fn start() -> Self {
        Self { epoch: monotonic() }
    }

    /// The resolution of this clock, and of timers that are set by it.
    pub fn resolution() -> Duration {
        let least = clock_getres(ClockId::Monotonic);
        Duration::new(u64::try_from(least.tv_sec).unwrap_or(0), u32::try_from(least.tv_nsec).unwrap_or(0))
    }

    /// The present instant.
    pub fn now(&self) -> Moment {
        Moment::from_nanos(monotonic().saturating_sub(self.epoch))
    }

    /// Blocks the calling thread until `at`; returns at once if that has passed. It never returns early, and it sleeps
    /// to an absolute instant, so that a late wake-up does not add to the next.
    pub fn sleep_until(&self, at: Moment) {
        let until = self.timespec(at);
        while self.now() < at {
            if clock_nanosleep_absolute(SleepClock::Monotonic, &until).is_err() {
                // a signal, or a kernel without this call: the loop looks at the clock again
                thread::sleep(at.since(self.now()).min(Duration::from_micros(100)));
            }
        }
    }

    /// The same instant on `CLOCK_MONOTONIC`, for timers of the kernel.
    pub(super) fn timespec(&self, at: Moment) -> Timespec {
        let nanos = self.epoch.saturating_add(at.as_nanos());
        Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
        }
    }

    /// The same instant for tokio's timers, whose grain is a millisecond and which round up.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn tokio_instant(&self, at: Moment) -> tokio::time::Instant {
        let (now, instant) = (self.now(), std::time::Instant::now());
        let then =
            if at >= now { instant.checked_add(at.since(now)) } else { instant.checked_sub(now.since(at)) };
        // out of range is centuries away, or before this machine was started
        then.unwrap_or_else(|| instant + if at >= now { FAR } else { Duration::ZERO }).into()
    }

    /// The time on the wall, for stamps in reports; never for a span.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    /// The time on the wall since 1970, for deadlines that are written as instants.
    pub fn unix(&self) -> Duration {
        self.wall().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// Longer than any run.
const FAR: Duration = Duration::from_secs(86_400 * 365);

fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let secs = u64::try_from(now.tv_sec).unwrap_or(0);
    secs.saturating_mul(1_000_000_000).saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_the_epoch_and_never_runs_backwards() {
        let clock = Clock::start();
        let seen: Vec<_> = (0..1_000).map(|_| clock.now()).collect();
        assert!(seen.is_sorted());
        assert!(
            seen[0] < Moment::from_secs(3_600),
            "it counts from its own epoch, not from the machine's start"
        );
    }

    #[test]
    fn a_sleep_never_ends_early() {
        let clock = Clock::start();
        for millis in [0, 1, 3] {
            let until = clock.now() + Duration::from_millis(millis);
            clock.sleep_until(until);
            assert!(clock.now() >= until);
        }
        clock.sleep_until(Moment::ZERO);
    }

    #[test]
    fn copies_share_the_epoch_and_tokio_is_told_the_same_instant() {
        let clock = Clock::start();
        let copy = clock;
        let before = clock.now();
        assert!(copy.now() >= before && copy.now().since(before) < Duration::from_secs(60));
        let (soon, later) = (Moment::from_secs(100), Moment::from_secs(101));
        let gap = clock.tokio_instant(later) - clock.tokio_instant(soon);
        assert!(gap > Duration::from_millis(500) && gap < Duration::from_secs(60), "{gap:?}");
        assert!(clock.tokio_instant(Moment::NEVER) > clock.tokio_instant(later));
    }
}
