//! How many tokens a prompt or an answer has: a number, or a distribution that each request draws from.
//!
//! A size is drawn by inversion from one number that depends on the seed, the purpose and the arrival alone: the same
//! arrival draws the same, whatever else changes, and a changed distribution moves no arrival.

use std::fmt::Debug;
use std::sync::Arc;

use super::stream;
use crate::units::{Read, Reader, Tokens, Value};

mod empirical;
mod fixed;
mod lognormal;
mod mixture;
mod trace;
mod uniform;

/// Every size distribution a plan can name, sorted.
pub const ALL: &[Kind] =
    &[empirical::KIND, fixed::KIND, lognormal::KIND, mixture::KIND, trace::KIND, uniform::KIND];

/// The most tokens of one prompt or answer: more than any model takes.
pub const MOST: u64 = 10_000_000;

/// Points at which a distribution is looked at for its moments.
const GRID: u32 = 8_192;

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Builds it from what stands under its name.
    pub build: fn(&Reader<'_>) -> Option<Arc<dyn Law>>,
}

/// A distribution of sizes.
pub trait Law: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;

    /// The size below which the share `u` of all lie; rises with `u`, which is in `[0, 1)`.
    fn at(&self, u: f64) -> u64;

    /// Sizes with their shares, where there are few enough to name them: then moments are exact.
    fn parts(&self) -> Option<Vec<(f64, u64)>> {
        None
    }

    /// Whether each arrival brings its own size, from a trace.
    fn is_traced(&self) -> bool {
        false
    }
}

/// A distribution with its bounds and moments.
#[derive(Debug, Clone)]
pub struct Size {
    law: Arc<dyn Law>,
    /// Nothing larger is drawn.
    cap: u64,
    moments: Moments,
}

/// What formulas need of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moments {
    least: u64,
    most: u64,
    mean: f64,
    square: f64,
}

impl Moments {
    /// Of sizes with their weights; `None` if there are none.
    fn of(sizes: impl Iterator<Item = (f64, u64)>) -> Option<Self> {
        let (mut least, mut most, mut weight, mut sum, mut square) = (u64::MAX, 0, 0.0, 0.0, 0.0);
        for (part, size) in sizes {
            (least, most) = (least.min(size), most.max(size));
            weight += part;
            sum += part * size as f64;
            square += part * (size as f64).powi(2);
        }
        (weight > 0.0).then(|| Self { least, most, mean: sum / weight, square: square / weight })
    }
}

impl PartialEq for Size {
    fn eq(&self, other: &Self) -> bool {
        (self.law.name(), self.cap, self.moments) == (other.law.name(), other.cap, other.moments)
    }
}

impl Size {
    /// Always `tokens`.
    pub fn fixed(tokens: Tokens) -> Self {
        Self::new(fixed::law(tokens.get()), u64::MAX)
    }

    fn new(law: Arc<dyn Law>, cap: u64) -> Self {
        let moments = match law.parts() {
            Some(parts) => Moments::of(parts.into_iter().map(|(part, size)| (part, size.min(cap)))),
            None => {
                let points = (0..GRID).map(|i| (f64::from(i) + 0.5) / f64::from(GRID));
                Moments::of(points.map(|u| (1.0, law.at(u).min(cap)))).map(|moments| {
                    // the grid does not reach the ends
                    let ends = [0.0, 1.0 - f64::EPSILON].map(|u| law.at(u).min(cap));
                    Moments { least: moments.least.min(ends[0]), most: moments.most.max(ends[1]), ..moments }
                })
            }
        };
        let nothing = Moments { least: 0, most: 0, mean: 0.0, square: 0.0 };
        Self { law, cap, moments: moments.unwrap_or(nothing) }
    }

    /// The same, and nothing larger than `most`: an answer is cut at its `max_tokens`.
    #[must_use]
    pub fn capped(&self, most: Tokens) -> Self {
        let cap = self.cap.min(most.get());
        if self.is_traced() { Self { cap, ..self.clone() } } else { Self::new(Arc::clone(&self.law), cap) }
    }

    /// The same with the moments of the sizes a trace brings.
    #[must_use]
    pub(super) fn of_trace(&self, sizes: impl Iterator<Item = u64>) -> Self {
        let moments = Moments::of(sizes.map(|size| (1.0, size.min(self.cap))));
        Self { moments: moments.unwrap_or(self.moments), ..self.clone() }
    }

    /// Whether each arrival brings its own, from a trace.
    pub fn is_traced(&self) -> bool {
        self.law.is_traced()
    }

    /// The number, if it is always the same.
    pub fn only(&self) -> Option<Tokens> {
        (self.moments.least == self.moments.most).then_some(Tokens::new(self.moments.most))
    }

    /// The size of arrival `seq`, drawn from the stream for `purpose`; `own` is what a trace brings.
    pub(super) fn draw(&self, seed: u64, purpose: u64, seq: u64, own: Option<u64>) -> Tokens {
        let size = match own.filter(|_| self.is_traced()) {
            Some(own) => own,
            None if self.moments.least == self.moments.most => self.moments.most,
            None => self.law.at(stream::draw(seed, purpose, seq, 0)),
        };
        Tokens::new(size.min(self.cap))
    }

    /// The smallest there is.
    pub const fn least(&self) -> Tokens {
        Tokens::new(self.moments.least)
    }

    /// The largest there is.
    pub const fn most(&self) -> Tokens {
        Tokens::new(self.moments.most)
    }

    /// The mean.
    pub const fn mean(&self) -> f64 {
        self.moments.mean
    }

    /// The mean of the square.
    pub const fn square(&self) -> f64 {
        self.moments.square
    }

    /// In a few words: `800`, or `lognormal, 12 to 8000, mean 613 ± 402`.
    pub fn words(&self) -> String {
        match self.only() {
            Some(tokens) => tokens.to_string(),
            None => {
                let Moments { least, most, mean, square } = self.moments;
                let deviation = (square - mean * mean).max(0.0).sqrt();
                format!("{}, {least} to {most}, mean {mean:.0} ± {deviation:.0}", self.law.name())
            }
        }
    }
}

impl Read for Size {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        law(reader).map(|law| Self::new(law, u64::MAX))
    }
}

/// A number, the word `trace`, or a map of one name to its settings.
fn law(reader: &Reader<'_>) -> Option<Arc<dyn Law>> {
    if let Value::Text { text, .. } = &reader.node().value
        && !text.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        return (fixed::KIND.build)(reader);
    }
    let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
    let (name, inner) = reader.one_of("size distribution", &names)?;
    let kind = ALL.iter().find(|kind| kind.name == name)?;
    if inner.is_none() && name != trace::KIND.name {
        reader.fault(format!("`{name}` needs its settings: {}", kind.about));
        return None;
    }
    (kind.build)(inner.as_ref().unwrap_or(reader))
}

/// A number of tokens that a prompt or an answer can have.
fn tokens(reader: &Reader<'_>) -> Option<u64> {
    let tokens = Tokens::read(reader)?.get();
    if tokens > MOST {
        reader.fault(format!("{tokens} tokens are more than any request has: at most {MOST}"));
        return None;
    }
    Some(tokens)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workload::testing::{list, map, read, text};

    fn examples() -> Vec<(&'static str, Size)> {
        let lognormal = map(vec![("lognormal", map(vec![("median", text("600")), ("sigma", text("0.8"))]))]);
        let uniform = map(vec![("uniform", map(vec![("from", text("100")), ("to", text("900"))]))]);
        let weighted = |weight: &str, size| map(vec![("weight", text(weight)), ("size", size)]);
        let mixture =
            map(vec![("mixture", list(vec![weighted("3", text("200")), weighted("1", uniform.clone())]))]);
        let empirical = map(vec![("empirical", list(["120", "340", "340", "560"].map(text).to_vec()))]);
        vec![
            ("empirical", read(&empirical)),
            ("fixed", read(&text("800"))),
            ("lognormal", read(&lognormal)),
            ("mixture", read(&mixture)),
            ("uniform", read(&uniform)),
        ]
    }

    #[test]
    fn every_law_draws_what_its_moments_say() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert_eq!(examples().len(), ALL.len() - 1, "all but those of a trace");
        for (name, size) in examples() {
            assert_eq!(size.law.name(), name);
            let all: Vec<f64> =
                (0..100_000).map(|seq| size.draw(7, stream::PROMPTS, seq, None).get() as f64).collect();
            let mean = all.iter().sum::<f64>() / 1e5;
            let square = all.iter().map(|x| x * x).sum::<f64>() / 1e5;
            let deviation = (size.square() - size.mean().powi(2)).max(0.0).sqrt();
            assert!((mean - size.mean()).abs() <= 4.0 * deviation / 1e5f64.sqrt() + 1e-9, "{name}: {mean}");
            assert!((square / size.square() - 1.0).abs() < 0.05, "{name}: {square} for {}", size.square());
            let (least, most) = (size.least().get() as f64, size.most().get() as f64);
            assert!(all.iter().all(|x| (least..=most).contains(x)), "{name}");
        }
    }

    #[test]
    fn an_answer_is_cut_at_what_it_may_have() {
        for (name, size) in examples() {
            let cut = size.capped(Tokens::new(300));
            assert!(cut.most() <= Tokens::new(300) && cut.mean() <= size.mean(), "{name}");
            let longest = (0..1_000).map(|seq| cut.draw(7, stream::OUTPUTS, seq, None)).max().unwrap();
            assert!(longest <= Tokens::new(300), "{name}");
        }
    }

    proptest! {
        /// Inversion: a larger number never draws a smaller size, so two distributions stay in step draw by draw.
        #[test]
        fn sizes_rise_with_the_number_they_are_drawn_from(a in 0.0..1.0f64, b in 0.0..1.0f64) {
            for (name, size) in examples().into_iter().filter(|(name, _)| *name != "mixture") {
                prop_assert!(size.law.at(a.min(b)) <= size.law.at(a.max(b)), "{name}");
            }
        }
    }
}
