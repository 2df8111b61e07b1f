use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunPart {
    /// Its id, unique among the runs of a plan.
    pub id: String,
    /// True of a run in virtual time; left out of one with sockets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulated: bool,
    /// When it began, RFC 3339 in UTC; empty in virtual time.
    pub started: String,
    /// How long it took.
    pub took_s: f64,
    /// The version of the tool.
    pub version: String,
    /// What was tried, in words: `the embedded gateway`.
    pub target: String,
    /// True if any certificate was taken, so that nobody vouches for who answered; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,
    /// How the target's name was looked up; left out where it was given by its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<NamePart>,
    /// What sent the load; left out of a run in virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<GeneratorPart>,
    /// Why it ended before its time, if it did.
    pub ended_early: Option<String>,
    /// Where the report is; not written into it.
    #[serde(skip)]
    pub path: Option<String>,
}

/// What sent the load, and how exactly it can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorPart {
    /// The sender: `hyper` or `reqwest`.
    pub sender: String,
    /// How the sending thread was scheduled: `real-time`, or its nice value.
    pub scheduling: String,
    /// The resolution of the timer that wakes it.
    pub timer_resolution_ns: u64,
    /// How long a wake-up waits for others to fall due; `null` where each has its own.
    pub grain_us: Option<u64>,
}

/// How the target's name was looked up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NamePart {
    /// The name.
    pub host: String,
    /// After how many seconds it was looked up again; `null` if its addresses were pinned at the start.
    pub every_s: Option<f64>,
    /// How often it was looked up.
    pub lookups: u64,
    /// Every address it was known to have.
    pub addresses: Vec<AddressPart>,
}

/// An address of the target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressPart {
    /// The address.
    pub address: String,
    /// How many requests it answered.
    pub answers: u64,
}
