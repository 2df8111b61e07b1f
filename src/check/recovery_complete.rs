//! After the event everything is as it was: of the callers who come once those who wait and those who come again are
//! forecast to be served, at least 99 % are answered in time, to the end of the load.
//!
//! The time is Q*/(μ − λ0) + orbit/(μ − λ0) + s. A gateway that is kept busy by callers who have left, so that those
//! who come in time leave, too, never gets there: a metastable state, which only less traffic ends. The outcome of a
//! caller is that of its last attempt.

use std::time::Duration;

use super::{Finding, Kind, Scene, Standard, words};
use crate::forecast::Recovery;
use crate::observe::Outcome;
use crate::workload::Span;

pub(super) const KIND: Kind = Kind {
    id: "recovery.complete",
    about: "after the event 99 % of all callers are served in time again, within the forecast time",
    limit: Standard::Part(0.99),
    unit: "share",
    judge,
};

/// Callers that must be expected after it for a share of them to say anything.
const FEWEST: f64 = 7.0;

fn judge(scene: &Scene<'_>) -> Finding {
    let (limit, frame) = (scene.part(&KIND), &scene.measures.frame);
    let basis = &scene.forecast.basis;
    let draft = KIND.draft(format!(
        "Q*/(μ − λ0) + orbit/(μ − λ0) + s after the event at least {} of all callers are served in time again",
        words::percent(limit)
    ));
    let Some(event) = frame.event else { return draft.not_applicable("the plan has no event") };
    if !scene.forecast.overload() {
        return draft.not_applicable("the event offers no more than is served");
    }
    let Some(recovery) = scene.forecast.recovery else {
        return draft.not_applicable("nothing comes after the event, or no less than is served");
    };
    let from = event.end + Duration::try_from_secs_f64(recovery.after_s).unwrap_or(Duration::MAX);
    let watched = frame.whole_windows(from, frame.end) as f64 * frame.width.as_secs_f64();
    if basis.tail * watched < FEWEST {
        return draft.not_applicable(format!(
            "recovery is forecast {} after the event, too near the end of the load to be seen",
            words::seconds(recovery.after_s)
        ));
    }
    let Some((share, good, came)) = served(scene, Span { start: from, end: frame.end }) else {
        return draft.no_data("nobody came due once recovery was forecast");
    };
    let before = frame.before.and_then(|before| served(scene, before)).map(|(share, ..)| share);
    let because = format!(
        "{} of {} callers served in time ({}) from {} after the event on; {}{}",
        words::thousands(good),
        words::thousands(came),
        words::percent(share),
        words::seconds(recovery.after_s),
        arithmetic(scene, &recovery),
        before.map_or(String::new(), |before| format!("; {} before the event", words::percent(before)))
    );
    draft.judged(share >= limit, share, limit, because)
}

/// The formula with its numbers.
fn arithmetic(scene: &Scene<'_>, recovery: &Recovery) -> String {
    let basis = &scene.forecast.basis;
    format!(
        "predicted {} + {}/({} − {}) + {}",
        words::seconds(recovery.queue_s),
        words::thousands(recovery.orbit_requests.round() as u64),
        words::number(basis.served),
        words::number(basis.tail),
        words::seconds(basis.service.as_secs_f64())
    )
}

/// Of those due in the whole windows of `span`: the share that was served in time, how many, of how many. Those that
/// could not be sent are our own fault, and left out.
fn served(scene: &Scene<'_>, span: Span) -> Option<(f64, u64, u64)> {
    let (mut served, mut came) = (0, 0);
    for window in scene.measures.windows.within(&scene.measures.frame, span.start, span.end) {
        served += window.arrivals.get(Outcome::Completed);
        came += window.offered - window.arrivals.get(Outcome::Unsent).min(window.offered);
    }
    (came > 0).then(|| (served as f64 / came as f64, served, came))
}
