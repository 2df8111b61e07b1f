//! Every refusal says when to come back.

use super::{Finding, Kind, Scene, Standard, words::thousands};
use crate::measure::Trouble;

pub(super) const KIND: Kind = Kind {
    id: "retry_after.present",
    about: "every refusal carries a Retry-After",
    limit: Standard::Part(1.0),
    unit: "share",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let refusals = &scene.measures.refusals;
    let draft = KIND.draft("every refusal says when to come back");
    if refusals.answers == 0 {
        return scene.nobody_refused(draft);
    }
    let present = refusals.answers - refusals.missing;
    let (share, limit) = (present as f64 / refusals.answers as f64, scene.part(&KIND));
    let because = format!("{} of {}", thousands(present), thousands(refusals.answers));
    draft
        .judged(share >= limit, share, limit, because)
        .showing(scene.measures.examples.of(Trouble::NoRetryAfter))
}
