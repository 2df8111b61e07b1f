use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::admission::Budgets;
use crate::plan::{Plan, TargetKind};
use crate::provider::Charge;
use crate::units::{Rate, Tokens, Window};
use crate::workload::{Class, Span};

/// What lets the least through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bottleneck {
    /// The provider's quota of tokens.
    #[default]
    ProviderQuota,
    /// The gateway's own budget of tokens.
    Tokens,
    /// The gateway's own budget of requests.
    Requests,
    /// The calls the gateway makes at once.
    Concurrent,
}

/// The numbers of a plan that the formulas are written in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Basis {
    /// λ: callers a second, the mean over the event (over the whole plan on a quiet day).
    pub offered: f64,
    /// μ: requests a second that get through: the least of what the provider's quota and the gateway's own limits let.
    pub served: f64,
    /// Requests a second that the provider's quota alone would serve.
    pub capacity: f64,
    /// What μ is limited by.
    pub bottleneck: Bottleneck,
    /// λ0: callers a second after the event; none if nothing comes after it.
    pub tail: f64,
    /// k: requests a caller sends at most, the mean over the classes.
    pub attempts: f64,
    /// r: what a queue drains at, in tokens of holds: μ·h.
    pub drain: Rate,
    /// c: calls at the provider at once; `None` for no limit.
    pub slots: Option<u32>,
    /// Requests a second that the declared calls at once let through, or the provider's slots where those are fewer.
    pub at_once: Option<f64>,
    /// How the budget's window moves.
    pub window: Window,
    /// B: tokens that may be spent at once when the event begins, by both of them.
    pub burst: Tokens,
    /// h: the mean hold of a request.
    pub mean_hold: f64,
    /// The mean hold over the mean of what is used: more than one where answers are shorter than they may be.
    pub hold_factor: f64,
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
    /// E\[s\]: the mean time of an answer, in seconds.
    pub mean_service: f64,
    /// What the gateway keeps of a caller's time.
    pub margin: Duration,
    /// The part of the bound that is kept for callers who return.
    pub reserve: f64,
    /// What a caller adds to the variance of the tokens that come: that of a hold, and the square of its mean times the
    /// dispersion of the arrivals. None where all are evenly spaced and alike, or known one by one.
    pub variance: f64,
    /// The part of the drain that the lane of one tenant gets at least, while all others wait too: 1 where all stand in
    /// one lane.
    pub least_share: f64,
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
            capacity: 0.0,
            bottleneck: Bottleneck::ProviderQuota,
            tail: 0.0,
            attempts: 1.0,
            drain: Rate::per_second(1).unwrap_or_else(|| unreachable!("one a second is a rate")),
            slots: None,
            at_once: None,
            window: Window::Bucket { burst: Duration::ZERO },
            burst: Tokens::ZERO,
            mean_hold: 0.0,
            hold_factor: 1.0,
            square_hold: 0.0,
            largest_hold: Tokens::ZERO,
            smallest_hold: Tokens::ZERO,
            deadline: Duration::ZERO,
            service: Duration::ZERO,
            mean_service: 0.0,
            margin: Duration::ZERO,
            reserve: 0.0,
            variance: 0.0,
            least_share: 1.0,
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
        let policy = plan.policy();
        let takes = classes.iter().map(|class| plan.provider.service.time_for(class.output.most())).max();
        let believed = policy.map_or(Duration::ZERO, |policy| policy.service.start);
        let through = Through::of(plan);
        let square_hold = plan.requests.mean(Class::square_hold);
        Self {
            offered: arrivals / lasts.as_secs_f64(),
            served: through.drain.per_sec_f64() / through.hold,
            capacity: through.quota.per_sec_f64() / through.hold,
            bottleneck: through.bottleneck,
            tail: tail.map_or(0.0, |(phase, _)| phase.rate.per_sec_f64()),
            attempts: plan.requests.mean(Class::attempts),
            drain: through.drain,
            slots: through.slots,
            at_once: through
                .slots
                .into_iter()
                .chain(plan.provider.slots.map(|slots| slots.count))
                .min()
                .map(|slots| f64::from(slots) / through.service),
            window: through.window,
            burst: through.burst,
            mean_hold: through.hold,
            hold_factor: through.factor,
            square_hold,
            largest_hold: plan.largest_hold(),
            smallest_hold: classes.iter().map(Class::smallest_hold).min().unwrap_or_default(),
            deadline: classes.iter().map(|class| class.deadline).min().unwrap_or_default(),
            service: takes.unwrap_or_default().max(believed),
            mean_service: through.service,
            margin: policy.map_or(Duration::ZERO, |policy| policy.margin),
            reserve: policy.and_then(|p| p.retry_after.reserve()).map_or(0.0, |reserve| reserve.share.get()),
            variance: variance(plan, through.hold, square_hold),
            least_share: least_share(plan),
            event,
            lasts,
        }
    }

    /// x: tokens offered a second by callers arriving at `rate` a second.
    pub fn tokens_at(&self, rate: f64) -> f64 {
        rate * self.mean_hold
    }
}

/// E\[s\]: the mean time of an answer of `class`, in seconds. It is linear in the tokens.
pub(super) fn mean_service(plan: &Plan, class: &Class) -> f64 {
    let service = &plan.provider.service;
    match class.output.only() {
        Some(tokens) => service.time_for(tokens).as_secs_f64(),
        None => service.first_token.as_secs_f64() + service.per_token.as_secs_f64() * class.output.mean(),
    }
}

/// Var\[h\] + c·E\[h\]², with c the dispersion of the arrivals in the event. A trace is walked row by row: it has none.
pub(super) fn variance(plan: &Plan, mean: f64, square: f64) -> f64 {
    let load = &plan.load;
    if load.arrivals.trace().is_some() {
        return 0.0;
    }
    let phases = load.phases.iter().filter(|phase| phase.event || load.event().is_none());
    let most = phases.map(|phase| load.arrivals.dispersion(phase.rate)).fold(0.0, f64::max);
    let own = (square - mean * mean).max(0.0);
    // what rounding leaves is none
    let own = if own < square * 1e-12 { 0.0 } else { own };
    own + most * mean * mean
}

/// The smallest weight of a tenant over the sum of all, where each has a lane of its own.
fn least_share(plan: &Plan) -> f64 {
    let Some(policy) = plan.policy().filter(|policy| policy.share.separate()) else { return 1.0 };
    let weights = policy.tenants.iter().map(|tenant| f64::from(tenant.weight.max(1)));
    let (sum, least) =
        weights.fold((0.0, f64::MAX), |(sum, least), weight| (sum + weight, weight.min(least)));
    if sum > 0.0 { least / sum } else { 1.0 }
}

/// What gets through the gateway and the provider, and why not more.
struct Through {
    hold: f64,
    factor: f64,
    service: f64,
    quota: Rate,
    drain: Rate,
    bottleneck: Bottleneck,
    slots: Option<u32>,
    window: Window,
    burst: Tokens,
}

impl Through {
    fn of(plan: &Plan) -> Self {
        let hold = plan.requests.mean(Class::hold);
        let used = plan.requests.mean(Class::used);
        let factor = (hold / used.max(1.0)).max(1.0);
        let service = plan.requests.mean(|class| mean_service(plan, class));
        let quota = granted(plan, hold, factor);
        let budgets = plan.policy().map(|policy| policy.budgets);
        let own = budgets.iter().flat_map(|budgets| limits(budgets, hold, factor, service));
        let (bottleneck, drain) = own.fold((Bottleneck::ProviderQuota, quota), |least, (what, rate)| {
            if rate.per_sec_f64() < least.1.per_sec_f64() { (what, rate) } else { least }
        });
        let at_once_granted = plan.provider.quota.burst_tokens();
        let bucket = plan.provider.quota.window;
        let (window, burst) = match (bottleneck, budgets) {
            // free slots are taken at once when the event begins, but their answers come only s later
            (Bottleneck::Concurrent, _) => (Window::Bucket { burst: Duration::ZERO }, Tokens::ZERO),
            (_, Some(budgets)) if budgets.tokens.is_some() || budgets.requests.is_some() => {
                (budgets.window(), at_once(&budgets, hold).min(at_once_granted))
            }
            _ => (bucket, at_once_granted),
        };
        Self {
            hold,
            factor,
            service,
            quota,
            drain,
            bottleneck,
            slots: budgets.and_then(|budgets| budgets.concurrent),
            window,
            burst,
        }
    }
}

/// What the provider's quota lets through, in tokens of holds. Where it is charged by what is used, `factor` times as much;
/// where requests are limited too, no more of them. The embedded gateway calls with the one key its caller has; of others
/// it is believed that they use every account.
pub(super) fn granted(plan: &Plan, hold: f64, factor: f64) -> Rate {
    let quota = &plan.provider.quota;
    let tokens = match quota.charge {
        Charge::Reservation => quota.tokens,
        Charge::Actual => scaled(quota.tokens.per_sec_f64() * factor).unwrap_or(quota.tokens),
    };
    let requests = quota.requests.and_then(|rate| scaled(rate.per_sec_f64() * hold));
    let one = requests
        .into_iter()
        .chain([tokens])
        .min_by(|a, b| a.per_sec_f64().total_cmp(&b.per_sec_f64()))
        .unwrap_or(tokens);
    match (&plan.target.kind, quota.accounts.len()) {
        (TargetKind::Embedded(_), _) | (_, 0 | 1) => one,
        (_, accounts) => scaled(one.per_sec_f64() * accounts as f64).unwrap_or(one),
    }
}

/// So many a second.
fn scaled(per_second: f64) -> Option<Rate> {
    Rate::new((per_second * 1e6).round() as u64, Duration::from_secs(1_000_000))
}

/// What each of the gateway's own limits lets through, in tokens of holds. What an answer leaves of its hold is given
/// back, so a budget of tokens lets through `factor` times as much.
fn limits(budgets: &Budgets, hold: f64, factor: f64, service: f64) -> Vec<(Bottleneck, Rate)> {
    let tokens = match budgets.tokens {
        Some(rate) if factor > 1.0 => scaled(rate.per_sec_f64() * factor),
        tokens => tokens,
    };
    let requests = budgets.requests.and_then(|rate| scaled(rate.per_sec_f64() * hold));
    let slots = budgets.concurrent.and_then(|slots| scaled(f64::from(slots) * hold / service));
    [(Bottleneck::Tokens, tokens), (Bottleneck::Requests, requests), (Bottleneck::Concurrent, slots)]
        .into_iter()
        .filter_map(|(what, rate)| Some((what, rate?)))
        .collect()
}

/// The most the gateway's own windows let through at once, in tokens.
fn at_once(budgets: &Budgets, hold: f64) -> Tokens {
    let span = budgets.window().span();
    let tokens = budgets.tokens.map(|rate| Tokens::new(rate.whole_in(span)));
    let requests = budgets.requests.map(|rate| Tokens::new((rate.whole_in(span) as f64 * hold) as u64));
    tokens.into_iter().chain(requests).min().unwrap_or_default()
}

impl Bottleneck {
    /// As a sentence names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ProviderQuota => "the provider's quota",
            Self::Tokens => "the gateway's own budget of tokens",
            Self::Requests => "the gateway's own budget of requests",
            Self::Concurrent => "the calls the gateway makes at once",
        }
    }
}
