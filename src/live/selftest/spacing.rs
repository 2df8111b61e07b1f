//! How evenly requests came, as the other side saw them.

use std::time::Duration;

use crate::units::Moment;

/// How far the cumulative count of requests was from `rate × t`, in time, on either side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spacing {
    /// Requests that came.
    pub count: u64,
    /// Half of them were no farther from their instant than this.
    pub p50: Duration,
    /// All but one in a hundred were no farther than this.
    pub p99: Duration,
    /// Half of the gaps between two of them were no farther from `1 / rate` than this, and all but one in a hundred no
    /// farther than the second. Where one wake-up sends several, most gaps are nothing, by design.
    pub gaps: (Duration, Duration),
    /// The farthest of all. A machine steals up to some 16 ms now and then: nothing is judged by it.
    pub worst: Duration,
    /// The rate they came at, from the first to the last.
    pub rate: f64,
}

impl Spacing {
    /// Of requests that came at `arrivals` and were to come at `rate` a second. `None` of fewer than two.
    ///
    /// The origin is where half of them came before their instant and half after it: what a request travels is the same
    /// for all, and no fault of the generator.
    pub fn of(arrivals: &[Moment], rate: f64) -> Option<Self> {
        let (first, last) = (arrivals.first()?, arrivals.last()?);
        let span = last.since(*first).as_secs_f64();
        if arrivals.len() < 2 || span <= 0.0 || rate <= 0.0 {
            return None;
        }
        let late = |(n, at): (usize, &Moment)| at.since(*first).as_secs_f64() - n as f64 / rate;
        let mut late: Vec<f64> = arrivals.iter().enumerate().map(late).collect();
        late.sort_by(f64::total_cmp);
        let origin = late[late.len() / 2];
        let off = sorted(late.iter().map(|late| (late - origin).abs()));
        let gap = |pair: &[Moment]| (pair[1].since(pair[0]).as_secs_f64() - 1.0 / rate).abs();
        let gaps = sorted(arrivals.windows(2).map(gap));
        Some(Self {
            count: arrivals.len() as u64,
            p50: ranked(&off, 0.5),
            p99: ranked(&off, 0.99),
            gaps: (ranked(&gaps, 0.5), ranked(&gaps, 0.99)),
            worst: ranked(&off, 1.0),
            rate: (arrivals.len() - 1) as f64 / span,
        })
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Of values in order, of which there is one, that of nearest rank.
fn ranked(all: &[f64], share: f64) -> Duration {
    let rank = ((all.len() as f64 * share).ceil() as usize).clamp(1, all.len());
    Duration::from_secs_f64(all[rank - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: impl Iterator<Item = u64>) -> Vec<Moment> {
        micros.map(|us| Moment::from_nanos(us * 1_000)).collect()
    }

    #[test]
    fn what_all_travel_is_no_deviation_and_what_a_few_are_late_by_is() {
        let even = at((0..1_000).map(|n| 5_000 + n * 1_000));
        let spacing = Spacing::of(&even, 1_000.0).unwrap();
        assert!(spacing.worst < Duration::from_nanos(10) && (spacing.rate - 1_000.0).abs() < 0.01);
        let some_late = at((0..1_000).map(|n| n * 1_000 + if n % 50 == 49 { 700 } else { 0 }));
        let spacing = Spacing::of(&some_late, 1_000.0).unwrap();
        assert!(spacing.p50 < Duration::from_nanos(10));
        let off =
            |gap: Duration, micros| gap.abs_diff(Duration::from_micros(micros)) < Duration::from_nanos(10);
        assert!(
            off(spacing.gaps.0, 0) && off(spacing.gaps.1, 700),
            "one gap is longer, and one shorter: {spacing:?}"
        );
        assert!(spacing.p99.abs_diff(Duration::from_micros(700)) < Duration::from_nanos(10), "{spacing:?}");
    }

    #[test]
    fn a_lost_rate_shows_however_even_the_gaps_are() {
        let slow = at((0..10_000).map(|n| n * 1_010));
        let spacing = Spacing::of(&slow, 1_000.0).unwrap();
        assert!(spacing.p99 > Duration::from_millis(45), "{spacing:?}");
        assert!(Spacing::of(&slow[..1], 1_000.0).is_none() && Spacing::of(&[], 1_000.0).is_none());
    }
}
