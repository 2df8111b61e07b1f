use std::time::Duration;

use super::{Scene, words};
use crate::measure::UnsentBy;
use crate::observe::Outcome;
use crate::units::{Moment, show_duration};

/// A step of the wall clock smaller than this is a correction, not a fault.
const STEP: f64 = 1.0;

/// Whether the run itself was any good: what it did, against what it must do, and every reason why not.
#[derive(Debug, Clone, PartialEq)]
pub struct Validity {
    /// Lag at the 99th percentile; absent if nothing was sent.
    pub lag_p99: Option<Duration>,
    /// The most that is allowed.
    pub lag_limit: Duration,
    /// Attempts that were sent later than that.
    pub sent_late: u64,
    /// Requests that could not be sent in time.
    pub unsent: u64,
    /// Their share of all that were offered.
    pub unsent_share: f64,
    /// Attempts that were not sent, by why not.
    pub unsent_by: UnsentBy,
    /// Requests seen on one side only.
    pub unjoined: u64,
    /// Their share of all attempts.
    pub unjoined_share: f64,
    /// The rate of sending over the planned one; absent of fewer than two requests.
    pub achieved: Option<f64>,
    /// Why the run is invalid; empty if it is not.
    pub reasons: Vec<String>,
}

impl Validity {
    /// Judges the run itself.
    pub fn of(scene: &Scene<'_>) -> Self {
        let (plan, measures) = (scene.plan, scene.measures);
        let share = |count: u64, of: u64| if of == 0 { 0.0 } else { count as f64 / of as f64 };
        let unsent = measures.arrivals.get(Outcome::Unsent);
        let limit = u64::try_from(plan.lag_limit().as_micros()).unwrap_or(u64::MAX);
        let mut validity = Self {
            // in virtual time everything is sent the instant it is due
            lag_p99: measures.lag.quantile(0.99).filter(|_| scene.live),
            lag_limit: plan.lag_limit(),
            sent_late: measures.lag.count() - measures.lag.count_to(limit),
            unsent,
            unsent_share: share(unsent, measures.offered),
            unsent_by: measures.unsent,
            unjoined: measures.unjoined,
            unjoined_share: share(measures.unjoined, measures.attempts.total()),
            achieved: measures.achieved(),
            reasons: Vec::new(),
        };
        validity.reasons = validity.reasons(scene);
        validity
    }

    /// True if nothing speaks against the run.
    pub fn is_valid(&self) -> bool {
        self.reasons.is_empty()
    }

    fn reasons(&self, scene: &Scene<'_>) -> Vec<String> {
        let (limits, measures) = (&scene.plan.validity, scene.measures);
        let mut reasons = Vec::new();
        let mut add = |reason: String| reasons.push(reason);
        if measures.offered == 0 {
            add("no request came due: there is nothing to judge".to_owned());
        }
        if let Some(lag) = self.lag_p99.filter(|lag| scene.live && *lag > self.lag_limit) {
            add(format!(
                "lag p99 {} (limit {}){}; the machine was too slow for {}",
                show_duration(lag),
                show_duration(self.lag_limit),
                from_second(scene),
                fastest(scene)
            ));
        }
        if self.unsent_share > limits.unsent.get() {
            let count = words::thousands(self.unsent);
            add(format!(
                "{count} of {} requests were not sent in time (limit {}){}",
                words::thousands(measures.offered),
                limits.unsent,
                by_reason(&self.unsent_by)
            ));
        }
        let exhausted = self.unsent_by.exhausted;
        if exhausted > 0 {
            add(format!(
                "this machine had no port, descriptor or memory left for {} requests: see `run --dry-run` for what the plan needs",
                words::thousands(exhausted)
            ));
        }
        if self.unjoined_share > limits.unjoined.get() {
            add(format!(
                "{} requests were seen on one side only, {} of all (limit {}): is the provider's address the gateway's upstream, and does it pass the request id on?",
                words::thousands(self.unjoined),
                words::percent(self.unjoined_share),
                limits.unjoined
            ));
        }
        if let Some(achieved) = self.achieved.filter(|achieved| *achieved < limits.achieved.get()) {
            add(format!(
                "only {} of the planned rate was reached (limit {})",
                words::percent(achieved),
                limits.achieved
            ));
        }
        if let Some(at) = measures.vitals.provider_silent {
            add(format!(
                "our own provider stopped answering {} into the run",
                words::seconds(at.as_secs_f64())
            ));
        }
        if let Some(at) = measures.vitals.generator_stuck {
            add(format!(
                "the generator stood still or died {} into the run",
                words::seconds(at.as_secs_f64())
            ));
        }
        for (at, seconds) in measures.vitals.clock_steps.iter().filter(|(_, seconds)| seconds.abs() >= STEP) {
            add(format!(
                "the clock was set by {seconds:.1} s, {} into the run",
                words::seconds(at.as_secs_f64())
            ));
        }
        reasons
    }
}

/// Why requests were not sent, where there is a reason to name.
fn by_reason(by: &UnsentBy) -> String {
    let named = [
        (by.late, "too late"),
        (by.outstanding, "over max_outstanding"),
        (by.exhausted, "without a port or descriptor"),
    ];
    let named = named.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = named.map(|(count, why)| format!("{} {why}", words::thousands(*count))).collect();
    if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) }
}

/// From which second on requests were sent too late.
fn from_second(scene: &Scene<'_>) -> String {
    let limit = scene.plan.lag_limit();
    let frame = &scene.measures.frame;
    let is_late = |lag: Duration| lag > limit;
    let first = scene.measures.windows.iter().position(|window| window.lags.at(0.99).is_some_and(is_late));
    first.map_or(String::new(), |i| {
        format!(" from second {} on", frame.begins(i).since(Moment::ZERO).as_secs())
    })
}

/// The highest rate of the plan.
fn fastest(scene: &Scene<'_>) -> String {
    let phases = scene.plan.load.phases.iter();
    let fastest = phases.max_by(|a, b| a.rate.per_sec_f64().total_cmp(&b.rate.per_sec_f64()));
    fastest.map_or(String::new(), |phase| format!("{}/min", words::number(phase.rate.per_min_f64())))
}
