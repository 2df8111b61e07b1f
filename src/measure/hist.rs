use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};

/// Values past this are counted as this: ten days in microseconds. It bounds what a histogram can grow to.
const MOST: u64 = 864_000_000_000;

/// A histogram of whole numbers (for times: microseconds) with three significant digits.
#[derive(Debug, Clone, PartialEq)]
pub struct Hist(Histogram<u64>);

impl Default for Hist {
    fn default() -> Self {
        Self(Histogram::new(3).expect("three digits are within 0 to 5"))
    }
}

impl Hist {
    /// Counts a time, in microseconds.
    pub fn record(&mut self, span: Duration) {
        self.record_count(u64::try_from(span.as_micros()).unwrap_or(MOST));
    }

    /// Counts a time that came so often, in microseconds.
    pub fn record_often(&mut self, span: Duration, count: u64) {
        let micros = u64::try_from(span.as_micros()).unwrap_or(MOST).min(MOST);
        self.0
            .record_n(micros, count)
            .expect("a histogram that resizes itself takes every value below the cap");
    }

    /// Counts a plain number.
    pub fn record_count(&mut self, value: u64) {
        self.0
            .record(value.min(MOST))
            .expect("a histogram that resizes itself takes every value below the cap");
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The number at this quantile (0 to 1), by nearest rank, as it was recorded; `None` of an empty one.
    pub fn number_at(&self, quantile: f64) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.value_at_quantile(quantile).min(self.0.max()))
    }

    /// The time at this quantile; `None` of an empty one.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        self.number_at(quantile).map(Duration::from_micros)
    }

    /// How many values are at most `value`, or so near it that they are not told apart.
    pub fn count_to(&self, value: u64) -> u64 {
        self.0.count_between(0, value.min(MOST))
    }

    /// The smallest number; `None` of an empty one.
    pub fn min(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.min())
    }

    /// The largest number, rounded up by at most a thousandth; `None` of an empty one.
    pub fn max(&self) -> Option<u64> {
        (!self.0.is_empty()).then(|| self.0.max())
    }

    /// The mean; `None` of an empty one.
    pub fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.mean())
    }

    /// Adds another's values.
    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("a histogram that resizes itself takes every other of its precision");
    }

    /// The bounds of the bucket that holds the value of this rank, 1 being the smallest value; `None` of a rank there
    /// is not. The value that was recorded lies between the two.
    pub fn bucket_of_rank(&self, rank: u64) -> Option<(u64, u64)> {
        let count = self.count();
        if rank == 0 || rank > count {
            return None;
        }
        let value = self.0.value_at_quantile((rank as f64 - 0.5) / count as f64);
        Some((self.0.lowest_equivalent(value), self.0.highest_equivalent(value)))
    }

    /// Reads what [`Self::to_base64`] wrote; `None` of anything else.
    pub fn from_base64(text: &str) -> Option<Self> {
        let bytes = STANDARD.decode(text).ok()?;
        let hist: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
        if hist.sigfig() != 3 || hist.max() > MOST + MOST / 500 {
            return None;
        }
        // into one of our own, that grows as far as is needed and no further
        let mut own = Self::default();
        own.0.add(hist).ok()?;
        Some(own)
    }

    /// The whole histogram as HdrHistogram V2, in base64: other tools read it, and two of them can be added.
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.0, &mut bytes).expect("a vector takes every byte");
        STANDARD.encode(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_histogram_has_no_numbers() {
        let hist = Hist::default();
        assert_eq!((hist.count(), hist.quantile(0.99), hist.min(), hist.max()), (0, None, None, None));
        assert!(hist.mean().is_none());
    }

    #[test]
    fn two_halves_add_to_the_whole_in_either_order() {
        let fill = |range: std::ops::Range<u64>| {
            let mut hist = Hist::default();
            range.for_each(|ms| hist.record(Duration::from_millis(ms * ms)));
            hist
        };
        let (mut ab, mut ba) = (fill(0..300), fill(300..900));
        ab.add(&fill(300..900));
        ba.add(&fill(0..300));
        assert_eq!(ab, fill(0..900));
        assert_eq!(ab, ba);
        assert_eq!(ab.count(), 900);
    }

    #[test]
    fn it_travels_as_v2_and_clamps_what_is_absurd() {
        let mut hist = Hist::default();
        hist.record(Duration::from_secs(25));
        hist.record(Duration::MAX);
        let bytes = STANDARD.decode(hist.to_base64()).unwrap();
        let back: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!(back.len(), 2);
        assert!(back.max() >= MOST && back.max() < MOST + MOST / 500);
        assert!(back.min().abs_diff(25_000_000) < 25_000);
    }

    #[test]
    fn it_comes_back_as_it_went_and_nothing_else_is_taken_for_one() {
        let mut hist = Hist::default();
        (0..5_000u64).for_each(|ms| hist.record(Duration::from_millis(ms * ms)));
        assert_eq!(Hist::from_base64(&hist.to_base64()), Some(hist));
        assert_eq!(Hist::from_base64(&Hist::default().to_base64()), Some(Hist::default()));
        for foreign in ["", "AAAA", "no base64", &STANDARD.encode([0xff; 400])] {
            assert_eq!(Hist::from_base64(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_rank_is_known_to_its_bucket() {
        let mut hist = Hist::default();
        (1..=100u64).for_each(|n| hist.record_count(n * 100_000));
        let (low, high) = hist.bucket_of_rank(40).unwrap();
        assert!(low <= 4_000_000 && 4_000_000 <= high && high - low < 4_000, "{low} to {high}");
        assert_eq!((hist.bucket_of_rank(0), hist.bucket_of_rank(101)), (None, None));
        assert_eq!(Hist::default().bucket_of_rank(1), None);
    }
}
