use std::time::Duration;

use super::{Measures, Returns};
use crate::observe::{Gauge, Outcome};
use crate::units::{Bytes, Moment};

/// What happened lately, over whole windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recent {
    /// The time these counts cover; zero if no window is complete yet.
    pub span: Duration,
    /// Arrivals due.
    pub offered: u64,
    /// Answers within their deadline that ended in it.
    pub completions: u64,
    /// Shed and throttled attempts that ended in it.
    pub refusals: u64,
}

impl Recent {
    /// Answers in time over what was offered, as `abort_when: { goodput_below }` means it; `None` if nothing was.
    pub fn goodput_share(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.completions as f64 / self.offered as f64)
    }

    /// A count as a rate, in things a second; `None` if no time is covered.
    pub fn per_second(&self, count: u64) -> Option<f64> {
        (!self.span.is_zero()).then(|| count as f64 / self.span.as_secs_f64())
    }
}

/// The run as it stands, for the progress display: plain numbers, cheap to take.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// When.
    pub at: Moment,
    /// The phase: its name, how far it is, how long it lasts.
    pub phase: Option<(String, Duration, Duration)>,
    /// How long the arrivals last in all.
    pub lasts: Duration,
    /// Arrivals so far.
    pub offered: u64,
    /// Of these, those that could not be sent in time.
    pub unsent: u64,
    /// Lag at the 99th percentile.
    pub lag_p99: Option<Duration>,
    /// What stands where.
    pub gauge: Gauge,
    /// The last five seconds.
    pub recent: Recent,
    /// The median of the times announced so far, in seconds.
    pub retry_after_s: Option<u64>,
    /// The target's memory at the last sample.
    pub memory: Option<Bytes>,
    /// Probes that came back so far.
    pub probes: Returns,
}

impl Measures {
    /// What happened in the whole windows of the last `span` before `now`; what the rules of `abort_when` look at.
    pub fn recent(&self, now: Moment, span: Duration) -> Recent {
        let to = self.frame.window(now);
        let count = usize::try_from(span.as_nanos() / self.frame.width.as_nanos())
            .unwrap_or(usize::MAX)
            .clamp(1, to.max(1));
        let from = to.saturating_sub(count);
        let mut recent =
            Recent { span: self.frame.width * u32::try_from(to - from).unwrap_or(0), ..Recent::default() };
        for window in self.windows.iter().take(to).skip(from) {
            recent.offered += window.offered;
            recent.completions += window.completions;
            recent.refusals += window.refusals;
        }
        recent
    }

    /// The run as it stands at `now`.
    pub fn snapshot(&self, now: Moment) -> Snapshot {
        let phase = self.frame.phase(now).map(|phase| {
            let lasts = phase.span.length();
            (phase.name.clone(), now.since(phase.span.start).min(lasts), lasts)
        });
        Snapshot {
            at: now,
            phase,
            lasts: self.frame.end.since(Moment::ZERO),
            offered: self.offered,
            unsent: self.arrivals.get(Outcome::Unsent),
            lag_p99: self.lag.quantile(0.99),
            gauge: self.depths.now(),
            recent: self.recent(now, Duration::from_secs(5)),
            retry_after_s: self.refusals.announced.number_at(0.5),
            memory: self.vitals.target.last.map(|(_, bytes)| bytes),
            probes: self.returns,
        }
    }
}
