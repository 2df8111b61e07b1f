use std::collections::BTreeMap;

use super::{Hist, Texts};
use crate::observe::{Hint, RetryAfter, Says};

/// The most headers that are told apart.
const MOST: usize = 12;

/// What headers other than `Retry-After` said of when to come back, in refusals.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hints {
    seen: BTreeMap<String, Hinted>,
    /// Refusals whose `retry-after-ms` and `Retry-After` promise times a second or more apart.
    pub conflicting: u64,
    /// Hints of headers beyond the first twelve.
    pub others: u64,
}

/// What one such header said.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Hinted {
    /// Waits, in milliseconds, rounded up.
    pub waits: Hist,
    /// Moments that had passed.
    pub past: u64,
    /// How often it said nothing: a -1, say.
    pub nothing: u64,
    /// What else it said, as it was sent.
    pub unknown: Texts,
}

impl Hinted {
    /// How often it was there.
    pub fn count(&self) -> u64 {
        self.waits.count() + self.past + self.nothing + self.unknown.total()
    }
}

impl Hints {
    /// The headers there were, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Hinted)> {
        self.seen.iter().map(|(header, hinted)| (header.as_str(), hinted))
    }

    /// Takes in the hints of a refusal. Gives whether one of them contradicts its `Retry-After`.
    pub(super) fn record(&mut self, hints: &[Hint], told: Option<&RetryAfter>) -> bool {
        for hint in hints {
            let Some(hinted) = self.of(&hint.header) else {
                self.others += 1;
                continue;
            };
            match hint.says {
                Says::Wait(span) => {
                    let millis = span.as_nanos().div_ceil(1_000_000);
                    hinted.waits.record_count(u64::try_from(millis).unwrap_or(u64::MAX));
                }
                Says::Past => hinted.past += 1,
                Says::Nothing => hinted.nothing += 1,
                Says::Unknown => hinted.unknown.note(&hint.text, 1),
            }
        }
        let conflicting = told.is_some_and(|told| hints.iter().any(|hint| hint.contradicts(told)));
        self.conflicting += u64::from(conflicting);
        conflicting
    }

    fn of(&mut self, header: &str) -> Option<&mut Hinted> {
        if !self.seen.contains_key(header) {
            if self.seen.len() == MOST {
                return None;
            }
            self.seen.insert(header.to_owned(), Hinted::default());
        }
        self.seen.get_mut(header)
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        for (header, theirs) in &other.seen {
            let Some(mine) = self.of(header) else {
                self.others += theirs.count();
                continue;
            };
            mine.waits.add(&theirs.waits);
            mine.past += theirs.past;
            mine.nothing += theirs.nothing;
            mine.unknown.add(&theirs.unknown);
        }
        self.conflicting += other.conflicting;
        self.others += other.others;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn hint(header: &str, says: Says) -> Hint {
        Hint { header: header.to_owned(), says, text: "as sent".to_owned() }
    }

    #[test]
    fn what_a_header_says_is_told_apart_and_headers_are_bounded() {
        let mut hints = Hints::default();
        let wait = |millis| Says::Wait(Duration::from_millis(millis));
        let all =
            [wait(17), wait(90_000), Says::Past, Says::Nothing, Says::Unknown].map(|says| hint("a", says));
        assert!(!hints.record(&all, None));
        for n in 0..40 {
            hints.record(&[hint(&format!("b{n}"), Says::Past)], None);
        }
        let (_, first) = hints.iter().next().unwrap();
        assert_eq!((first.count(), first.waits.min(), first.waits.max()), (5, Some(17), Some(90_000)));
        assert_eq!((first.past, first.nothing, first.unknown.most()), (1, 1, Some(("as sent", 1))));
        assert_eq!((hints.iter().count(), hints.others), (MOST, 29));
        let mut twice = hints.clone();
        twice.add(&hints);
        let counts = twice.iter().map(|(_, hinted)| hinted.count()).sum::<u64>();
        assert_eq!((counts, twice.others), (32, 58));
    }

    /// As in openai/openai-python#1102: the promise that differs is counted, whichever precision a client takes.
    #[test]
    fn two_headers_that_promise_two_times_are_a_conflict() {
        let mut hints = Hints::default();
        let fine = hint(Hint::MILLISECONDS, Says::Wait(Duration::from_millis(4_321)));
        let told = |secs| RetryAfter::After(Duration::from_secs(secs));
        assert!(!hints.record(std::slice::from_ref(&fine), Some(&told(5))));
        assert!(!hints.record(std::slice::from_ref(&fine), None));
        assert!(hints.record(std::slice::from_ref(&fine), Some(&told(60))));
        assert_eq!((hints.conflicting, hints.iter().next().unwrap().1.count()), (1, 3), "all are kept");
    }
}
