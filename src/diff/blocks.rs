//! A moving-block bootstrap over the windows of long runs, for sides of too few runs to compare run with run.
//!
//! Windows that follow each other share a queue, so they are drawn in blocks long enough to forget it (Künsch 1989):
//! twice the time the queue's bound takes to drain. Below twenty blocks a side there is no telling. What it cannot know
//! is how much one run differs from the next; that takes runs.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// The fewest blocks that fit into a side.
const FEWEST: usize = 20;
/// How often each side is drawn anew.
const DRAWS: usize = 4_000;

/// What one run's steady part gives, window by window, in order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// One value a window.
    pub values: Vec<f64>,
    /// How many windows make a block.
    pub block: usize,
}

/// The two-sided p of a difference of means between two sides of runs; `None` if they are too short.
pub(super) fn p(base: &[&Series], new: &[&Series]) -> Option<f64> {
    let (base, new) = (blocks(base)?, blocks(new)?);
    let mut stream = Pcg64::seed_from_u64(0xB10C);
    let (mut below, mut above) = (0u32, 0u32);
    for _ in 0..DRAWS {
        let difference = drawn(&new, &mut stream) - drawn(&base, &mut stream);
        below += u32::from(difference <= 0.0);
        above += u32::from(difference >= 0.0);
    }
    // the draw at hand counts as one of them: p is never 0
    Some((2.0 * f64::from(below.min(above) + 1) / (DRAWS as f64 + 1.0)).min(1.0))
}

/// The means of all blocks of a side, and how many of them make up its length.
struct Blocks {
    means: Vec<f64>,
    fit: usize,
}

fn blocks(side: &[&Series]) -> Option<Blocks> {
    let usable = || side.iter().filter(|series| series.block > 0);
    let mean = |block: &[f64]| block.iter().sum::<f64>() / block.len() as f64;
    let fit = usable().map(|series| series.values.len() / series.block).sum();
    let means = usable().flat_map(|series| series.values.windows(series.block).map(mean)).collect();
    (fit >= FEWEST).then_some(Blocks { means, fit })
}

fn drawn(blocks: &Blocks, stream: &mut Pcg64) -> f64 {
    let many = blocks.means.len() as u64;
    let one = |stream: &mut Pcg64| {
        let place = (u128::from(stream.next_u64()) * u128::from(many)) >> 64;
        blocks.means[usize::try_from(place).unwrap_or(0)]
    };
    (0..blocks.fit).map(|_| one(stream)).sum::<f64>() / blocks.fit as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rate with noise that lasts: each window keeps four fifths of the last one's.
    fn series(seed: u64, windows: usize, rate: f64, block: usize) -> Series {
        let mut stream = Pcg64::seed_from_u64(seed);
        let mut noise = 0.0;
        let values = (0..windows).map(|_| {
            noise = 0.8 * noise + (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
            rate + noise
        });
        Series { values: values.collect(), block }
    }

    #[test]
    fn a_short_run_tells_nothing() {
        let short = series(1, 190, 10.0, 10);
        assert_eq!(p(&[&short], &[&short]), None);
        assert_eq!(p(&[&series(1, 500, 10.0, 0)], &[&short]), None);
    }

    #[test]
    fn a_large_change_is_seen_and_a_run_against_one_like_it_is_not() {
        let (base, worse) = (series(1, 2_400, 10.0, 40), series(2, 2_400, 9.0, 40));
        assert!(p(&[&base], &[&worse]).is_some_and(|p| p < 0.002));
        let alarms = (0..100u64).filter(|seed| {
            let (a, b) = (series(1_000 + seed, 2_400, 10.0, 40), series(5_000 + seed, 2_400, 10.0, 40));
            p(&[&a], &[&b]).is_some_and(|p| p < 0.05)
        });
        let alarms = alarms.count();
        assert!(alarms <= 12, "{alarms} of 100 false alarms");
    }
}
