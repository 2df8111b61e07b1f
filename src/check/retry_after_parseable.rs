//! What a refusal announces can be read: whole seconds, or a date (RFC 9110, section 10.2.3). Seconds with a fraction are
//! no standard: some clients read them, some ignore them, and some fail on them.

use super::{Finding, Kind, Scene, Standard, words, words::thousands};
use crate::measure::Trouble;

pub(super) const KIND: Kind = Kind {
    id: "retry_after.parseable",
    about: "every Retry-After is whole seconds or a date",
    limit: Standard::Part(1.0),
    unit: "share",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let refusals = &scene.measures.refusals;
    let draft = KIND.draft("every Retry-After is whole seconds or a date");
    if refusals.answers == 0 {
        return scene.nobody_refused(draft);
    }
    let announced = refusals.answers - refusals.missing;
    if announced == 0 {
        return draft.not_applicable("no refusal carried a Retry-After");
    }
    let good = announced - refusals.unreadable - refusals.fractional;
    let (share, limit) = (good as f64 / announced as f64, scene.part(&KIND));
    let mut because = format!("{} of {}", thousands(good), thousands(announced));
    if let (Some(least), Some(most)) = (refusals.announced.min(), refusals.announced.max()) {
        because = if least == most {
            format!("{because}; always {least} s")
        } else {
            format!("{because}; {} different, from {least} s to {most} s", refusals.distinct())
        };
    }
    for (count, what, texts) in [
        (refusals.unreadable, "cannot be read", &refusals.odd),
        (refusals.fractional, "have a fraction, which no standard has", &refusals.fractions),
    ] {
        if let Some((text, times)) = texts.most() {
            because = format!("{because}; {} {what} (`{text}` {})", thousands(count), words::times(times));
        }
    }
    draft
        .judged(share >= limit, share, limit, because)
        .showing(scene.measures.examples.of(Trouble::Unreadable))
}
