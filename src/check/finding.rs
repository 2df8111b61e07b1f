use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a check comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It does not.
    Fail,
    /// It applies, and there is nothing to judge it by. That is no pass.
    NoData,
    /// It does not apply to this plan or target.
    NotApplicable,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The check's id.
    pub check: &'static str,
    /// What it comes to.
    pub verdict: Verdict,
    /// What was measured, in `unit`; never a NaN.
    pub measured: Option<f64>,
    /// What it is held against, in `unit`.
    pub expected: Option<f64>,
    /// The unit of both: `ms`, `s`, `bytes`, `tokens`, `requests`, `share`, `requests/s`.
    pub unit: &'static str,
    /// What happened, in one sentence with its numbers.
    pub because: String,
    /// What was promised.
    pub promised: String,
    /// Numbers of arrivals that show it.
    pub examples: Vec<u64>,
    /// True if the plan says that a lack of data is all right.
    pub tolerated: bool,
}

impl Finding {
    /// The same with arrivals that show it.
    #[must_use]
    pub(super) fn showing(self, examples: Vec<u64>) -> Self {
        Self { examples, ..self }
    }
}

/// A finding that has no verdict yet.
#[derive(Debug, Clone)]
pub struct Draft {
    pub(super) check: &'static str,
    pub(super) unit: &'static str,
    pub(super) promised: String,
}

impl Draft {
    /// It holds or it does not.
    pub(super) fn judged(
        self,
        holds: bool,
        measured: f64,
        expected: f64,
        because: impl Into<String>,
    ) -> Finding {
        let verdict = if holds { Verdict::Pass } else { Verdict::Fail };
        self.close(verdict, Some(measured), Some(expected), because.into())
    }

    /// It does not hold, and there is no number for it.
    pub(super) fn failed(self, expected: Option<f64>, because: impl Into<String>) -> Finding {
        self.close(Verdict::Fail, None, expected, because.into())
    }

    /// There is nothing to judge it by.
    pub(super) fn no_data(self, because: impl Into<String>) -> Finding {
        self.close(Verdict::NoData, None, None, because.into())
    }

    /// It does not apply.
    pub(super) fn not_applicable(self, because: impl Into<String>) -> Finding {
        self.close(Verdict::NotApplicable, None, None, because.into())
    }

    fn close(
        self,
        verdict: Verdict,
        measured: Option<f64>,
        expected: Option<f64>,
        because: String,
    ) -> Finding {
        let finite = |value: Option<f64>| value.filter(|v| v.is_finite());
        Finding {
            check: self.check,
            verdict,
            measured: finite(measured),
            expected: finite(expected),
            unit: self.unit,
            because,
            promised: self.promised,
            examples: Vec::new(),
            tolerated: false,
        }
    }
}
