//! Sizes whose logarithm is normal, the usual form of prompts and answers: most are short, some are very long.
//!
//! `median` is the size half of them exceed, `sigma` the standard deviation of the logarithm: the mean is
//! median·exp(sigma²/2) before the ends are cut. Sizes beyond `least` and `most` are cut to them, as a model's limits do.

use std::sync::Arc;

use super::{Kind, Law, MOST, tokens};
use crate::units::{Read, Reader};
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

/// The inverse of the standard normal distribution function: rational approximations on three stretches (Acklam 2003),
/// good to 1.2e-9 of the value.
fn normal_at(u: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    const EDGE: f64 = 0.024_25;
    let u = u.clamp(1e-300, 1.0 - f64::EPSILON);
    let tail = |q: f64| polynomial(&C, q) / polynomial(&D, q);
    if u < EDGE {
        tail((-2.0 * u.ln()).sqrt())
    } else if u > 1.0 - EDGE {
        -tail((-2.0 * (1.0 - u).ln()).sqrt())
    } else {
        let q = u - 0.5;
        q * polynomial(&A, q * q) / polynomial(&B, q * q)
    }
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_normal_is_that_of_the_tables() {
        for (u, z) in [
            (0.5, 0.0),
            (0.841_344_746_068_542_9, 1.0),
            (0.975, 1.959_963_984_540_054),
            (0.999, 3.090_232_306_167_813),
            (0.001, -3.090_232_306_167_813),
            (1e-9, -5.997_807_015_008_182),
        ] {
            assert!((normal_at(u) - z).abs() < 1e-7, "{u}: {}", normal_at(u));
        }
    }

    #[test]
    fn median_and_mean_are_the_formulas() {
        let law = Lognormal { median: 600.0, sigma: 0.5, least: 1, most: 1_000_000 };
        assert_eq!(law.at(0.5), 600);
        let mean = (0..10_000).map(|i| law.at((f64::from(i) + 0.5) / 1e4) as f64).sum::<f64>() / 1e4;
        assert!((mean - 600.0 * (0.125f64).exp()).abs() < 1.0, "{mean}");
        assert_eq!((law.at(0.0), law.at(1.0)), (1, 34_887), "where a float ends");
    }
}
