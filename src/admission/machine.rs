use std::collections::BTreeMap;
use std::time::Duration;

use super::estimate::ServiceTime;
use super::ledger::Ledger;
use super::queue::Queue;
use super::retry_after::promises::Promises;
use super::{Ask, Config, Effect, Event, Expiry, Gauge, Id, bounds, retry_after};
use crate::units::{Moment, Tokens};

/// How long forwarding rests after a refusal by the provider that named no time.
const REST: Duration = Duration::from_millis(100);

/// The machine. See the module's head for its laws.
#[derive(Debug)]
pub struct Admission {
    config: Config,
    ledger: Ledger,
    queue: Queue,
    flying: BTreeMap<Id, Flying>,
    service: ServiceTime,
    promises: Promises,
    /// No forwarding before this instant: the provider asked for a rest.
    rest_until: Moment,
}

/// A request at the provider.
#[derive(Debug)]
struct Flying {
    ask: Ask,
    since: Moment,
}

/// How a request that arrives is met.
enum Verdict {
    Forward,
    Wait,
    Shed { until_room: Duration },
    Reject { most: Tokens },
}

impl Admission {
    /// A machine at rest, its budgets full at `now`.
    pub fn new(config: &Config, now: Moment) -> Self {
        Self {
            ledger: Ledger::new(&config.budgets, now),
            queue: Queue::default(),
            flying: BTreeMap::new(),
            service: ServiceTime::new(&config.service),
            promises: Promises::default(),
            rest_until: Moment::ZERO,
            config: config.clone(),
        }
    }

    /// Takes `event` in at `now` and appends to `effects` what is to be done. Events about requests that are not open
    /// are ignored: a caller may leave in the very instant its answer ends.
    pub fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        self.ledger.advance(now);
        self.promises.advance(now);
        match event {
            Event::Arrive(ask) => self.arrive(now, ask, effects),
            Event::Settled { id, used } => self.settled(now, id, used),
            Event::Refused { id, retry_after } => self.refused(now, id, retry_after, effects),
            Event::Failed { id, known } => self.failed(id, known),
            Event::Left { id } => self.left(id),
            Event::Wake => {}
        }
        self.supply(now, effects);
    }

    /// The next instant at which [`Event::Wake`] would change anything; `None` if only another event can.
    pub fn next_wake(&self) -> Option<Moment> {
        let expiry = self
            .config
            .recheck
            .then(|| self.queue.most_urgent().map(|(deadline, _)| deadline - self.service.get()))
            .flatten();
        // `None` from the bucket cannot be: what could never fit was rejected on arrival
        let supply = self.next().and_then(|ask| {
            let wait = self.ledger.bucket().time_until(ask.hold())?;
            Some((self.ledger.bucket().at() + wait).max(self.rest_until))
        });
        expiry.into_iter().chain(supply).min()
    }

    /// The state in numbers, as of the last event.
    pub fn gauge(&self) -> Gauge {
        Gauge {
            waiting: self.queue.len() as u64,
            waiting_tokens: self.queue.tokens(),
            waiting_bytes: self.queue.bytes(),
            in_flight: self.flying.len() as u64,
            held: self.ledger.held(),
            level: self.ledger.bucket().tokens(),
            service: self.service.get(),
            promises: self.promises.len() as u64,
            returning: self.config.retry_after.reserve().map_or(0.0, |reserve| self.promises.returning(&reserve)),
        }
    }

    fn arrive(&mut self, now: Moment, ask: Ask, effects: &mut Vec<Effect>) {
        let (id, hold) = (ask.id, ask.hold());
        match self.meet(now, &ask) {
            // the queue is empty and the budget is there: `supply` forwards it at once
            Verdict::Forward | Verdict::Wait => self.queue.insert(ask),
            Verdict::Shed { until_room } => {
                let retry_after = self.appoint(now, &ask, until_room);
                effects.push(Effect::Shed { id, retry_after });
            }
            Verdict::Reject { most } => effects.push(Effect::Reject { id, hold, most }),
        }
    }

    /// Forward at once only when nobody waits (no newcomer ahead of the queue); else wait if what is ahead can be
    /// drained in time; else refuse.
    fn meet(&mut self, now: Moment, ask: &Ask) -> Verdict {
        let hold = ask.hold();
        let bucket = self.ledger.bucket();
        let most = bucket.size();
        if hold > most {
            return Verdict::Reject { most };
        }
        let returning = self.promises.redeem(ask.caller, now);
        let remaining = ask.deadline.since(now);
        let service = self.service.get();
        let ready = self.queue.is_empty() && bucket.tokens() >= hold && now >= self.rest_until;
        if ready && (!self.config.recheck || remaining > service) {
            return Verdict::Forward;
        }
        let slack = remaining.saturating_sub(service).saturating_sub(self.config.margin);
        let Some(bound) = self.config.bound.most(&bounds::Scene { drain: bucket.rate(), slack }) else {
            return Verdict::Wait;
        };
        let fresh = self.config.retry_after.reserve().filter(|_| !returning).map_or(1.0, |r| 1.0 - r.share.get());
        let room = Tokens::new((bound.get() as f64 * fresh) as u64) + bucket.tokens();
        let wanted = self.queue.tokens() + hold;
        if wanted <= room && !slack.is_zero() {
            return Verdict::Wait;
        }
        Verdict::Shed { until_room: bucket.rate().time_for((wanted - room).get()) }
    }

    /// What the refused caller is told, and the promise that makes.
    fn appoint(&mut self, now: Moment, ask: &Ask, until_room: Duration) -> Option<Duration> {
        let reserve = self.config.retry_after.reserve();
        let scene = retry_after::Scene {
            drain: self.ledger.bucket().rate(),
            waiting: self.queue.tokens(),
            until_room,
            promised: self.promises.open() + ask.hold(),
            returning: reserve.map_or(0.0, |reserve| self.promises.returning(&reserve)),
            draw: draw(ask.caller),
        };
        let told = self.config.retry_after.announce(&scene)?;
        if reserve.is_some() {
            self.promises.add(ask.caller, now + told, ask.hold());
        }
        Some(told)
    }

    fn settled(&mut self, now: Moment, id: Id, used: Option<Tokens>) {
        let Some(Flying { ask, since }) = self.flying.remove(&id) else { return };
        self.ledger.settle(ask.hold(), used.unwrap_or_else(|| ask.hold()));
        self.service.saw(now.since(since));
    }

    /// The provider's quota is spent. The request takes its old place again if its deadline allows another try.
    fn refused(&mut self, now: Moment, id: Id, retry_after: Option<Duration>, effects: &mut Vec<Effect>) {
        let Some(Flying { ask, .. }) = self.flying.remove(&id) else { return };
        self.ledger.release(ask.hold());
        self.ledger.believe_empty();
        self.rest_until = self.rest_until.max(now + retry_after.unwrap_or(REST).max(REST));
        if self.config.recheck && self.rest_until + self.service.get() >= ask.deadline {
            effects.push(self.expire(now, &ask, Expiry::Upstream));
        } else {
            self.queue.insert(ask);
        }
    }

    /// A failure that may have cost tokens keeps its hold as spent; one that surely did not gives it back.
    fn failed(&mut self, id: Id, known: bool) {
        let Some(Flying { ask, .. }) = self.flying.remove(&id) else { return };
        let used = if known { Tokens::ZERO } else { ask.hold() };
        self.ledger.settle(ask.hold(), used);
    }

    /// A waiting request is forgotten. One at the provider may cost its tokens all the same: its hold stays spent.
    fn left(&mut self, id: Id) {
        if self.queue.remove(id).is_none() {
            self.failed(id, false);
        }
    }

    /// Drops who can no longer be served in time, then forwards who can.
    fn supply(&mut self, now: Moment, effects: &mut Vec<Effect>) {
        while let Some((deadline, id)) = self.queue.most_urgent() {
            if !self.config.recheck || deadline > now + self.service.get() {
                break;
            }
            let Some(ask) = self.queue.remove(id) else { break };
            effects.push(self.expire(now, &ask, Expiry::Deadline));
        }
        while now >= self.rest_until
            && let Some((id, hold)) = self.next().map(|ask| (ask.id, ask.hold()))
        {
            if !self.ledger.hold(hold) {
                break;
            }
            let Some(ask) = self.queue.remove(id) else { break };
            effects.push(Effect::Forward { id, remaining: ask.deadline.since(now) });
            self.flying.insert(id, Flying { ask, since: now });
        }
    }

    fn next(&self) -> Option<&Ask> {
        self.config.order.next(&self.queue).and_then(|id| self.queue.get(id))
    }

    fn expire(&mut self, now: Moment, ask: &Ask, why: Expiry) -> Effect {
        let until_room = self.ledger.bucket().rate().time_for(self.queue.tokens().get());
        let retry_after = self.appoint(now, ask, until_room);
        Effect::Expire { id: ask.id, why, retry_after }
    }
}

/// A number in `[0, 1)` that depends on the caller alone (the finaliser of MurmurHash3).
fn draw(caller: u64) -> f64 {
    let mut z = caller ^ (caller >> 33);
    z = z.wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    z ^= z >> 33;
    z = z.wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    z ^= z >> 33;
    (z >> 11) as f64 / (1u64 << 53) as f64
}
