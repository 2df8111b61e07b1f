//! What can be served is served: in the event's steady part, from the forecast onset to the event's end by due time,
//! goodput is at least 95 % of the capacity, or of what is offered where that is less.
//!
//! Faults of the provider take capacity while they last; what comes due within a deadline of their beginning or end is left
//! out, since what was promised before was promised in another state.
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
    let Steady { is_planned, seconds, tokens, attempts, capacity } = Steady::of(scene);
    let mean_hold = scene.forecast.basis.mean_hold;
    let floor = capacity * limit;
    let draft = KIND.draft(format!(
        "at least {} answers a second in time: {} of what can be served",
        words::number(floor),
        words::percent(limit)
    ));
    if measures.frame.event.is_none() {
        return draft.not_applicable("the plan has no event");
    }
    if !is_planned {
        return draft
            .not_applicable("faults of the provider leave the event no steady part in which it serves");
    }
    if attempts == 0 {
        return draft.no_data("nothing came due in the event's steady part");
    }
    let reached = tokens as f64 / mean_hold / seconds;
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

/// The event's steady part.
#[derive(Default)]
struct Steady {
    /// Whether there is one, by the plan alone.
    is_planned: bool,
    seconds: f64,
    /// Tokens held for answers in time.
    tokens: u64,
    attempts: u64,
    /// What can be served in it, in requests a second: the capacity, or what came due where that is less.
    capacity: f64,
}

impl Steady {
    fn of(scene: &Scene<'_>) -> Self {
        let (frame, forecast) = (&scene.measures.frame, scene.forecast);
        let Some(event) = frame.event else { return Self::default() };
        let from = event.start.as_secs_f64() + forecast.onset.map_or(0.0, |onset| onset.after_s);
        let from = Moment::from_nanos((from * 1e9) as u64);
        let (provider, turns) = (&scene.plan.provider, scene.plan.provider.turns());
        let deadlines = scene.plan.requests.classes().iter().map(|class| class.deadline);
        let around = deadlines.max().unwrap_or_default();
        let seen: Vec<_> = scene.measures.windows.iter().collect();
        let (mut steady, mut windows, mut parts, mut offered) = (Self::default(), 0u32, 0.0, 0u64);
        let mut index = frame.window(from);
        while frame.begins(index + 1) <= event.end {
            let begins = frame.begins(index);
            let unsteady = |turn: &Moment| begins + around >= *turn && begins <= *turn + around;
            let part = provider.part_at(begins);
            if begins >= from && part > 0.0 && !turns.iter().any(unsteady) {
                steady.is_planned = true;
                if let Some(window) = seen.get(index) {
                    windows += 1;
                    parts += part;
                    offered += window.offered;
                    steady.tokens += window.goodput_tokens.get();
                    steady.attempts += window.attempts;
                }
            }
            index += 1;
        }
        if windows > 0 {
            steady.seconds = (frame.width * windows).as_secs_f64();
            let granted = forecast.capacity_per_min / 60.0 * (parts / f64::from(windows));
            let came = offered as f64 / steady.seconds;
            steady.capacity = if forecast.overload() { granted } else { came.min(granted) };
        }
        steady
    }
}
