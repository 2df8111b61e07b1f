//! A caller who waits exactly the announced time and returns once is served.
//!
//! Judged by probes that were due back inside the overload, where a promise is hard to keep: the lower end of Wilson's
//! 95 % interval of the kept share is at least 80 %. It is broken where the upper end is not; between the two there were
//! too few to tell. Those that return after it are served by anyone, and shown apart.
//!
//! Shown as well is the lift: the kept share over that of fresh callers in the same seconds. Near one, waiting as told was
//! worth nothing.

use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::{Measures, Trouble};
use crate::workload::{Class, OnRefusal};

pub(super) const KIND: Kind = Kind {
    id: "retry_after.honoured",
    about: "callers who wait as told are served: at least 80 %, with 95 % confidence",
    limit: Standard::Part(0.8),
    unit: "share",
    judge,
};

/// A wait that makes the chance of a fresh caller less than this much better told nothing.
const WORTH: f64 = 1.2;

fn judge(scene: &Scene<'_>) -> Finding {
    let (refusals, returns) = (&scene.measures.refusals, &scene.measures.returns);
    let limit = scene.part(&KIND);
    let draft = KIND.draft(format!(
        "who waits exactly as told and returns once is served: at least {} of them, with 95 % confidence",
        words::percent(limit)
    ));
    if refusals.refused == 0 {
        return scene.nobody_refused(draft);
    }
    if scene.plan.probes.every == 0 {
        return draft.not_applicable("the plan sends no probes");
    }
    let retries = |class: &Class| class.weight == 0 || matches!(class.on_refusal, OnRefusal::Retry(_));
    if scene.plan.requests.classes().iter().all(retries) {
        return draft
            .not_applicable("every caller tries again by its own rule: none comes back exactly as told");
    }
    if refusals.announced.count() == 0 {
        return draft.not_applicable("no refusal announced a time to wait");
    }
    let Some((at_least, at_most)) = returns.inside.at_least().zip(returns.inside.at_most()) else {
        return draft.no_data(format!(
            "no probe was due back inside the overload ({} after it, {} kept): announced were {} s at the median",
            returns.after.returned,
            returns.after.kept,
            refusals.announced.number_at(0.5).unwrap_or(0)
        ));
    };
    let mut because = format!(
        "{} of {} callers who came back as told inside the overload were served (at least {}; needed {})",
        returns.inside.kept,
        returns.inside.returned,
        words::percent(at_least),
        words::percent(limit)
    );
    if let Some(lift) = lift(scene.measures) {
        because = format!("{because}; {lift}");
    }
    if returns.after.returned > 0 {
        because = format!("{because}; {} of {} after it", returns.after.kept, returns.after.returned);
    }
    let (least, most) = (refusals.announced.min(), refusals.announced.max());
    if let Some(only) = least.filter(|only| at_least < limit && most == Some(*only)) {
        because = format!("{because}; every refusal announced {only} s, whatever the state");
    }
    if at_least < limit && at_most >= limit {
        let open = format!(
            "{because}; that is between {} and {}",
            words::percent(at_least),
            words::percent(at_most)
        );
        return draft.no_data(format!("{open}: too few to tell"));
    }
    draft
        .judged(at_least >= limit, at_least, limit, because)
        .showing(scene.measures.examples.of(Trouble::Unkept))
}

/// How much better it was to come back as told than to come fresh in the same seconds.
fn lift(measures: &Measures) -> Option<String> {
    let inside = measures.returns.inside;
    let fresh = measures.waits.fresh_share(&measures.frame)?;
    let kept = inside.kept as f64 / inside.returned.max(1) as f64;
    let of_fresh = format!("fresh callers in the same seconds: {}", words::percent(fresh));
    Some(match kept / fresh {
        lift if !lift.is_finite() => of_fresh,
        lift if lift < WORTH => {
            format!("{of_fresh} (lift {}: the wait was worth nothing)", words::number(lift))
        }
        lift => format!("{of_fresh} (lift {})", words::number(lift)),
    })
}
