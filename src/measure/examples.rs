use std::collections::{BTreeMap, BTreeSet};

/// The most arrivals that are kept as examples of one kind of trouble.
const MOST: usize = 20;

/// A kind of trouble of which examples are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// A request that came twice under one key, and was worked for more than once.
    CalledTwice,
    /// A request that reached the provider more often than it may.
    CalledTooOften,
    /// A refusal whose headers promise two times.
    Conflicting,
    /// A refusal whose status is that of another reason than it names.
    Contradictory,
    /// A refusal that cost the provider tokens.
    CostlyRefusal,
    /// A request that failed.
    Failed,
    /// A refusal on a quiet day: before the event, or after it once the depth was back.
    FalseShed,
    /// A refusal without a Retry-After.
    NoRetryAfter,
    /// A wait longer than such a caller keeps, without a word that it shall not try again.
    Overlong,
    /// A refusal that took more than 10 ms.
    SlowRefusal,
    /// A call that told the provider nothing of its caller's time, or more than was left.
    ToldWrong,
    /// A refusal for entitlement.
    Throttled,
    /// A full answer the provider never saw a request for.
    Unjoined,
    /// A probe that came back as told and was not served in time.
    Unkept,
    /// A Retry-After that has not the standard's form: neither whole seconds nor a date.
    Unreadable,
    /// A refusal without the designed form.
    Unshapely,
    /// A forwarded request that the provider refused for its quota.
    UpstreamRefused,
    /// A request that cost the provider tokens nobody was waiting for.
    Wasted,
}

/// Arrivals that show a kind of trouble: the first twenty of each, by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Examples(BTreeMap<Trouble, BTreeSet<u64>>);

impl Examples {
    /// Notes that the arrival `seq` shows `trouble`.
    pub(super) fn note(&mut self, trouble: Trouble, seq: u64) {
        let kept = self.0.entry(trouble).or_default();
        if kept.len() == MOST && kept.last().is_some_and(|last| seq > *last) {
            return;
        }
        kept.insert(seq);
        if kept.len() > MOST {
            kept.pop_last();
        }
    }

    /// The examples of `trouble`, by number.
    pub fn of(&self, trouble: Trouble) -> Vec<u64> {
        self.0.get(&trouble).map(|kept| kept.iter().copied().collect()).unwrap_or_default()
    }

    /// Adds another's examples.
    pub(super) fn add(&mut self, other: &Self) {
        for (trouble, kept) in &other.0 {
            kept.iter().for_each(|seq| self.note(*trouble, *seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_twenty_stay_whatever_the_order() {
        let mut examples = Examples::default();
        (0..100).rev().for_each(|seq| examples.note(Trouble::Failed, seq));
        assert_eq!(examples.of(Trouble::Failed), (0..20).collect::<Vec<_>>());
        assert!(examples.of(Trouble::Unkept).is_empty());
    }
}
