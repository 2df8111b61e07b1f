//! A request that is sent twice under one idempotency key costs one call to the provider.
//!
//! Held against every arrival that was sent twice and whose attempts have all come to their ends: the provider worked for
//! at most one of them. A call that it refused, or that failed before anything was done for it, was none.

use super::{Finding, Kind, Scene, Standard, words::thousands};
use crate::measure::Trouble;

pub(super) const KIND: Kind = Kind {
    id: "duplicates.single_call",
    about: "one provider call per idempotency key",
    limit: Standard::Nothing,
    unit: "keys",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let doubles = &scene.measures.doubles;
    let draft = KIND.draft("what is sent twice under one key is worked for once");
    if scene.plan.requests.classes().iter().all(|class| class.duplicates.get() <= 0.0) {
        return draft.not_applicable("the plan sends nothing twice");
    }
    if doubles.whole == 0 {
        return draft.no_data("nothing that was sent twice has come to its end");
    }
    let because = format!(
        "the provider worked more than once for {} of {} keys that came twice",
        thousands(doubles.called_again),
        thousands(doubles.whole)
    );
    draft
        .judged(doubles.called_again == 0, doubles.called_again as f64, 0.0, because)
        .showing(scene.measures.examples.of(Trouble::CalledTwice))
}
