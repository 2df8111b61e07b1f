//! Virtual time: the same workload, the same admission and the same provider as a live run, without sockets.
//!
//! [`run`] steps from event to event and emits the same [`Sighting`]s a live run does, so everything after `observe`
//! cannot tell the two apart; [`measure`] folds them. Transit takes no time. Events of one instant happen in the order:
//! answers end, callers leave, refused callers return, the gateway wakes, callers arrive.
//!
//! Laws: the same plan and seed give the same sightings; random numbers are drawn by purpose and by arrival, so that a
//! changed policy moves no arrival and no service time; memory follows what is open and never the length of the run.

mod copies;
mod drained;
mod refusal;
mod replay;
mod rounds;
mod summary;
mod timers;
mod world;

pub use drained::{NeverDrains, until_drained};
pub use replay::{Agreement, Following, Mismatch, Misses, Recorded, Replay};
pub use rounds::{NoRounds, RoundClass, Rounds, rounds};
pub use summary::{COLUMNS, Column, Summary};

use crate::admission;
use crate::measure::{Fold, Holds, Measures};
use crate::observe::Sighting;
use crate::plan::Plan;
use crate::units::Moment;

/// How a simulated run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The last event, or the end of the load if that is later.
    pub at: Moment,
    /// Callers who would come back after the last phase, as told or by their own rule: not waited for.
    pub censored: u64,
    /// Steps taken: arrivals, ends of answers, callers who left or came back, wake-ups of the gateway.
    pub events: u64,
    /// What the gateway still held for calls.
    pub held: Holds,
}

/// Runs `plan` as given under `policy` in virtual time and hands every sighting to `see`, in order of time.
///
/// The run ends when the arrivals are over and no request is open. Whoever would come back later is not waited for.
pub fn run(plan: &Plan, policy: &admission::Config, see: &mut impl FnMut(Sighting)) -> Ended {
    world::World::new(plan, policy, see).run(Moment::NEVER)
}

/// Runs `plan` as given under `policy` in virtual time and measures it.
pub fn measure(plan: &Plan, policy: &admission::Config) -> (Measures, Ended) {
    measured(plan, policy, Fold::in_virtual_time(plan))
}

/// The same, and each verdict is held against the one `following` finds in the same state.
pub fn measure_beside(
    plan: &Plan,
    policy: &admission::Config,
    following: &Following,
) -> (Measures, Ended, Agreement) {
    let told = following.clone();
    let fold = Fold::in_virtual_time(plan).telling(move |closed| told.see(closed));
    let (measures, ended) = measured(plan, policy, fold);
    (measures, ended, following.finish())
}

fn measured(plan: &Plan, policy: &admission::Config, mut fold: Fold) -> (Measures, Ended) {
    let ended = run(plan, policy, &mut |sighting| fold.see(sighting));
    let mut measures = fold.finish(ended.at);
    // they were not seen to the end
    measures.returns.censored += ended.censored;
    measures.held = Some(ended.held);
    (measures, ended)
}

#[cfg(test)]
mod tests;
