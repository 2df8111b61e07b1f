//! Refusals have the designed status, headers and body (`expect.refusal`).

use super::{Finding, Kind, Scene, Standard, words::thousands};
use crate::measure::Trouble;

pub(super) const KIND: Kind = Kind {
    id: "shedding.shape",
    about: "refusals have the designed status, headers and body",
    limit: Standard::Part(1.0),
    unit: "share",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let refusals = &scene.measures.refusals;
    let draft = KIND.draft("every refusal has the form of `expect.refusal`");
    if refusals.answers == 0 {
        return scene.nobody_refused(draft);
    }
    let good = refusals.answers - refusals.unshapely;
    let mut because = format!("{} of {} as designed", thousands(good), thousands(refusals.answers));
    if let Some((fault, times)) = refusals.faults.most() {
        because = format!("{because}; {} times: {fault}", thousands(times));
    }
    let (share, limit) = (good as f64 / refusals.answers as f64, scene.part(&KIND));
    draft
        .judged(share >= limit, share, limit, because)
        .showing(scene.measures.examples.of(Trouble::Unshapely))
}
