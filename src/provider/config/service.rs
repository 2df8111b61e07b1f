use std::time::Duration;

use crate::units::{Read, Reader, Share, Tokens, normal_at};

/// How long an answer takes: a time to the first token and a time for each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    /// From the request to the first token.
    pub first_token: Duration,
    /// For each token of the answer.
    pub per_token: Duration,
    /// How the time spreads around that.
    pub law: Law,
    /// How much slower it is with many at once; `None` for not at all.
    pub strain: Option<Strain>,
}

/// How service times spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// Exponentially, around the time of the answer's length as the mean.
    Exponential,
    /// Not at all.
    Fixed,
    /// With a normal logarithm, around the time of the answer's length as the mean.
    Lognormal {
        /// The standard deviation over the mean.
        cv: f64,
    },
}

/// A provider that is slower under load: each answer beyond `above` that is worked on adds `each` of the usual time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Strain {
    /// So many at once are no strain.
    pub above: u32,
    /// What each beyond that adds, as a part of the usual time.
    pub each: f64,
}

/// Places for answers that are worked on, with a queue of their own before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// How many.
    pub count: u32,
    /// How many calls may wait for one; beyond it a call is refused.
    pub queue: u32,
}

impl Law {
    /// What a time of mean 1 is for `draw` in `[0, 1)`.
    fn at(self, draw: f64) -> f64 {
        match self {
            Self::Fixed => 1.0,
            // by inversion: 1 - draw lies in (0, 1], so this is at most 37
            Self::Exponential => -(1.0 - draw).ln(),
            // mean 1: exp(sigma z - sigma²/2) with sigma² = ln(1 + cv²)
            Self::Lognormal { cv } => {
                let variance = (cv * cv).ln_1p();
                (variance.sqrt() * normal_at(draw) - variance / 2.0).exp()
            }
        }
    }

    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::Exponential => "exponential".to_owned(),
            Self::Fixed => "fixed".to_owned(),
            Self::Lognormal { cv } => format!("lognormal, cv {cv}"),
        }
    }
}

impl Strain {
    /// How many times as long an answer takes with `busy` others at work.
    pub(in crate::provider) fn times(self, busy: usize) -> f64 {
        let beyond = (busy as f64 + 1.0 - f64::from(self.above)).max(0.0);
        1.0 + self.each * beyond
    }
}

impl Service {
    /// The same time for every answer token, and no spread.
    pub const fn fixed(first_token: Duration, per_token: Duration) -> Self {
        Self { first_token, per_token, law: Law::Fixed, strain: None }
    }

    /// The time of an answer of `output` tokens for `draw` in `[0, 1)`, of a provider with nothing else to do.
    pub fn drawn(&self, output: Tokens, draw: f64) -> Duration {
        let mean = self.time_for(output);
        match self.law {
            Law::Fixed => mean,
            law => times(mean, law.at(draw)),
        }
    }

    /// The time from one token to the next in an answer of `output` tokens that takes `takes` in all. Where times differ,
    /// the first token's part and the others' stay in proportion.
    pub fn gap(&self, output: Tokens, takes: Duration) -> Duration {
        let mean = self.time_for(output);
        if takes == mean || mean.is_zero() {
            return self.per_token;
        }
        takes.mul_f64(self.per_token.as_secs_f64() / mean.as_secs_f64())
    }

    /// The whole time of an answer of `output` tokens; its mean where times spread.
    pub fn time_for(&self, output: Tokens) -> Duration {
        let tokens = self.per_token.as_nanos().saturating_mul(u128::from(output.get()));
        self.first_token.saturating_add(Duration::from_nanos(u64::try_from(tokens).unwrap_or(u64::MAX)))
    }
}

/// `span` times `factor`; as long as can be said where that is too long.
pub(in crate::provider) fn times(span: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(span.as_secs_f64() * factor).unwrap_or(Duration::from_nanos(u64::MAX))
}

impl Read for Service {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let first_token = map.need("first_token");
        let per_token = map.or("per_token", Duration::ZERO);
        let law = map.or("law", Law::Fixed);
        let strain = match map.reader("strain") {
            Some(reader) => Strain::read(&reader).map(Some),
            None => Some(None),
        };
        Some(Self { first_token: first_token?, per_token: per_token?, law: law?, strain: strain? })
    }
}

impl Read for Law {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let (name, inner) = reader.one_of("law of service times", &["exponential", "fixed", "lognormal"])?;
        match (name, inner) {
            ("lognormal", None) => {
                reader.fault("`lognormal` needs its spread: write `{ lognormal: { cv: 0.5 } }`");
                None
            }
            ("lognormal", Some(inner)) => {
                let mut map = inner.map()?;
                let cv: f64 =
                    map.need::<String>("cv")?.parse().ok().filter(|cv| (0.0..=10.0).contains(cv)).or_else(
                        || {
                            map.here().fault("`cv` is the standard deviation over the mean: 0 to 10");
                            None
                        },
                    )?;
                Some(Self::Lognormal { cv })
            }
            ("exponential", None) => Some(Self::Exponential),
            ("fixed", None) => Some(Self::Fixed),
            (name, Some(_)) => {
                reader.fault(format!("`{name}` has no settings"));
                None
            }
            (_, None) => None,
        }
    }
}

impl Read for Strain {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (above, each) = (map.need::<u32>("above"), map.need::<Share>("each"));
        Some(Self { above: above?, each: each?.get() })
    }
}

impl Read for Slots {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (count, queue) = (map.need::<u32>("count"), map.or("queue", u32::MAX));
        let slots = Self { count: count?, queue: queue? };
        if slots.count == 0 || slots.count > 1_000_000 {
            map.here().fault("`count` is 1 to 1,000,000 slots");
            return None;
        }
        Some(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lognormal_times_have_their_mean_and_spread() {
        let law = Law::Lognormal { cv: 0.5 };
        let n = 100_000;
        let drawn = (0..n).map(|i| law.at((f64::from(i) + 0.5) / f64::from(n)));
        let (sum, square) = drawn.fold((0.0, 0.0), |(sum, square), x| (sum + x, square + x * x));
        let (mean, square) = (sum / f64::from(n), square / f64::from(n));
        assert!((mean - 1.0).abs() < 1e-3, "{mean}");
        assert!((square - mean * mean - 0.25).abs() < 3e-3, "{}", square - mean * mean);
    }

    #[test]
    fn each_beyond_what_is_no_strain_adds_its_part() {
        let strain = Strain { above: 10, each: 0.02 };
        let close = |busy, times: f64| (strain.times(busy) - times).abs() < 1e-12;
        assert!(close(0, 1.0) && close(9, 1.0) && close(10, 1.02) && close(59, 2.0));
    }
}
