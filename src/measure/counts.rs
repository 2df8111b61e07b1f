use crate::observe::Outcome;
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
}

impl Upstream {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.forwards += other.forwards;
        self.refused += other.refused;
        self.charged += other.charged;
        self.wasted += other.wasted;
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
