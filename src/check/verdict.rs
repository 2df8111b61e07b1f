use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ALL, Finding, Scene, Validity, Verdict};

/// What the whole run comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// Every check that applies holds.
    Passed,
    /// A check does not hold.
    Failed,
    /// A check that applies had no data, or none applied.
    Inconclusive,
    /// The run itself was no good: our fault.
    Invalid,
    /// It was ended before its time.
    Interrupted,
}

impl RunVerdict {
    /// The exit code that tells it. (A run ended by SIGTERM exits with 143 instead of 130.)
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Failed => 1,
            Self::Inconclusive | Self::Invalid => 3,
            Self::Interrupted => 130,
        }
    }

    /// Its word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
            Self::Invalid => "invalid",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The run judged: itself first, then every check.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// What it all comes to.
    pub verdict: RunVerdict,
    /// Whether the run itself was any good.
    pub validity: Validity,
    /// One finding for each of [`ALL`], in its order.
    pub findings: Vec<Finding>,
}

impl Judgement {
    /// Judges a run. Of one that was interrupted or is invalid, no check is left passed.
    pub fn of(scene: &Scene<'_>, interrupted: bool) -> Self {
        let validity = Validity::of(scene);
        let mut findings: Vec<_> = ALL.iter().map(|kind| kind.judge(scene)).collect();
        let spoiled = match (interrupted, validity.is_valid()) {
            (true, _) => Some("the run was interrupted"),
            (false, false) => Some("the run is invalid"),
            (false, true) => None,
        };
        if let Some(why) = spoiled {
            for finding in findings.iter_mut().filter(|finding| finding.verdict == Verdict::Pass) {
                finding.verdict = Verdict::NoData;
                finding.because = format!("{why}; so far {}", finding.because);
            }
        }
        let any = |verdict: Verdict| {
            findings.iter().any(|finding| finding.verdict == verdict && !finding.tolerated)
        };
        let verdict = match () {
            () if interrupted => RunVerdict::Interrupted,
            () if !validity.is_valid() => RunVerdict::Invalid,
            () if any(Verdict::Fail) => RunVerdict::Failed,
            () if any(Verdict::NoData) || !any(Verdict::Pass) => RunVerdict::Inconclusive,
            () => RunVerdict::Passed,
        };
        Self { verdict, validity, findings }
    }
}
