use super::Recorded;
use crate::admission::{Met, Says};
use crate::observe::Attempt;
use crate::units::Tokens;

/// The most examples of each kind.
const MOST: usize = 20;
/// Margins from here on are not told apart.
const FAR: usize = 64;

/// A request that was met otherwise than the policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mismatch {
    /// Which.
    pub attempt: Attempt,
    /// What the gateway did.
    pub recorded: Met,
    /// What the policy says.
    pub declared: Met,
    /// What waited before it, in tokens.
    pub waiting: Tokens,
    /// What it would hold.
    pub hold: Tokens,
    /// How many requests like it would have to wait more, or fewer, for the policy to say what was done. `None` if no
    /// such number is near.
    pub margin: Option<u32>,
}

/// How a recording agrees with a declared policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Agreement {
    /// Requests by what was done (row) and what the policy says (column), in the order of [`Met`].
    pub matrix: [[u64; 4]; 4],
    /// The place of the first shed among all requests compared: as recorded, and by the policy.
    pub first_shed: (Option<u64>, Option<u64>),
    /// Shed and admitted, one instead of the other: where nobody would have had to give way.
    pub boundary: Misses,
    /// Shed although less important requests would have had to give way.
    pub tiers: Misses,
    /// Throttled instead of anything else, or the reverse.
    pub limits: Misses,
    /// Callers who came back and were met as if what is kept for those had not been kept for them, or had: not judged here.
    pub by_return: u64,
    /// Requests that ended too late to have their turn.
    pub overtaken: u64,
}

/// Verdicts that differ, by how far they are from the other verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misses {
    /// By margin in requests; all those far off in the last.
    by_margin: [u64; FAR + 1],
    /// The first twenty of those that are furthest off.
    examples: Vec<Mismatch>,
}

impl Default for Misses {
    fn default() -> Self {
        Self { by_margin: [0; FAR + 1], examples: Vec::new() }
    }
}

impl Misses {
    fn note(&mut self, mismatch: Mismatch) {
        self.by_margin[place(mismatch.margin)] += 1;
        let further = self.examples.partition_point(|kept| place(kept.margin) >= place(mismatch.margin));
        if further < MOST {
            self.examples.insert(further, mismatch);
            self.examples.truncate(MOST);
        }
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.by_margin.iter().sum()
    }

    /// Those further from the other verdict than `allowed` requests.
    pub fn beyond(&self, allowed: f64) -> u64 {
        let far = |margin: usize| margin == FAR || margin as f64 > allowed;
        self.by_margin.iter().enumerate().filter(|(margin, _)| far(*margin)).map(|(_, count)| count).sum()
    }

    /// Examples of those, the furthest first.
    pub fn examples(&self, allowed: f64) -> impl Iterator<Item = &Mismatch> {
        let far = move |at: usize| at == FAR || at as f64 > allowed;
        self.examples.iter().filter(move |mismatch| far(place(mismatch.margin)))
    }
}

fn place(margin: Option<u32>) -> usize {
    margin.map_or(FAR, |margin| usize::try_from(margin).unwrap_or(FAR).min(FAR))
}

impl Agreement {
    /// Requests compared.
    pub fn compared(&self) -> u64 {
        self.matrix.iter().flatten().sum()
    }

    /// How many were met so, where the policy says that.
    pub const fn count(&self, recorded: Met, declared: Met) -> u64 {
        self.matrix[recorded as usize][declared as usize]
    }

    /// How many were met so, whatever the policy says.
    pub fn recorded(&self, met: Met) -> u64 {
        self.matrix[met as usize].iter().sum()
    }

    /// How many the policy would have met so.
    pub fn declared(&self, met: Met) -> u64 {
        self.matrix.iter().map(|row| row[met as usize]).sum()
    }

    /// The share met alike; all of nothing is all.
    pub fn share(&self) -> f64 {
        let alike: u64 = (0..4).map(|at| self.matrix[at][at]).sum();
        let compared = self.compared();
        if compared == 0 { 1.0 } else { alike as f64 / compared as f64 }
    }

    /// Notes how `recorded` was met, and how it would have been.
    pub(super) fn note(&mut self, recorded: &Recorded, says: &Says) {
        let place = self.compared();
        let first = |kept: &mut Option<u64>, met: Met| {
            if met == Met::Shed && kept.is_none() {
                *kept = Some(place);
            }
        };
        first(&mut self.first_shed.0, recorded.met);
        first(&mut self.first_shed.1, says.met);
        self.matrix[recorded.met as usize][says.met as usize] += 1;
        if recorded.met == says.met {
            return;
        }
        let mismatch = Mismatch {
            attempt: recorded.attempt,
            recorded: recorded.met,
            declared: says.met,
            waiting: says.waiting,
            hold: recorded.sizes.hold(),
            margin: says.margin,
        };
        let returns = recorded.attempt.nth > 0 && says.by_return;
        match (recorded.met, says.met) {
            (Met::Admitted | Met::Shed, Met::Admitted | Met::Shed) if returns => self.by_return += 1,
            (Met::Shed, Met::Admitted) if says.evicting => self.tiers.note(mismatch),
            (Met::Throttled, _) | (_, Met::Throttled) => self.limits.note(mismatch),
            _ => self.boundary.note(mismatch),
        }
    }
}
