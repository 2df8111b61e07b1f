//! The backlog is gone soon after the event: the queue depth back at its level before, and no ghost at the provider.

use std::time::Duration;

use super::{Finding, Kind, Scene, Standard, words};
use crate::units::show_duration;

pub(super) const KIND: Kind = Kind {
    id: "backlog.drain",
    about: "drained within 60 s of the event's end",
    limit: Standard::Time(Duration::from_secs(60)),
    unit: "s",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let limit = scene.time(&KIND);
    let draft = KIND.draft(format!(
        "within {} of the event's end the depth is back at its level before and no ghost is left",
        show_duration(limit)
    ));
    let (measures, depths) = (scene.measures, &scene.measures.depths);
    let Some(event) = measures.frame.event else { return draft.not_applicable("the plan has no event") };
    let Some(at_end) = depths.at_event_end.filter(|_| measures.offered > 0) else {
        return draft.no_data("the run ended before the event did");
    };
    let drain = &scene.forecast.drain;
    let predicted = match (drain.with_tail_s, drain.with_returns_s) {
        _ if !scene.forecast.overload() => String::new(),
        (Some(least), Some(most)) if most - least >= 0.1 => {
            format!(
                "; predicted {}, up to {} with returning callers",
                words::seconds(least),
                words::seconds(most)
            )
        }
        (Some(seconds), _) => format!("; predicted {}", words::seconds(seconds)),
        (None, _) => "; predicted never".to_owned(),
    };
    let limit_s = limit.as_secs_f64();
    if let Some(drained) = depths.drained {
        let took = drained.since(event.end);
        let because =
            format!("{} after the event (limit {}{predicted})", show_duration(took), show_duration(limit));
        return draft.judged(took <= limit, took.as_secs_f64(), limit_s, because);
    }
    let (watched, now) = (measures.end.since(event.end), measures.open_at_end);
    let because = format!(
        "{} after the event {} requests stood in the gateway and {} ghosts at the provider; {} when it ended, {} before it",
        show_duration(watched),
        words::thousands(now.depth.requests),
        words::thousands(now.ghosts),
        words::thousands(at_end.depth.requests),
        words::thousands(depths.level_before())
    );
    if watched < limit {
        draft.no_data(because)
    } else {
        draft.judged(false, watched.as_secs_f64(), limit_s, because)
    }
}
