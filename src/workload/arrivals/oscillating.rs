//! A rate that swings: the phase's times each factor of a list in turn, evenly spaced within each.

use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Every, Factors, Kind, Next, Process, built};
use crate::units::{Rate, Read, Reader};
use crate::workload::Phase;

pub(super) const KIND: Kind = Kind {
    name: "oscillating",
    about: "the rate times each factor in turn: { every: 1s, factors: [0.85, 0.85, 0.85, 1.45] }",
    build: |inner| built(inner, Oscillating::standard()),
};

#[derive(Debug)]
struct Oscillating {
    every: Duration,
    factors: Factors,
}

impl Oscillating {
    /// Three quarters of the time a little less, then much more; on average the rate itself.
    fn standard() -> Self {
        Self { every: Duration::from_secs(1), factors: Factors(vec![0.85, 0.85, 0.85, 1.45]) }
    }
}

impl Read for Oscillating {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let standard = Self::standard();
        let mut map = reader.map()?;
        let every = map.or("every", Every(standard.every));
        let factors = map.or("factors", standard.factors);
        Some(Self { every: every?.0, factors: factors? })
    }
}

impl Process for Oscillating {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn offset(&self, next: &Next<'_>, _: &mut Pcg64) -> Duration {
        let step = next.phase.rate.per_sec_f64() * self.every.as_secs_f64();
        let all: f64 = self.factors.0.iter().map(|factor| factor * step).sum();
        // one rounding, not two that may disagree about the last caller of a cycle
        let mut left = next.k as f64 % all;
        let cycles = ((next.k as f64 - left) / all).round();
        let mut steps = cycles * self.factors.0.len() as f64;
        for factor in &self.factors.0 {
            let callers = factor * step;
            if left < callers {
                steps += left / callers;
                break;
            }
            left -= callers;
            steps += 1.0;
        }
        Duration::try_from_secs_f64(steps * self.every.as_secs_f64()).unwrap_or(Duration::MAX).max(next.after)
    }

    fn peak(&self, rate: Rate, _: Option<Rate>) -> f64 {
        rate.per_sec_f64() * self.factors.0.iter().copied().fold(0.0, f64::max)
    }

    fn expected(&self, phase: &Phase, _before: Option<Rate>) -> f64 {
        let step = phase.rate.per_sec_f64() * self.every.as_secs_f64();
        let steps = phase.lasts.as_secs_f64() / self.every.as_secs_f64();
        let cycle = self.factors.0.len() as f64;
        let whole = (steps / cycle).floor();
        let mut callers = whole * self.factors.0.iter().sum::<f64>();
        let mut left = steps - whole * cycle;
        for factor in &self.factors.0 {
            callers += factor * left.clamp(0.0, 1.0);
            left -= 1.0;
        }
        callers * step
    }
}
