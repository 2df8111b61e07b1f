use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Basis, Bottleneck};
use crate::plan::Plan;

/// What a first-in-first-out queue without a bound, whose gateway serves callers that have left, would do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unbounded {
    /// λT: requests offered in the event.
    pub offered_requests: u64,
    /// Of these, those the provider has been given when it ends.
    pub served_requests: u64,
    /// q = (λ − μ)T − B/h: those that wait then.
    pub backlog_requests: u64,
    /// q/μ: what the last one in waits, in seconds. Shorter than the time until the queue is empty, since those who
    /// come later join behind it. Absent if nothing waits.
    pub last_wait_s: Option<f64>,
    /// q/(μ − λ0): seconds until the queue is empty; absent if nothing waits or if it never is.
    pub empty_after_s: Option<f64>,
    /// The share of the event's requests that are not served in time. In time are those that came before the wait
    /// reached D − s: λ·((D − s)μ + B/h)/(λ − μ) of them.
    pub late_share: f64,
    /// Tokens spent on those that waited when the event ended and are answered too late, for callers who have left: all
    /// of them, unless so few were late in the whole event.
    pub wasted_tokens: u64,
    /// Tokens spent on all that are answered too late: those of the event, and those who come after it until the wait
    /// is short enough again, (q/μ − (D − s))/(1 − λ0/μ) seconds later. Absent if it never is.
    #[serde(default)]
    pub wasted_in_all_tokens: Option<u64>,
    /// The bodies that wait when the event ends.
    pub queue_bytes: u64,
}

impl Unbounded {
    /// With the rates of the event as means over its length.
    pub(super) fn of(plan: &Plan, basis: &Basis) -> Self {
        let (offered, served) = (basis.offered, basis.served);
        let burst = match basis.bottleneck {
            // answers of the slots that were free come only s later
            Bottleneck::Concurrent => 0.0,
            _ => plan.provider.quota.burst_tokens().get() as f64 / basis.mean_hold,
        };
        let count = (offered * basis.lasts.as_secs_f64()).round();
        let backlog = ((offered - served) * basis.lasts.as_secs_f64() - burst).max(0.0);
        // 79.999… is 80
        let whole = (backlog * (1.0 + 1e-12)).floor();
        let slack = basis.deadline.saturating_sub(basis.service).as_secs_f64();
        let excess = offered - served;
        let in_time = if excess > 0.0 { offered * (slack * served + burst) / excess } else { count };
        let waits = backlog >= 1.0;
        let left = served - basis.tail;
        let body = plan.requests.mean(|class| class.bytes.get() as f64);
        let late = (count - in_time).max(0.0);
        let after = |left: f64| basis.tail * ((backlog / served - slack) * served / left).max(0.0);
        let used = plan.requests.mean(crate::workload::Class::used);
        Self {
            offered_requests: count as u64,
            served_requests: (count - whole).max(0.0) as u64,
            backlog_requests: whole as u64,
            last_wait_s: waits.then(|| backlog / served),
            empty_after_s: (waits && left > 0.0).then(|| backlog / left),
            late_share: if count > 0.0 { late / count } else { 0.0 },
            wasted_tokens: (backlog.min(late) * used) as u64,
            wasted_in_all_tokens: (left > 0.0).then(|| ((late + after(left)) * used) as u64),
            queue_bytes: (backlog * body) as u64,
        }
    }
}
