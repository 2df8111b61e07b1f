use super::Hist;
use crate::observe::{Outcome, Record};

/// Latency by outcome, from the due time and from the instant of sending. Both, because they answer different
/// questions: what a caller waited, and what the target took.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies {
    from_due: [Hist; Outcome::ALL.len()],
    from_sent: [Hist; Outcome::ALL.len()],
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            from_due: std::array::from_fn(|_| Hist::default()),
            from_sent: std::array::from_fn(|_| Hist::default()),
        }
    }
}

impl Latencies {
    /// Notes the latency of an attempt.
    pub(super) fn record(&mut self, record: &Record) {
        self.from_due[record.outcome as usize].record(record.latency());
        if let Some(span) = record.latency_from_sent() {
            self.from_sent[record.outcome as usize].record(span);
        }
    }

    /// Microseconds from the due time to the end, of attempts that ended so.
    pub const fn from_due(&self, outcome: Outcome) -> &Hist {
        &self.from_due[outcome as usize]
    }

    /// Microseconds from the instant of sending to the end, of attempts that ended so.
    pub const fn from_sent(&self, outcome: Outcome) -> &Hist {
        &self.from_sent[outcome as usize]
    }

    /// Adds another's latencies.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.from_due.iter_mut().zip(&other.from_due) {
            mine.add(theirs);
        }
        for (mine, theirs) in self.from_sent.iter_mut().zip(&other.from_sent) {
            mine.add(theirs);
        }
    }
}
