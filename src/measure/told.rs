use std::time::Duration;

use crate::observe::{Outcome, Record, RetryAfter};
use crate::units::{Moment, Tokens};

/// The most arrivals that are kept on either side: with one probe in twelve refused callers some 340 of them meet.
const MOST: usize = 4_096;

/// A refused caller that came back as told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// Which arrival.
    pub seq: u64,
    /// How long it was told to wait.
    pub announced: Duration,
    /// How long it took from its refusal to the end of its second attempt: the answer, or another refusal.
    pub waited: Duration,
    /// Whether that was an answer in time.
    pub kept: bool,
}

/// What a caller was told when its first attempt was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Telling {
    /// When it was told.
    pub at: Moment,
    /// How long to wait.
    pub announced: Duration,
    /// Its class, by number.
    pub class: u16,
    /// Tokens it would have held.
    pub hold: Tokens,
    /// Tokens that stood in the gateway when it was sent.
    pub met: Tokens,
    /// Whether it was refused for entitlement, and not for scarcity.
    pub throttled: bool,
}

/// What refused callers were told beside what became of those that came back: a sample of both sides, chosen by the
/// arrival's number alone, so that a caller is in both or in neither and two halves of a run add to the whole.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// What each was told when it was refused.
    told: Side<Telling>,
    /// When each that came back was done, and whether with an answer in time.
    came: Side<(Moment, bool)>,
}

impl Told {
    /// Takes in an attempt, if it is a first one that was told when to return, or a return that ended.
    pub(super) fn record(&mut self, record: &Record) {
        let key = (scattered(record.attempt.seq), record.attempt.seq);
        if record.probe {
            if !matches!(record.outcome, Outcome::Unsent | Outcome::Unfinished) {
                self.came.keep(key, (record.ended, record.outcome == Outcome::Completed));
            }
            return;
        }
        let refused = matches!(record.outcome, Outcome::Shed | Outcome::Throttled | Outcome::Expired);
        if let Some(announced) = record.retry_after.as_ref().and_then(RetryAfter::wait)
            && refused
            && record.attempt.nth == 0
        {
            let telling = Telling {
                at: record.ended,
                announced,
                class: record.class.0,
                hold: record.hold,
                met: record.depth_met.tokens,
                throttled: record.outcome == Outcome::Throttled,
            };
            self.told.keep(key, telling);
        }
    }

    /// The callers that are known on both sides: a sample of all, in an order that says nothing about them.
    pub fn returned(&self) -> impl Iterator<Item = Returned> + use<> {
        let told = self.told.kept();
        self.came.kept().into_iter().filter_map(move |(key, (done, kept))| {
            let place = told.binary_search_by_key(&key, |(key, _)| *key).ok()?;
            let Telling { at, announced, .. } = told[place].1;
            Some(Returned { seq: key.1, announced, waited: done.since(at), kept })
        })
    }

    /// What a sample of the refused callers was told, with their numbers, in an order that says nothing about them.
    pub fn tellings(&self) -> impl Iterator<Item = (u64, Telling)> + use<> {
        self.told.kept().into_iter().map(|((_, seq), telling)| (seq, telling))
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        other.told.seen.iter().for_each(|(key, value)| self.told.keep(*key, *value));
        other.came.seen.iter().for_each(|(key, value)| self.came.keep(*key, *value));
    }
}

/// What is known by scattered number and number: of the smallest of them.
#[derive(Debug, Clone)]
struct Side<T> {
    /// In no order, and at most twice as many as are kept.
    seen: Vec<Seen<T>>,
    /// Larger ones are not kept.
    largest: (u64, u64),
}

/// A value and its key.
type Seen<T> = ((u64, u64), T);

impl<T> Default for Side<T> {
    fn default() -> Self {
        Self { seen: Vec::new(), largest: (u64::MAX, u64::MAX) }
    }
}

impl<T: Ord + Copy> PartialEq for Side<T> {
    fn eq(&self, other: &Self) -> bool {
        self.kept() == other.kept()
    }
}

impl<T: Ord + Copy> Eq for Side<T> {}

impl<T: Ord + Copy> Side<T> {
    /// Keeps the value, if its key is one of the smallest; of one key the smaller.
    fn keep(&mut self, key: (u64, u64), value: T) {
        if key > self.largest {
            // nearly always, in a long run
            return;
        }
        self.seen.push((key, value));
        if self.seen.len() == 2 * MOST {
            sift(&mut self.seen);
            if let Some((largest, _)) = self.seen.get(MOST - 1) {
                self.largest = *largest;
            }
        }
    }

    /// Those that are kept, in the order of their keys.
    fn kept(&self) -> Vec<Seen<T>> {
        let mut kept = self.seen.clone();
        sift(&mut kept);
        kept
    }
}

/// Sorts, and leaves the smallest keys, each with its smallest value.
fn sift<T: Ord>(seen: &mut Vec<Seen<T>>) {
    seen.sort_unstable();
    seen.dedup_by_key(|(key, _)| *key);
    seen.truncate(MOST);
}

/// A number's bits, scattered: the finaliser of SplitMix64, which maps no two numbers to one.
const fn scattered(seq: u64) -> u64 {
    let mut z = seq.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::record;

    /// Every caller is refused after a millisecond and told seven seconds; one in twelve comes back and waits three.
    fn play(told: &mut Told, seqs: impl Iterator<Item = u64>) {
        for seq in seqs {
            told.record(&record(seq, seq, 1, Outcome::Shed));
            if seq % 12 == 0 {
                let outcome = if seq % 24 == 0 { Outcome::Completed } else { Outcome::Shed };
                let mut back = record(seq, seq + 7_251, 3_000, outcome);
                (back.attempt.nth, back.probe) = (1, true);
                told.record(&back);
            }
        }
    }

    #[test]
    fn who_came_back_is_laid_beside_what_it_was_told() {
        let mut told = Told::default();
        play(&mut told, 0..240);
        let mut returned: Vec<_> = told.returned().collect();
        returned.sort_by_key(|returned| returned.seq);
        assert_eq!(returned.len(), 20);
        let first = Returned {
            seq: 0,
            announced: Duration::from_secs(7),
            waited: Duration::from_millis(10_250),
            kept: true,
        };
        assert_eq!((returned[0], returned[1].kept), (first, false));
        let mut unfinished = record(1, 9_000, 1, Outcome::Unfinished);
        (unfinished.attempt.nth, unfinished.probe) = (1, true);
        told.record(&unfinished);
        assert_eq!(told.returned().count(), 20, "it has not come to an end");
    }

    #[test]
    fn a_long_run_keeps_a_sample_and_its_halves_add_to_the_whole() {
        let (mut whole, mut a, mut b) = (Told::default(), Told::default(), Told::default());
        play(&mut whole, 0..60_000);
        play(&mut a, (0..60_000).filter(|seq| seq % 36 < 12));
        play(&mut b, (0..60_000).filter(|seq| seq % 36 >= 12));
        let mut ab = a.clone();
        ab.add(&b);
        b.add(&a);
        assert_eq!((&ab, &b), (&whole, &whole));
        assert_eq!((whole.told.kept().len(), whole.came.kept().len()), (MOST, MOST));
        let met = whole.returned().count();
        assert!((250..450).contains(&met), "{met}");
        // the sample says of the run what the run is: half were kept
        let kept = whole.returned().filter(|returned| returned.kept).count();
        assert!((met / 3..met * 2 / 3).contains(&kept), "{kept} of {met}");
    }
}
