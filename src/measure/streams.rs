use super::Hist;
use crate::observe::{Gaps, Outcome, Record};
use crate::units::Tokens;

/// Streamed answers: when they began to speak, and how evenly.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Streams {
    /// Microseconds from the due time to the first token, of answers that came whole.
    pub first_from_due: Hist,
    /// Microseconds from the instant of sending to the first token, of answers that came whole.
    pub first_from_sent: Hist,
    /// Microseconds from one token to the next, of all answers, as long as their callers were there.
    pub gaps: Hist,
    /// Tokens read, each a piece of content.
    pub tokens: u64,
    /// Answers that came whole, in time or late.
    pub whole: u64,
    /// Of these, those whose form was not as the API has it.
    pub flawed: u64,
    /// Of these, those that did not say what they used.
    pub without_usage: u64,
    /// Tokens the others say they used, prompts and answers together.
    pub used: Tokens,
}

impl Streams {
    /// Takes in some gaps of an answer.
    pub(super) fn gaps(&mut self, gaps: &Gaps) {
        for (gap, count) in gaps.iter() {
            self.gaps.record_often(gap, count);
        }
    }

    /// Takes in an attempt that has ended.
    pub(super) fn record(&mut self, record: &Record) {
        self.tokens += record.tokens;
        let Some(streamed) = &record.streamed else { return };
        if !matches!(record.outcome, Outcome::Completed | Outcome::Late) {
            return;
        }
        self.whole += 1;
        self.flawed += u64::from(streamed.flawed);
        match streamed.used {
            Some(used) => self.used += used,
            None => self.without_usage += 1,
        }
        if let Some(first) = record.first_token {
            self.first_from_due.record(first.since(record.due));
            if let Some(sent) = record.sent {
                self.first_from_sent.record(first.since(sent));
            }
        }
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        self.first_from_due.add(&other.first_from_due);
        self.first_from_sent.add(&other.first_from_sent);
        self.gaps.add(&other.gaps);
        self.tokens += other.tokens;
        self.whole += other.whole;
        self.flawed += other.flawed;
        self.without_usage += other.without_usage;
        self.used += other.used;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::measure::testing::record;
    use crate::observe::Streamed;
    use crate::units::Moment;

    fn streamed(seq: u64, first_ms: u64, outcome: Outcome, used: Option<u64>) -> Record {
        let streamed = Streamed { used: used.map(Tokens::new), flawed: seq == 1 };
        Record {
            first_token: Some(Moment::from_millis(seq * 1_000 + first_ms)),
            tokens: 10,
            streamed: Some(streamed),
            ..record(seq, seq * 1_000, 900, outcome)
        }
    }

    #[test]
    fn the_first_token_counts_of_whole_answers_and_two_parts_add() {
        let mut all = Streams::default();
        for (seq, outcome) in [(0, Outcome::Completed), (1, Outcome::Late)] {
            all.record(&streamed(seq, 300, outcome, Some(50)));
        }
        // as in vllm-project/production-stack#873: what was not told is not taken for nothing
        all.record(&streamed(2, 300, Outcome::Completed, None));
        let cut = Record { streamed: None, ..streamed(3, 5, Outcome::Failed, None) };
        all.record(&cut);
        let mut gaps = Gaps::default();
        gaps.push(Duration::from_millis(20), 30);
        all.gaps(&gaps);
        assert_eq!((all.whole, all.flawed, all.without_usage, all.used), (3, 1, 1, Tokens::new(100)));
        assert_eq!((all.tokens, all.gaps.count()), (40, 30));
        assert_eq!((all.first_from_due.count(), all.first_from_due.number_at(0.0)), (3, Some(300_000)));
        let mut twice = all.clone();
        twice.add(&all);
        assert_eq!((twice.tokens, twice.gaps.count(), twice.first_from_sent.count()), (80, 60, 6));
    }
}
