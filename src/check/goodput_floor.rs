//! What can be served is served: in the event's steady part, from the forecast onset to the event's end by due time,
//! goodput is at least 95 % of the capacity, or of what is offered where that is less.
//!
//! Faults of the provider take capacity while they last; what comes due within a deadline of their beginning or end is left
//! out, since what was promised before was promised in another state.
//!
//! It is counted in tokens, in which capacity is given, and told in requests of the mean hold: a gateway that serves
//! the small ones and refuses the large ones is not better for it. Capacity is the provider's quota, or what the calls
//! made at once let through where that is less.
//!
//! Callers with different deadlines are looked at apart, over the whole event: in a queue that lets everyone wait as
//! long as they may, the most patient stand before the others and are all that is served. Each deadline gets 95 % of
//! its part of what is served, less three standard deviations of a count (√n). Its part is what the declared policy
//! gives it: strict tiers one after the other, tenants by weight, and those of one tier or tenant in proportion to the
//! tokens they ask for.

use std::time::Duration;

use super::{Finding, Kind, Scene, Standard, Verdict, words};
use crate::forecast::class_parts;
use crate::units::{Moment, show_duration};
use crate::workload::Span;

pub(super) const KIND: Kind = Kind {
    id: "goodput.floor",
    about: "goodput is at least 95 % of capacity in the event's steady part, and of its part for each deadline",
    limit: Standard::Part(0.95),
    unit: "requests/s",
    judge,
};

/// Standard deviations of a count that a deadline's part may fall short.
const DEVIATIONS: f64 = 3.0;

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
    let Some(event) = measures.frame.event else { return draft.not_applicable("the plan has no event") };
    if !is_planned {
        return draft.not_applicable(
            "the event has no steady part as long as a window in which the provider is whole",
        );
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
    let overall = draft.judged(reached >= floor, reached, floor, because);
    match shortest_of(scene, event, limit) {
        Some(short) if overall.verdict == Verdict::Pass => {
            let holds = short.served + short.slack >= short.owed * limit;
            let verdict = if holds { Verdict::Pass } else { Verdict::Fail };
            Finding { verdict, because: format!("{}; {}", overall.because, short.words(limit)), ..overall }
        }
        Some(_) | None => overall,
    }
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
            let granted = forecast.granted_per_s() * (parts / f64::from(windows));
            let came = offered as f64 / steady.seconds;
            steady.capacity = if forecast.overload() { granted } else { came.min(granted) };
        }
        steady
    }
}

/// What the callers of one deadline were served in the event, in tokens.
struct Served {
    deadline: Duration,
    served: f64,
    owed: f64,
    /// What the noise of a count may take.
    slack: f64,
}

impl Served {
    fn words(&self, limit: f64) -> String {
        format!(
            "callers who wait {} were served {} tokens, {} of the {} that are their part (floor {} less {})",
            show_duration(self.deadline),
            words::thousands(self.served as u64),
            words::percent(self.served / self.owed),
            words::thousands(self.owed as u64),
            words::percent(limit),
            words::percent(self.slack / self.owed)
        )
    }
}

/// The deadline whose callers were served least of their part; `None` where all have one deadline, nobody
/// is refused, or the provider is not the same all through the event.
fn shortest_of(scene: &Scene<'_>, event: Span, limit: f64) -> Option<Served> {
    let turns = scene.plan.provider.turns();
    if !scene.forecast.overload() || turns.iter().any(|turn| event.contains(*turn)) {
        return None;
    }
    let plan = &*scene.plan.as_in_event();
    let classes = plan.requests.classes();
    let mut deadlines: Vec<_> = classes.iter().map(|class| class.deadline).collect();
    deadlines.sort_unstable();
    deadlines.dedup();
    if deadlines.len() < 2 {
        return None;
    }
    let seconds = event.length().as_secs_f64();
    let parts = class_parts(plan, scene.forecast.granted_per_s() * scene.forecast.basis.mean_hold);
    let each = deadlines.into_iter().map(|deadline| {
        let of = classes.iter().zip(&parts).zip(&scene.measures.classes);
        let mut all = Served { deadline, served: 0.0, owed: 0.0, slack: 0.0 };
        let mut variance = 0.0;
        for ((class, part), seen) in of.filter(|((class, ..), _)| class.deadline == deadline) {
            all.served += seen.event_tokens.get() as f64;
            all.owed += part * seconds;
            variance += part * seconds * class.hold();
        }
        all.slack = DEVIATIONS * variance.sqrt();
        all
    });
    let room = |it: &Served| (it.served + it.slack) / (it.owed * limit);
    each.filter(|it| it.owed > 0.0).min_by(|a, b| room(a).total_cmp(&room(b)))
}
