use std::time::Duration;

use serde::Serialize;

use super::run;
use crate::admission;
use crate::observe::{Reason, Sighting};
use crate::plan::Plan;
use crate::units::{Dense, Moment};
use crate::workload::ClassId;

/// What became of a load that comes in rounds, at the end of the last one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rounds {
    /// Rounds in all.
    pub rounds: u64,
    /// Units of work (tokens) the gate serves in a round; none if it has no such limit.
    pub capacity_units: Option<u64>,
    /// Units that arrive in a round on average.
    pub usual_units: f64,
    /// By class, in the order of the plan.
    pub classes: Vec<RoundClass>,
    /// The most rounds that anyone who was served had waited beyond its own.
    pub oldest_age_rounds: u64,
    /// Units that still wait at the end.
    pub backlog_units: u64,
    /// How many rounds the oldest of those has waited; 0 if none waits.
    pub pending_age_rounds: u64,
}

/// One class of callers that come in rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoundClass {
    /// Its name.
    pub name: String,
    /// 0 is the most important.
    pub tier: u8,
    /// Units of work of one request.
    pub units: u64,
    /// Callers a round, on average.
    pub usual_per_round: f64,
    /// Callers who came.
    pub arrived: u64,
    /// Those who were let in and stayed.
    pub accepted: u64,
    /// Those over their ceiling.
    pub throttled: u64,
    /// Those for whom there was no room.
    pub shed: u64,
    /// Those who were let in and had to give way.
    pub evicted: u64,
}

impl Rounds {
    /// Everyone who was not served or still waits.
    pub fn rejected(&self) -> u64 {
        self.classes.iter().map(|class| class.throttled + class.shed + class.evicted).sum()
    }

    /// Requests a round that were accepted of all tiers but the least important, and their share of what those tiers
    /// send.
    pub fn kept(&self) -> (f64, f64) {
        let least = self.classes.iter().map(|class| class.tier).max();
        let (mut accepted, mut usual) = (0, 0.0);
        for class in self.classes.iter().filter(|class| Some(class.tier) != least) {
            accepted += class.accepted;
            usual += class.usual_per_round;
        }
        let kept = accepted as f64 / self.rounds.max(1) as f64;
        (kept, if usual > 0.0 { kept / usual } else { 0.0 })
    }
}

/// A plan whose callers do not come in rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("load.arrivals: the callers of this plan do not come in `rounds`")]
pub struct NoRounds;

/// Runs `plan`, whose callers come in rounds, under `policy` and counts what stands at the end of its last round.
pub fn rounds(plan: &Plan, policy: &admission::Config) -> Result<Rounds, NoRounds> {
    let rounds = plan.load.arrivals.rounds().ok_or(NoRounds)?;
    let rate = plan.load.phases.first().map(|phase| phase.rate);
    let classes = plan.requests.classes().iter().enumerate().map(|(i, class)| {
        let id = ClassId(u16::try_from(i).unwrap_or(u16::MAX));
        RoundClass {
            name: class.name.clone(),
            tier: class.tier,
            units: class.largest_hold().get(),
            usual_per_round: rate.map_or(0.0, |rate| rounds.callers(rate, &plan.requests, id)),
            arrived: 0,
            accepted: 0,
            throttled: 0,
            shed: 0,
            evicted: 0,
        }
    });
    let mut count = Count {
        every: rounds.every,
        end: plan.load.end(),
        classes: classes.collect(),
        waiting: Dense::default(),
        oldest: 0,
    };
    // nobody comes back in another round
    let mut plan = plan.clone();
    plan.probes.every = 0;
    run(&plan, policy, &mut |sighting| count.see(&sighting));
    let capacity = policy.budgets.tokens.map(|rate| rate.whole_in(rounds.every));
    Ok(count.finish(capacity))
}

struct Count {
    every: Duration,
    end: Moment,
    classes: Vec<RoundClass>,
    /// Those who wait: when they came, and their class.
    waiting: Dense<(Moment, usize)>,
    oldest: u64,
}

impl Count {
    fn see(&mut self, sighting: &Sighting) {
        // what happens after the last round has been served is not looked at
        if sighting.at() > self.end {
            return;
        }
        let seq = sighting.attempt().seq;
        match sighting {
            Sighting::Due { at, class, .. } => {
                let class = usize::from(class.0);
                self.classes[class].arrived += 1;
                self.classes[class].accepted += 1;
                self.waiting.insert(seq, (*at, class));
            }
            Sighting::AtProvider { at, .. } => {
                if let Some((came, _)) = self.waiting.remove(seq) {
                    self.oldest = self.oldest.max(self.between(came, *at));
                }
            }
            Sighting::Answered { answer, .. } => {
                let Some((_, class)) = self.waiting.remove(seq) else { return };
                let class = &mut self.classes[class];
                class.accepted -= 1;
                match answer.reason {
                    Some(Reason::Throttled) => class.throttled += 1,
                    Some(Reason::Expired) => class.evicted += 1,
                    Some(Reason::Shed | Reason::NeverFits) | None => class.shed += 1,
                }
            }
            Sighting::Unsent { .. }
            | Sighting::Sent { .. }
            | Sighting::Again { .. }
            | Sighting::CutOff { .. }
            | Sighting::Tokens { .. }
            | Sighting::Left { .. }
            | Sighting::Broken { .. } => {}
        }
    }

    /// Whole rounds from one instant to another.
    fn between(&self, from: Moment, to: Moment) -> u64 {
        u64::try_from(to.since(from).as_nanos() / self.every.as_nanos()).unwrap_or(u64::MAX)
    }

    fn finish(self, capacity_units: Option<u64>) -> Rounds {
        let waiting = self.waiting.numbers();
        let came = waiting.first().and_then(|seq| self.waiting.get(*seq)).map(|(came, _)| *came);
        let units = |seq: &u64| self.waiting.get(*seq).map_or(0, |(_, class)| self.classes[*class].units);
        Rounds {
            rounds: self.between(Moment::ZERO, self.end),
            capacity_units,
            usual_units: self.classes.iter().map(|class| class.usual_per_round * class.units as f64).sum(),
            oldest_age_rounds: self.oldest,
            backlog_units: waiting.iter().map(units).sum(),
            pending_age_rounds: came.map_or(0, |came| self.between(came, self.end)),
            classes: self.classes,
        }
    }
}

#[cfg(test)]
mod tests;
