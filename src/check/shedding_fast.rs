//! A refusal is fast: its 99th percentile, from sending to the last byte, is within 10 ms of the ping's in the same
//! seconds. The ping says what the machine and the way to the target cost in any case; where it is itself slow, the
//! comparison says nothing.

use std::time::Duration;

use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::Trouble;
use crate::units::show_duration;

pub(super) const KIND: Kind = Kind {
    id: "shedding.fast",
    about: "p99 of refusal latency is at most 10 ms over the ping's p99 of the same seconds",
    limit: Standard::Time(Duration::from_millis(10)),
    unit: "ms",
    judge,
};

/// A ping whose median is slower than this measures the machine, not the target.
const SLOW_PING: Duration = Duration::from_millis(10);

fn judge(scene: &Scene<'_>) -> Finding {
    let limit = scene.time(&KIND);
    let draft =
        KIND.draft(format!("refusals take at most {} longer than a ping (p99)", show_duration(limit)));
    if !scene.live {
        return draft.not_applicable("in virtual time a refusal takes none");
    }
    let refusals = &scene.measures.refusals.latency;
    let Some(refused) = refusals.quantile(0.99) else { return scene.nobody_refused(draft) };
    let pings = scene.measures.pings_while_refusing();
    let Some((median, ping)) = pings.quantile(0.5).zip(pings.quantile(0.99)) else {
        return draft.no_data("no ping was answered in the seconds in which callers were refused");
    };
    if median > SLOW_PING {
        let because =
            format!("the ping itself took {} at the median: the machine was slow", show_duration(median));
        return draft.no_data(because);
    }
    let millis = |span: Duration| span.as_secs_f64() * 1e3;
    let because = format!(
        "{} refused in {} p99 (ping {}, limit +{})",
        words::thousands(refusals.count()),
        show_duration(refused),
        show_duration(ping),
        show_duration(limit)
    );
    draft
        .judged(refused <= ping + limit, millis(refused), millis(ping + limit), because)
        .showing(scene.measures.examples.of(Trouble::SlowRefusal))
}
