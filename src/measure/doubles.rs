use std::collections::BTreeMap;

use super::{Examples, Frame, Trouble};
use crate::observe::Record;
use crate::units::Tokens;

/// What became of arrivals that were sent twice under one key. Only those with an end still to come are kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Doubles {
    /// Arrivals that have come to their ends, and their copies, which were sent, too.
    pub whole: u64,
    /// Of these, those whose key the provider worked for more than once.
    pub called_again: u64,
    open: BTreeMap<u64, Part>,
}

/// One of which something is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Part {
    /// Attempts the provider worked for.
    calls: u32,
    settled: bool,
    /// Whether its copy has ended, and had been sent.
    copied: Option<bool>,
}

impl Doubles {
    /// Takes in an attempt, if its arrival is one that is sent twice.
    pub(super) fn record(&mut self, record: &Record, frame: &Frame, examples: &mut Examples) {
        let seq = record.attempt.seq;
        if frame.copies.after(record.class, seq).is_none() {
            return;
        }
        let part = self.open.entry(seq).or_default();
        part.calls += u32::from(record.charged > Tokens::ZERO);
        part.settled |= record.settles();
        if record.attempt.is_copy() {
            part.copied = Some(record.sent.is_some());
        }
        if self.close(seq) {
            examples.note(Trouble::CalledTwice, seq);
        }
    }

    /// Counts arrival `seq` if nothing of it is to come; gives whether the provider worked for it more than once.
    fn close(&mut self, seq: u64) -> bool {
        let Some(part) = self.open.get(&seq).copied().filter(|part| part.settled) else { return false };
        let Some(sent) = part.copied else { return false };
        self.open.remove(&seq);
        let again = sent && part.calls > 1;
        self.whole += u64::from(sent);
        self.called_again += u64::from(again);
        again
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self, examples: &mut Examples) {
        self.whole += other.whole;
        self.called_again += other.called_again;
        for (seq, more) in &other.open {
            let part = self.open.entry(*seq).or_default();
            part.calls += more.calls;
            part.settled |= more.settled;
            part.copied = part.copied.max(more.copied);
            if self.close(*seq) {
                examples.note(Trouble::CalledTwice, *seq);
            }
        }
    }
}
