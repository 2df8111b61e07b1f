//! Callers with gamma-distributed gaps: `cv` is the coefficient of variation of a gap (its standard deviation over its
//! mean). 1 is Poisson, less is more even, more comes in clumps.
//!
//! The shape is 1/cv², so that the mean gap stays 1 / rate. The first gap of a phase is that of an onlooker who comes at
//! a random instant, U·G with G of shape 1/cv² + 1 (the gap one falls into is longer than most): so the count of a phase
//! is its rate times its length in the mean, however short the phase is and however clumped the callers.

use std::f64::consts::TAU;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Kind, Next, Process, built, number};
use crate::units::{Rate, Read, Reader};
use crate::workload::stream;

/// Gaps that vary more are so rare and so long that no run is long enough for their mean.
const MOST_CV: f64 = 10.0;
/// Gaps that vary less are even: there is `constant` for that.
const LEAST_CV: f64 = 0.01;

pub(super) const KIND: Kind = Kind {
    name: "gamma",
    about: "random gaps of a chosen variation; 1 is poisson, more comes in clumps: { cv: 2 }",
    build: |inner| built(inner, Gamma { cv: 1.0 }),
};

#[derive(Debug)]
struct Gamma {
    cv: f64,
}

impl Read for Gamma {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let Some(inner) = map.reader("cv") else {
            map.here().fault("`cv` is missing: how much do gaps vary? (1 is poisson)");
            return None;
        };
        number(&inner, "a coefficient of variation", LEAST_CV, MOST_CV).map(|cv| Self { cv })
    }
}

impl Process for Gamma {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn offset(&self, next: &Next<'_>, stream: &mut Pcg64) -> Duration {
        let square = self.cv * self.cv;
        let shape = 1.0 / square;
        let gap = if next.k == 0 {
            stream::unit(stream) * standard_gamma(shape + 1.0, stream)
        } else {
            standard_gamma(shape, stream)
        };
        let gap = gap * square / next.phase.rate.per_sec_f64();
        next.after.saturating_add(Duration::try_from_secs_f64(gap).unwrap_or(Duration::MAX))
    }

    fn dispersion(&self, _rate: Rate) -> f64 {
        self.cv * self.cv
    }
}

/// A gamma variate of `shape` and scale 1: squeezed rejection (Marsaglia and Tsang 2000); below shape 1 one of
/// shape + 1 times U^(1/shape).
fn standard_gamma(shape: f64, stream: &mut Pcg64) -> f64 {
    if shape < 1.0 {
        let boost = (1.0 - stream::unit(stream)).powf(1.0 / shape);
        return standard_gamma(shape + 1.0, stream) * boost;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    // one in twenty is rejected at worst; the bound is only there so that no stream can keep us for ever
    for _ in 0..1_000 {
        let x = normal(stream);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && (1.0 - stream::unit(stream)).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
    shape
}

/// A standard normal variate (Box and Muller 1958).
fn normal(stream: &mut Pcg64) -> f64 {
    let radius = (-2.0 * (1.0 - stream::unit(stream)).ln()).sqrt();
    radius * (TAU * stream::unit(stream)).cos()
}

#[cfg(test)]
mod tests {
    use super::super::tests;
    use super::*;

    /// Offsets, in seconds, of a phase of `secs` seconds at 100 a second, drawn from `seed`.
    fn offsets(cv: f64, secs: u64, seed: u64) -> Vec<f64> {
        let all = tests::offsets(&Gamma { cv }, 100, secs, seed);
        all.iter().map(Duration::as_secs_f64).collect()
    }

    #[test]
    fn gaps_vary_as_much_as_they_should() {
        for cv in [0.2, 1.0, 3.0] {
            let gaps: Vec<f64> = offsets(cv, 2_000, 7).windows(2).map(|pair| pair[1] - pair[0]).collect();
            let n = gaps.len() as f64;
            let mean = gaps.iter().sum::<f64>() / n;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
            // 200,000 gaps: the mean is within 4 cv/√n, the estimate of cv within 4 % for cv 3
            assert!((mean * 100.0 - 1.0).abs() < 4.0 * cv / n.sqrt(), "cv {cv}: mean {mean}");
            assert!((variance.sqrt() / mean / cv - 1.0).abs() < 0.04, "cv {cv}: {}", variance.sqrt() / mean);
        }
    }

    #[test]
    fn short_phases_hold_their_rate_in_the_mean_however_clumped() {
        // 4,000 phases of one second and 100 callers, cv 3: an ordinary first gap would give 104 a phase
        let counts: Vec<f64> = (0..4_000).map(|seed| offsets(3.0, 1, seed).len() as f64).collect();
        let mean = counts.iter().sum::<f64>() / 4_000.0;
        // the count's standard deviation is about 30 a phase, 0.47 of the mean
        assert!((mean - 100.0).abs() < 1.9, "{mean}");
    }
}
