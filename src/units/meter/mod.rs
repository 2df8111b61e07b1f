//! What may be used in a while, in four kinds of window.

mod bucket;
mod periods;
mod sliding;

use std::time::Duration;

pub use bucket::Level;
use periods::Given;
pub use periods::Periods;
pub use sliding::Sliding;

use super::{Moment, Rate, Read, Reader, Tokens};

/// How a quota's window moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// A bucket that fills continuously and holds a span of the rate (GCRA gives the same answers).
    Bucket {
        /// How much of the rate fits in.
        burst: Duration,
    },
    /// The whole amount of a period at its start; what is left at its end is lost.
    Fixed {
        /// The period.
        period: Duration,
    },
    /// The whole amount of a period at its end, to those who wait then.
    Round {
        /// The period.
        period: Duration,
    },
    /// At most the amount of a period in any span as long as it.
    Sliding {
        /// The period.
        period: Duration,
    },
}

impl Window {
    /// All kinds, by name.
    pub const KINDS: &'static [&'static str] = &["bucket", "fixed", "round", "sliding"];

    /// Reads one of `kinds`: `bucket`, `{ fixed: 60s }`, `{ round: 1s }` or `{ sliding: 60s }`. A bucket is `None`, since its
    /// burst stands apart.
    pub fn read_as(reader: &Reader<'_>, kinds: &[&'static str]) -> Option<Option<Self>> {
        let (name, inner) = reader.one_of("window", kinds)?;
        if name == "bucket" {
            return Some(None);
        }
        let Some(inner) = inner else {
            reader.fault(format!("`{name}` needs its period: write `{{ {name}: 60s }}`"));
            return None;
        };
        let period = Duration::read(&inner)?;
        if period.is_zero() {
            inner.fault("a period of zero has no end");
            return None;
        }
        Some(Some(match name {
            "fixed" => Self::Fixed { period },
            "round" => Self::Round { period },
            _ => Self::Sliding { period },
        }))
    }

    /// This window, made long enough for one of what comes at `rate`: a slow rate in a short one would let nobody through,
    /// ever.
    #[must_use]
    pub fn holding_one(self, rate: Rate) -> Self {
        let least = rate.time_for(1);
        match self {
            Self::Bucket { burst } => Self::Bucket { burst: burst.max(least) },
            Self::Fixed { period } => Self::Fixed { period: period.max(least) },
            Self::Round { period } => Self::Round { period: period.max(least) },
            Self::Sliding { period } => Self::Sliding { period: period.max(least) },
        }
    }

    /// The span whose amount can be used at once.
    pub const fn span(self) -> Duration {
        match self {
            Self::Bucket { burst } => burst,
            Self::Fixed { period } | Self::Round { period } | Self::Sliding { period } => period,
        }
    }
}

/// A quota being used. Amounts are tokens, or requests counted one by one.
///
/// All methods speak of the instant of the last [`Self::advance`].
#[derive(Debug, Clone)]
pub enum Meter {
    /// See [`Window::Bucket`].
    Bucket(Level),
    /// See [`Window::Fixed`] and [`Window::Round`].
    Periods(Periods),
    /// See [`Window::Sliding`].
    Sliding(Sliding),
}

macro_rules! each {
    ($self:ident, $it:ident => $body:expr) => {
        match $self {
            Meter::Bucket($it) => $body,
            Meter::Periods($it) => $body,
            Meter::Sliding($it) => $body,
        }
    };
}

impl Meter {
    /// An unused quota of `rate` over `window` at `now`.
    pub fn new(rate: Rate, window: Window, now: Moment) -> Self {
        let amount = |span| Tokens::new(rate.whole_in(span));
        match window {
            Window::Bucket { burst } => Self::Bucket(Level::full(rate, amount(burst), now)),
            Window::Fixed { period } => {
                Self::Periods(Periods::new(Given::Throughout, amount(period), period, now))
            }
            Window::Round { period } => {
                Self::Periods(Periods::new(Given::AtItsEnd, amount(period), period, now))
            }
            Window::Sliding { period } => Self::Sliding(Sliding::new(amount(period), period, now)),
        }
    }

    /// Lets time pass up to `now`.
    pub fn advance(&mut self, now: Moment) {
        each!(self, it => it.advance(now));
    }

    /// The instant it stands at.
    pub const fn at(&self) -> Moment {
        each!(self, it => it.at())
    }

    /// The most that can be taken at once, ever.
    pub fn size(&self) -> Tokens {
        each!(self, it => it.size())
    }

    /// What can be taken now.
    pub fn tokens(&self) -> Tokens {
        each!(self, it => it.tokens())
    }

    /// Whether `amount` can be taken now.
    pub fn holds(&self, amount: Tokens) -> bool {
        each!(self, it => it.holds(amount))
    }

    /// Takes `amount` if it is all there.
    pub fn take(&mut self, amount: Tokens) -> bool {
        each!(self, it => it.take(amount))
    }

    /// Takes `amount` whatever is there.
    pub fn charge(&mut self, amount: Tokens) {
        each!(self, it => it.charge(amount));
    }

    /// Gives `amount` back, as far as it still counts.
    pub fn refund(&mut self, amount: Tokens) {
        each!(self, it => it.refund(amount));
    }

    /// Uses up what is there now.
    pub fn empty(&mut self) {
        each!(self, it => it.empty());
    }

    /// From now on `rate` is what may be used. A bucket keeps its size and what is in it; of the others a period's amount
    /// changes, and what was used of it stays used.
    pub fn retune(&mut self, rate: Rate) {
        each!(self, it => it.retune(rate));
    }

    /// How long until `amount` can be taken if nothing else is; `None` if it never can.
    pub fn time_until(&self, amount: Tokens) -> Option<Duration> {
        each!(self, it => it.time_until(amount))
    }

    /// The most that can be taken from now until `span` from now: the supply function A(t, Δ).
    pub fn supply(&self, span: Duration) -> Tokens {
        each!(self, it => it.supply(span))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The generic cell rate algorithm with cost n: tat' = max(tat, now) + nT; conforms iff tat' − τ ≤ now.
    struct Gcra {
        tat: u128,
        cost: u128,
        tau: u128,
    }

    impl Gcra {
        fn take(&mut self, now: u128, n: u128) -> bool {
            let tat = self.tat.max(now) + n * self.cost;
            let conforms = tat <= now + self.tau;
            if conforms {
                self.tat = tat;
            }
            conforms
        }
    }

    #[test]
    fn the_bucket_equals_gcra_on_a_million_random_steps() {
        // 1,000 a second and a burst of 5,000: T = 1 ms, τ = 5 s, exact in nanoseconds
        let rate = Rate::per_second(1_000).unwrap();
        let mut meter = Meter::new(rate, Window::Bucket { burst: Duration::from_secs(5) }, Moment::ZERO);
        let mut gcra = Gcra { tat: 0, cost: 1_000_000, tau: 5_000_000_000 };
        let (mut state, mut now, mut taken) = (0x9E37_79B9_7F4A_7C15u64, 0u64, 0u32);
        for step in 0..1_000_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now += (state >> 33) % 3_000_000;
            let n = (state >> 20) % 6;
            meter.advance(Moment::from_nanos(now));
            let took = meter.take(Tokens::new(n));
            assert_eq!(took, gcra.take(u128::from(now), u128::from(n)), "step {step}: {n} at {now} ns");
            taken += u32::from(took);
        }
        assert!((100_000..900_000).contains(&taken), "both answers must occur: {taken}");
    }

    fn windows() -> impl Strategy<Value = Window> {
        prop_oneof![
            (1_000..5_000u64).prop_map(|ms| Window::Bucket { burst: Duration::from_millis(ms) }),
            (1_000..5_000u64).prop_map(|ms| Window::Fixed { period: Duration::from_millis(ms) }),
            (1_000..5_000u64).prop_map(|ms| Window::Round { period: Duration::from_millis(ms) }),
            (1_000..5_000u64).prop_map(|ms| Window::Sliding { period: Duration::from_millis(ms) }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_promised_can_be_taken_and_not_a_nanosecond_before(
            window in windows(),
            steps in proptest::collection::vec((0..800u64, 1..120u64), 1..80),
        ) {
            let mut meter = Meter::new(Rate::per_second(100).unwrap(), window, Moment::ZERO);
            let mut now = Moment::ZERO;
            for (ms, amount) in steps {
                now = now + Duration::from_millis(ms);
                meter.advance(now);
                let amount = Tokens::new(amount);
                let Some(wait) = meter.time_until(amount) else {
                    prop_assert!(amount > meter.size());
                    continue;
                };
                prop_assert_eq!(wait.is_zero(), meter.tokens() >= amount);
                prop_assert_eq!(wait.is_zero(), meter.holds(amount));
                prop_assert!(meter.supply(wait) >= amount, "the supply function knows of it");
                if let Some(before) = wait.checked_sub(Duration::from_nanos(1)) {
                    let mut early = meter.clone();
                    early.advance(now + before);
                    prop_assert!(!early.take(amount));
                }
                now = now + wait;
                meter.advance(now);
                prop_assert!(meter.take(amount));
            }
        }

        #[test]
        fn no_window_as_long_as_a_sliding_one_holds_more_than_its_amount(
            steps in proptest::collection::vec((0..400u64, 1..60u64), 1..120),
        ) {
            let period = Duration::from_secs(1);
            let mut meter = Meter::new(Rate::per_second(100).unwrap(), Window::Sliding { period }, Moment::ZERO);
            let (mut now, mut taken) = (Moment::ZERO, Vec::new());
            for (ms, amount) in steps {
                now = now + Duration::from_millis(ms);
                meter.advance(now);
                if meter.take(Tokens::new(amount)) {
                    taken.push((now, amount));
                }
                let recent: u64 = taken.iter().filter(|(at, _)| now.since(*at) < period).map(|(_, n)| n).sum();
                prop_assert!(recent <= 100, "{recent} within a second");
            }
        }
    }
}
