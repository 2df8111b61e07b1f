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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::measure::testing::{record, smoke};
    use crate::observe::{Attempt, Outcome};

    /// The frame of a plan in which all requests come twice.
    fn frame() -> Frame {
        let mut sketch = smoke();
        sketch.requests[0]["duplicates"] = json!("100%");
        Frame::of(&sketch.plan())
    }

    fn ended(seq: u64, nth: u16, charged: u64, outcome: Outcome) -> Record {
        let mut record = record(seq, 5_000, 100, outcome);
        (record.attempt, record.charged) = (Attempt { seq, nth }, Tokens::new(charged));
        record
    }

    #[test]
    fn a_key_is_called_once_whoever_of_the_two_was_served() {
        let (frame, mut doubles, mut examples) = (frame(), Doubles::default(), Examples::default());
        let mut see = |record: &Record| doubles.record(record, &frame, &mut examples);
        // attached; the first refused and the copy served; both served; a copy that was never sent
        see(&ended(1, 0, 1_200, Outcome::Completed));
        see(&ended(1, Attempt::COPY, 0, Outcome::Completed));
        see(&ended(2, 0, 0, Outcome::Shed));
        see(&ended(2, Attempt::COPY, 1_200, Outcome::Completed));
        see(&ended(3, Attempt::COPY, 1_200, Outcome::Completed));
        see(&ended(3, 0, 1_200, Outcome::Completed));
        see(&ended(4, 0, 1_200, Outcome::Completed));
        see(&Record { sent: None, ..ended(4, Attempt::COPY, 0, Outcome::Unsent) });
        // of this one the copy is still to come
        see(&ended(5, 0, 1_200, Outcome::Completed));
        assert_eq!((doubles.whole, doubles.called_again, doubles.open.len()), (3, 1, 1));
        assert_eq!(examples.of(Trouble::CalledTwice), [3]);
    }

    #[test]
    fn two_halves_make_the_whole_in_either_order() {
        let frame = frame();
        let of = |records: &[Record]| {
            let (mut doubles, mut examples) = (Doubles::default(), Examples::default());
            records.iter().for_each(|record| doubles.record(record, &frame, &mut examples));
            doubles
        };
        let one = of(&[ended(1, 0, 1_200, Outcome::Completed), ended(2, 0, 0, Outcome::Shed)]);
        let other = of(&[ended(1, Attempt::COPY, 1_200, Outcome::Completed)]);
        let added = |a: &Doubles, b: &Doubles| {
            let (mut sum, mut examples) = (a.clone(), Examples::default());
            sum.add(b, &mut examples);
            (sum, examples.of(Trouble::CalledTwice))
        };
        let (sum, seen) = added(&one, &other);
        assert_eq!((sum.whole, sum.called_again, seen), (1, 1, vec![1]));
        assert_eq!(added(&other, &one).0, sum);
    }
}
