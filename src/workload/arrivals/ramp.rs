//! A rate that changes evenly: in each phase from the rate of the phase before to its own.
//!
//! With rates r0 and r1 over a phase of length T, N(t) = r0 t + (r1 − r0) t² / 2T callers have come by t; the k-th (from
//! 0) is due where N(t) = k. How many come is decided in whole numbers, so that the count is the area under the rate
//! exactly, however long the phase; a phase whose rate is that of the one before is evenly spaced.

use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Kind, Next, Process};
use crate::units::{Rate, Read, Reader};
use crate::workload::Phase;

pub(super) const KIND: Kind = Kind {
    name: "ramp",
    about: "from the rate of the phase before to the phase's own, evenly: { start: 0/s }",
    build: |inner| {
        let start = match inner {
            None => Some(Start::Own),
            Some(reader) => reader.map().and_then(|mut map| map.or("start", Start::Own)),
        };
        start.map(|start| Arc::new(Ramp { start }) as Arc<dyn Process>)
    },
};

/// The rate at which the first phase begins.
#[derive(Debug, Clone, Copy)]
enum Start {
    /// Its own.
    Own,
    /// Nobody comes yet.
    Nothing,
    /// This.
    At(Rate),
}

impl Read for Start {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        reader.parse("a rate", |text| match text.split_once('/') {
            Some(("0", _)) => Ok(Self::Nothing),
            _ => Rate::parse(text).map(Self::At),
        })
    }
}

#[derive(Debug)]
struct Ramp {
    start: Start,
}

impl Ramp {
    /// The rate at the start of a phase whose own is `rate`; `None` for zero.
    const fn from(&self, rate: Rate, before: Option<Rate>) -> Option<Rate> {
        match (before, self.start) {
            (Some(rate), _) | (None, Start::At(rate)) => Some(rate),
            (None, Start::Own) => Some(rate),
            (None, Start::Nothing) => None,
        }
    }
}

/// Whether the area under the rate from `from` to `to` over `lasts` is more than `k`.
fn more_than(k: u64, from: Option<Rate>, to: Rate, lasts: Duration) -> bool {
    let exact = || {
        let (c1, p1) = (u128::from(to.count()), u128::from(to.per_nanos()));
        let (c0, p0) = from.map_or((0, 1), |rate| (u128::from(rate.count()), u128::from(rate.per_nanos())));
        let callers = u128::from(k).checked_mul(2)?.checked_mul(p0)?.checked_mul(p1)?;
        let area = (c0 * p1).checked_add(c1 * p0)?.checked_mul(lasts.as_nanos())?;
        Some(callers < area)
    };
    exact().unwrap_or_else(|| (k as f64) < area(from, to, lasts))
}

/// The area itself: callers in all.
fn area(from: Option<Rate>, to: Rate, lasts: Duration) -> f64 {
    (from.map_or(0.0, Rate::per_sec_f64) + to.per_sec_f64()) / 2.0 * lasts.as_secs_f64()
}

impl Process for Ramp {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn offset(&self, next: &Next<'_>, _: &mut Pcg64) -> Duration {
        let from = self.from(next.phase.rate, next.before);
        if from == Some(next.phase.rate) {
            return next.phase.rate.time_for(next.k);
        }
        if next.k == 0 {
            return Duration::ZERO;
        }
        if !more_than(next.k, from, next.phase.rate, next.phase.lasts) {
            return next.phase.lasts;
        }
        let (r0, r1) = (from.map_or(0.0, Rate::per_sec_f64), next.phase.rate.per_sec_f64());
        let slope = (r1 - r0) / next.phase.lasts.as_secs_f64();
        // the root that loses no digits
        let k = next.k as f64;
        let at = 2.0 * k / (r0 + (r0 * r0 + 2.0 * slope * k).max(0.0).sqrt());
        let last = next.phase.lasts - Duration::from_nanos(1);
        Duration::try_from_secs_f64(at).unwrap_or(last).clamp(next.after, last)
    }

    fn expected(&self, phase: &Phase, before: Option<Rate>) -> f64 {
        area(self.from(phase.rate, before), phase.rate, phase.lasts)
    }

    /// At the end it comes from, or at the one it goes to.
    fn peak(&self, rate: Rate, before: Option<Rate>) -> f64 {
        let from = self.from(rate, before).map_or(0.0, Rate::per_sec_f64);
        from.max(rate.per_sec_f64())
    }
}
