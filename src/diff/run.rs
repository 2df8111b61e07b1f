use std::collections::BTreeMap;

use super::Series;
use crate::check::{RunVerdict, Verdict};
use crate::measure::Hist;
use crate::plan::Tolerance;

/// What of one run's report is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The file it came from, for messages.
    pub name: String,
    /// The plan's name.
    pub plan: String,
    /// What random numbers were drawn from.
    pub seed: u64,
    /// The version of the tool that wrote it.
    pub version: String,
    /// What was tried, in words.
    pub target: String,
    /// What the run came to.
    pub verdict: RunVerdict,
    /// What two runs must have in common to be compared: the plan's load, requests, provider, rehearsal and checks, by
    /// the path of the key.
    pub keys: BTreeMap<String, String>,
    /// What the runs of one side must have in common besides: what was tried.
    pub own: BTreeMap<String, String>,
    /// The plan's `diff` section.
    pub tolerances: BTreeMap<String, Tolerance>,
    /// Arrivals due.
    pub offered: u64,
    /// Of these, refused at once for scarcity.
    pub shed: u64,
    /// Of these, answered in time.
    pub completed: u64,
    /// Requests on the wire, returns included.
    pub attempts: u64,
    /// Answers in time a second of the event.
    pub goodput_per_s: f64,
    /// Tokens the provider charged.
    pub charged_tokens: u64,
    /// Of these, tokens for answers nobody was waiting for.
    pub wasted_tokens: u64,
    /// Queue depth the first shed met, in requests, and seconds into the event.
    pub onset: Option<(u64, f64)>,
    /// Seconds until the backlog was gone.
    pub drain_s: Option<f64>,
    /// The target's peak, in bytes.
    pub memory_peak_bytes: Option<u64>,
    /// Refused callers that came back as told, and those of them that were served.
    pub probes: (u64, u64),
    /// The median time refused callers were told, in seconds.
    pub told_median_s: Option<u64>,
    /// Microseconds from the due time of answers in time.
    pub completed_us: Hist,
    /// Microseconds from sending to a refusal.
    pub refusal_us: Hist,
    /// Microseconds from the due time to the first token of streamed answers.
    pub first_token_us: Hist,
    /// Microseconds from one token to the next.
    pub token_gap_us: Hist,
    /// Microseconds requests were sent late.
    pub lag_us: Hist,
    /// Goodput by window over the steady part of the event.
    pub goodput: Option<Series>,
    /// What its checks found.
    pub checks: Vec<Checked>,
}

/// What one check found in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// Its id.
    pub id: String,
    /// What it came to.
    pub verdict: Verdict,
    /// What was measured, in `unit`.
    pub measured: Option<f64>,
    /// The unit.
    pub unit: String,
    /// True if the plan says that a lack of data is all right.
    pub tolerated: bool,
}

/// One side of a comparison: the runs of one build.
#[derive(Debug, Clone, PartialEq)]
pub struct Side {
    /// What it was called on the command line.
    pub label: String,
    /// Its runs, at least one.
    pub runs: Vec<Run>,
}
