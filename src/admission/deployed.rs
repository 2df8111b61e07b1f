use super::faults::Habits;
use super::replicas::Replicas;
use super::{Admission, Ask, Config, Effect, Event, Gauge, Id, Met, Says, Unknown};
use crate::units::Moment;

/// What really runs under a configuration: one machine or several replicas, and what is wrong with them.
///
/// It has the interface of an [`Admission`] and keeps its laws as far as its faults let it. A healthy one of one machine
/// is that machine.
#[derive(Debug)]
pub struct Deployed {
    gateway: Gateway,
    /// What is done wrong with events, if anything is.
    habits: Option<Habits>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of it, and it is nearly always the larger")]
enum Gateway {
    One(Admission),
    Several(Replicas),
}

impl Deployed {
    /// At rest, its budgets full at `now`.
    pub fn new(config: &Config, now: Moment) -> Self {
        let bent = config.bent();
        let gateway = if config.replicas > 1 {
            Gateway::Several(Replicas::new(&bent.policy, !bent.whole_quotas, now))
        } else {
            Gateway::One(Admission::new(&bent.policy, now))
        };
        Self { gateway, habits: Some(bent.habits).filter(Habits::any) }
    }

    /// See [`Admission::handle`].
    pub fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        let event = match &self.habits {
            None => event,
            Some(habits) => match habits.alter(event) {
                Some(event) => event,
                None => return,
            },
        };
        match &mut self.gateway {
            Gateway::One(machine) => machine.handle(now, event, effects),
            Gateway::Several(replicas) => replicas.handle(now, event, effects),
        }
    }

    /// See [`Admission::follow`]. What is followed is what is declared: faults change nothing here.
    pub fn follow(&mut self, now: Moment, ask: Ask, met: Met, effects: &mut Vec<Effect>) -> Says {
        match &mut self.gateway {
            Gateway::One(machine) => machine.follow(now, ask, met, effects),
            Gateway::Several(replicas) => replicas.follow(now, ask, met, effects),
        }
    }

    /// See [`Admission::next_wake`].
    pub const fn next_wake(&self) -> Option<Moment> {
        match &self.gateway {
            Gateway::One(machine) => machine.next_wake(),
            Gateway::Several(replicas) => replicas.next_wake(),
        }
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        match &self.gateway {
            Gateway::One(machine) => machine.waiting(),
            Gateway::Several(replicas) => replicas.waiting(),
        }
    }

    /// Whether a request is not forwarded any more once its caller has left.
    pub fn forgets_leaver(&self, id: Id) -> bool {
        let forgets = match &self.gateway {
            Gateway::One(machine) => machine.forgets_leavers(),
            Gateway::Several(replicas) => replicas.forgets_leavers(),
        };
        forgets && !self.habits.is_some_and(|habits| habits.serves_leaver(id))
    }

    /// Whether it wants to be told when an answer begins ([`Event::Begun`]).
    pub fn minds_beginnings(&self) -> bool {
        self.habits.is_some_and(|habits| habits.releases_early())
    }

    /// Whether idempotency keys are not looked at.
    pub fn ignores_keys(&self) -> bool {
        self.habits.is_some_and(|habits| habits.ignores_keys())
    }

    /// See [`Admission::is_unknown`].
    pub fn is_unknown(&self, id: Id) -> bool {
        match &self.gateway {
            Gateway::One(machine) => machine.is_unknown(id),
            Gateway::Several(replicas) => replicas.is_unknown(id),
        }
    }

    /// See [`Admission::unknown_ends`].
    pub fn unknown_ends(&self) -> Vec<Unknown> {
        match &self.gateway {
            Gateway::One(machine) => machine.unknown_ends().collect(),
            Gateway::Several(replicas) => replicas.unknown_ends(),
        }
    }

    /// The state in numbers, as of the last event; the sum over replicas.
    pub fn gauge(&self) -> Gauge {
        match &self.gateway {
            Gateway::One(machine) => machine.gauge(),
            Gateway::Several(replicas) => replicas.gauge(),
        }
    }
}

#[cfg(test)]
mod tests;
