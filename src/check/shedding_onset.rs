//! Shedding begins where arithmetic says it must.
//!
//! The depth met by the first shed lies in (A − h, A], where A is the effective bound and what the bucket held at that
//! instant, anything from nothing to just under one hold, and h the hold of the refused request. That is exact for
//! every arrival process. What is seen from outside may differ by what can arrive or leave while a request travels.
//! Its instant is within 3 standard deviations, one hold and one gap of (B + Q)/(x − r); a first passage has its longer
//! tail on the late side.
//!
//! Where classes differ in what refuses them (the deadline, the tier, the tenant), those that are refused last may come
//! before the first of those that are refused first, and so stand above the bound. Where tenants have lanes of their own,
//! a lane is full at its share of the bound if all others wait too, and at the whole if none does.
//!
//! Of N replicas each refuses at its own part of the bound: the first to do so may be a hold ahead of each of the others,
//! or behind it, so the sum they meet may differ by N − 1 holds, and the instant by the time in which those arrive.

use super::{Finding, Kind, Scene, Standard, on_the_way, words};
use crate::forecast::Onset as Expected;
use crate::measure::Onset;
use crate::units::Moment;
use crate::workload::{Class, Span};

pub(super) const KIND: Kind = Kind {
    id: "shedding.onset",
    about: "the first shed meets the forecast depth, at the forecast instant",
    limit: Standard::Nothing,
    unit: "requests",
    judge,
};

/// What scheduling on both sides may add to an instant.
const SCHEDULING: f64 = 0.05;
/// How rare a healthy run is whose onset is taken for a wrong one, on either side.
const RARE: f64 = 5e-4;
/// As many standard deviations of a normal distribution.
const SIGMAS: f64 = 3.3;

fn judge(scene: &Scene<'_>) -> Finding {
    let draft = KIND.draft(promise(scene));
    let Some(event) = scene.measures.frame.event else {
        return draft.not_applicable("the plan has no event");
    };
    let expected = scene.forecast.queue_bound.effective.requests as f64;
    let fails = |turn: &Moment| event.contains(*turn) && scene.plan.provider.part_at(*turn) < 1.0;
    if scene.forecast.onset.is_none() && scene.plan.provider.turns().iter().any(fails) {
        return draft
            .not_applicable("it is a fault of the provider that decides here whether anybody is refused");
    }
    match (scene.forecast.onset, scene.measures.onset) {
        (None, None) => draft.not_applicable("the event offers no more than is served"),
        (None, Some(onset)) => {
            let because = format!(
                "first shed at depth {} though the event offers no more than is served",
                onset.depth_met.requests
            );
            let met = onset.depth_met.requests as f64;
            draft.judged(false, met, expected, because).showing(vec![onset.attempt.seq])
        }
        (Some(forecast), None) => never(scene, draft, event, &forecast),
        (Some(forecast), Some(onset)) => {
            let verdict = compare(scene, event, &forecast, &onset);
            let met = onset.depth_met.requests as f64;
            draft.judged(verdict.0, met, expected, verdict.1).showing(vec![onset.attempt.seq])
        }
    }
}

fn promise(scene: &Scene<'_>) -> String {
    let effective = scene.forecast.queue_bound.effective;
    match scene.forecast.onset {
        Some(onset) => format!(
            "(burst + bound)/(offered − drained): shedding begins {} into the event, at {} tokens ({} requests)",
            words::seconds(onset.after_s),
            words::thousands(effective.tokens),
            effective.requests
        ),
        None => "nobody is shed".to_owned(),
    }
}

fn never(scene: &Scene<'_>, draft: super::Draft, event: Span, forecast: &Expected) -> Finding {
    let due = event.start.as_secs_f64() + forecast.after_s;
    if scene.measures.offered == 0 || scene.measures.end.as_secs_f64() <= due {
        return draft.no_data("the run ended before shedding was due to begin");
    }
    let effective = scene.forecast.queue_bound.effective;
    draft.failed(
        Some(effective.requests as f64),
        format!(
            "nobody was shed; forecast at depth {} after {}; the queue grew to {} requests",
            effective.requests,
            words::seconds(forecast.after_s),
            words::thousands(scene.measures.depths.peak.requests)
        ),
    )
}

/// Whether depth and instant are as forecast, and the sentence that says so.
fn compare(scene: &Scene<'_>, event: Span, forecast: &Expected, onset: &Onset) -> (bool, String) {
    let basis = &scene.forecast.basis;
    let further = further(scene, onset);
    let (bound, hold) = (forecast.depth_tokens + further, onset.hold.get().max(1));
    let met = onset.depth_met.tokens.get();
    // what can arrive or leave on the way, and each replica has its own last hold that still fits
    let apart = on_the_way::apart(scene);
    let slack = on_the_way::tokens(scene).get();
    // the bucket may hold just less than the largest request that waits for it
    let most = basis.largest_hold.get().max(hold);
    let shared = (bound as f64 * basis.least_share) as u64;
    let over = others(scene, onset, shared) * basis.largest_hold.get();
    let deep = met + hold + slack > shared && met < bound + most + slack + over;
    let after = onset.sent.since(event.start).as_secs_f64();
    let excess = basis.tokens_at(basis.offered) - basis.drain.per_sec_f64();
    let step = if excess > 0.0 { hold as f64 / excess } else { 0.0 };
    let late = 3.0 * forecast.sd_s
        + step * (1 + apart) as f64
        + 1.0 / basis.offered
        + if scene.live { SCHEDULING } else { 0.0 };
    // a lane that is full at its share is full so much sooner
    let sooner = if basis.least_share < 1.0 { (bound - shared) as f64 / excess.max(1.0) } else { 0.0 };
    let timely = after >= forecast.after_s - sooner - late
        && after <= forecast.after_s + late + tail(forecast) + (over + further) as f64 / excess.max(1.0);
    let (least, most) = (bound / hold, bound.div_ceil(hold));
    let range = if basis.least_share < 1.0 {
        format!("{} to {} tokens", words::thousands(shared), words::thousands(bound))
    } else if basis.smallest_hold != basis.largest_hold {
        format!("{} tokens", words::thousands(bound))
    } else if least == most {
        least.to_string()
    } else {
        format!("{least} or {most}")
    };
    let range = match apart {
        0 => range,
        1 => format!("{range} (a hold more or less, for two replicas)"),
        _ => format!("{range} ({apart} holds more or less, for {} replicas)", apart + 1),
    };
    let because = format!(
        "first shed at depth {} ({} tokens) after {}; predicted {range}, after {} ± {}",
        onset.depth_met.requests,
        words::thousands(met),
        words::seconds(after),
        words::seconds(forecast.after_s),
        words::seconds(late),
    );
    (deep && timely, because)
}

/// By how many tokens the bound of the class that was refused first exceeds that of the shortest deadline, which may be that
/// of a class that seldom comes.
fn further(scene: &Scene<'_>, onset: &Onset) -> u64 {
    let basis = &scene.forecast.basis;
    if scene.plan.policy().is_some_and(|policy| policy.bound.name() != "deadline") {
        return 0;
    }
    let own = scene.plan.believed(scene.plan.requests.class(onset.class));
    basis.drain.whole_in(own.saturating_sub(basis.deadline).mul_f64(1.0 - basis.reserve))
}

/// How many of other kinds may come before the next of the kind that is refused first, but for one run in two thousand:
/// a geometric number. Where tenants have lanes, those of the others grow until its own is full, which is a negative
/// binomial number.
fn others(scene: &Scene<'_>, onset: &Onset, lane: u64) -> u64 {
    let plan = scene.plan.as_in_event();
    let (strict, lanes) =
        plan.policy().map_or((false, false), |policy| (policy.tiers.strict, policy.share.separate()));
    let first = plan.requests.class(onset.class);
    let alike = |class: &Class| {
        class.deadline == first.deadline
            && class.clock == first.clock
            && (!strict || class.tier == first.tier)
            && (!lanes || class.tenant == first.tenant)
    };
    let part = plan.requests.mean(|class| f64::from(u8::from(alike(class))));
    if part >= 1.0 || part <= 0.0 {
        return 0;
    }
    let next = (RARE.ln() / (1.0 - part).ln()).ceil();
    let full = (lane / onset.hold.get().max(1) + 1) as f64 * (1.0 - part);
    let until_full = if lanes { full / part + SIGMAS * full.sqrt() / part } else { 0.0 };
    next.max(until_full.ceil()) as u64
}

/// By how much longer than three standard deviations the late tail of a first passage is: that of an inverse Gaussian, whose
/// skewness is 3·sd/mean, to the third cumulant.
fn tail(forecast: &Expected) -> f64 {
    let spread = forecast.sd_s / forecast.after_s.max(forecast.sd_s).max(f64::MIN_POSITIVE);
    forecast.sd_s * (SIGMAS - 3.0 + (SIGMAS * SIGMAS - 1.0) / 2.0 * spread)
}
