use std::collections::BTreeMap;
use std::fmt;

use crate::observe::{Broken, Outcome, Record};
use crate::units::Moment;

/// Why an attempt failed. Every failure has exactly one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// There was no whole answer.
    Broken(Broken),
    /// The answer's status was neither a success nor a refusal.
    Status(u16),
    /// The status was a success, but no answer came with it.
    Unusable(u16),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(why) => f.write_str(why.words()),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Unusable(status) => write!(f, "status {status} without an answer"),
        }
    }
}

/// How often something happened, and when first and last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Often {
    /// How often.
    pub count: u64,
    /// When first.
    pub first: Moment,
    /// When last.
    pub last: Moment,
    /// Bytes of answers that had come.
    pub read: u64,
}

/// Failed attempts by cause: at most one entry for each status there is and each way a connection breaks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Failures(BTreeMap<Cause, Often>);

impl Failures {
    /// The causes there were, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Cause, Often)> {
        self.0.iter().map(|(cause, often)| (*cause, *often))
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.0.values().map(|often| often.count).sum()
    }

    /// Takes in an attempt, if it failed.
    pub(super) fn record(&mut self, record: &Record) {
        if record.outcome != Outcome::Failed {
            return;
        }
        let cause = match (record.broken, record.status) {
            (Some(why), _) => Cause::Broken(why),
            (None, Some(status @ 200..=299)) => Cause::Unusable(status),
            (None, Some(status)) => Cause::Status(status),
            // a failure is told by a break or by an answer, never by neither
            (None, None) => Cause::Broken(Broken::Closed),
        };
        self.note(cause, Often { count: 1, first: record.ended, last: record.ended, read: record.read });
    }

    /// Adds another's failures.
    pub(super) fn add(&mut self, other: &Self) {
        other.iter().for_each(|(cause, often)| self.note(cause, often));
    }

    fn note(&mut self, cause: Cause, seen: Often) {
        let kept = self.0.entry(cause).or_insert(Often { count: 0, read: 0, ..seen });
        kept.count += seen.count;
        kept.read += seen.read;
        kept.first = kept.first.min(seen.first);
        kept.last = kept.last.max(seen.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::record;

    /// As in alexfernandez/loadtest#204: a target that stops listening breaks in several ways, and each is told apart.
    #[test]
    fn every_failure_has_one_cause_with_its_count_and_times() {
        let mut all = Failures::default();
        let breaks = [Broken::Refused, Broken::Reset, Broken::TimedOut, Broken::Unresolved, Broken::Connect];
        for seq in 0..50 {
            let broken = Some(breaks[usize::try_from(seq % 5).unwrap()]);
            all.record(&Record { broken, ..record(seq, seq * 100, 50, Outcome::Failed) });
        }
        let status = Some(502);
        all.record(&Record { status, ..record(50, 9_000, 50, Outcome::Failed) });
        all.record(&record(51, 9_000, 50, Outcome::Completed));
        let causes: Vec<_> = all.iter().map(|(cause, often)| (cause.to_string(), often.count)).collect();
        assert_eq!(causes.len(), 6);
        assert_eq!(causes[0], ("connection refused".to_owned(), 10));
        assert_eq!(causes[5], ("status 502".to_owned(), 1));
        let (_, refused) = all.iter().next().unwrap();
        assert_eq!((refused.first, refused.last), (Moment::from_millis(50), Moment::from_millis(4_550)));
        assert_eq!(all.total(), 51);
        let mut halves = Failures::default();
        halves.add(&all);
        assert_eq!(halves, all);
    }
}
