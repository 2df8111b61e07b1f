//! A refused attempt costs the provider nothing: no tokens are charged for it.

use super::{Finding, Kind, Scene, Standard, words::thousands};
use crate::measure::Trouble;

pub(super) const KIND: Kind = Kind {
    id: "shedding.free",
    about: "refused attempts cost the provider nothing",
    limit: Standard::Nothing,
    unit: "tokens",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let refusals = &scene.measures.refusals;
    let draft = KIND.draft("a refused request costs no tokens");
    if refusals.refused == 0 {
        return scene.nobody_refused(draft);
    }
    let because = format!(
        "{} refusals cost the provider {} of {} tokens",
        thousands(refusals.refused),
        thousands(refusals.cost.get()),
        thousands(scene.measures.upstream.charged.get())
    );
    draft
        .judged(refusals.costly == 0, refusals.cost.get() as f64, 0.0, because)
        .showing(scene.measures.examples.of(Trouble::CostlyRefusal))
}
