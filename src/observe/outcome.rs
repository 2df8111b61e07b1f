use super::{Answer, Broken, HintSet, Outcome, Reason, RetryAfter, Streamed};
use crate::plan::Refusal;
use crate::units::Moment;

/// How a request ended for its caller.
#[derive(Debug)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    pub(super) status: Option<u16>,
    pub(super) reason: Option<Reason>,
    pub(super) broken: Option<Broken>,
    pub(super) read: u64,
    pub(super) retry_after: Option<RetryAfter>,
    pub(super) hints: HintSet,
    pub(super) should_retry: Option<bool>,
    pub(super) shape: Result<(), String>,
    pub(super) streamed: Option<Streamed>,
}

impl Ending {
    /// An end without an answer.
    pub(super) const fn bare(outcome: Outcome) -> Self {
        Self {
            outcome,
            status: None,
            reason: None,
            broken: None,
            read: 0,
            retry_after: None,
            hints: HintSet::NONE,
            should_retry: None,
            shape: Ok(()),
            streamed: None,
        }
    }

    /// An end without a whole answer, of which so many bytes had come.
    pub(super) fn broken(why: Broken, read: u64) -> Self {
        Self { broken: Some(why), read, ..Self::bare(Outcome::Failed) }
    }
}

/// What an answer read at `at` comes to, for a request whose answer is of use until `deadline`.
///
/// A refusal is told by its status. One that came later than `fast_within` was admitted first, so it is expired,
/// unless it names another reason for itself.
pub(super) fn of(
    answer: &Answer,
    refusal: &Refusal,
    deadline: Moment,
    sent: Option<Moment>,
    at: Moment,
) -> Ending {
    let slow = sent.is_some_and(|sent| at.since(sent) > refusal.fast_within);
    let refused = |fast: Outcome| match answer.reason {
        Some(Reason::Expired) => Outcome::Expired,
        Some(Reason::NeverFits) => Outcome::Failed,
        Some(Reason::Shed | Reason::Throttled) => fast,
        None if slow => Outcome::Expired,
        None => fast,
    };
    let outcome = match answer.status {
        200..=299 if !answer.usable => Outcome::Failed,
        200..=299 if at <= deadline => Outcome::Completed,
        200..=299 => Outcome::Late,
        _ if !answer.marked => Outcome::Failed,
        status if refusal.shed.contains(&status) || refusal.instead.contains(&status) => {
            refused(Outcome::Shed)
        }
        status if refusal.throttled.contains(&status) => refused(Outcome::Throttled),
        _ => Outcome::Failed,
    };
    Ending {
        outcome,
        status: Some(answer.status),
        reason: answer.reason,
        broken: None,
        read: 0,
        retry_after: answer.retry_after.clone(),
        hints: answer.hints.clone(),
        should_retry: answer.should_retry,
        shape: answer.shape.clone(),
        streamed: answer.streamed.clone(),
    }
}
