use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2Serializer};

/// Values past this are counted as this: ten days in microseconds. It bounds what a histogram can grow to.
const MOST: u64 = 864_000_000_000;

/// A histogram of whole numbers (for times: microseconds) with three significant digits.
///
/// The smallest, the largest and the sum are kept beside the buckets as they were recorded, so that no percentile lies
/// beyond them and the mean is not that of the buckets. One that was read back knows its buckets only.
#[derive(Debug, Clone, PartialEq)]
pub struct Hist {
    buckets: Histogram<u64>,
    /// `None` of one that was read back, and of one that such a one was added to.
    exact: Option<Exact>,
}

/// What buckets round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Exact {
    least: u64,
    most: u64,
    sum: u128,
}

impl Exact {
    /// Of no values.
    const NONE: Self = Self { least: u64::MAX, most: 0, sum: 0 };

    const fn add(self, other: Self) -> Self {
        Self {
            least: if other.least < self.least { other.least } else { self.least },
            most: if other.most > self.most { other.most } else { self.most },
            sum: self.sum + other.sum,
        }
    }
}

impl Default for Hist {
    fn default() -> Self {
        Self { buckets: Histogram::new(3).expect("three digits are within 0 to 5"), exact: Some(Exact::NONE) }
    }
}

impl Hist {
    /// Counts a time, in microseconds.
    pub fn record(&mut self, span: Duration) {
        self.record_count(u64::try_from(span.as_micros()).unwrap_or(MOST));
    }

    /// Counts a time that came so often, in microseconds.
    pub fn record_often(&mut self, span: Duration, count: u64) {
        self.record_times(u64::try_from(span.as_micros()).unwrap_or(MOST), count);
    }

    /// Counts a plain number.
    pub fn record_count(&mut self, value: u64) {
        self.record_times(value, 1);
    }

    fn record_times(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        let value = value.min(MOST);
        self.buckets
            .record_n(value, count)
            .expect("a histogram that resizes itself takes every value below the cap");
        let seen = Exact { least: value, most: value, sum: u128::from(value) * u128::from(count) };
        self.exact = self.exact.map(|exact| exact.add(seen));
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// How many different values, as far as they are told apart: all below 2,048 are.
    pub fn distinct(&self) -> usize {
        self.buckets.iter_recorded().count()
    }

    /// The number at this quantile (0 to 1), by nearest rank, to a thousandth, and never beyond the smallest and the
    /// largest that were recorded; `None` of an empty one.
    pub fn number_at(&self, quantile: f64) -> Option<u64> {
        let (least, most) = self.min().zip(self.max())?;
        Some(self.buckets.value_at_quantile(quantile).clamp(least, most))
    }

    /// The time at this quantile; `None` of an empty one.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        self.number_at(quantile).map(Duration::from_micros)
    }

    /// How many values are at most `value`, or so near it that they are not told apart.
    pub fn count_to(&self, value: u64) -> u64 {
        self.buckets.count_between(0, value.min(MOST))
    }

    /// The smallest number; `None` of an empty one.
    pub fn min(&self) -> Option<u64> {
        (!self.buckets.is_empty()).then(|| self.exact.map_or_else(|| self.buckets.min(), |exact| exact.least))
    }

    /// The largest number; of a histogram that was read back rounded up by at most a thousandth. `None` of an empty one.
    pub fn max(&self) -> Option<u64> {
        (!self.buckets.is_empty()).then(|| self.exact.map_or_else(|| self.buckets.max(), |exact| exact.most))
    }

    /// The mean, of one that was read back that of its buckets; `None` of an empty one.
    pub fn mean(&self) -> Option<f64> {
        let of = |exact: Exact| exact.sum as f64 / self.count() as f64;
        (!self.buckets.is_empty()).then(|| self.exact.map_or_else(|| self.buckets.mean(), of))
    }

    /// Adds another's values.
    pub fn add(&mut self, other: &Self) {
        self.buckets
            .add(&other.buckets)
            .expect("a histogram that resizes itself takes every other of its precision");
        self.exact = self.exact.zip(other.exact).map(|(mine, theirs)| mine.add(theirs));
    }

    /// The bounds of the bucket that holds the value of this rank, 1 being the smallest value; `None` of a rank there
    /// is not. The value that was recorded lies between the two.
    pub fn bucket_of_rank(&self, rank: u64) -> Option<(u64, u64)> {
        let count = self.count();
        if rank == 0 || rank > count {
            return None;
        }
        let value = self.buckets.value_at_quantile((rank as f64 - 0.5) / count as f64);
        Some((self.buckets.lowest_equivalent(value), self.buckets.highest_equivalent(value)))
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
        own.buckets.add(hist).ok()?;
        own.exact = None;
        Some(own)
    }

    /// The whole histogram as HdrHistogram V2, in base64: other tools read it, and two of them can be added.
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.buckets, &mut bytes).expect("a vector takes every byte");
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
        let back = Hist::from_base64(&hist.to_base64()).unwrap();
        assert_eq!(back.buckets, hist.buckets);
        assert_eq!(
            Hist::from_base64(&back.to_base64()),
            Some(back),
            "what was read back is written as it was"
        );
        let empty = Hist::from_base64(&Hist::default().to_base64()).unwrap();
        assert_eq!((empty.count(), empty.max(), empty.mean()), (0, None, None));
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

    /// As in locustio/locust#254, #331 and #1563: a percentile of rounded buckets is no more than the largest sample.
    #[test]
    fn percentiles_are_ordered_and_never_beyond_the_largest_sample() {
        let mut one = Hist::default();
        one.record(Duration::from_millis(575));
        for quantile in [0.0, 0.5, 0.9, 0.99, 1.0] {
            assert_eq!(one.number_at(quantile), Some(575_000), "{quantile}");
        }
        assert_eq!((one.min(), one.max(), one.mean()), (Some(575_000), Some(575_000), Some(575_000.0)));
        let mut many = Hist::default();
        let samples: Vec<u64> = (1..=50).map(|n| 596_000 - (50 - n) * 9_973).collect();
        samples.iter().for_each(|micros| many.record_count(*micros));
        let at = |quantile| many.number_at(quantile).unwrap();
        let ladder = [many.min().unwrap(), at(0.5), at(0.9), at(0.99), at(1.0), many.max().unwrap()];
        assert!(ladder.is_sorted(), "{ladder:?}");
        assert_eq!((at(0.99), many.max()), (596_000, Some(596_000)));
        let mean = samples.iter().sum::<u64>() as f64 / 50.0;
        assert!((many.mean().unwrap() - mean).abs() < 1e-9, "from the sum, not from buckets");
    }

    /// As in HdrHistogram/HdrHistogram_rust#135 and awslabs/mountpoint-s3#513: what lies beyond all samples so far makes a
    /// histogram grow, and two that grew apart are added whole.
    #[test]
    fn a_sample_beyond_the_range_is_kept_and_unlike_histograms_are_added() {
        let mut short = Hist::default();
        (0..999).for_each(|_| short.record(Duration::from_millis(100)));
        let mut long = Hist::default();
        long.record(Duration::from_secs(900));
        let (mut forth, mut back) = (short.clone(), long.clone());
        forth.add(&long);
        back.add(&short);
        assert_eq!(forth, back);
        short.record(Duration::from_secs(900));
        assert_eq!(forth, short, "whether it came before or after");
        assert_eq!((forth.count(), forth.max(), forth.count_to(200_000)), (1_000, Some(900_000_000), 999));
        let median = forth.number_at(0.5).unwrap();
        assert!((100_000..100_100).contains(&median), "{median}");
    }
}
