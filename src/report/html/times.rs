//! The run's time axis: phases, buckets of windows, ticks. Every chart over time shares one.

use super::super::{PhasePart, Report, WindowPart};

/// The most buckets of a chart: wider than a screen shows, whatever the run's length.
const MOST_BUCKETS: usize = 240;
/// The most rows of a chart's table.
pub(super) const MOST_ROWS: usize = 24;

/// A phase on the axis.
pub(super) struct Band<'r> {
    pub(super) phase: &'r PhasePart,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// The axis, in seconds from the start of the load.
pub(super) struct Times<'r> {
    pub(super) windows: &'r [WindowPart],
    pub(super) bands: Vec<Band<'r>>,
    /// Where it ends; never 0.
    pub(super) end: f64,
}

impl<'r> Times<'r> {
    pub(super) fn of(report: &'r Report) -> Self {
        let mut bands = Vec::new();
        let mut from = 0.0;
        for phase in &report.plan.phases {
            let to = from + phase.lasts_s.max(0.0);
            bands.push(Band { phase, from, to });
            from = to;
        }
        let seen = report.windows.iter().map(|window| window.from_s + window.width_s).fold(0.0, f64::max);
        let end = from.max(seen);
        let end = if end.is_finite() && end > 0.0 { end } else { 1.0 };
        Self { windows: &report.windows, bands, end }
    }

    /// The windows in at most `most` buckets of equal number.
    fn parts(&self, most: usize) -> impl Iterator<Item = &'r [WindowPart]> {
        let size = self.windows.len().div_ceil(most).max(1);
        self.windows.chunks(size)
    }

    /// The buckets of a chart.
    pub(super) fn buckets(&self) -> Vec<&'r [WindowPart]> {
        self.parts(MOST_BUCKETS).collect()
    }

    /// The buckets of a table.
    pub(super) fn rows(&self) -> Vec<&'r [WindowPart]> {
        self.parts(MOST_ROWS).collect()
    }

    /// Instants for labels, at most seven.
    pub(super) fn ticks(&self) -> Vec<f64> {
        const STEPS: &[f64] = &[
            0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0,
            3_600.0, 7_200.0, 14_400.0, 43_200.0, 86_400.0, 604_800.0,
        ];
        let step = STEPS.iter().copied().find(|step| self.end / step <= 6.0).unwrap_or(self.end);
        (0..=6).map(|i| f64::from(i) * step).filter(|at| *at <= self.end).collect()
    }

    /// Whether an instant lies in the event.
    pub(super) fn in_event(&self, at: f64) -> bool {
        self.bands.iter().any(|band| band.phase.event && band.from <= at && at < band.to)
    }

    /// Where an instant lies, as a share of the axis.
    pub(super) fn share(&self, at: f64) -> f64 {
        (at / self.end).clamp(0.0, 1.0)
    }
}

/// The span of a bucket; buckets are never empty.
pub(super) fn span(bucket: &[WindowPart]) -> (f64, f64) {
    let from = bucket.first().map_or(0.0, |window| window.from_s);
    (from, bucket.last().map_or(from, |window| window.from_s + window.width_s))
}

/// A count as a rate over the bucket.
pub(super) fn rate(bucket: &[WindowPart], count: fn(&WindowPart) -> u64) -> f64 {
    let (from, to) = span(bucket);
    let sum: f64 = bucket.iter().map(|window| count(window) as f64).sum();
    if to > from { sum / (to - from) } else { 0.0 }
}

/// The most of a number that may be unknown.
pub(super) fn most(bucket: &[WindowPart], value: fn(&WindowPart) -> Option<u64>) -> Option<f64> {
    bucket.iter().filter_map(value).max().map(|value| value as f64)
}

/// The mean of a number over the bucket's time.
pub(super) fn mean(bucket: &[WindowPart], value: fn(&WindowPart) -> f64) -> f64 {
    bucket.iter().map(value).sum::<f64>() / bucket.len().max(1) as f64
}
