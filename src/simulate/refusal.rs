//! A refusal as its caller reads it.

use std::time::Duration;

use crate::admission::faults::{Told, Wait};
use crate::observe::{Answer, HintSet, Reason, RetryAfter};
use crate::plan::{Refusal, Wanted};

/// The type of a body that is a line of text.
const TEXT: &str = "text/plain";

/// What the caller reads of a refusal for `reason` that is told as `told`, and the time it is told, if it can be read.
///
/// A healthy gateway's refusals have the form that was designed, whatever that is. One without a form has no member that
/// names its reason, and differs wherever a type or a member is expected.
pub(super) fn refusal(expect: &Refusal, reason: Reason, told: Told) -> (Answer, Option<Duration>) {
    let scarce = reason != Reason::Throttled;
    let retry_after = match told.wait {
        Wait::Nothing => None,
        Wait::After(span) => Some(RetryAfter::After(span)),
        Wait::Nonsense => Some(RetryAfter::Unreadable(Wait::NONSENSE.to_owned())),
    };
    let answer = Answer {
        status: if scarce == told.mixed { 429 } else { 503 },
        retry_after,
        hints: HintSet::NONE,
        should_retry: told.should_retry,
        reason: (!told.shapeless).then_some(reason),
        usable: false,
        marked: true,
        shape: if told.shapeless { shapeless(expect) } else { Ok(()) },
        streamed: None,
    };
    (answer, told.wait.span())
}

/// The first thing in which a line of text differs from the form that is expected.
fn shapeless(expect: &Refusal) -> Result<(), String> {
    match expect.headers.get("content-type") {
        Some(Wanted::Exactly(want)) if want != TEXT => {
            Err(format!("header `content-type` is `{TEXT}`, not `{want}`"))
        }
        _ if !expect.body.is_empty() => Err("the body is no JSON".to_owned()),
        _ => Ok(()),
    }
}
