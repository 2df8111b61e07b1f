//! Sizes whose logarithm is normal, the usual form of prompts and answers: most are short, some are very long.
//!
//! `median` is the size half of them exceed, `sigma` the standard deviation of the logarithm: the mean is
//! median·exp(sigma²/2) before the ends are cut. Sizes beyond `least` and `most` are cut to them, as a model's limits do.

use std::sync::Arc;

use super::{Kind, Law, MOST, tokens};
use crate::units::{Read, Reader, normal_at};
use crate::workload::arrivals::number;

pub(super) const KIND: Kind = Kind {
    name: "lognormal",
    about: "short ones mostly, some very long: { median: 600, sigma: 0.8, least: 1, most: 8000 }",
    build: |inner| Lognormal::read(inner).map(|law| Arc::new(law) as Arc<dyn Law>),
};

/// Where the upper end is cut if a plan does not say: one in a thousand is longer.
const TAIL: f64 = 0.999;

#[derive(Debug)]
struct Lognormal {
    median: f64,
    sigma: f64,
    least: u64,
    most: u64,
}

impl Read for Lognormal {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let median = map.reader("median").and_then(|reader| tokens(&reader));
        let sigma = map.reader("sigma").and_then(|reader| number(&reader, "a sigma", 0.0, 4.0));
        let least = map.reader("least").map_or(Some(1), |reader| tokens(&reader));
        let most = map.reader("most").map_or(Some(MOST), |reader| tokens(&reader));
        let given = map.here().node().get("most").is_some();
        let (Some(median), Some(sigma)) = (median.filter(|median| *median > 0), sigma) else {
            map.here().fault("a lognormal size has a `median` above 0 and a `sigma`");
            return None;
        };
        let mut law = Self { median: median as f64, sigma, least: least?, most: most? };
        if law.least > law.most {
            map.here().fault(format!("`least` of {} is above `most` of {}", law.least, law.most));
            return None;
        }
        if !given {
            law.most = law.at(TAIL);
        }
        Some(law)
    }
}

impl Law for Lognormal {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn at(&self, u: f64) -> u64 {
        let size = self.median * (self.sigma * normal_at(u)).exp();
        // a float too large for a whole number becomes the largest there is
        (size.round() as u64).clamp(self.least, self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_and_mean_are_the_formulas() {
        let law = Lognormal { median: 600.0, sigma: 0.5, least: 1, most: 1_000_000 };
        assert_eq!(law.at(0.5), 600);
        let mean = (0..10_000).map(|i| law.at((f64::from(i) + 0.5) / 1e4) as f64).sum::<f64>() / 1e4;
        assert!((mean - 600.0 * (0.125f64).exp()).abs() < 1.0, "{mean}");
        assert_eq!((law.at(0.0), law.at(1.0)), (1, 34_887), "where a float ends");
    }
}
