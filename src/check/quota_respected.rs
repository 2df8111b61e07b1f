//! The gateway keeps to the provider's quota: hardly anything it forwards is refused there.

use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::Trouble;

pub(super) const KIND: Kind = Kind {
    id: "quota.respected",
    about: "the provider refuses at most 1 % of what is forwarded to it",
    limit: Standard::Part(0.01),
    unit: "share",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let (upstream, limit) = (&scene.measures.upstream, scene.part(&KIND));
    let draft =
        KIND.draft(format!("the provider refuses at most {} of what is forwarded", words::percent(limit)));
    if upstream.forwards == 0 {
        return draft.no_data("nothing reached the provider");
    }
    let share = upstream.refused as f64 / upstream.forwards as f64;
    let because = format!(
        "{} of {} forwards refused by the provider ({}, limit {})",
        words::thousands(upstream.refused),
        words::thousands(upstream.forwards),
        words::percent(share),
        words::percent(limit)
    );
    draft
        .judged(share <= limit, share, limit, because)
        .showing(scene.measures.examples.of(Trouble::UpstreamRefused))
}
