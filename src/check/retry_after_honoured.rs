//! A caller who waits exactly the announced time and returns once is served.
//!
//! Judged by probes that were due back inside the overload, where a promise is hard to keep: the lower end of Wilson's
//! 95 % interval of the kept share is at least 80 %. Those that return after it are served by anyone, and shown apart.

use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::Trouble;
use crate::workload::{Class, OnRefusal};

pub(super) const KIND: Kind = Kind {
    id: "retry_after.honoured",
    about: "callers who wait as told are served: at least 80 %, with 95 % confidence",
    limit: Standard::Part(0.8),
    unit: "share",
    judge,
};

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
    let Some(at_least) = returns.inside.at_least() else {
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
    if returns.after.returned > 0 {
        because = format!("{because}; {} of {} after it", returns.after.kept, returns.after.returned);
    }
    if at_least < limit && refusals.distinct() == 1 {
        let only = refusals.announced.min().unwrap_or(0);
        because = format!("{because}; every refusal announced {only} s, whatever the state");
    }
    draft
        .judged(at_least >= limit, at_least, limit, because)
        .showing(scene.measures.examples.of(Trouble::Unkept))
}
