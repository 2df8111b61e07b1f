use std::time::Duration;

use super::Hist;
use crate::observe::{Outcome, Record};

/// Latency by outcome, from the due time and from the instant of sending. Both, because they answer different
/// questions: what a caller waited, and what the target took.
#[derive(Debug, Clone, PartialEq)]
pub struct Latencies {
    from_due: [Hist; Outcome::ALL.len()],
    from_sent: [Hist; Outcome::ALL.len()],
    /// Arrivals that were answered in time, from their first due time.
    answered: Hist,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            from_due: std::array::from_fn(|_| Hist::default()),
            from_sent: std::array::from_fn(|_| Hist::default()),
            answered: Hist::default(),
        }
    }
}

impl Latencies {
    /// Notes the latency of an attempt.
    pub(super) fn record(&mut self, record: &Record) {
        self.from_due[record.outcome as usize].record(record.latency());
        if record.outcome == Outcome::Completed && record.settles() {
            self.answered.record(record.ended.since(record.first_due));
        }
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

    /// The time in which this part (0 to 1) of `arrivals` had their answers, by nearest rank, from when they first were due;
    /// `None` if fewer were answered in time, so that it was never reached. Who is refused at once makes nobody quicker.
    pub fn of_all(&self, quantile: f64, arrivals: u64) -> Option<Duration> {
        let answered = self.answered.count();
        let rank = (quantile * arrivals as f64).ceil().max(1.0);
        (rank <= answered as f64).then(|| self.answered.quantile(rank / answered as f64)).flatten()
    }

    /// Adds another's latencies.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.from_due.iter_mut().zip(&other.from_due) {
            mine.add(theirs);
        }
        self.answered.add(&other.answered);
        for (mine, theirs) in self.from_sent.iter_mut().zip(&other.from_sent) {
            mine.add(theirs);
        }
    }
}
