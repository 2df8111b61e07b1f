//! Nobody is refused on a quiet day: not before the event, and not after it once the depth is back.

use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::Trouble;
use crate::units::Moment;

pub(super) const KIND: Kind = Kind {
    id: "quiet.no_false_shed",
    about: "nobody is refused before the event, nor after it once the depth is back",
    limit: Standard::Nothing,
    unit: "requests",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let measures = scene.measures;
    let draft = KIND.draft("nobody is refused without overload");
    let spans = match measures.frame.event {
        None if scene.forecast.overload() => {
            return draft.not_applicable("the plan has no event, and offers more than is served");
        }
        None => vec![(Moment::ZERO, measures.end)],
        Some(event) => {
            let after = measures.depths.drained.map(|drained| (drained, measures.end.max(drained)));
            [(Moment::ZERO, event.start.min(measures.end))].into_iter().chain(after).collect()
        }
    };
    let quiet = spans.iter().map(|(from, to)| to.since(*from)).sum::<std::time::Duration>();
    let attempts: u64 = spans
        .iter()
        .flat_map(|(from, to)| measures.windows.within(&measures.frame, *from, *to))
        .map(|window| window.attempts)
        .sum();
    let refused = measures.refusals.before_event + measures.refusals.after_drain;
    if attempts == 0 && refused == 0 {
        return draft.no_data("nothing came due without overload");
    }
    let because = format!(
        "{} refused of {} in {} without overload",
        words::thousands(refused),
        words::thousands(attempts.max(refused)),
        words::seconds(quiet.as_secs_f64())
    );
    draft.judged(refused == 0, refused as f64, 0.0, because).showing(measures.examples.of(Trouble::FalseShed))
}
