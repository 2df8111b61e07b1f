use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

mod arrival;
mod ending;
mod follow;
mod supply;

pub use follow::{Met, Says};

use super::codel::Delay;
use super::desk::Desk;
use super::estimate::{HoldFactor, ServiceTime};
use super::ledger::Ledger;
use super::queue::{Layout, Queue};
use super::retries::Retries;
use super::retry_after::Reserve;
use super::retry_after::promises::Promises;
use super::{Ask, Config, Effect, Event, Gauge, Id, TenantId, Unknown};
use crate::units::{Dense, Moment, Rate, Tokens};

/// The machine. See the module's head for its laws.
#[derive(Debug)]
pub struct Admission {
    config: Config,
    ledger: Ledger,
    queue: Queue,
    flying: Dense<Flying>,
    /// Ends of the leases of calls whose end is unknown.
    leases: BTreeSet<(Moment, Id)>,
    desk: Desk,
    /// Requests that get the answer of another, by that other.
    attached: BTreeMap<Id, Vec<Id>>,
    attached_to: BTreeMap<Id, Id>,
    /// Requests that go on for those attached to them, their own callers gone.
    absent: BTreeSet<Id>,
    service: ServiceTime,
    factor: HoldFactor,
    delay: Option<Delay>,
    retries: Retries,
    /// By lane: each has a part of the drain of its own.
    promises: Vec<Promises>,
    /// What is kept for those who return.
    reserve: Option<Reserve>,
    /// No forwarding before this instant: the provider asked for a rest.
    rest_until: Moment,
    /// No more work before this instant: the last event had more than its share.
    pause_until: Moment,
    /// See [`Self::next_wake`].
    wake: Option<Moment>,
}

/// A request at the provider.
#[derive(Debug)]
struct Flying {
    ask: Ask,
    since: Moment,
    tries: u16,
    /// Whether its slot and hold were given back before its end.
    released: bool,
    /// Until when its hold is kept although nobody waits for it; zero while its end is awaited.
    lease: Moment,
}

impl Admission {
    /// A machine at rest, its budgets full at `now`.
    pub fn new(config: &Config, now: Moment) -> Self {
        let layout = Layout {
            order: config.order.clone(),
            by_deadline: config.order.by_deadline(),
            recheck: config.recheck,
            share: config.share.clone(),
            strict: config.tiers.strict,
            evict: config.tiers.evict,
            weights: config.tenants.iter().map(|tenant| tenant.weight).collect(),
            drain: drain(config),
        };
        let mut machine = Self {
            ledger: Ledger::new(&config.budgets, &config.tenants, now),
            queue: Queue::new(layout),
            flying: Dense::default(),
            leases: BTreeSet::new(),
            desk: Desk::new(config.keep),
            attached: BTreeMap::new(),
            attached_to: BTreeMap::new(),
            absent: BTreeSet::new(),
            service: ServiceTime::new(&config.service),
            factor: HoldFactor::default(),
            delay: config.codel.map(|rule| Delay::new(rule, now)),
            retries: Retries::new(config.upstream.budget),
            promises: std::iter::repeat_with(|| Promises::new(config.retry_after.reserve()))
                .take(lanes(config))
                .collect(),
            reserve: config.retry_after.reserve(),
            rest_until: Moment::ZERO,
            pause_until: Moment::ZERO,
            wake: None,
            config: config.clone(),
        };
        machine.wake = machine.when_to_wake(None);
        machine
    }

    /// Takes `event` in at `now` and appends to `effects` what is to be done. Events about requests that are not open
    /// are ignored: a caller may leave in the very instant its answer ends.
    pub fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        let due = self.advance(now, effects);
        match event {
            Event::Arrive(ask) => {
                if !self.arrive(now, ask, effects) && !due {
                    // nothing has become possible, whatever the time: a refusal costs little
                    return;
                }
            }
            Event::Settled { id, used, answer } => self.settled(now, id, used, answer, effects),
            Event::Refused { id, retry_after } => self.refused(now, id, retry_after, effects),
            Event::Begun { id } => self.release_early(id),
            Event::Failed { id, how } => self.failed(now, id, how, effects),
            Event::Reconciled { id, used } => self.reconciled(id, used),
            Event::Left { id } => self.left(now, id, effects),
            Event::Wake => {}
        }
        let supply = self.supply(now, effects);
        self.wake = self.when_to_wake(supply);
    }

    /// Lets time pass; true if it was time to wake.
    fn advance(&mut self, now: Moment, effects: &mut Vec<Effect>) -> bool {
        self.ledger.advance(now);
        self.promises.iter_mut().for_each(|promises| promises.advance(now));
        let due = self.wake.is_some_and(|at| at <= now);
        if due {
            self.end_leases(now);
            effects.extend(self.desk.trim(now).into_iter().map(|id| Effect::Forget { id }));
        }
        due
    }

    /// The next instant at which [`Event::Wake`] would change anything; `None` if only another event can.
    pub const fn next_wake(&self) -> Option<Moment> {
        self.wake
    }

    fn when_to_wake(&self, supply: Option<Moment>) -> Option<Moment> {
        let expiry = if self.config.recheck { self.queue.most_urgent() } else { None };
        // an answer at the very deadline is in time: the instant after it is too late to begin
        let expiry = expiry.map(|(deadline, _)| deadline - self.service.get() + Duration::from_nanos(1));
        let supply = supply.map(|at| at.max(self.rest_until));
        let work = Moment::sooner(Moment::sooner(expiry, supply), self.queue.next_rouse());
        let work = work.map(|at| at.max(self.pause_until));
        let lease = self.leases.first().map(|(at, _)| *at);
        Moment::sooner(Moment::sooner(work, lease), self.desk.next_trim())
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Whether `id` is open here: it waits, is at the provider, or has the answer of another to come.
    pub(super) fn knows(&self, id: Id) -> bool {
        self.flying.get(id.0).is_some() || self.queue.contains(id) || self.attached_to.contains_key(&id)
    }

    /// Whether `caller` was told when to come back, and has not come.
    pub(super) fn expects(&self, caller: u64) -> bool {
        self.promises.iter().any(|promises| promises.expects(caller))
    }

    /// Whether a request whose caller left is not forwarded any more.
    pub const fn forgets_leavers(&self) -> bool {
        self.config.cancel
    }

    /// θ, the mean over the lanes.
    fn returning(&self) -> f64 {
        let sum: f64 = self.promises.iter().map(Promises::returning).sum();
        sum / self.promises.len() as f64
    }

    /// The lane of a tenant's promises, and the part of the drain that is its own while all others wait too.
    fn lane(&self, tenant: TenantId) -> (usize, f64) {
        if self.promises.len() == 1 {
            // nearly always
            return (0, 1.0);
        }
        let lane = usize::from(tenant.0) % self.promises.len();
        let Some(own) = self.config.tenants.get(usize::from(tenant.0)) else { return (lane, 1.0) };
        let all: f64 = self.config.tenants.iter().map(|tenant| f64::from(tenant.weight.max(1))).sum();
        (lane, f64::from(own.weight.max(1)) / all)
    }

    /// Whether this caller comes back as told; if so its promise is closed.
    fn redeem(&mut self, now: Moment, ask: &Ask) -> bool {
        let (lane, _) = self.lane(ask.tenant);
        self.promises[lane].redeem(ask.caller, now)
    }

    /// The calls whose end nobody knows, the one whose lease ends first before the others.
    pub fn unknown_ends(&self) -> impl Iterator<Item = Unknown> {
        self.leases.iter().filter_map(|(until, id)| {
            let ask = &self.flying.get(id.0)?.ask;
            Some(Unknown { id: *id, tenant: ask.tenant, hold: ask.hold(), until: *until })
        })
    }

    /// The state in numbers, as of the last event.
    pub fn gauge(&self) -> Gauge {
        Gauge {
            waiting: self.queue.len() as u64,
            waiting_tokens: self.queue.tokens(),
            waiting_bytes: self.queue.bytes(),
            in_flight: self.flying.len() as u64,
            unknown: self.leases.len() as u64,
            held: self.ledger.held(),
            level: self.ledger.level(Tokens::new(1)),
            service: self.service.get(),
            promises: self.promises.iter().map(Promises::len).sum::<usize>() as u64,
            returning: self.returning(),
        }
    }
}

#[cfg(test)]
impl Admission {
    /// The calls that are open, for the laws.
    pub(super) fn flying_ids(&self) -> BTreeSet<Id> {
        self.flying.numbers().into_iter().map(Id).collect()
    }

    /// What could be spent at once at `now`, for the laws.
    pub(super) fn level_at(&self, now: Moment) -> Tokens {
        let mut ledger = self.ledger.clone();
        ledger.advance(now);
        ledger.level(Tokens::new(1))
    }

    /// Whether `id` waits, for the laws.
    pub(super) fn waits(&self, id: Id) -> bool {
        self.queue.contains(id)
    }
}

/// The most lanes whose promises are kept apart; of more tenants, several share one.
const MOST_LANES: usize = 64;

/// How many lanes promises are kept by: one, or one a tenant where each has its share.
fn lanes(config: &Config) -> usize {
    if config.share.separate() { config.tenants.len().clamp(1, MOST_LANES) } else { 1 }
}

/// The long-run drain in tokens: the token budget, or as much as can be told apart where there is none.
fn drain(config: &Config) -> Rate {
    let fallback = Rate::new(1, Duration::from_nanos(1));
    config.budgets.tokens.or(fallback).unwrap_or_else(|| unreachable!("one a nanosecond is a rate"))
}

/// A number in `[0, 1)` that depends on the caller and a salt alone (the finaliser of MurmurHash3).
pub(super) fn draw(caller: u64, salt: u64) -> f64 {
    let caller = caller ^ salt.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut z = caller ^ (caller >> 33);
    z = z.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    z ^= z >> 33;
    z = z.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    z ^= z >> 33;
    (z >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod gate;
#[cfg(test)]
mod policies;
#[cfg(test)]
mod tests;
