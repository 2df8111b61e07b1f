//! The target's memory stays under what its full queue needs.
//!
//! The ceiling is the forecast's growth over the memory measured before the load. It is a forecast for the reference
//! gateway; any other has a ceiling only where the plan names one.

use super::{Finding, Kind, Scene, Standard};
use crate::plan::TargetKind;
use crate::units::Bytes;

pub(super) const KIND: Kind = Kind {
    id: "memory.ceiling",
    about: "the target's peak memory is at most the forecast ceiling",
    limit: Standard::Size,
    unit: "bytes",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let draft = KIND.draft("memory stays under what a full queue needs");
    if !scene.live {
        return draft.not_applicable("in virtual time nothing uses memory");
    }
    let target = &scene.plan.target;
    let embedded = matches!(target.kind, TargetKind::Embedded(_));
    let named = scene.size().or_else(|| target.memory.as_ref().and_then(|source| source.ceiling));
    if matches!(target.kind, TargetKind::Url { .. }) && target.memory.is_none() {
        return draft.not_applicable("the plan names no place to read its memory (`target.memory`)");
    }
    if !embedded && named.is_none() {
        return draft.not_applicable("no forecast can say what this target needs (`target.memory.ceiling`)");
    }
    let memory = &scene.measures.vitals.target;
    if memory.samples == 0 {
        return draft.no_data("its memory was never read");
    }
    let Some(ceiling) = named.or_else(|| memory.baseline.map(|baseline| scene.forecast.ceiling(baseline)))
    else {
        return draft.no_data("its memory was not read before the load, so that its growth is unknown");
    };
    let from = memory.baseline.map_or(String::new(), |baseline| format!(", {baseline} before the load"));
    let because = format!("peak {}, ceiling {ceiling}{from}", memory.peak);
    let value = |bytes: Bytes| bytes.get() as f64;
    draft.judged(memory.peak <= ceiling, value(memory.peak), value(ceiling), because)
}
