use std::time::Duration;

use serde::Serialize;

use super::{Attempt, Broken, HintSet, Reason, RetryAfter, Streamed};
use crate::units::{Moment, Tokens};
use crate::workload::ClassId;

/// What became of a request. Every one ends in exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The harness could not send it in time.
    Unsent,
    /// Refused at once for scarcity.
    Shed,
    /// Refused for entitlement: its tenant is over its own limit.
    Throttled,
    /// Admitted, then dropped because its deadline could no longer be met.
    Expired,
    /// A full answer within the deadline.
    Completed,
    /// A full answer after the deadline.
    Late,
    /// The caller left before the whole answer.
    Abandoned,
    /// Anything else: a connection that broke, an error, a cut answer.
    Failed,
    /// Still open when the run ended.
    Unfinished,
}

impl Outcome {
    /// All nine, in the order reports show them.
    pub const ALL: [Self; 9] = [
        Self::Unsent,
        Self::Shed,
        Self::Throttled,
        Self::Expired,
        Self::Completed,
        Self::Late,
        Self::Abandoned,
        Self::Failed,
        Self::Unfinished,
    ];

    /// Its word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unsent => "unsent",
            Self::Shed => "shed",
            Self::Throttled => "throttled",
            Self::Expired => "expired",
            Self::Completed => "completed",
            Self::Late => "late",
            Self::Abandoned => "abandoned",
            Self::Failed => "failed",
            Self::Unfinished => "unfinished",
        }
    }
}

/// How much stood in the gateway: sent, not yet at the provider, not yet ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Depth {
    /// Requests.
    pub requests: u64,
    /// Their holds (prompt and `max_tokens`).
    pub tokens: Tokens,
}

/// One finished attempt, both sides joined.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Which.
    pub attempt: Attempt,
    /// Its class.
    pub class: ClassId,
    /// Tokens held for it: its prompt and the most it may answer.
    pub hold: Tokens,
    /// True if it is a refused caller that came back exactly as told.
    pub probe: bool,
    /// True if its caller tries again by its own rule: the arrival has not come to its end with it.
    pub again: bool,
    /// When the first attempt of its arrival was due.
    pub first_due: Moment,
    /// When it was due.
    pub due: Moment,
    /// When it was written; `None` if unsent, or if the run ended first.
    pub sent: Option<Moment>,
    /// What stood in the gateway when it was sent, itself not counted.
    pub depth_met: Depth,
    /// When it first reached the provider.
    pub at_provider: Option<Moment>,
    /// How often it reached the provider.
    pub upstream_attempts: u32,
    /// How often the provider refused it.
    pub upstream_refusals: u32,
    /// Whether a call to the provider said nothing of its caller's deadline, or nothing that can be read.
    pub untold: bool,
    /// The most by which a call told the provider more time than its caller had left.
    pub overtold: Duration,
    /// When the first token of a streamed answer was read.
    pub first_token: Option<Moment>,
    /// Tokens that were read of a streamed answer, each a piece of content.
    pub tokens: u64,
    /// What a streamed answer that came to its end says of itself.
    pub streamed: Option<Streamed>,
    /// When it ended for its caller; the end of the run if it had not.
    pub ended: Moment,
    /// What became of it.
    pub outcome: Outcome,
    /// The HTTP status, if it was answered.
    pub status: Option<u16>,
    /// The reason a refusal names for itself, if it does.
    pub reason: Option<Reason>,
    /// Why there was no whole answer, if there was none.
    pub broken: Option<Broken>,
    /// Bytes of the body of an answer that was not whole.
    pub read: u64,
    /// The `Retry-After` of a refusal.
    pub retry_after: Option<RetryAfter>,
    /// What other headers of a refusal say of when to come back.
    pub hints: HintSet,
    /// Whether a refusal says to try again at all (`x-should-retry`), if it does.
    pub should_retry: Option<bool>,
    /// What a refusal's form lacks, if anything (`expect.refusal`).
    pub shape: Result<(), String>,
    /// Tokens the provider took from the quota for it.
    pub charged: Tokens,
    /// Of these, tokens for an answer nobody was waiting for any more.
    pub wasted: Tokens,
}

impl Record {
    /// Whether the outcome of the arrival is that of this attempt: it is the last one, and neither probe nor copy.
    pub const fn settles(&self) -> bool {
        !self.again && !self.probe && !self.attempt.is_copy()
    }

    /// How late it was sent: our own doing.
    pub fn lag(&self) -> Option<Duration> {
        self.sent.map(|sent| sent.since(self.due))
    }

    /// From its due time to its end.
    pub fn latency(&self) -> Duration {
        self.ended.since(self.due)
    }

    /// From the instant it was written to its end.
    pub fn latency_from_sent(&self) -> Option<Duration> {
        self.sent.map(|sent| self.ended.since(sent))
    }
}
