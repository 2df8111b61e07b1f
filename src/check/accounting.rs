//! Every arrival ends in exactly one outcome, in every window of due time, and nothing stays behind in the gateway:
//! neither a request, nor tokens held for one.
//!
//! What is held is what the gateway's own machine says when all is quiet: in virtual time as it stands, live by the page
//! of metrics of the embedded gateway. Of a foreign one nobody knows. A call of unknown end keeps its hold for a while,
//! and one that still runs for a caller who left keeps it rightly.
//!
//! Offered is counted when a request comes due, the outcomes when it ends: a request that is lost on the way makes the
//! two differ.

use super::{Finding, Kind, Scene, Standard, words::thousands};
use crate::observe::Outcome;
use crate::plan::TargetKind;

pub(super) const KIND: Kind = Kind {
    id: "accounting.complete",
    about: "offered is exactly the sum of its outcomes, and nothing is left in the gateway",
    limit: Standard::Nothing,
    unit: "requests",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let measures = scene.measures;
    let (offered, ended) = (measures.offered, measures.arrivals.total());
    let draft = KIND.draft("every request offered ends in exactly one outcome, and every hold is released");
    if offered == 0 {
        return draft.no_data("no request came due");
    }
    let open = &measures.open_at_end;
    let unfinished = measures.attempts.get(Outcome::Unfinished);
    let (said, sum) = (thousands(offered), thousands(ended));
    if !measures.sums_are_exact() {
        let because = if offered == ended {
            format!("{said} offered and as many ended, but not in the same windows of due time")
        } else {
            format!(
                "{said} offered, {sum} ended: {} lost or counted twice",
                thousands(offered.abs_diff(ended))
            )
        };
        return draft.judged(false, ended as f64, offered as f64, because);
    }
    if open.depth.requests > unfinished || open.outstanding > unfinished {
        let left = open.depth.requests.max(open.outstanding) - unfinished;
        let because = format!("{} requests still stood in the gateway when all had ended", thousands(left));
        return draft.judged(false, ended as f64, offered as f64, because);
    }
    let known = !scene.live || matches!(scene.plan.target.kind, TargetKind::Embedded(_));
    match measures.held {
        None if known => {
            return draft
                .no_data(format!("{said} offered, each ended once; what is still held is not known"));
        }
        Some(held) if held.requests > open.ghosts + open.at_provider => {
            let because = format!(
                "{said} offered, each ended once, but {} calls that had ended still held {} tokens",
                thousands(held.requests - open.ghosts - open.at_provider),
                thousands(held.tokens.get())
            );
            return draft.judged(false, ended as f64, offered as f64, because);
        }
        Some(_) | None => {}
    }
    draft.judged(
        true,
        ended as f64,
        offered as f64,
        format!("{said} offered, each ended in exactly one outcome"),
    )
}
