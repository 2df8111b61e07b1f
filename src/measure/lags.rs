use std::time::Duration;

/// Buckets of an octave.
const PARTS: u32 = 8;

/// How late attempts of a window were sent, in few words: what is told apart differs by an eighth. Room is taken up to
/// the longest only.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lags {
    counts: Vec<u32>,
    most: u64,
}

impl Lags {
    /// Counts an attempt.
    pub(super) fn record(&mut self, lag: Duration) {
        let micros = u64::try_from(lag.as_micros()).unwrap_or(u64::MAX);
        let index = bucket(micros);
        if self.counts.len() <= index {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(1);
        self.most = self.most.max(micros);
    }

    /// The longest.
    pub const fn most(&self) -> Duration {
        Duration::from_micros(self.most)
    }

    /// No part of `quantile` (0 to 1) of them was later, by nearest rank; rounded up by at most an eighth, and never
    /// beyond the longest. `None` of none.
    pub fn at(&self, quantile: f64) -> Option<Duration> {
        let count: u64 = self.counts.iter().map(|n| u64::from(*n)).sum();
        let rank = ((quantile * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut below = 0;
        let index = self.counts.iter().position(|n| {
            below += u64::from(*n);
            below >= rank
        })?;
        (count > 0).then(|| Duration::from_micros(end(index).min(self.most)))
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, more)| *mine = mine.saturating_add(*more));
        self.most = self.most.max(other.most);
    }
}

/// The bucket of so many microseconds: below eight each has its own.
const fn bucket(micros: u64) -> usize {
    if micros < PARTS as u64 {
        return micros as usize;
    }
    let octave = micros.ilog2();
    let part = (micros >> (octave - 3)) as usize - PARTS as usize;
    (octave as usize - 2) * PARTS as usize + part
}

/// The last microsecond of a bucket.
const fn end(index: usize) -> u64 {
    let (octave, part) = (index as u32 / PARTS, index as u64 % PARTS as u64);
    if octave == 0 {
        return part;
    }
    let width = 1u64 << (octave - 1);
    (PARTS as u64 + part) * width + (width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_its_bucket_and_an_eighth_is_told_apart() {
        let mut last = None;
        for micros in (0..10_000).chain([u64::MAX / 3, u64::MAX]) {
            let index = bucket(micros);
            assert!(micros <= end(index) && end(index) - micros <= micros / 8, "{micros}: {}", end(index));
            assert!(last.is_none_or(|last| last <= index), "in order");
            last = Some(index);
        }
        assert_eq!(
            (bucket(7), bucket(8), bucket(15), bucket(16), bucket(17), bucket(18)),
            (7, 8, 15, 16, 16, 17)
        );
    }

    #[test]
    fn the_ninety_ninth_of_a_hundred_is_found_and_two_halves_are_the_whole() {
        assert_eq!(Lags::default().at(0.99), None);
        let of = |range: std::ops::RangeInclusive<u64>| {
            let mut lags = Lags::default();
            range.for_each(|n| lags.record(Duration::from_micros(n * 100)));
            lags
        };
        let whole = of(1..=100);
        let at = |quantile| whole.at(quantile).unwrap().as_micros();
        assert!((9_900..=10_000).contains(&at(0.99)) && (5_000..5_625).contains(&at(0.5)), "{}", at(0.5));
        assert_eq!((at(1.0), whole.most().as_micros()), (10_000, 10_000), "never beyond the longest");
        let mut halves = of(51..=100);
        halves.add(&of(1..=50));
        assert_eq!(halves, whole);
    }
}
