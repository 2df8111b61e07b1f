use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::basis::variance;
use super::{Basis, Bottleneck, slots, walk};
use crate::plan::Plan;
use crate::units::{Moment, Window};
use crate::workload::Class;

/// The first refusal of the event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Onset {
    /// Seconds from the event's start.
    pub after_s: f64,
    /// The standard deviation of that, in seconds.
    pub sd_s: f64,
    /// The depth it meets, in tokens: the effective bound, to which the level of the bucket at that instant is added.
    pub depth_tokens: u64,
}

impl Onset {
    /// t = (B + Q)/(x − r): the burst and the queue fill at the rate by which the offer exceeds the drain. Its
    /// standard deviation is sqrt(λ·V·(B + Q)/(x − r)³), the first passage of a random walk with drift, where V is
    /// Var\[h\] + c·E\[h\]²: E\[h²\] for independent arrivals, none for evenly spaced ones that are all alike. An event of several phases is walked phase by phase,
    /// each with its own mix, and cut where a fault takes some of the provider's capacity; the spread is that of the part in
    /// which the room is gone.
    ///
    /// A budget of fixed or sliding windows does not flow: there what may wait depends on the instant, and the supply
    /// function is walked request by request. So is a trace, whose requests are known one by one, and so are evenly
    /// spaced callers where the calls made at once are what is short: a crowd fills the slots before it waits.
    pub(super) fn of(plan: &Plan, basis: &Basis, bound: u64) -> Option<Self> {
        let by_slots = basis.bottleneck == Bottleneck::Concurrent && slots::is_known(plan, basis);
        match basis.window {
            _ if by_slots => slots::first_shed(plan, basis).map(|shed| Self::walked(basis, shed)),
            Window::Bucket { .. } if plan.load.arrivals.trace().is_none() => {
                Self::flowing(plan, basis, bound)
            }
            Window::Bucket { .. } | Window::Fixed { .. } | Window::Round { .. } | Window::Sliding { .. } => {
                walk::first_shed(plan, basis).map(|shed| Self::walked(basis, shed))
            }
        }
    }

    fn walked(basis: &Basis, (at, depth_tokens): (Moment, u64)) -> Self {
        let start = basis.event.map_or(Moment::ZERO, |event| event.start);
        let after_s = at.since(start).as_secs_f64();
        let x = basis.tokens_at(basis.offered);
        let sd_s = (basis.offered * basis.variance * after_s).sqrt() / x;
        Self { after_s, sd_s, depth_tokens }
    }

    fn flowing(plan: &Plan, basis: &Basis, bound: u64) -> Option<Self> {
        let whole = basis.burst.get() as f64 + bound as f64;
        let (mut room, mut passed) = (whole, 0.0);
        for Stretch { rate, lasts, hold, variance, drain } in stretches(plan, basis) {
            let excess = rate * hold - drain;
            if excess > 0.0 && room / excess <= lasts {
                let sd_s = (rate * variance * whole / excess.powi(3)).sqrt();
                return Some(Self { after_s: passed + room / excess, sd_s, depth_tokens: bound });
            }
            room = (room - excess * lasts).min(whole);
            passed += lasts;
        }
        None
    }
}

/// A part of the event in which neither what comes nor what is granted changes.
struct Stretch {
    /// Callers a second.
    rate: f64,
    /// Seconds.
    lasts: f64,
    /// The mean hold of those who come.
    hold: f64,
    /// What a caller adds to the variance of the tokens that come.
    variance: f64,
    /// Tokens a second.
    drain: f64,
}

/// The event's phases, each with the mix of those who come in it, cut where a fault of the provider begins or ends.
fn stretches(plan: &Plan, basis: &Basis) -> Vec<Stretch> {
    let turns = plan.provider.turns();
    let chosen = plan.load.spans().filter(|(phase, _)| phase.event || basis.event.is_none());
    let parts = chosen.flat_map(|(phase, span)| {
        let (hold, variance) = match &phase.mix {
            None => (basis.mean_hold, basis.variance),
            Some(mix) => {
                let mix = plan.requests.reweighed(mix);
                let (hold, square) = (mix.mean(Class::hold), mix.mean(Class::square_hold));
                (hold, variance(plan, hold, square))
            }
        };
        let within = turns.iter().copied().filter(move |turn| span.start < *turn && *turn < span.end);
        let edges: Vec<_> = std::iter::once(span.start).chain(within).chain([span.end]).collect();
        let quota = basis.capacity * basis.mean_hold;
        let stretch = |ends: &[Moment]| Stretch {
            rate: phase.rate.per_sec_f64(),
            lasts: ends[1].since(ends[0]).as_secs_f64(),
            hold,
            variance,
            drain: basis.drain.per_sec_f64().min(quota * plan.provider.granted_at(ends[0])),
        };
        edges.windows(2).map(stretch).collect::<Vec<_>>()
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::forecast::Forecast;
    use crate::measure::testing::flash;

    fn near(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got} instead of {want}");
    }

    fn with_window(window: serde_json::Value, deadline: &str, retry_after: serde_json::Value) -> Forecast {
        let mut sketch = flash();
        sketch.policy = json!({ "service": { "start": "3s" }, "margin": "0ms",
            "budgets": { "tokens_per_minute": "500k", "window": window }, "retry_after": retry_after });
        sketch.requests[0]["deadline"] = json!(deadline);
        Forecast::of(&sketch.plan())
    }

    /// A fixed window is full when the event begins, five minutes in: W/x = 12.5 s, and then its end is too far away
    /// for anybody to wait.
    #[test]
    fn a_fixed_window_is_spent_and_nobody_may_wait_for_the_next() {
        let forecast = with_window(json!({ "fixed": "60s" }), "25s", json!("room"));
        let onset = forecast.onset.unwrap();
        near(onset.after_s, 12.5, 0.06);
        assert_eq!((onset.depth_tokens, forecast.queue_bound.effective.requests), (0, 0));
        assert_eq!(forecast.queue_bound.with_service.requests, 416, "a whole window, once its end is near");
    }

    /// With 60 s to spare the next window is near enough: W/x and then W more, at depth 416.
    #[test]
    fn a_fixed_window_within_reach_is_waited_for() {
        let onset = with_window(json!({ "fixed": "60s" }), "63s", json!("room")).onset.unwrap();
        near(onset.after_s, 25.0, 0.1);
        assert!((498_800..=501_200).contains(&onset.depth_tokens), "{onset:?}");
        let kept =
            with_window(json!({ "fixed": "60s" }), "63s", json!({ "appointment": { "reserve": "25%" } }))
                .onset
                .unwrap();
        assert!((373_800..=376_200).contains(&kept.depth_tokens), "{kept:?}");
    }

    /// The minute before used 240,000 of 500,000 tokens: the rest is gone after 260,000/36,000 = 7.2 s, and what comes
    /// free within 22 s is 4,000 a second: 88,000 tokens, filled at 36,000 a second. One in six callers is still
    /// forwarded, so that the onset is at 7.2 + 2.4 s.
    #[test]
    fn a_sliding_window_gives_back_what_was_used_a_minute_ago() {
        let onset = with_window(json!({ "sliding": "60s" }), "25s", json!("room")).onset.unwrap();
        near(onset.after_s, 9.67, 0.1);
        assert!(onset.depth_tokens.abs_diff(88_000) <= 2_400, "{onset:?}");
    }

    #[test]
    fn random_arrivals_spread_the_onset_of_a_window_too() {
        let mut sketch = flash();
        sketch.arrivals = "poisson";
        sketch.policy = json!({ "service": { "start": "3s" }, "margin": "0ms",
            "budgets": { "tokens_per_minute": "500k", "window": { "fixed": "60s" } } });
        let onset = Forecast::of(&sketch.plan()).onset.unwrap();
        // 417 callers at 33.3 a second: sqrt(417)/33.3
        near(onset.sd_s, 0.61, 0.01);
    }
}
