//! Where a number is fragile, or a plan asks for what cannot be.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Basis, Bottleneck, Drain, QueueBound, recovery};
use crate::plan::Plan;
use crate::units::show_duration;

/// A bound of fewer requests moves by more than 3 % with each of them.
const FEW: u64 = 30;

/// The longest a backlog should last after its event, in seconds.
const LONG: f64 = 60.0;

/// Something to know before a number is relied on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A stable name: `coarse_bound`, `slow_drain`, `tail_overload`, `concurrency_bound`, `metastable_retries`,
    /// `short_answers`.
    pub id: String,
    /// What it is and the way out; a lower-case fragment.
    pub because: String,
}

/// All that apply, in a fixed order.
pub(super) fn of(plan: &Plan, basis: &Basis, bound: &QueueBound, drain: &Drain) -> Vec<Warning> {
    let found = [
        ("coarse_bound", coarse(plan, bound)),
        ("tail_overload", tail(basis)),
        ("slow_drain", slow(basis, drain)),
        ("concurrency_bound", concurrency(basis)),
        ("metastable_retries", metastable(basis)),
        ("short_answers", short_answers(plan, basis)),
    ];
    let named =
        |(id, because): (&str, Option<String>)| Some(Warning { id: id.to_owned(), because: because? });
    found.into_iter().filter_map(named).collect()
}

fn coarse(plan: &Plan, bound: &QueueBound) -> Option<String> {
    let requests = bound.effective.requests;
    if requests == 0 {
        return Some(
            "nobody may wait when the first is refused: whoever finds the budget spent is refused at once; a longer \
             deadline would let them wait"
                .to_owned(),
        );
    }
    // a bound in whole requests is exact, however few they are
    let whole = plan.policy().is_some_and(|policy| policy.bound.is_whole());
    (requests < FEW && !whole).then(|| {
        format!(
            "only {requests} requests may wait: each is more than 3 % of the bound, so that it can be judged no \
             finer; a larger scale, a higher quota or a longer deadline makes it finer"
        )
    })
}

fn tail(basis: &Basis) -> Option<String> {
    (basis.tail >= basis.served).then(|| {
        format!(
            "after the event {:.0} requests a minute are offered and {:.0} served: the backlog never drains; offer \
             less after the event",
            basis.tail * 60.0,
            basis.served * 60.0
        )
    })
}

fn slow(basis: &Basis, drain: &Drain) -> Option<String> {
    let lasts = drain.with_returns_s.filter(|lasts| *lasts > LONG)?;
    let spare = |seconds: f64| (1.0 - seconds / LONG) * basis.served * 60.0;
    let waits = drain.with_returns_s? * (1.0 - basis.tail / basis.served);
    let lasts = std::time::Duration::try_from_secs_f64(lasts).unwrap_or(std::time::Duration::MAX);
    let most = spare(waits);
    let way = if most >= 1.0 {
        format!("at most {most:.0} requests a minute may come after the event, not {:.0}", basis.tail * 60.0)
    } else {
        "a queue of more than a minute of work is not gone in one; give it a smaller bound".to_owned()
    };
    Some(format!("the backlog lasts up to {}, more than a minute: {way}", show_duration(lasts)))
}

fn concurrency(basis: &Basis) -> Option<String> {
    let slots = basis.slots.filter(|_| basis.bottleneck == Bottleneck::Concurrent)?;
    let needed = (basis.capacity * basis.mean_service).ceil();
    Some(format!(
        "{slots} calls at once of {} each serve {:.0} requests a minute, less than the {:.0} the quota allows: \
         that takes {needed:.0} calls at once (`budgets.concurrent`)",
        show_duration(std::time::Duration::try_from_secs_f64(basis.mean_service).unwrap_or_default()),
        basis.served * 60.0,
        basis.capacity * 60.0
    ))
}

fn metastable(basis: &Basis) -> Option<String> {
    let k = basis.attempts;
    (k > 1.0 && basis.tail > 0.0 && recovery(basis.served, basis.tail, k).is_none()).then(|| {
        format!(
            "callers who send up to {k:.1} requests each make {:.0} a minute of the {:.0} after the event, and {:.0} are \
             served: a queue without bound and recheck would never recover; keep both, or allow fewer retries",
            k * basis.tail * 60.0,
            basis.tail * 60.0,
            basis.served * 60.0
        )
    })
}

/// The provider charges what is held, the gateway gives back what was not used.
fn short_answers(plan: &Plan, basis: &Basis) -> Option<String> {
    let used = plan.requests.mean(crate::workload::Class::used);
    (basis.hold_factor > 1.01 && basis.bottleneck == Bottleneck::ProviderQuota).then(|| {
        format!(
            "{:.0} tokens are held for a request and {used:.0} used: the provider charges what is held, so a gateway \
             that gives the rest back believes in {:.2} times the quota and meets refusals; lower `max_tokens`",
            basis.mean_hold, basis.hold_factor
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::forecast::{Basis, Bottleneck, Forecast};
    use crate::measure::testing::{Sketch, flash};

    fn ids(sketch: &Sketch) -> Vec<String> {
        Forecast::of(&sketch.plan()).warnings.into_iter().map(|warning| warning.id).collect()
    }

    #[test]
    fn the_flash_promotion_has_nothing_fragile() {
        assert_eq!(ids(&flash()), [] as [&str; 0]);
    }

    #[test]
    fn a_tail_that_is_heavy_drains_slowly_and_one_that_is_heavier_never() {
        let mut sketch = flash();
        // 41.3 s at 200 a minute; within a minute it takes at most 416.7·(1 − 21.5/60) = 267
        sketch.phases[2] = ("260/min", "10m");
        assert_eq!(ids(&sketch), [] as [&str; 0]);
        sketch.phases[2] = ("280/min", "10m");
        assert_eq!(ids(&sketch), ["slow_drain"]);
        let because = &Forecast::of(&sketch.plan()).warnings[0].because;
        assert!(because.contains("at most 267 requests a minute"), "{because}");
        sketch.phases[2] = ("417/min", "10m");
        assert_eq!(ids(&sketch), ["tail_overload"]);
    }

    #[test]
    fn few_slots_are_the_real_bottleneck() {
        let mut sketch = flash();
        let with = |slots: u32| json!({ "service": { "start": "3s" }, "budgets": { "tokens_per_minute": "500k", "concurrent": slots } });
        // 6.944 a second of 3 s each need 21 slots
        sketch.policy = with(21);
        assert_eq!(ids(&sketch), [] as [&str; 0]);
        sketch.policy = with(20);
        assert_eq!(ids(&sketch), ["concurrency_bound"]);
        let forecast = Forecast::of(&sketch.plan());
        assert_eq!(forecast.bottleneck, Bottleneck::Concurrent);
        assert_eq!((forecast.serviceable_per_min.round(), forecast.capacity_per_min.round()), (400.0, 417.0));
        assert!(forecast.warnings[0].because.contains("takes 21 calls at once"), "{:?}", forecast.warnings);
        // the goodput a gateway owes is what its calls at once let through, where they are declared
        assert!((forecast.granted_per_s() * 60.0 - 400.0).abs() < 0.01);
    }

    #[test]
    fn retries_that_keep_a_bad_state_alive_are_told() {
        let with = |attempts| super::metastable(&Basis { attempts, ..Forecast::of(&flash().plan()).basis });
        // two attempts of 200 callers are 400, of 417 served; three are 600
        assert_eq!((with(1.0), with(2.0)), (None, None));
        let said = with(3.0).unwrap();
        assert!(said.contains("make 600 a minute of the 200 after the event, and 417 are served"), "{said}");
    }

    #[test]
    fn a_small_bound_and_short_answers_are_told() {
        let mut sketch = flash();
        sketch.quota = "90_000";
        sketch.phases[2] = ("20/min", "10m");
        assert_eq!(ids(&sketch), ["coarse_bound"]);
        // so many requests and no more: that is exact
        sketch.policy = json!({ "service": { "start": "3s" }, "bound": { "requests": 3 } });
        assert!(!ids(&sketch).contains(&"coarse_bound".to_owned()));
        let mut sketch = flash();
        sketch.requests[0]["max_tokens"] = json!(900);
        sketch.requests[0]["output"] = json!({ "tokens": 400 });
        sketch.phases[2] = ("100/min", "10m");
        assert_eq!(ids(&sketch), ["short_answers"]);
        let forecast = Forecast::of(&sketch.plan());
        // 1,700 held for 1,200 used: 122 requests of work in 25 s, not 173
        assert!((forecast.hold_factor - 1.4167).abs() < 1e-4);
        assert_eq!(forecast.queue_bound.deadline_only.requests, 122);
    }
}
