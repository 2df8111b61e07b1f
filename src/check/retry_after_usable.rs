//! A wait that no client keeps says so: it carries `x-should-retry: false`.
//!
//! Official SDKs keep a Retry-After up to a cap (openai-python 120 s, anthropic-python and openai-node 60 s). Told to wait
//! longer some give up, and others come back within seconds, which is the storm the header was to prevent. A smaller,
//! false time is no way out. So a true time above the cap of its caller's client has to be marked, and then all of them
//! stay away. For callers who give up, and stand for anybody's clients, the least of these caps counts; whoever
//! does as it is told by a rule of the plan's own keeps a wait of up to a day, and whoever has a limit of its own in that rule
//! looks for no mark.
//!
//! `retry-after-ms` beside it must not promise another time: official SDKs take that one, and everybody else the other.
//!
//! A caller's patience sets no such limit here: SDKs count their time-outs anew with each attempt, and so do probes and
//! retries of a plan, which come back with a fresh deadline.

use super::{Finding, Kind, Scene, Standard, words, words::thousands};
use crate::measure::Trouble;

pub(super) const KIND: Kind = Kind {
    id: "retry_after.usable",
    about: "every wait is one that clients keep, or says not to try again (x-should-retry: false)",
    limit: Standard::Part(1.0),
    unit: "share",
    judge,
};

fn judge(scene: &Scene<'_>) -> Finding {
    let refusals = &scene.measures.refusals;
    let draft = KIND.draft("a wait longer than its caller's client keeps carries x-should-retry: false");
    if refusals.answers == 0 {
        return scene.nobody_refused(draft);
    }
    let announced = refusals.announced.count();
    if announced == 0 {
        return draft.not_applicable("no refusal announced a time to wait");
    }
    let (long, marked, conflicting) = (refusals.overlong, refusals.marked, refusals.hints.conflicting);
    let usable = announced - refusals.unusable.min(announced);
    let (share, limit) = (usable as f64 / announced as f64, scene.part(&KIND));
    let longest = refusals.announced.max().unwrap_or(0) as f64;
    let mut because = match long {
        0 => format!(
            "{} waits, none longer than clients keep: at most {}",
            thousands(announced),
            words::seconds(longest)
        ),
        long => format!(
            "{} of {} waits are longer than clients keep (up to {}, {} times the provider's window), {} of these say not \
             to try again",
            thousands(long),
            thousands(announced),
            words::seconds(longest),
            words::number(longest / scene.plan.provider.quota.window.span().as_secs_f64()),
            thousands(marked)
        ),
    };
    if conflicting > 0 {
        because = format!(
            "{because}; {} promise two times (Retry-After and retry-after-ms)",
            thousands(conflicting)
        );
    }
    let mut shown = scene.measures.examples.of(Trouble::Overlong);
    shown.extend(scene.measures.examples.of(Trouble::Conflicting));
    draft.judged(share >= limit, share, limit, because).showing(shown)
}
