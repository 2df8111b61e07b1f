use std::time::Duration;

use super::{Examples, Hist, Trouble};
use crate::observe::Record;

/// What the provider was told of the time its callers had left.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Budgets {
    /// Requests that reached the provider while their callers waited.
    pub requests: u64,
    /// Of these, those of which a call told no deadline, or none that can be read.
    pub untold: u64,
    /// Of these, those of which a call told more than was left: by how many microseconds at most.
    pub overtold: Hist,
}

impl Budgets {
    /// Takes in an attempt, if it reached the provider.
    pub(super) fn record(&mut self, record: &Record, examples: &mut Examples) {
        if record.upstream_attempts == 0 {
            return;
        }
        self.requests += 1;
        self.untold += u64::from(record.untold);
        if record.overtold > Duration::ZERO {
            self.overtold.record(record.overtold);
        }
        if record.untold || record.overtold > EXAMPLE {
            examples.note(Trouble::ToldWrong, record.attempt.seq);
        }
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.untold += other.untold;
        self.overtold.add(&other.overtold);
    }
}

/// What was told too much by more than this is an example; less may be what a request travels.
const EXAMPLE: Duration = Duration::from_millis(50);
