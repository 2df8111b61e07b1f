//! Nothing is spent on callers who have left: of the tokens the provider took from the quota, at most 1 % were for
//! answers nobody was waiting for any more.
//!
//! A call is wasted whole if it reaches the provider after its request had ended for its caller, or goes on after
//! that; one that is cut off wastes what was made until then, where the provider can see it (`engine: stream`). Callers
//! who leave before their deadlines nobody can foresee: what was made until they left is no waste, nor is an answer that
//! comes whole.
//!
//! What comes due within a deadline of the beginning or the end of a fault of the provider is left out: what is forwarded
//! then is judged by what the provider was.

use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::Trouble;

pub(super) const KIND: Kind = Kind {
    id: "waste.none",
    about: "at most 1 % of the provider's tokens are for callers who have left",
    limit: Standard::Part(0.01),
    unit: "share",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let limit = scene.part(&KIND);
    let draft = KIND.draft(format!(
        "of the provider's tokens at most {} are for callers who have left",
        words::percent(limit)
    ));
    let (wasted, charged) = tokens(scene);
    if charged == 0 {
        return draft.no_data("no call took anything from the provider's quota while it was as usual");
    }
    let share = wasted as f64 / charged as f64;
    let because = format!(
        "{} of {} tokens were for nobody ({}, limit {})",
        words::thousands(wasted),
        words::thousands(charged),
        words::percent(share),
        words::percent(limit)
    );
    draft.judged(share <= limit, share, limit, because).showing(scene.measures.examples.of(Trouble::Wasted))
}

/// Tokens wasted and charged for what came due while the provider was steady.
fn tokens(scene: &Scene<'_>) -> (u64, u64) {
    let (frame, turns) = (&scene.measures.frame, scene.plan.provider.turns());
    let deadlines = scene.plan.requests.classes().iter().map(|class| class.deadline);
    let around = deadlines.max().unwrap_or_default();
    let windows = scene.measures.windows.iter().enumerate().filter(|(index, _)| {
        let begins = frame.begins(*index);
        !turns.iter().any(|turn| begins + around >= *turn && begins <= *turn + around)
    });
    windows.fold((0, 0), |(wasted, charged), (_, window)| {
        (wasted + window.wasted.get(), charged + window.charged.get())
    })
}
