//! The target answered its ping to the end: its process did not end, it was never silent for long, and it answered
//! last of all.

use std::time::Duration;

use super::{Finding, Kind, Scene, Standard, words};
use crate::units::show_duration;

pub(super) const KIND: Kind = Kind {
    id: "target.alive",
    about: "the target answered its ping to the end, never silent for longer than 5 s",
    limit: Standard::Time(Duration::from_secs(5)),
    unit: "s",
    judge,
};

/// So many lost pings in a row at the end of a run are no accident.
const ROW: u64 = 3;

fn judge(scene: &Scene<'_>) -> Finding {
    let (pings, limit) = (&scene.measures.vitals.pings, scene.time(&KIND));
    let draft = KIND.draft(format!(
        "it answers its ping to the end, never silent for longer than {}",
        show_duration(limit)
    ));
    if !scene.live {
        return draft.not_applicable("in virtual time nothing is pinged");
    }
    if let Some((at, how)) = &scene.measures.vitals.target_ended {
        let because = format!("its process ended {} into the run: {how}", words::seconds(at.as_secs_f64()));
        return draft.failed(Some(limit.as_secs_f64()), because);
    }
    if pings.sent() == 0 {
        return draft.no_data("it was never pinged");
    }
    let silence = pings.longest_silence;
    let gone = pings.lost_in_a_row >= ROW || pings.took.count() == 0;
    let because = format!(
        "{} of {} pings answered, longest silence {}{}",
        words::thousands(pings.took.count()),
        words::thousands(pings.sent()),
        show_duration(silence),
        if gone { format!("; the last {} had no answer", pings.lost_in_a_row) } else { String::new() }
    );
    draft.judged(!gone && silence <= limit, silence.as_secs_f64(), limit.as_secs_f64(), because)
}
