//! What may be on its way between the two sides, and so be counted on either.

use std::time::Duration;

use super::Scene;
use crate::admission::bounds;
use crate::units::{Rate, Tokens};
use crate::workload::Class;

/// A request is believed to travel at least so long.
const LEAST: Duration = Duration::from_millis(2);
/// What a refusal may take besides the way: what is slower is slow to decide.
const DECIDES: Duration = Duration::from_millis(10);

/// ε: a refused request was decided about between its sending and its answer, so what nearly all refusals took (their
/// p99); but no more than the ping's p99 of the same seconds and the time a refusal may take.
fn transit(scene: &Scene<'_>) -> Duration {
    let measures = scene.measures;
    let pings = measures.pings_while_refusing().quantile(0.99);
    let ping = pings.or_else(|| measures.vitals.pings.took.quantile(0.99)).unwrap_or_default();
    let refusals = measures.refusals.latency.quantile(0.99);
    refusals.map_or(ping, |took| took.min(ping + DECIDES)).max(LEAST)
}

/// λ·ε: how many requests can arrive while one travels, at the event's rate; none in virtual time.
pub(super) fn requests(scene: &Scene<'_>) -> f64 {
    if scene.live { scene.forecast.basis.offered * transit(scene).as_secs_f64() } else { 0.0 }
}

/// The same in tokens: whole requests of the largest hold, at least one of a live run. Of replicas, each of which has its
/// own part of the bound, the sum may differ by what they stand [`apart`] as well.
pub(super) fn tokens(scene: &Scene<'_>) -> Tokens {
    let whole = if scene.live { requests(scene).ceil().max(1.0) as u64 } else { 0 };
    Tokens::new((whole + apart(scene)).saturating_mul(scene.forecast.basis.largest_hold.get()))
}

/// By how many holds the sum over N replicas may differ from the bound when one of them is at its own: N − 1, none of one
/// machine or where nothing is declared.
pub(super) fn apart(scene: &Scene<'_>) -> u64 {
    scene.plan.policy().map_or(0, |policy| u64::from(policy.replicas.saturating_sub(1)))
}

/// From which side a bound that is not known to the token is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// At least so much may wait.
    Least,
    /// At most.
    Most,
}

/// What may wait by the declared bound when a request of `class` comes that may use `part` of it, itself included and the
/// bucket's level not; `None` without a bound. The gateway's estimate of the service time lies between what it starts from
/// and what answers take, and that of what holds come to between one and the hold factor.
pub(super) fn room(scene: &Scene<'_>, class: &Class, part: f64, side: Side) -> Option<Tokens> {
    let (plan, basis) = (scene.plan, &scene.forecast.basis);
    let policy = plan.policy()?;
    let answers =
        plan.requests.classes().iter().map(|class| plan.provider.service.time_for(class.output.most()));
    let start = policy.service.start;
    let (service, drain, hold) = match side {
        Side::Least => {
            let slower = Rate::new((basis.drain.per_sec_f64() / basis.hold_factor * 1e3) as u64, THOUSAND);
            (answers.fold(start, Duration::max), slower?, class.smallest_hold())
        }
        Side::Most => (answers.fold(start, Duration::min), basis.drain, class.largest_hold()),
    };
    let slack = plan.believed(class).saturating_sub(service).saturating_sub(policy.margin);
    bounds::most(&*policy.bound, drain, slack, hold, class.most_bytes(), part)
}

const THOUSAND: Duration = Duration::from_secs(1_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::Forecast;
    use crate::measure::testing::{healthy, record, smoke};
    use crate::observe::Outcome;

    #[test]
    fn slow_refusals_widen_what_travels_no_further_than_a_refusal_may_take() {
        let plan = smoke().plan();
        let forecast = Forecast::of(&plan);
        let on_the_way = |took: u64, live: bool| {
            let mut measures = healthy(&plan);
            (0..100).for_each(|seq| measures.record(&record(seq, 5_000, took, Outcome::Shed)));
            let measures = &measures;
            requests(&Scene { live, ..Scene::live(&plan, &forecast, measures) })
        };
        // 80 a second: 2 ms at least, then what they take, then the ping's 600 us and 10 ms
        let close = |got: f64, want: f64| assert!((got - want).abs() < 0.02, "{got} {want}");
        close(on_the_way(1, true), 80.0 * 0.002);
        close(on_the_way(8, true), 80.0 * 0.008);
        close(on_the_way(60, true), 80.0 * 0.010_6);
        close(on_the_way(60, false), 0.0);
    }
}
