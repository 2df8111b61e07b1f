use std::time::Duration;

use super::{Gaps, HintSet, RetryAfter};
use crate::units::{Moment, Tokens};
use crate::workload::ClassId;

/// One request on the wire: which arrival, which attempt of it (0 is the first).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    /// The arrival's number.
    pub seq: u64,
    /// 0 for the first attempt.
    pub nth: u16,
}

impl Attempt {
    /// The number of a copy of the first attempt, above those of all retries.
    pub const COPY: u16 = 128;

    /// Whether it is a copy of its arrival's first attempt, under the same idempotency key.
    pub const fn is_copy(self) -> bool {
        self.nth >= Self::COPY
    }
}

/// What one side saw of a request. Both evaluators, live and simulated, say all they know in these.
///
/// For each attempt there is exactly one `Due`; then `Unsent`, or `Sent` followed by exactly one of `Answered`, `Left`
/// and `Broken` (or none, if the run ended first; or `Unsent`, if this machine could not go through with it). `AtProvider` may come any number of times, and `CutOff` after each.
/// `Tokens` may come any number of times before the end. A caller that will try again by its own rule says so (`Again`)
/// before the end of the attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Sighting {
    /// It is to be sent now.
    Due {
        /// Which.
        attempt: Attempt,
        /// When it is due; latency counts from here.
        at: Moment,
        /// Its class.
        class: ClassId,
        /// Tokens held for it: its prompt and the most it may answer.
        hold: Tokens,
        /// True if it is a refused caller that came back exactly as told.
        probe: bool,
    },
    /// The harness could not send it in time. Our fault.
    Unsent {
        /// Which.
        attempt: Attempt,
        /// When that was decided.
        at: Moment,
        /// Why.
        why: Unsent,
    },
    /// It was written to the wire.
    Sent {
        /// Which.
        attempt: Attempt,
        /// When.
        at: Moment,
    },
    /// It reached the provider.
    AtProvider {
        /// Which.
        attempt: Attempt,
        /// When.
        at: Moment,
        /// When the provider will have finished; `at` if it refused.
        until: Moment,
        /// Tokens taken from the quota; none if it refused.
        charged: Tokens,
        /// True if the provider refused it.
        refused: bool,
        /// True if a fault of the plan made it go wrong: a refusal then says nothing of the quota.
        faulty: bool,
        /// The deadline it was told, as remaining time.
        budget: Option<Duration>,
    },
    /// The provider saw the call leave before the end of its answer. Only a provider that streams sees it.
    CutOff {
        /// Which.
        attempt: Attempt,
        /// When.
        at: Moment,
        /// Tokens of the prompt, and of the answer until then.
        spent: Tokens,
    },
    /// The caller has read some more of a streamed answer.
    Tokens {
        /// Which.
        attempt: Attempt,
        /// When the last of these was read.
        at: Moment,
        /// When the very first was read, if it is among them.
        first: Option<Moment>,
        /// The times between them, each from the one before: as many as there are, less the very first.
        gaps: Box<Gaps>,
    },
    /// The caller has an answer, whole or not.
    Answered {
        /// Which.
        attempt: Attempt,
        /// When the last byte was read.
        at: Moment,
        /// What it is.
        answer: Answer,
    },
    /// This attempt is about to end, and its caller will make another by its own rule (a probe is none).
    Again {
        /// Which.
        attempt: Attempt,
        /// When that was decided.
        at: Moment,
    },
    /// The caller's patience ended.
    Left {
        /// Which.
        attempt: Attempt,
        /// When.
        at: Moment,
    },
    /// No answer, or not a whole one.
    Broken {
        /// Which.
        attempt: Attempt,
        /// When that was known.
        at: Moment,
        /// Why.
        why: Broken,
        /// Bytes of the answer's body that had come.
        read: u64,
    },
}

/// Why a request was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unsent {
    /// It was later than `late: { drop_after }` allows.
    Late,
    /// `max_outstanding` requests were open.
    Outstanding,
    /// This machine had no port, descriptor or memory left.
    Exhausted,
}

/// Why there is no whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Broken {
    /// Nobody listens at the address.
    Refused,
    /// The host's name could not be looked up.
    Unresolved,
    /// The other side's certificate is not to be trusted.
    Untrusted,
    /// The connection could not be made for another reason: no route, no TLS.
    Connect,
    /// Neither a connection nor an answer came in time for the network.
    TimedOut,
    /// The other side reset the connection.
    Reset,
    /// The connection ended before an answer.
    Closed,
    /// The answer ended before its end, or could not be read.
    Cut,
    /// The answer was larger than is read.
    TooLarge,
    /// A success, and an error inside it.
    ErrorInside,
    /// A stream was asked for, and ended before anything came.
    Empty,
    /// A stream was asked for, and what came is none.
    NoStream,
}

impl Broken {
    /// All of them, in order.
    pub const ALL: [Self; 12] = [
        Self::Refused,
        Self::Unresolved,
        Self::Untrusted,
        Self::Connect,
        Self::TimedOut,
        Self::Reset,
        Self::Closed,
        Self::Cut,
        Self::TooLarge,
        Self::ErrorInside,
        Self::Empty,
        Self::NoStream,
    ];

    /// Its words in reports.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Unresolved => "name not found",
            Self::Untrusted => "certificate not trusted",
            Self::Connect => "no connection",
            Self::TimedOut => "timed out",
            Self::Reset => "connection reset",
            Self::Closed => "closed without an answer",
            Self::Cut => "answer cut short",
            Self::TooLarge => "answer too large",
            Self::ErrorInside => "error inside a success",
            Self::Empty => "stream without an event",
            Self::NoStream => "no stream, though one was asked for",
        }
    }
}

/// An answer, as its caller read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The `Retry-After` header, if there is one.
    pub retry_after: Option<RetryAfter>,
    /// What other headers of a refusal say of when to come back.
    pub hints: HintSet,
    /// The `x-should-retry` header, if there is one that says `true` or `false`: whether to try again at all.
    pub should_retry: Option<bool>,
    /// The reason a refusal names for itself, if it names one.
    pub reason: Option<Reason>,
    /// Whether a success carried an answer: a body in the API's form.
    pub usable: bool,
    /// Whether a refusal carries the mark the plan names (`expect.refusal.marked_by`); true where it names none. Without
    /// its mark a status of a refusal is a failure like any other.
    pub marked: bool,
    /// Whether a refusal has the designed form (`expect.refusal`); the first thing that differs if not.
    pub shape: Result<(), String>,
    /// What a streamed answer says of itself; `None` of one that came whole.
    pub streamed: Option<Streamed>,
}

/// What a streamed answer that has come to its end says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Streamed {
    /// Tokens it used, prompt and answer together, if it said so.
    pub used: Option<Tokens>,
    /// Whether its form was not as the API has it, though its content came whole: its end was not marked, or not marked
    /// off, or there were bytes that are no text.
    pub flawed: bool,
}

/// What a refusal says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// Refused for scarcity.
    Shed,
    /// Refused for entitlement.
    Throttled,
    /// Admitted, then dropped because its deadline could no longer be met.
    Expired,
    /// Refused for good: it could never fit.
    NeverFits,
}

impl Sighting {
    /// When it was.
    pub const fn at(&self) -> Moment {
        match self {
            Self::Due { at, .. }
            | Self::Unsent { at, .. }
            | Self::Sent { at, .. }
            | Self::AtProvider { at, .. }
            | Self::Again { at, .. }
            | Self::CutOff { at, .. }
            | Self::Tokens { at, .. }
            | Self::Answered { at, .. }
            | Self::Left { at, .. }
            | Self::Broken { at, .. } => *at,
        }
    }

    /// Of what.
    pub const fn attempt(&self) -> Attempt {
        match self {
            Self::Due { attempt, .. }
            | Self::Unsent { attempt, .. }
            | Self::Sent { attempt, .. }
            | Self::AtProvider { attempt, .. }
            | Self::Again { attempt, .. }
            | Self::CutOff { attempt, .. }
            | Self::Tokens { attempt, .. }
            | Self::Answered { attempt, .. }
            | Self::Left { attempt, .. }
            | Self::Broken { attempt, .. } => *attempt,
        }
    }
}
