//! Tenants share what is served by their weights, in tokens: in the event's steady part (from the forecast onset on) each
//! is served within five points of its weighted max-min fair share.
//!
//! Who asks for less than its share is served whole, and what it leaves goes to the others by their weights; a limit of its
//! own caps what a tenant can ask for. Shares of requests are not shares of tokens: three tenants of 2, 1 and 1 whose
//! requests are of 600, 1,200 and 3,000 tokens, served in turns of 2, 1 and 1 requests, get 22, 22 and 56 % of the tokens.

use std::time::Duration;

use super::{Finding, Kind, Scene, Standard, words};
use crate::admission::Tenant;
use crate::forecast::fair_shares;
use crate::measure::Shares;

pub(super) const KIND: Kind = Kind {
    id: "fairness.tokens",
    about: "each tenant is served within 5 points of its fair share of tokens in the event's steady part",
    limit: Standard::Part(0.05),
    unit: "share",
    judge,
};

/// What a tenant asked for and was served.
struct Seen<'a> {
    tenant: &'a Tenant,
    wanted: f64,
    served: f64,
}

fn judge(scene: &Scene<'_>) -> Finding {
    let limit = scene.part(&KIND);
    let draft = KIND.draft(format!(
        "each tenant's part of the tokens within {} of its fair share by weight",
        words::percent(limit)
    ));
    let Some(policy) = scene.plan.policy() else {
        return draft.not_applicable("what the gateway decides by is not declared");
    };
    let classes = scene.plan.requests.classes();
    let asks = |tenant: &Tenant| classes.iter().any(|class| class.tenant == tenant.name);
    if !policy.share.separate() || policy.tenants.iter().filter(|tenant| asks(tenant)).count() < 2 {
        return draft.not_applicable("no two tenants share what is served");
    }
    if policy.tiers.strict && classes.iter().any(|class| class.tier != classes[0].tier) {
        return draft.not_applicable("tiers come before shares");
    }
    let Some((shares, onset)) = scene.measures.shares.as_deref().zip(scene.forecast.onset) else {
        return draft.not_applicable("the event offers no more than is served");
    };
    let after = Duration::try_from_secs_f64(onset.after_s).unwrap_or_default();
    let seen: Vec<Seen<'_>> = policy.tenants.iter().map(|tenant| of(scene, shares, after, tenant)).collect();
    let total: f64 = seen.iter().map(|seen| seen.served).sum();
    let largest = scene.forecast.basis.largest_hold.get() as f64;
    if total <= 0.0 || largest / total > limit / 2.0 {
        return draft.no_data("too few tokens were served in the event's steady part to tell shares apart");
    }
    let wants: Vec<(f64, f64)> =
        seen.iter().map(|seen| (f64::from(seen.tenant.weight), seen.wanted)).collect();
    let fair = fair_shares(total, &wants);
    let apart = |(seen, fair): (&Seen<'_>, &f64)| (seen.served - fair).abs() / total;
    let worst = seen.iter().zip(&fair).map(apart).fold(0.0, f64::max);
    let shown = seen.iter().zip(&fair).take(MOST_SHOWN).map(|(seen, fair)| {
        format!(
            "{} {} of a fair {}",
            seen.tenant.name,
            words::percent(seen.served / total),
            words::percent(fair / total)
        )
    });
    let because = format!(
        "{}{}; the furthest is {} off",
        shown.collect::<Vec<_>>().join(", "),
        if seen.len() > MOST_SHOWN { ", …" } else { "" },
        words::percent(worst)
    );
    draft.judged(worst <= limit, worst, limit, because)
}

/// The most tenants a sentence names.
const MOST_SHOWN: usize = 5;

fn of<'a>(scene: &Scene<'_>, shares: &Shares, after: Duration, tenant: &'a Tenant) -> Seen<'a> {
    let classes = scene.plan.requests.classes().iter().enumerate();
    let own = classes.filter(|(_, class)| class.tenant == tenant.name).map(|(at, _)| shares.part(at, after));
    let (mut wanted, mut sent, mut served) = (0.0, 0.0, 0.0);
    for part in own {
        wanted += part.wanted.get() as f64;
        sent += part.sent as f64;
        served += part.served.get() as f64;
    }
    // what its own limits let through in that time, and at once
    let lasts = (shares.lasts(after) + tenant.window.span()).as_secs_f64();
    let by_tokens = tenant.tokens.map(|rate| rate.per_sec_f64() * lasts);
    let by_requests = tenant.requests.map(|rate| rate.per_sec_f64() * lasts * wanted / f64::max(sent, 1.0));
    let capped = by_tokens.into_iter().chain(by_requests).fold(wanted, f64::min);
    Seen { tenant, wanted: capped, served }
}
