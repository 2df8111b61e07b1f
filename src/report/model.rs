use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlanPart, RetryAfterPart, RunPart};
use crate::check::{RunVerdict, Verdict};
use crate::forecast::Forecast;

/// The form of these keys.
pub const SCHEMA: &str = "tenfold.report/1";

/// A run, as it is written down. Keys end in their unit; what is not known is `null`, never a NaN.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// What the whole run comes to.
    pub verdict: RunVerdict,
    /// Which run.
    pub run: RunPart,
    /// What was rehearsed.
    pub plan: PlanPart,
    /// What arithmetic said.
    pub forecast: Forecasts,
    /// Whether the run itself was any good.
    pub validity: ValidityPart,
    /// What was offered, as planned and as sent.
    pub load: LoadPart,
    /// What became of it.
    pub totals: Totals,
    /// Failed attempts by cause; their counts add up to all of them.
    #[serde(default)]
    pub failures: Vec<FailurePart>,
    /// The same by class.
    pub classes: Vec<ClassPart>,
    /// The first shed of the event.
    pub onset: Option<OnsetPart>,
    /// The backlog after it.
    pub drain: DrainPart,
    /// Memory of the target and our own.
    pub memory: MemoryPart,
    /// What the target says of itself; absent where the plan names no metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<SaidPart>,
    /// What refused callers were told, and whether it was true.
    pub retry_after: RetryAfterPart,
    /// Latency, by outcome.
    pub latency: LatencyPart,
    /// Streamed answers, where the plan asks for some.
    #[serde(default)]
    pub streams: Option<StreamsPart>,
    /// The run over time.
    pub windows: Vec<WindowPart>,
    /// What every check found.
    pub checks: Vec<CheckPart>,
    /// Raw refusals, as evidence.
    pub refusals: Vec<RawRefusal>,
}

/// Attempts that failed for one cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailurePart {
    /// The cause in words: `connection refused`, `status 502`.
    pub cause: String,
    /// How many.
    pub count: u64,
    /// When the first ended, from the start of the load.
    pub first_s: f64,
    /// When the last did.
    pub last_s: f64,
    /// Bytes of their answers' bodies that had come.
    #[serde(default)]
    pub read_bytes: u64,
}

/// The forecast for the event as written, and for what was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forecasts {
    /// The whole event.
    pub event: Forecast,
    /// As rehearsed; the same without a rehearsal.
    pub rehearsal: Forecast,
}

/// Whether the run itself was any good.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValidityPart {
    /// Lag at the 99th percentile, in microseconds.
    pub lag_p99_us: Option<u64>,
    /// The most that is allowed.
    pub lag_limit_us: u64,
    /// Attempts that were sent later than that.
    #[serde(default)]
    pub sent_late: u64,
    /// Requests that could not be sent in time.
    pub unsent: u64,
    /// Their share of all offered.
    pub unsent_share: f64,
    /// Attempts that were not sent, by why not.
    #[serde(default)]
    pub unsent_by: UnsentPart,
    /// Requests seen on one side only.
    pub unjoined: u64,
    /// Their share of all attempts.
    pub unjoined_share: f64,
    /// The rate of sending over the planned one.
    pub achieved_ratio: Option<f64>,
    /// Why the run is invalid; empty if it is not.
    pub reasons: Vec<String>,
}

/// Attempts that were not sent, by why not; retries and probes included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct UnsentPart {
    /// Later than the plan's late policy, or their callers' patience, allows.
    pub late: u64,
    /// `max_outstanding` requests were open.
    pub outstanding: u64,
    /// This machine had no port, descriptor or memory left.
    pub exhausted: u64,
}

/// What was offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPart {
    /// Seconds the event lasts; the whole plan on a quiet day.
    pub event_s: f64,
    /// The most arrivals due in one window, a second of it.
    pub busiest_planned_per_s: f64,
    /// The most first attempts sent in one window, a second of it.
    pub busiest_sent_per_s: f64,
}

/// What became of all arrivals; the nine outcomes add up to `offered`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Totals {
    /// Arrivals due.
    pub offered: u64,
    /// Not sent in time.
    pub unsent: u64,
    /// Refused at once for scarcity.
    pub shed: u64,
    /// Refused for entitlement.
    pub throttled: u64,
    /// Admitted, then dropped.
    pub expired: u64,
    /// Answered in time.
    pub completed: u64,
    /// Answered too late.
    pub late: u64,
    /// Left by their callers.
    pub abandoned: u64,
    /// Failed otherwise.
    pub failed: u64,
    /// Open when the run ended.
    pub unfinished: u64,
    /// Requests on the wire, returns included.
    pub attempts: u64,
    /// Attempts for each arrival, but for probes and copies: what callers make of it by trying again; `null` of no arrivals.
    #[serde(default)]
    pub amplification: Option<f64>,
    /// Answers in time to attempts due in the event, a second of it (of the whole run on a quiet day).
    pub goodput_per_s: f64,
    /// Answers a second of any kind, refusals and errors too, over the same time.
    #[serde(default)]
    pub answers_per_s: f64,
    /// Requests forwarded to the provider, every try counted.
    pub forwarded: u64,
    /// Of these, those the provider refused.
    pub refused_upstream: u64,
    /// Tokens the provider charged.
    pub charged_tokens: u64,
    /// Of these, tokens for answers nobody was waiting for.
    pub wasted_tokens: u64,
}

/// What became of the arrivals of one class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassPart {
    /// Its name.
    pub name: String,
    /// Arrivals that ended.
    pub offered: u64,
    /// Shed or throttled.
    pub refused: u64,
    /// Answers in time, over all attempts.
    pub goodput: u64,
}

/// The first shed of the event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnsetPart {
    /// Seconds into the run.
    pub at_s: f64,
    /// Seconds into the event.
    pub after_s: f64,
    /// Requests it met.
    pub depth_requests: u64,
    /// Tokens it met.
    pub depth_tokens: u64,
    /// What it would have held.
    pub hold_tokens: u64,
    /// Its number.
    pub seq: u64,
}

/// The backlog after the event.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DrainPart {
    /// The most requests in the gateway in the phase before the event, at least one.
    pub level_before_requests: u64,
    /// Those that stood there when the event ended.
    pub depth_at_end_requests: Option<u64>,
    /// Seconds from then until the depth was back and no ghost was left.
    pub after_s: Option<f64>,
    /// The deepest the queue stood.
    pub peak_requests: u64,
}

/// Memory of the target and our own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryPart {
    /// The target's before the load.
    pub baseline_bytes: Option<u64>,
    /// The target's peak.
    pub peak_bytes: Option<u64>,
    /// What it was held to.
    pub ceiling_bytes: Option<u64>,
    /// Our own before the load.
    pub own_baseline_bytes: Option<u64>,
    /// Our own peak.
    pub own_peak_bytes: Option<u64>,
}

/// What the target says of itself, next to what was seen from outside at the same instants.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SaidPart {
    /// Pages of metrics that came.
    pub pages: u64,
    /// Pages that did not come, or had none of the metrics on them.
    pub lost: u64,
    /// Requests that wait in it.
    pub queue_depth_requests: Option<GaugedPart>,
    /// Its memory.
    pub memory_bytes: Option<GaugedPart>,
}

/// A gauge, said and seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GaugedPart {
    /// How often both were known.
    pub samples: u64,
    /// The most that was said.
    pub said_peak: u64,
    /// The most that was seen at the same instants.
    pub seen_peak: u64,
    /// The mean of what was said.
    pub said_mean: f64,
    /// The mean of what was seen.
    pub seen_mean: f64,
    /// The most by which they differed.
    pub most_apart: u64,
}

/// Times in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean_us: Option<f64>,
    /// Their median.
    pub p50_us: Option<u64>,
    /// Nine in ten are no longer.
    pub p90_us: Option<u64>,
    /// 99 in a hundred are no longer.
    pub p99_us: Option<u64>,
    /// The longest.
    pub max_us: Option<u64>,
    /// All of it, as HdrHistogram V2 in base64.
    pub hdr: String,
}

/// Latency of one outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// From the due time: what a caller waited.
    pub from_due: Distribution,
    /// From the instant of sending: what the target took.
    pub from_sent: Distribution,
}

/// The times in which parts of all callers had their answers, from when they first were due; `null` where so many never
/// had one in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct OfAll {
    /// How many callers.
    pub count: u64,
    /// Half of them.
    pub p50_us: Option<u64>,
    /// Nine in ten.
    pub p90_us: Option<u64>,
    /// 99 in a hundred.
    pub p99_us: Option<u64>,
}

/// All latencies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LatencyPart {
    /// By outcome, of all attempts; outcomes that did not occur are left out.
    pub by_outcome: BTreeMap<String, Latency>,
    /// Of all callers, whatever became of them.
    #[serde(default)]
    pub of_all: OfAll,
    /// Shed and throttled attempts, from sending.
    pub refusal: Distribution,
    /// The ping.
    pub ping: Distribution,
    /// How late requests were sent: our own doing.
    pub lag: Distribution,
}

/// Streamed answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamsPart {
    /// Until the first token, of answers that came whole.
    pub first_token: Latency,
    /// From one token to the next, of all answers, as long as their callers were there.
    pub token_gap: Distribution,
    /// Tokens read, each a piece of content.
    pub read_tokens: u64,
    /// Answers that came whole, in time or late.
    pub whole: u64,
    /// Of these, those whose form was not as the API has it, such as an end without its mark.
    pub flawed: u64,
    /// Of these, those that did not say what they used.
    pub without_usage: u64,
    /// Tokens the others say they used, prompts and answers together.
    pub used_tokens: u64,
}

/// A stretch of time. What a request came to is counted in the window it was due in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WindowPart {
    /// Where it begins, in seconds into the run.
    pub from_s: f64,
    /// How long it is.
    pub width_s: f64,
    /// Arrivals due.
    pub offered: u64,
    /// Not sent in time.
    pub unsent: u64,
    /// Refused at once for scarcity.
    pub shed: u64,
    /// Refused for entitlement.
    pub throttled: u64,
    /// Admitted, then dropped.
    pub expired: u64,
    /// Answered in time.
    pub completed: u64,
    /// Answered too late.
    pub late: u64,
    /// Left by their callers.
    pub abandoned: u64,
    /// Failed otherwise.
    pub failed: u64,
    /// Open when the run ended.
    pub unfinished: u64,
    /// Requests on the wire that were due in it.
    pub attempts: u64,
    /// Answers in time to those.
    pub goodput: u64,
    /// First attempts sent in it.
    pub sent: u64,
    /// First attempts sent over arrivals due; `null` where none were due.
    #[serde(default)]
    pub achieved_ratio: Option<f64>,
    /// Arrivals due in each tenth of it.
    #[serde(default)]
    pub offered_tenths: Vec<u32>,
    /// Attempts of callers who came again, and copies, due in each tenth of it; empty where there were none.
    #[serde(default)]
    pub again_tenths: Vec<u32>,
    /// Half of those due in it were sent no later; rounded up by at most an eighth.
    #[serde(default)]
    pub lag_p50_us: Option<u64>,
    /// 99 in a hundred were sent no later; rounded up by at most an eighth.
    #[serde(default)]
    pub lag_p99_us: Option<u64>,
    /// The most one was sent late.
    pub lag_max_us: u64,
    /// The deepest the queue stood.
    pub depth_max_requests: u64,
    /// The same in tokens.
    pub depth_max_tokens: u64,
    /// The mean depth over time.
    pub depth_mean_requests: f64,
    /// The same in tokens.
    pub depth_mean_tokens: f64,
    /// The most requests at the provider.
    pub at_provider_max_requests: u64,
    /// The most ghosts there.
    pub ghosts_max_requests: u64,
    /// The ping's median.
    pub ping_p50_us: Option<u64>,
    /// The slowest ping.
    pub ping_max_us: Option<u64>,
    /// Pings without an answer.
    pub pings_lost: u64,
    /// The most memory the target had.
    pub target_bytes: Option<u64>,
    /// The most memory we had.
    pub own_bytes: Option<u64>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckPart {
    /// Its id.
    pub id: String,
    /// What it comes to.
    pub verdict: Verdict,
    /// What was measured, in `unit`.
    pub measured: Option<f64>,
    /// What it is held against, in `unit`.
    pub expected: Option<f64>,
    /// The unit of both.
    pub unit: String,
    /// What happened.
    pub because: String,
    /// What was promised.
    pub promised: String,
    /// True if the plan says that a lack of data is all right.
    pub tolerated: bool,
    /// Arrivals that show it.
    pub examples: Vec<u64>,
}

/// A refusal as it was read: escaped, cut, without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RawRefusal {
    /// The arrival's number.
    pub seq: u64,
    /// The HTTP status.
    pub status: u16,
    /// The headers in their order.
    pub headers: Vec<(String, String)>,
    /// The first kilobyte of the body.
    pub body: String,
}
