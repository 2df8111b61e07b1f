use super::{Examples, Trouble};
use crate::observe::{Ghost, Outcome, Record};
use crate::units::Tokens;

/// How many requests ended in each of the nine outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts([u64; Outcome::ALL.len()]);

impl Counts {
    /// Counts one.
    pub const fn bump(&mut self, outcome: Outcome) {
        self.0[outcome as usize] += 1;
    }

    /// How many ended so.
    pub const fn get(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Shed and throttled: the refusals that cost their callers no waiting.
    pub const fn refused(&self) -> u64 {
        self.get(Outcome::Shed) + self.get(Outcome::Throttled)
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

/// What became of the requests of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PerClass {
    /// Arrivals, by what became of their first attempts.
    pub arrivals: Counts,
    /// Answers within their deadline, over all attempts.
    pub goodput: u64,
    /// Tokens held for those that were due in the event.
    pub event_tokens: Tokens,
    /// The most requests that one caller sent by its own rule.
    pub most_attempts: u16,
    /// Attempts that were refused for scarcity.
    pub shed: u64,
    /// Attempts that were refused for entitlement.
    pub throttled: u64,
}

impl PerClass {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.arrivals.add(&other.arrivals);
        self.goodput += other.goodput;
        self.event_tokens += other.event_tokens;
        self.most_attempts = self.most_attempts.max(other.most_attempts);
        self.shed += other.shed;
        self.throttled += other.throttled;
    }
}

/// What reached the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Upstream {
    /// Requests forwarded to it, every try counted.
    pub forwards: u64,
    /// Of these, those it refused for its quota.
    pub refused: u64,
    /// Tokens it took from the quota.
    pub charged: Tokens,
    /// Of these, tokens for answers nobody was waiting for any more.
    pub wasted: Tokens,
    /// Requests that reached it while their callers waited.
    pub requests: u64,
    /// Calls for them after the first of each, without those that followed its refusals for quota.
    pub repeated: u64,
    /// The most calls that one request was worth.
    pub most_calls: u32,
    /// Requests that were worth more calls than they may be.
    pub too_often: u64,
}

impl Upstream {
    /// Takes in an attempt, which may be worth `most_calls`.
    pub(super) fn record(&mut self, record: &Record, most_calls: u32, examples: &mut Examples) {
        let (calls, seq) = (record.upstream_attempts, record.attempt.seq);
        self.charged += record.charged;
        self.wasted += record.wasted;
        if calls == 0 {
            return;
        }
        self.forwards += u64::from(calls);
        self.refused += u64::from(record.upstream_refusals);
        self.requests += 1;
        self.repeated += u64::from((calls - 1).saturating_sub(record.upstream_refusals));
        self.most_calls = self.most_calls.max(calls);
        if record.upstream_refusals > 0 {
            examples.note(Trouble::UpstreamRefused, seq);
        }
        if calls > most_calls {
            self.too_often += 1;
            examples.note(Trouble::CalledTooOften, seq);
        }
    }

    /// Takes in a call that reached the provider after its caller was gone: all it cost is wasted.
    pub(super) fn ghost(&mut self, ghost: &Ghost, examples: &mut Examples) {
        self.forwards += 1;
        self.refused += u64::from(ghost.refused);
        self.charged += ghost.charged;
        self.wasted += ghost.charged;
        if ghost.charged > Tokens::ZERO {
            examples.note(Trouble::Wasted, ghost.attempt.seq);
        }
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.forwards += other.forwards;
        self.refused += other.refused;
        self.charged += other.charged;
        self.wasted += other.wasted;
        self.requests += other.requests;
        self.repeated += other.repeated;
        self.most_calls = self.most_calls.max(other.most_calls);
        self.too_often += other.too_often;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_a_place_of_its_own() {
        let mut counts = Counts::default();
        for (n, outcome) in Outcome::ALL.into_iter().enumerate() {
            for _ in 0..=n {
                counts.bump(outcome);
            }
        }
        for (n, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(counts.get(outcome), n as u64 + 1, "{}", outcome.name());
        }
        assert_eq!(counts.total(), 45);
        let mut twice = counts;
        twice.add(&counts);
        assert_eq!(twice.total(), 90);
    }
}
