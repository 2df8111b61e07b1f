//! What callers who come again do to the load. They are told nothing that holds: each attempt succeeds as any other.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Basis;
use crate::plan::Plan;

/// p: the chance of each attempt in an overload that lasts, when `offered` callers arrive and `served` get through, in
/// the same unit, and each of them makes up to k attempts. `callers` are kinds of them as (share of all, k); the shares
/// add to 1.
///
/// Those served are those who do not fail every time: λ·(1 − (1 − p)^k) = μ. For one kind that is
/// p = 1 − (1 − μ/λ)^(1/k); for several it is found by halving. Whatever is announced as a time to return moves the
/// attempts, not their number.
pub fn success_per_attempt(offered: f64, served: f64, callers: &[(f64, f64)]) -> f64 {
    if served >= offered {
        return 1.0;
    }
    if let [(_, k)] = callers {
        return 1.0 - (1.0 - served / offered).powf(1.0 / k.max(1.0));
    }
    let got = |p: f64| callers.iter().map(|(part, k)| part * (1.0 - (1.0 - p).powf(*k))).sum::<f64>();
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if got(middle) * offered < served { low = middle } else { high = middle }
    }
    high
}

/// Whether a queue without a bound, once it is so long that every answer comes too late, ever becomes short again: with
/// every caller of `tail` making all its `attempts`, less must arrive than is served (k·λ0 < μ). What it then drains by
/// is the difference, in the unit of the rates.
pub fn recovery(served: f64, tail: f64, attempts: f64) -> Option<f64> {
    let left = served - attempts * tail;
    (left > 0.0).then_some(left)
}

/// The load that retries make.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Retries {
    /// k: requests a caller sends at most, the mean over the classes.
    pub attempts: f64,
    /// p: the chance of each attempt in the event.
    pub success_per_attempt: f64,
    /// λ' = μ/p: requests a minute on the wire in the event.
    pub offered_per_min: f64,
    /// λ'/λ.
    pub amplification: f64,
    /// μ − k·λ0: requests a minute by which a queue without a bound grows shorter after the event, while every caller
    /// leaves unanswered and comes again. Absent if it never does.
    pub unbounded_drains_per_min: Option<f64>,
}

impl Retries {
    /// `None` where nobody comes again.
    pub(super) fn of(plan: &Plan, basis: &Basis) -> Option<Self> {
        if basis.attempts <= 1.0 {
            return None;
        }
        let classes = plan.requests.classes();
        let total: f64 = classes.iter().map(|class| f64::from(class.weight)).sum();
        let callers: Vec<(f64, f64)> = match classes {
            [class] => vec![(1.0, class.attempts())],
            _ => classes.iter().map(|c| (f64::from(c.weight) / total, c.attempts())).collect(),
        };
        Some(Self::with(basis, &callers))
    }

    fn with(basis: &Basis, callers: &[(f64, f64)]) -> Self {
        let attempts = callers.iter().map(|(part, k)| part * k).sum();
        let p = success_per_attempt(basis.offered, basis.served, callers);
        let wire = basis.offered.min(basis.served) / p;
        Self {
            attempts,
            success_per_attempt: p,
            offered_per_min: wire * 60.0,
            amplification: wire / basis.offered,
            unbounded_drains_per_min: recovery(basis.served, basis.tail, attempts).map(|left| left * 60.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::Forecast;
    use crate::measure::testing::flash;

    fn near(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got} instead of {want}");
    }

    #[test]
    fn more_attempts_make_each_of_them_worth_less() {
        let basis = Forecast::of(&flash().plan()).basis;
        for (k, p, wire) in
            [(1.0, 0.208, 2_000.0), (2.0, 0.110, 3_780.0), (3.0, 0.075, 5_562.0), (5.0, 0.046, 9_128.0)]
        {
            let retries = Retries::with(&basis, &[(1.0, k)]);
            near(retries.success_per_attempt, p, 5e-4);
            near(retries.offered_per_min, wire, 1.0);
            near(retries.amplification, wire / 2_000.0, 1e-3);
        }
    }

    #[test]
    fn several_kinds_of_callers_together_are_served_what_there_is() {
        let alike = success_per_attempt(2_000.0, 416.67, &[(0.5, 3.0), (0.5, 3.0)]);
        near(alike, success_per_attempt(2_000.0, 416.67, &[(1.0, 3.0)]), 1e-12);
        let mixed = success_per_attempt(2_000.0, 416.67, &[(0.5, 1.0), (0.5, 5.0)]);
        let served = 2_000.0 * (0.5 * mixed + 0.5 * (1.0 - (1.0 - mixed).powi(5)));
        near(served, 416.67, 1e-6);
        near(success_per_attempt(100.0, 400.0, &[(1.0, 3.0)]), 1.0, 0.0);
    }

    /// At 200 a minute two attempts leave 17 a minute instead of 217, three leave nothing; at 100 three leave 117.
    #[test]
    fn the_bad_state_is_left_only_when_all_attempts_together_are_served() {
        let mu = 500_000.0 / 1_200.0;
        near(recovery(mu, 200.0, 1.0).unwrap(), 216.7, 0.1);
        near(recovery(mu, 200.0, 2.0).unwrap(), 16.7, 0.1);
        assert_eq!(recovery(mu, 200.0, 3.0), None);
        near(recovery(mu, 100.0, 3.0).unwrap(), 116.7, 0.1);
        assert_eq!(recovery(mu, 150.0, 3.0), None);
    }

    #[test]
    fn callers_who_give_up_amplify_nothing() {
        assert_eq!(Forecast::of(&flash().plan()).retries, None);
    }
}
