//! Several machines behind one address.

use std::collections::BTreeMap;

use super::desk::Kept;
use super::{Admission, Ask, Budgets, Config, Effect, Event, Gauge, Id, Met, Says, Tenant, Unknown};
use crate::units::{Bytes, Moment, Rate, Ratio};

/// So many requests may stand elsewhere than their number says before those that ended are looked for.
const FEW: usize = 1_000;

/// Several machines behind one address, each with its part of the budgets, the slots and the bounds.
///
/// A request goes to the machine its number names, round robin. Where one has a key, all of that key go to the same
/// machine; and a refused caller comes back to the one that told it when, as a cookie would bring it about. Nothing else
/// is shared.
#[derive(Debug)]
pub struct Replicas {
    machines: Vec<Admission>,
    /// Requests that are not where their number says; some have ended.
    elsewhere: BTreeMap<Id, usize>,
    /// How many of those there may be before they are looked through.
    sweep_at: usize,
    wake: Option<Moment>,
}

impl Replicas {
    /// As many machines at rest as `config` says, their budgets full at `now`. Unless they are `split`, each believes that
    /// it has all the budgets.
    pub(super) fn new(config: &Config, split: bool, now: Moment) -> Self {
        let machine = |which| Admission::new(&config.of_replica(which, split), now);
        let machines: Vec<_> = (0..config.replicas.max(1)).map(machine).collect();
        let mut all = Self { machines, elsewhere: BTreeMap::new(), sweep_at: FEW, wake: None };
        all.wake = all.when_to_wake();
        all
    }

    pub(super) fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        let id = match &event {
            Event::Wake => {
                self.awake(now, effects);
                self.wake = self.when_to_wake();
                return;
            }
            Event::Arrive(ask) => {
                self.place(ask);
                ask.id
            }
            Event::Settled { id, .. }
            | Event::Refused { id, .. }
            | Event::Failed { id, .. }
            | Event::Reconciled { id, .. }
            | Event::Begun { id }
            | Event::Left { id } => *id,
        };
        let which = self.which(id);
        self.machines[which].handle(now, event, effects);
        self.wake = self.when_to_wake();
    }

    pub(super) fn follow(&mut self, now: Moment, ask: Ask, met: Met, effects: &mut Vec<Effect>) -> Says {
        self.place(&ask);
        let which = self.which(ask.id);
        let says = self.machines[which].follow(now, ask, met, effects);
        self.wake = self.when_to_wake();
        says
    }

    /// Wakes those whose time has come; all, if nobody's has.
    fn awake(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        let due = |machine: &Admission| machine.next_wake().is_some_and(|at| at <= now);
        let nobody = !self.machines.iter().any(due);
        for machine in self.machines.iter_mut().filter(|machine| nobody || due(machine)) {
            machine.handle(now, Event::Wake, effects);
        }
    }

    /// Finds the machine of a newcomer.
    fn place(&mut self, ask: &Ask) {
        let usual = self.usual(ask.id);
        let which = match &ask.operation {
            Some(operation) => (operation.key % self.machines.len() as u128) as usize,
            None if self.machines[usual].expects(ask.caller) => usual,
            None => self.machines.iter().position(|machine| machine.expects(ask.caller)).unwrap_or(usual),
        };
        if which == usual {
            return;
        }
        if self.elsewhere.len() >= self.sweep_at {
            let machines = &self.machines;
            self.elsewhere.retain(|id, which| machines[*which].knows(*id));
            self.sweep_at = 2 * self.elsewhere.len() + FEW;
        }
        self.elsewhere.insert(ask.id, which);
    }

    fn usual(&self, id: Id) -> usize {
        (id.0 % self.machines.len() as u64) as usize
    }

    fn which(&self, id: Id) -> usize {
        let elsewhere = if self.elsewhere.is_empty() { None } else { self.elsewhere.get(&id) };
        elsewhere.copied().unwrap_or_else(|| self.usual(id))
    }

    fn when_to_wake(&self) -> Option<Moment> {
        self.machines.iter().filter_map(Admission::next_wake).min()
    }

    pub(super) const fn next_wake(&self) -> Option<Moment> {
        self.wake
    }

    pub(super) fn waiting(&self) -> usize {
        self.machines.iter().map(Admission::waiting).sum()
    }

    pub(super) fn forgets_leavers(&self) -> bool {
        self.machines.iter().all(Admission::forgets_leavers)
    }

    pub(super) fn is_unknown(&self, id: Id) -> bool {
        self.machines[self.which(id)].is_unknown(id)
    }

    pub(super) fn unknown_ends(&self) -> Vec<Unknown> {
        let mut all: Vec<_> = self.machines.iter().flat_map(Admission::unknown_ends).collect();
        all.sort_by_key(|call| (call.until, call.id));
        all
    }

    /// The sum; of times and shares the mean.
    pub(super) fn gauge(&self) -> Gauge {
        let count = self.machines.len() as u32;
        let sum = self.machines.iter().map(Admission::gauge).fold(Gauge::default(), |a, b| Gauge {
            waiting: a.waiting + b.waiting,
            waiting_tokens: a.waiting_tokens + b.waiting_tokens,
            waiting_bytes: a.waiting_bytes + b.waiting_bytes,
            in_flight: a.in_flight + b.in_flight,
            unknown: a.unknown + b.unknown,
            held: a.held + b.held,
            level: a.level + b.level,
            service: a.service + b.service,
            promises: a.promises + b.promises,
            returning: a.returning + b.returning,
        });
        Gauge { service: sum.service / count, returning: sum.returning / f64::from(count), ..sum }
    }
}

impl Config {
    /// What replica `which` of [`Self::replicas`] goes by: its part of the bounds and, if they are `split`, of the budgets.
    pub fn of_replica(&self, which: u16, split: bool) -> Self {
        let (parts, which) = (u64::from(self.replicas.max(1)), u64::from(which));
        if parts == 1 {
            return self.clone();
        }
        let bound = self.bound.split(parts, which).unwrap_or_else(|| self.bound.clone());
        let keep = Kept {
            number: share_of(self.keep.number, parts, which),
            bytes: Bytes::new(share_of(self.keep.bytes.get(), parts, which)),
            ..self.keep
        };
        let whole = Self { bound, keep, replicas: 1, ..self.clone() };
        if !split {
            return whole;
        }
        let rate = |rate: Rate| Ratio::new(1, parts).map_or(rate, |part| rate.scaled(part));
        let slots = self.budgets.concurrent.map(|slots| share_of(u64::from(slots), parts, which) as u32);
        let budgets = Budgets {
            tokens: self.budgets.tokens.map(rate),
            requests: self.budgets.requests.map(rate),
            concurrent: slots,
            ..self.budgets
        };
        let tenants = self.tenants.iter().map(|tenant| Tenant {
            tokens: tenant.tokens.map(rate),
            requests: tenant.requests.map(rate),
            ..tenant.clone()
        });
        Self { budgets, tenants: tenants.collect(), ..whole }
    }
}

/// What the part number `which` of `parts` nearly equal ones of `whole` has; the first have what is left over.
pub(super) const fn share_of(whole: u64, parts: u64, which: u64) -> u64 {
    whole / parts + (which < whole % parts) as u64
}

#[cfg(test)]
mod tests;
