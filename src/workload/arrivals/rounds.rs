//! Callers in rounds: in the middle of every round the whole callers of each class come at once, the more important
//! first; what is less than a whole one is carried over to the next.
//!
//! A class's callers a round are the phase's rate times its weight, and its factor of the round where it has some. A
//! gateway that serves in rounds (`window: { round: 1s }`) serves at their ends.

use std::collections::BTreeMap;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Every, Factors, Kind, Next, Process, built};
use crate::units::{Rate, Read, Reader};
use crate::workload::{ClassId, Mix};

pub(super) const KIND: Kind = Kind {
    name: "rounds",
    about: "all callers of a round at once, by weight: { every: 1s, factors: { ask: [0.85, 1.15] } }",
    build: |inner| built(inner, Rounds::standard()),
};

/// How callers come in rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    /// How long a round is.
    pub every: Duration,
    /// By the name of a class, what its rate is multiplied by, round by round; then again from the first.
    pub factors: BTreeMap<String, Vec<f64>>,
}

impl Rounds {
    const fn standard() -> Self {
        Self { every: Duration::from_secs(1), factors: BTreeMap::new() }
    }

    /// Callers of a class in a round of factor 1: the nearest float to the exact fraction.
    pub fn callers(&self, rate: Rate, mix: &Mix, class: ClassId) -> f64 {
        let weight = u128::from(mix.class(class).weight);
        let above = u128::from(rate.count()) * weight * self.every.as_nanos();
        let below = u128::from(rate.per_nanos()) * u128::from(mix.total());
        let common = gcd(above, below).max(1);
        (above / common) as f64 / (below / common) as f64
    }
}

/// What has to be remembered from round to round.
#[derive(Debug, Clone, Default)]
pub(in crate::workload) struct Carry {
    round: u64,
    left: Vec<f64>,
}

impl Carry {
    /// The callers of the next round, in the order they come.
    pub(in crate::workload) fn next(&mut self, rounds: &Rounds, rate: Rate, mix: &Mix) -> Vec<ClassId> {
        self.left.resize(mix.classes().len(), 0.0);
        let mut come = Vec::new();
        for (id, left) in (0..).map(ClassId).zip(&mut self.left) {
            let factors = rounds.factors.get(&mix.class(id).name);
            let factor = factors.map_or(1.0, |list| list[(self.round % list.len() as u64) as usize]);
            *left += rounds.callers(rate, mix, id) * factor;
            while *left >= 1.0 {
                *left -= 1.0;
                come.push(id);
            }
        }
        self.round += 1;
        come.sort_by_key(|id| mix.class(*id).tier);
        come
    }
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Read for Rounds {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let every = map.or("every", Every(Self::standard().every));
        let mut factors = BTreeMap::new();
        if let Some(reader) = map.reader("factors") {
            for (class, list) in reader.map()?.rest() {
                factors.insert(class, Factors::read(&list)?.0);
            }
        }
        Some(Self { every: every?.0, factors })
    }
}

impl Process for Rounds {
    fn name(&self) -> &'static str {
        KIND.name
    }

    /// The `k`-th caller where all classes are one and no factor applies.
    fn offset(&self, next: &Next<'_>, _: &mut Pcg64) -> Duration {
        let callers = next.phase.rate.per_sec_f64() * self.every.as_secs_f64();
        let round = ((next.k + 1) as f64 / callers).ceil() - 0.5;
        Duration::try_from_secs_f64(round * self.every.as_secs_f64()).unwrap_or(Duration::MAX).max(next.after)
    }

    fn rounds(&self) -> Option<&Rounds> {
        Some(self)
    }

    /// All callers of a round of the largest factor, or of as many as can lie in a second.
    fn peak(&self, rate: Rate, _: Option<Rate>) -> f64 {
        let factor = self.factors.values().flatten().copied().fold(1.0, f64::max);
        let every = self.every.as_secs_f64();
        rate.per_sec_f64() * every * (1.0 / every).ceil() * factor
    }
}
