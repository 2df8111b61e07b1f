use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What refused callers were told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetryAfterPart {
    /// Refusals that announced a time.
    pub announced: u64,
    /// Refusals that did not.
    pub missing: u64,
    /// Refusals whose header could not be read.
    pub unparseable: u64,
    /// The shortest time announced.
    pub min_s: Option<u64>,
    /// The median.
    pub median_s: Option<u64>,
    /// The longest.
    pub max_s: Option<u64>,
    /// How many different times there were.
    pub distinct: u64,
    /// Waits longer than clients keep.
    #[serde(default)]
    pub overlong: u64,
    /// Of these, those that say not to try again (`x-should-retry: false`).
    #[serde(default)]
    pub marked: u64,
    /// Of those announced, those with a fraction of a second.
    #[serde(default)]
    pub fractional: u64,
    /// What was sent that could not be read, and how often.
    #[serde(default)]
    pub odd: TextsPart,
    /// The fractions, as they were sent.
    #[serde(default)]
    pub fractions: TextsPart,
    /// Refusals whose `Retry-After` and `retry-after-ms` promise times a second or more apart.
    #[serde(default)]
    pub conflicting: u64,
    /// What other headers said of when to come back.
    #[serde(default)]
    pub hints: Vec<HintPart>,
    /// How often headers beyond the first twelve said something of it.
    #[serde(default)]
    pub other_hints: u64,
    /// The tenth of a window in which most callers came again, if any did.
    #[serde(default)]
    pub wave: Option<WavePart>,
    /// The most refusals that announced a time in one window.
    #[serde(default)]
    pub busiest_told: u64,
    /// The most callers who were told to come back in one window, and no later than an hour.
    #[serde(default)]
    pub busiest_back: u64,
    /// Callers that came back as told.
    pub probes: ProbesPart,
    /// The share of fresh callers answered in time, in the windows of the event in which probes came back.
    #[serde(default)]
    pub fresh_share: Option<f64>,
    /// Some of them, at most 400: a sample.
    #[serde(default)]
    pub returned: Vec<ReturnPart>,
}

/// A refused caller that came back as told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReturnPart {
    /// Its number.
    pub seq: u64,
    /// How long it was told to wait.
    pub announced_s: f64,
    /// How long it took from its refusal to its answer, or to another refusal.
    pub waited_s: f64,
    /// Whether it was answered in time.
    pub kept: bool,
}

/// Callers that came back as told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbesPart {
    /// Due back while the event was on.
    pub inside: ProbePart,
    /// Due back after it.
    pub after: ProbePart,
    /// Never sent, or still open when the run ended.
    pub censored: u64,
}

/// Probes of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbePart {
    /// Came back.
    pub returned: u64,
    /// Were served in time.
    pub kept: u64,
    /// The lower end of the 95 % interval of their share.
    pub at_least_share: Option<f64>,
}

/// Texts a server sent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TextsPart {
    /// The first twenty, most frequent first.
    pub each: Vec<TextPart>,
    /// How often others came.
    pub others: u64,
}

/// A text a server sent, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    /// Its first characters.
    pub text: String,
    /// How often it came.
    pub count: u64,
}

/// What a header other than `Retry-After` said of when to come back. A whole number from 1,000,000,000 on is a moment (in
/// seconds since 1970, from 1,000,000,000,000 on in milliseconds), a smaller one a number of seconds; `retry-after-ms` is
/// in milliseconds. Moments are held against the answer's own `Date`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HintPart {
    /// Its name.
    pub header: String,
    /// How many refusals had it.
    pub count: u64,
    /// The shortest wait it told, rounded up to a millisecond.
    pub min_s: Option<f64>,
    /// The median.
    pub median_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
    /// How often it named a moment that had passed.
    pub past: u64,
    /// How often it said nothing: a -1, or the reset of a limit that is -1.
    pub nothing: u64,
    /// What else it said, as it was sent, and how often.
    pub unknown: TextsPart,
}

/// The tenth of a window in which most callers came again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WavePart {
    /// Where it begins, in seconds into the run.
    pub from_s: f64,
    /// How long it is.
    pub width_s: f64,
    /// How many came again in it (copies of requests among them).
    pub again: u64,
    /// Arrivals due in it.
    pub offered: u64,
}
