//! Exact tests by ranks: how likely a difference as large as this is, if nothing but chance set the two sides apart.
//!
//! Nothing is assumed of the values but that runs are drawn alike. Equal values share their mean rank, and the
//! distribution is that of the very ranks at hand, so ties need no correction (Lehmann, "Nonparametrics", 1975, §1.4
//! and §3.2). Ranks are doubled to keep them whole.

use std::cmp::Ordering;

/// Doubled mean ranks of `values`, in their order.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    values
        .iter()
        .map(|value| {
            let count =
                |which: Ordering| values.iter().filter(|other| other.total_cmp(value) == which).count();
            // the first of its equals has rank below + 1, the last below + equal
            2 * count(Ordering::Less) + count(Ordering::Equal) + 1
        })
        .collect()
}

/// The two-sided p of Mann and Whitney: all ways to deal the ranks to the two sides are alike, and p is the part of
/// them whose rank sum lies at least as far from its mean. Both sides have at least one value.
pub(super) fn mann_whitney(base: &[f64], new: &[f64]) -> f64 {
    let all: Vec<f64> = base.iter().chain(new).copied().collect();
    let ranks = doubled_ranks(&all);
    let ways = ways_to_choose(&ranks, base.len());
    let total: usize = ranks.iter().sum();
    // the mean of the rank sum is total·n/N; everything times N keeps it whole
    let off = |sum: usize| (sum * all.len()).abs_diff(total * base.len());
    let seen = off(ranks[..base.len()].iter().sum());
    part(&ways, |sum| off(sum) >= seen)
}

/// The two-sided p of Wilcoxon's signed ranks: the sign of every difference might as well be the other one. Pairs
/// without a difference say nothing; with none left, p is 1.
pub(super) fn signed_rank(differences: &[f64]) -> f64 {
    let some: Vec<f64> = differences.iter().copied().filter(|d| d.abs() > 0.0).collect();
    let sizes: Vec<f64> = some.iter().map(|d| d.abs()).collect();
    let ranks = doubled_ranks(&sizes);
    let total: usize = ranks.iter().sum();
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for rank in &ranks {
        (*rank..=total).rev().for_each(|sum| ways[sum] += ways[sum - rank]);
    }
    let up: usize = ranks.iter().zip(&some).filter(|(_, d)| **d > 0.0).map(|(rank, _)| rank).sum();
    let off = |sum: usize| (2 * sum).abs_diff(total);
    part(&ways, |sum| off(sum) >= off(up))
}

/// In how many ways `size` of `ranks` add up to each sum. Counts of up to C(100, 50) are exact enough as floats: they
/// only ever grow by adding.
fn ways_to_choose(ranks: &[usize], size: usize) -> Vec<f64> {
    let total: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0; total + 1]; size + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        for taken in (1..=size).rev() {
            let (before, from) = ways.split_at_mut(taken);
            let (less, more) = (&before[taken - 1], &mut from[0]);
            (*rank..=total).for_each(|sum| more[sum] += less[sum - rank]);
        }
    }
    ways.pop().unwrap_or_default()
}

/// The part of all ways that `counts`.
fn part(ways: &[f64], counts: impl Fn(usize) -> bool) -> f64 {
    let all: f64 = ways.iter().sum();
    let some: f64 = ways.iter().enumerate().filter(|(sum, _)| counts(*sum)).map(|(_, n)| n).sum();
    (some / all).min(1.0)
}

/// The smallest p signed ranks can give.
pub(super) fn least_signed_rank(pairs: usize) -> f64 {
    2.0 / 2f64.powi(i32::try_from(pairs).unwrap_or(i32::MAX))
}

/// How many of the pairwise differences must lie on one side for a p of at most `level`, where no values are equal.
pub(super) fn wins_needed(base: usize, new: usize, level: f64) -> Option<usize> {
    let ranks: Vec<usize> = (1..=base + new).collect();
    // the rank sum of the new side is its wins plus the least sum there is
    let least = new * (new + 1) / 2;
    fewest(&ways_to_choose(&ranks, new)[least..=least + base * new], level)
}

/// How many of the means of two differences must, for signed ranks.
pub(super) fn walsh_needed(pairs: usize, level: f64) -> Option<usize> {
    let total = pairs * (pairs + 1) / 2;
    let mut ways = vec![0.0; total + 1];
    ways[0] = 1.0;
    for rank in 1..=pairs {
        (rank..=total).rev().for_each(|sum| ways[sum] += ways[sum - rank]);
    }
    fewest(&ways, level)
}

/// The first of the upper sums whose two-sided p is at most `level`.
fn fewest(ways: &[f64], level: f64) -> Option<usize> {
    let all: f64 = ways.iter().sum();
    let mut tail = 0.0;
    let beyond = ways.iter().enumerate().rev().take_while(|(_, n)| {
        tail += *n;
        2.0 * tail / all <= level
    });
    beyond.last().map(|(sum, _)| sum)
}

/// Binomial coefficient.
pub(super) fn choose(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, want: f64) {
        assert!((got - want).abs() < 5e-5, "{got} instead of {want}");
    }

    /// The smallest two-sided p of three, four and five runs a side, and one table value worked by hand.
    #[test]
    fn five_runs_a_side_can_show_what_three_cannot() {
        let apart = |n: i32| {
            let side = |from: i32| (from..from + n).map(f64::from).collect::<Vec<_>>();
            mann_whitney(&side(0), &side(100))
        };
        near(apart(3), 0.1);
        near(apart(4), 0.0286);
        near(apart(5), 0.0079);
        [3usize, 4, 5].into_iter().for_each(|n| near(apart(n as i32), 2.0 / choose(2 * n, n)));
        // two of the sixteen pairs the wrong way round: 4 + 4 of the 70 ways are as far apart
        near(mann_whitney(&[1.0, 2.0, 3.0, 6.0], &[4.0, 5.0, 7.0, 8.0]), 8.0 / 70.0);
    }

    /// As in rsc/benchstat#7: one side without any spread.
    #[test]
    fn a_side_without_spread_is_no_obstacle() {
        near(mann_whitney(&[115.0, 114.0, 115.0, 115.0, 115.0], &[78.8; 5]), 2.0 / 252.0);
        near(mann_whitney(&[1.0; 5], &[1.0; 5]), 1.0);
        near(mann_whitney(&[1.0], &[2.0]), 1.0);
    }

    #[test]
    fn signed_ranks_count_every_choice_of_signs() {
        near(signed_rank(&[1.0, 2.0, 3.0, 4.0, 5.0]), 2.0 / 32.0);
        near(signed_rank(&[-1.0, 2.0, 3.0, 4.0, 5.0]), 4.0 / 32.0);
        near(signed_rank(&[-3.0; 8]), 2.0 / 256.0);
        near(signed_rank(&[0.0, 0.0]), 1.0);
        near(signed_rank(&[]), 1.0);
        near(least_signed_rank(8), 2.0 / 256.0);
    }

    #[test]
    fn fifty_runs_a_side_are_still_counted_exactly() {
        let side = |from: f64| (0..50).map(|i| from + f64::from(i)).collect::<Vec<_>>();
        let same = mann_whitney(&side(0.0), &side(0.0));
        near(same, 1.0);
        let apart = mann_whitney(&side(0.0), &side(1_000.0));
        assert!(apart > 0.0 && apart < 1e-28, "{apart}");
    }
}
