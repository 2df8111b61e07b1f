//! Whoever repeats, repeats within limits: the gateway its calls to the provider, the callers their requests.
//!
//! No request is worth more calls than the declared `upstream.attempts` (3 where nothing is declared). Calls repeated
//! after failures are at most the declared part of first calls, and the 10 a budget starts with; a call after a
//! refusal for quota is announced by the provider, and counts only as a call of its request. And the callers send no
//! more than their rule allows: k requests for each arrival, probes apart.

use super::{Finding, Kind, Scene, Standard, words};
use crate::admission::{Meaning, RETRIES_AT_START};
use crate::measure::Trouble;
use crate::provider::What;

pub(super) const KIND: Kind = Kind {
    id: "retries.bounded",
    about: "calls to the provider for one request, and all repetitions together, stay within what is declared",
    limit: Standard::Nothing,
    unit: "calls",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let (upstream, most) = (&scene.measures.upstream, scene.measures.frame.most_calls);
    let draft = KIND.draft(format!(
        "no request is worth more than {most} calls to the provider, and repetitions stay within their budget"
    ));
    if upstream.requests == 0 {
        return draft.no_data("no request reached the provider while its caller waited");
    }
    let repetitions = allowed(scene);
    let mut because = format!(
        "{} calls for {} requests, at most {} for one (allowed {most})",
        words::thousands(upstream.forwards),
        words::thousands(upstream.requests),
        upstream.most_calls
    );
    if upstream.too_often > 0 {
        because = format!("{because}: {} had more", words::thousands(upstream.too_often));
    }
    if let Some(allowed) = repetitions {
        because = format!(
            "{because}; {} repeated after failures (allowed {})",
            words::thousands(upstream.repeated),
            words::thousands(allowed as u64)
        );
    }
    let excess = callers_excess(scene);
    if let Some((name, sent, rule)) = excess {
        because = format!("{because}; a caller of `{name}` sent {sent} requests, its rule allows {rule}");
    }
    let in_all = repetitions.is_none_or(|allowed| upstream.repeated as f64 <= allowed);
    let holds = upstream.too_often == 0 && in_all && excess.is_none();
    draft
        .judged(holds, f64::from(upstream.most_calls), f64::from(most), because)
        .showing(scene.measures.examples.of(Trouble::CalledTooOften))
}

/// Repetitions after failures that the declared budget allows: b·(first calls) and what it starts with. `None` where
/// nothing is declared, or where a fault of the provider answers 429 without being out of quota: from outside those
/// repetitions look like any other.
fn allowed(scene: &Scene<'_>) -> Option<f64> {
    let upstream = &scene.measures.upstream;
    let spent =
        |what: &What| matches!(what, What::Errors { status, .. } if Meaning::of(*status) == Meaning::Spent);
    if scene.plan.provider.faults.iter().any(|fault| spent(&fault.what)) {
        return None;
    }
    let budget = scene.plan.policy()?.upstream.budget?.get();
    let first = upstream.forwards.saturating_sub(upstream.repeated) as f64;
    Some(if budget > 0.0 { (budget * first).ceil() + RETRIES_AT_START } else { 0.0 })
}

/// A class of which a caller sent more requests than its rule allows: its name, how many, and how many it may.
fn callers_excess<'a>(scene: &Scene<'a>) -> Option<(&'a str, u16, u16)> {
    let classes = scene.plan.requests.classes().iter().zip(&scene.measures.classes);
    let mut excess = classes.filter_map(|(class, seen)| {
        let rule = class.attempts() as u16;
        (seen.most_attempts > rule).then_some((class.name.as_str(), seen.most_attempts, rule))
    });
    excess.next()
}
