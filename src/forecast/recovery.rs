use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Basis, Drain, Onset, Retries};
use crate::plan::Plan;
use crate::units::parse_duration;

/// The longest rest of callers who are told no time, or do not look at it: eight seconds, as the SDKs have it.
const BACKOFF: Duration = Duration::from_secs(8);

/// When everyone is served in time again once the event is over.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Recovery {
    /// Q*/(μ − λ0): seconds until those who wait are served.
    pub queue_s: f64,
    /// Refused callers who are on their way back when the event ends: (λ' − λ)·W, with W the time they rest. None where
    /// nobody comes again.
    pub orbit_requests: f64,
    /// orbit/(μ − λ0): seconds until those are served.
    pub orbit_s: f64,
    /// Both, and the time of an answer: seconds from the end of the event.
    pub after_s: f64,
}

impl Recovery {
    /// `None` where the event refuses nobody, nothing comes after it, or what comes is more than is served.
    ///
    /// Where a part of the bound is kept for those who come back as told, they come by no more than that part of μ, and
    /// form no crowd: what is left for the others must then be more than comes, and the part that is theirs alone is
    /// gone after ρQ*/((1 − ρ)μ − λ0).
    pub(super) fn of(
        plan: &Plan,
        basis: &Basis,
        drain: &Drain,
        onset: Option<&Onset>,
        retries: Option<&Retries>,
    ) -> Option<Self> {
        onset?;
        let (left, queue_s) = (basis.served - basis.tail, drain.with_returns_s?);
        if basis.tail <= 0.0 {
            return None;
        }
        let paced = left - basis.reserve * basis.served;
        if paced <= 0.0 {
            return None;
        }
        let queue_s = queue_s.max(basis.reserve * queue_s * left / paced);
        let again = retries.map_or(0.0, |retries| retries.offered_per_min / 60.0 - basis.offered);
        let rest = if basis.reserve > 0.0 { 0.0 } else { rest(plan, drain) };
        let orbit_requests = again.max(0.0) * rest;
        let orbit_s = orbit_requests / left;
        let after_s = queue_s + orbit_s + basis.service.as_secs_f64();
        Some(Self { queue_s, orbit_requests, orbit_s, after_s })
    }
}

/// W, in seconds: what a refused caller is told to wait by what is declared, where it is told a time; else its backoff.
fn rest(plan: &Plan, drain: &Drain) -> f64 {
    let told = plan.policy().map(|policy| policy.retry_after.spec());
    let constant = told.as_ref().and_then(|spec| parse_duration(spec.get("constant")?.as_str()?).ok());
    let told = constant.map_or(drain.stopped_s, |span| span.as_secs_f64());
    told.max(BACKOFF.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::forecast::Forecast;
    use crate::measure::testing::{Sketch, flash};

    fn near(got: f64, want: f64, within: f64) {
        assert!((got - want).abs() <= within, "{got} instead of {want}");
    }

    fn retrying(retry_after: serde_json::Value) -> Sketch {
        let mut sketch = flash();
        sketch.policy = json!({ "service": { "start": "3s" }, "margin": "0ms", "retry_after": retry_after });
        sketch.requests[0]["on_refusal"] = json!({ "retry": { "attempts": 3 } });
        sketch
    }

    /// 183,333 tokens drain at 8,333 − 4,000 a second: 42.3 s, and the answer takes three more.
    #[test]
    fn a_queue_at_its_bound_is_gone_before_an_answer_more() {
        let recovery = Forecast::of(&flash().plan()).recovery.unwrap();
        near(recovery.queue_s + 3.0, recovery.after_s, 1e-9);
        near(recovery.orbit_requests, 0.0, 0.0);
    }

    /// Three attempts are 5,562 requests a minute instead of 2,000: 59.4 a second rest for thirty seconds, and then 3.6
    /// of them a second find room.
    #[test]
    fn those_who_come_again_come_on_top() {
        let recovery = Forecast::of(&retrying(json!({ "constant": "30s" })).plan()).recovery.unwrap();
        near(recovery.queue_s, 42.3, 0.1);
        near(recovery.orbit_requests, 1_781.0, 1.0);
        near(recovery.orbit_s, 1_781.0 / 3.611, 1.0);
        let kept = Forecast::of(&retrying(json!({ "appointment": { "reserve": "25%" } })).plan());
        // whoever has an appointment is no crowd
        near(kept.recovery.unwrap().orbit_requests, 0.0, 0.0);
    }

    #[test]
    fn there_is_none_where_nothing_is_lost_or_nothing_can_be_won_back() {
        let with = |change: fn(&mut Sketch)| {
            let mut sketch = flash();
            change(&mut sketch);
            Forecast::of(&sketch.plan()).recovery
        };
        assert_eq!(with(|sketch| sketch.phases[1].0 = "300/min"), None);
        assert_eq!(with(|sketch| sketch.phases[2].0 = "500/min"), None);
    }
}
