//! The smallest change that could have been seen.
//!
//! A test by ranks calls a change when enough of the pairwise differences (of the pairs' means, where runs are paired)
//! lie on one side of nothing. So for two given sides there is one shift from which on it calls; over many draws of
//! normal values, the shift that is enough in four draws of five is the smallest change seen with a power of 80 %. It
//! is found for the very test, number of runs and level that judge, and counted in standard deviations from run to run.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::rank;

/// How many times two sides are drawn.
const DRAWS: usize = 500;
/// The power.
const POWER: f64 = 0.8;

/// In standard deviations of a run, for `base` and `new` runs a side, if a p of at most `level` is called; `None` if
/// no result could be.
pub(super) fn unpaired(base: usize, new: usize, level: f64) -> Option<f64> {
    let needed = rank::wins_needed(base, new, level)?;
    Some(enough(|normal| {
        let (old, fresh) = (draw(normal, base), draw(normal, new));
        nth(old.iter().flat_map(|x| fresh.iter().map(move |y| x - y)).collect(), needed)
    }))
}

/// The same in standard deviations of the difference of a pair.
pub(super) fn paired(pairs: usize, level: f64) -> Option<f64> {
    let needed = rank::walsh_needed(pairs, level)?;
    Some(enough(|normal| {
        let drawn = draw(normal, pairs);
        let means =
            drawn.iter().enumerate().flat_map(|(i, a)| drawn[i..].iter().map(move |b| -(a + b) / 2.0));
        nth(means.collect(), needed)
    }))
}

/// The `rank`-th smallest, 1 being the first.
fn nth(mut values: Vec<f64>, rank: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[rank - 1]
}

/// The shift that is enough in four draws of five.
fn enough(shift: impl Fn(&mut Normal) -> f64) -> f64 {
    let mut normal = Normal(Pcg64::seed_from_u64(0x7E4F));
    let shifts: Vec<f64> = (0..DRAWS).map(|_| shift(&mut normal)).collect();
    nth(shifts, (POWER * DRAWS as f64).ceil() as usize)
}

fn draw(normal: &mut Normal, count: usize) -> Vec<f64> {
    (0..count).map(|_| normal.next()).collect()
}

/// Normal values, by Box and Muller; the same ones every time.
struct Normal(Pcg64);

impl Normal {
    fn next(&mut self) -> f64 {
        // (0, 1], so that its logarithm is finite
        let unit = |bits: u64| ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64;
        let (radius, angle) = (unit(self.0.next_u64()), unit(self.0.next_u64()));
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The t test's table says 2.02 standard deviations for five runs a side at 5 %, and 1.33 for ten; ranks need a
    /// little more (their efficiency is 3/π).
    #[test]
    fn ranks_see_a_little_less_than_the_t_test() {
        let near = |got: Option<f64>, low: f64, high: f64| {
            assert!(got.is_some_and(|got| (low..high).contains(&got)), "{got:?}");
        };
        near(unpaired(5, 5, 0.05), 2.0, 2.5);
        near(unpaired(10, 10, 0.05), 1.25, 1.5);
        near(unpaired(5, 5, 0.05 / 6.0), 2.6, 3.5);
        near(paired(10, 0.05), 0.9, 1.15);
        assert_eq!(unpaired(3, 3, 0.05), None);
        assert_eq!(unpaired(4, 4, 0.05 / 2.0), None);
        assert_eq!(paired(5, 0.05), None);
    }

    #[test]
    fn it_is_the_same_every_time() {
        assert_eq!(unpaired(6, 5, 0.05), unpaired(6, 5, 0.05));
    }
}
