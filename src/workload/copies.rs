use std::time::Duration;

use super::{Class, ClassId, Mix, stream};

/// How long after its original a copy comes at most.
const LATEST: Duration = Duration::from_millis(200);

/// Which requests are sent twice under one idempotency key, and when the copy follows.
///
/// Drawn by the seed and the arrival alone: whatever else changes, the same arrivals have copies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copies {
    seed: u64,
    /// By class, as bits; empty where no class has any.
    shares: Vec<u64>,
}

impl Copies {
    /// Those of the classes of `mix`, drawn by `seed`.
    pub fn new(seed: u64, mix: &Mix) -> Self {
        let share = |class: &Class| class.duplicates.get();
        let any = mix.classes().iter().any(|class| share(class) > 0.0);
        Self {
            seed,
            shares: if any {
                mix.classes().iter().map(|class| share(class).to_bits()).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// Whether any arrival may have a copy.
    pub const fn are_any(&self) -> bool {
        !self.shares.is_empty()
    }

    /// How long after arrival `seq` of `class` its copy comes: between nothing and 200 ms, each alike. `None` if it has none.
    pub fn after(&self, class: ClassId, seq: u64) -> Option<Duration> {
        let share = f64::from_bits(*self.shares.get(usize::from(class.0))?);
        let draw = |nth| stream::draw(self.seed, stream::COPIES, seq, nth);
        (draw(0) < share).then(|| LATEST.mul_f64(draw(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_arrivals_has_a_copy_that_follows_within_200_ms() {
        let copies = Copies { seed: 7, shares: vec![0.05f64.to_bits(), 0] };
        let all: Vec<Duration> = (0..100_000).filter_map(|seq| copies.after(ClassId(0), seq)).collect();
        // 5,000 of 100,000, four standard deviations of a binomial count
        assert!(all.len().abs_diff(5_000) < 276, "{}", all.len());
        assert!(all.iter().all(|after| *after < LATEST));
        let mean = all.iter().sum::<Duration>() / all.len() as u32;
        assert!(mean.abs_diff(LATEST / 2) < Duration::from_millis(4), "{mean:?}");
        assert!((0..1_000).all(|seq| copies.after(ClassId(1), seq).is_none()));
        assert_eq!(copies.after(ClassId(0), 3), copies.after(ClassId(0), 3));
        assert!(copies.are_any() && !Copies { seed: 7, shares: Vec::new() }.are_any());
    }
}
