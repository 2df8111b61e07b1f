//! How well a quantile is known from the values at hand: an interval by order statistics.
//!
//! The number of n values below the true q-quantile is binomial, so with 95 % it lies between the values of rank
//! j = ⌊nq − z·√(nq(1−q))⌋ and k = ⌈nq + z·√(nq(1−q))⌉ + 1, z = 1.96 (David and Nagaraja, "Order Statistics", §7.1).
//! Both ends are widened to the bounds of their buckets. It holds for values that are independent; requests that
//! waited in one queue are not, so it is shown and never judged by.

use crate::measure::Hist;

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.96;

/// The interval of the `quantile` of `hist`; `None` if there are too few values for both ends.
pub(super) fn of(hist: &Hist, quantile: f64) -> Option<(u64, u64)> {
    let n = hist.count() as f64;
    let (middle, spread) = (n * quantile, Z * (n * quantile * (1.0 - quantile)).sqrt());
    let (first, last) = ((middle - spread).floor(), (middle + spread).ceil() + 1.0);
    if first < 1.0 || last > n {
        return None;
    }
    let low = hist.bucket_of_rank(first as u64)?.0;
    let high = hist.bucket_of_rank(last as u64)?.1;
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(n: u64) -> Hist {
        let mut hist = Hist::default();
        (1..=n).for_each(|value| hist.record_count(value));
        hist
    }

    #[test]
    fn the_median_of_a_hundred_lies_between_the_40th_and_the_61st() {
        assert_eq!(of(&filled(100), 0.5), Some((40, 61)));
    }

    #[test]
    fn a_99th_percentile_needs_some_four_hundred_values() {
        assert_eq!(of(&filled(299), 0.99), None);
        let (low, high) = of(&filled(1_000), 0.99).unwrap();
        assert!(low <= 990 && (990..=1_000).contains(&high), "{low} to {high}");
        assert_eq!(of(&Hist::default(), 0.5), None);
    }

    #[test]
    fn its_ends_are_those_of_their_buckets() {
        let mut hist = Hist::default();
        (1..=1_000u64).for_each(|n| hist.record_count(1_000_000 + n * 10));
        let (low, high) = of(&hist, 0.5).unwrap();
        assert!(low <= 1_000_000 + 469 * 10 && high >= 1_000_000 + 532 * 10, "{low} to {high}");
    }
}
