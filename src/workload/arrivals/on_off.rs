//! Bursts with nobody between them: on for a while, off for a while. The phase's rate is the mean over both, so that
//! callers come at rate·(on + off)/on while it is on.
//!
//! With `lengths: fixed` a phase begins with a burst and callers are evenly spaced within it. With `lengths: random` the
//! two lengths are exponential means and callers within a burst independent (an interrupted Poisson process, whose gaps
//! are hyperexponential): whether a phase begins on or off is drawn too, so that the mean holds from its first instant.

use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Kind, Next, Process, built};
use crate::units::{Rate, Read, Reader};
use crate::workload::{Phase, stream};

pub(super) const KIND: Kind = Kind {
    name: "on_off",
    about: "bursts, and nobody between them: { on: 2s, off: 8s, lengths: fixed }, or random lengths",
    build: |inner| built(inner, OnOff::standard()),
};

#[derive(Debug)]
struct OnOff {
    on: Duration,
    off: Duration,
    random: bool,
}

impl OnOff {
    const fn standard() -> Self {
        Self { on: Duration::from_secs(2), off: Duration::from_secs(8), random: false }
    }

    /// The rate within a burst over the mean rate.
    fn crowding(&self) -> f64 {
        (self.on + self.off).as_secs_f64() / self.on.as_secs_f64()
    }

    /// Where `on` seconds of bursts have passed, evenly.
    fn after_fixed(&self, on: f64) -> f64 {
        let (burst, pause) = (self.on.as_secs_f64(), self.off.as_secs_f64());
        on + (on / burst).floor() * pause
    }
}

impl Read for OnOff {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (on, off) = (map.need::<Duration>("on"), map.need::<Duration>("off"));
        let lengths = map.reader("lengths").map_or(Some("fixed"), |reader| {
            reader.one_of("kind of lengths", &["fixed", "random"]).map(|(name, _)| name)
        });
        let (on, off) = (on?, off?);
        let day = Duration::from_secs(86_400);
        if on.is_zero() || off.is_zero() || on > day || off > day {
            map.here().fault("`on` and `off` last more than nothing and at most a day (24h)");
            return None;
        }
        if off.as_nanos() > on.as_nanos().saturating_mul(1_000) {
            map.here().fault("`off` lasts at most a thousand times `on`");
            return None;
        }
        Some(Self { on, off, random: lengths? == "random" })
    }
}

impl Process for OnOff {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn offset(&self, next: &Next<'_>, stream: &mut Pcg64) -> Duration {
        let within = next.phase.rate.per_sec_f64() * self.crowding();
        if !self.random {
            let at = self.after_fixed(next.k as f64 / within);
            return Duration::try_from_secs_f64(at).unwrap_or(Duration::MAX).max(next.after);
        }
        let exponential = |mean: f64, stream: &mut Pcg64| -(1.0 - stream::unit(stream)).ln() * mean;
        let (on, off) = (self.on.as_secs_f64(), self.off.as_secs_f64());
        let mut gap = 0.0;
        // right after a caller it is on; at a phase's beginning that is drawn
        if next.k == 0 && stream::unit(stream) * self.crowding() < self.crowding() - 1.0 {
            gap += exponential(off, stream);
        }
        let left = next.phase.lasts.saturating_sub(next.after).as_secs_f64();
        while gap <= left {
            let (caller, ends) = (exponential(1.0 / within, stream), exponential(on, stream));
            if caller < ends {
                return next
                    .after
                    .saturating_add(Duration::try_from_secs_f64(gap + caller).unwrap_or(Duration::MAX));
            }
            gap += ends + exponential(off, stream);
        }
        next.phase.lasts
    }

    fn expected(&self, phase: &Phase, _before: Option<Rate>) -> f64 {
        let mean = phase.rate.per_sec_f64();
        if self.random {
            return mean * phase.lasts.as_secs_f64();
        }
        let (lasts, cycle) = (phase.lasts.as_secs_f64(), (self.on + self.off).as_secs_f64());
        let whole = (lasts / cycle).floor();
        let on = whole * self.on.as_secs_f64() + (lasts - whole * cycle).min(self.on.as_secs_f64());
        mean * self.crowding() * on
    }

    fn peak(&self, rate: Rate, _: Option<Rate>) -> f64 {
        rate.per_sec_f64() * self.crowding()
    }

    /// 1 + 2Λa/(a + b)² for bursts that end at the rate a and begin at b, with Λ callers a second within them: how an
    /// interrupted Poisson process spreads in the long run. Of fixed lengths it is an upper bound.
    fn dispersion(&self, rate: Rate) -> f64 {
        let (ends, begins) = (1.0 / self.on.as_secs_f64(), 1.0 / self.off.as_secs_f64());
        1.0 + 2.0 * rate.per_sec_f64() * self.crowding() * ends / (ends + begins).powi(2)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{offsets, phase};
    use super::*;

    #[test]
    fn fixed_bursts_hold_all_callers_and_the_mean_rate() {
        let bursts = OnOff { on: Duration::from_secs(1), off: Duration::from_secs(4), random: false };
        let all = offsets(&bursts, 20, 50, 7);
        assert_eq!(all.len(), 1_000);
        for burst in 0..10 {
            let within = all.iter().filter(|at| (burst * 5..burst * 5 + 1).contains(&at.as_secs()));
            assert_eq!(within.count(), 100, "burst {burst}");
        }
        // a phase that ends within a pause has had its burst
        assert!((bursts.expected(&phase(20, 7), None) - 200.0).abs() < 1e-9);
        assert_eq!(offsets(&bursts, 20, 7, 7).len(), 200);
    }

    #[test]
    fn random_bursts_are_far_from_even_and_hold_the_mean_rate() {
        let bursts = OnOff { on: Duration::from_secs(1), off: Duration::from_secs(4), random: true };
        let all = offsets(&bursts, 20, 20_000, 7);
        // a cycle of 5 s brings 100 ± 141: 4,000 of them within 4 standard deviations
        assert!(all.len().abs_diff(400_000) < 36_000, "{}", all.len());
        let mut seconds = vec![0u32; 20_000];
        all.iter().for_each(|at| seconds[at.as_secs() as usize] += 1);
        let empty = seconds.iter().filter(|count| **count == 0).count();
        assert!((10_000..15_000).contains(&empty), "{empty} of 20,000 seconds are empty");
    }
}
