use std::time::Duration;

use crate::plan::Plan;
use crate::units::{Rate, Tokens};
use crate::workload::Span;

/// The numbers of a plan that the formulas are written in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Basis {
    /// λ: callers a second, the mean over the event (over the whole plan on a quiet day).
    pub offered: f64,
    /// μ: requests a second that the provider's quota serves.
    pub served: f64,
    /// λ0: callers a second after the event; none if nothing comes after it.
    pub tail: f64,
    /// r: what a queue drains at. The provider's quota, or the gateway's own budget where that is smaller.
    pub drain: Rate,
    /// B: tokens that may be spent at once when the event begins, by both of them.
    pub burst: Tokens,
    /// h: the mean hold of a request.
    pub mean_hold: f64,
    /// The mean of its square.
    pub square_hold: f64,
    /// The largest hold.
    pub largest_hold: Tokens,
    /// The smallest hold.
    pub smallest_hold: Tokens,
    /// D: the shortest deadline of any class.
    pub deadline: Duration,
    /// s: the slowest answer of any class, or what the gateway takes it for where that is more.
    pub service: Duration,
    /// What the gateway keeps of a caller's time.
    pub margin: Duration,
    /// The part of the bound that is kept for callers who return.
    pub reserve: f64,
    /// Whether arrivals are evenly spaced, so that the onset has no spread.
    pub paced: bool,
    /// The event; `None` on a quiet day.
    pub event: Option<Span>,
    /// How long what is called the event lasts.
    pub lasts: Duration,
}

impl Default for Basis {
    /// Of a forecast that was read back: nothing is known but what it says.
    fn default() -> Self {
        Self {
            offered: 0.0,
            served: 0.0,
            tail: 0.0,
            drain: Rate::per_second(1).unwrap_or_else(|| unreachable!("one a second is a rate")),
            burst: Tokens::ZERO,
            mean_hold: 0.0,
            square_hold: 0.0,
            largest_hold: Tokens::ZERO,
            smallest_hold: Tokens::ZERO,
            deadline: Duration::ZERO,
            service: Duration::ZERO,
            margin: Duration::ZERO,
            reserve: 0.0,
            paced: true,
            event: None,
            lasts: Duration::ZERO,
        }
    }
}

impl Basis {
    /// The numbers of `plan` as it stands.
    pub(super) fn of(plan: &Plan) -> Self {
        let event = plan.load.event();
        let counts = |phase_event: bool| event.is_none() || phase_event;
        let chosen: Vec<_> = plan.load.spans().filter(|(phase, _)| counts(phase.event)).collect();
        let lasts: Duration = chosen.iter().map(|(_, span)| span.length()).sum();
        let arrivals: f64 =
            chosen.iter().map(|(phase, span)| phase.rate.per_sec_f64() * span.length().as_secs_f64()).sum();
        let tail = plan.load.spans().find(|(_, span)| event.is_some_and(|event| span.start == event.end));
        let classes = plan.requests.classes();
        let quota = &plan.provider.quota;
        let policy = plan.policy();
        let mean_hold = plan.requests.mean(|class| class.hold().get() as f64);
        let takes = classes.iter().map(|class| plan.provider.service.time_for(class.output)).max();
        let believed = policy.map_or(Duration::ZERO, |policy| policy.service.start);
        let service = takes.unwrap_or_default().max(believed);
        let own = policy.and_then(|p| p.budgets.drain(Tokens::new(mean_hold.round() as u64), service));
        let smaller = own.filter(|rate| rate.per_sec_f64() < quota.tokens.per_sec_f64());
        let burst = policy.map(|p| p.budgets).filter(|budgets| budgets.tokens.is_some());
        Self {
            offered: arrivals / lasts.as_secs_f64(),
            served: quota.tokens.per_sec_f64() / mean_hold,
            tail: tail.map_or(0.0, |(phase, _)| phase.rate.per_sec_f64()),
            drain: smaller.unwrap_or(quota.tokens),
            burst: burst.map_or_else(
                || quota.burst_tokens(),
                |budgets| budgets.burst_tokens().min(quota.burst_tokens()),
            ),
            mean_hold,
            square_hold: plan.requests.mean(|class| (class.hold().get() as f64).powi(2)),
            largest_hold: plan.largest_hold(),
            smallest_hold: classes.iter().map(crate::workload::Class::hold).min().unwrap_or_default(),
            deadline: classes.iter().map(|class| class.deadline).min().unwrap_or_default(),
            service,
            margin: policy.map_or(Duration::ZERO, |policy| policy.margin),
            reserve: policy.and_then(|p| p.retry_after.reserve()).map_or(0.0, |reserve| reserve.share.get()),
            paced: plan.load.arrivals.name() == "constant",
            event,
            lasts,
        }
    }

    /// x: tokens offered a second by callers arriving at `rate` a second.
    pub fn tokens_at(&self, rate: f64) -> f64 {
        rate * self.mean_hold
    }
}
