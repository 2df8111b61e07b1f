//! What can be served is served: in the event's steady part, from the forecast onset to the event's end by due time,
//! goodput is at least 95 % of the capacity, or of what is offered where that is less.
//!
//! It is counted in tokens, in which capacity is given, and told in requests of the mean hold: a gateway that serves
//! the small ones and refuses the large ones is not better for it.

use super::{Finding, Kind, Scene, Standard, words};
use crate::units::Moment;

pub(super) const KIND: Kind = Kind {
    id: "goodput.floor",
    about: "goodput is at least 95 % of capacity in the event's steady part",
    limit: Standard::Part(0.95),
    unit: "requests/s",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let (limit, measures) = (scene.part(&KIND), scene.measures);
    let capacity = scene.forecast.floor_per_s();
    let floor = capacity * limit;
    let draft = KIND.draft(format!(
        "at least {} answers a second in time: {} of what can be served",
        words::number(floor),
        words::percent(limit)
    ));
    let Some(event) = measures.frame.event else { return draft.not_applicable("the plan has no event") };
    let from = event.start.as_secs_f64() + scene.forecast.onset.map_or(0.0, |onset| onset.after_s);
    let from = Moment::from_nanos((from * 1e9) as u64);
    let (mut tokens, mut attempts, mut windows) = (0u64, 0u64, 0u32);
    for window in measures.windows.within(&measures.frame, from, event.end) {
        tokens += window.goodput_tokens.get();
        attempts += window.attempts;
        windows += 1;
    }
    if attempts == 0 {
        return draft.no_data("nothing came due in the event's steady part");
    }
    let seconds = (measures.frame.width * windows).as_secs_f64();
    let reached = tokens as f64 / scene.forecast.basis.mean_hold / seconds;
    let of = if scene.forecast.overload() { "capacity" } else { "what was offered" };
    let because = format!(
        "{}/s over {}, {} of {of} (floor {})",
        words::number(reached),
        words::seconds(seconds),
        words::percent(reached / capacity),
        words::percent(limit)
    );
    draft.judged(reached >= floor, reached, floor, because)
}
