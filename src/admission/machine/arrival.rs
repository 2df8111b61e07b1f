//! How a request that arrives is met.

use std::time::Duration;

use super::{Admission, draw};
use crate::admission::bounds::{Excess, Scene};
use crate::admission::config::{Counts, Duplicates, WhenFull};
use crate::admission::desk::Seen;
use crate::admission::queue::{Standing, Waiting, at_whole_rate};
use crate::admission::{Ask, Effect, Expiry, Id, retry_after};
use crate::units::{Bytes, Moment, Tokens};

/// How many may give way to one newcomer.
const MOST_EVICTED: usize = 1_000;

/// What the bound says of a newcomer.
pub(super) enum Verdict {
    /// Nobody waits and the budgets are there.
    Forward,
    /// It waits, these giving way.
    Admit(Vec<Id>),
    /// It is refused; it would have fitted after so many seconds if nobody else came.
    Shed(f64),
}

impl Admission {
    /// Meets `ask`; false if it is refused, which changes nothing for the others.
    pub(super) fn arrive(&mut self, now: Moment, ask: Ask, effects: &mut Vec<Effect>) -> bool {
        if let Some(effect) = self.refusal(&ask) {
            effects.push(effect);
            return false;
        }
        self.ledger.take_own(&ask, Counts::Passed);
        let verdict = self.meet(now, &ask);
        self.treat(now, ask, verdict, effects)
    }

    /// Does with `ask` what `verdict` says; false if it is refused.
    pub(super) fn treat(
        &mut self,
        now: Moment,
        ask: Ask,
        verdict: Verdict,
        effects: &mut Vec<Effect>,
    ) -> bool {
        match verdict {
            Verdict::Shed(until_room) => {
                let retry_after = self.appoint(now, &ask, until_room);
                effects.push(Effect::Shed { id: ask.id, retry_after });
                return false;
            }
            Verdict::Forward => {
                self.ledger.take_own(&ask, Counts::Admitted);
                if let Some(operation) = &ask.operation {
                    self.desk.start(operation, ask.id);
                }
                let waiting = Waiting { ask, since: now, tries: 0, rests_until: Moment::ZERO };
                if self.delay.is_some() {
                    // the rule of controlled delay sees everyone pass
                    self.queue.insert(waiting);
                } else {
                    self.dispatch(now, waiting, effects);
                }
            }
            Verdict::Admit(evicted) => {
                for id in evicted {
                    self.drop_waiting(now, id, Expiry::Evicted, effects);
                }
                self.ledger.take_own(&ask, Counts::Admitted);
                if let Some(operation) = &ask.operation {
                    self.desk.start(operation, ask.id);
                }
                self.queue.insert(Waiting { ask, since: now, tries: 0, rests_until: Moment::ZERO });
            }
        }
        true
    }

    /// What `ask` is told whatever the state of the whole: it is known already, could never fit, or its tenant is over
    /// a limit of its own.
    pub(super) fn refusal(&mut self, ask: &Ask) -> Option<Effect> {
        let (id, hold) = (ask.id, ask.hold());
        if let Some(effect) = self.known_operation(ask) {
            return Some(effect);
        }
        let (most, limit) = self.ledger.most(ask.tenant);
        if hold > most {
            return Some(Effect::Reject { id, hold, most, limit });
        }
        let (limit, wait) = self.ledger.over_own(ask)?;
        Some(Effect::Throttle { id, limit, retry_after: retry_after::whole_seconds(wait) })
    }

    /// Only a fresh operation may reach the provider.
    fn known_operation(&mut self, ask: &Ask) -> Option<Effect> {
        let id = ask.id;
        match self.desk.seen(ask.operation.as_deref()?) {
            Seen::Fresh => None,
            Seen::Conflict => Some(Effect::Conflict { id }),
            Seen::Completed(of) => Some(Effect::Replay { id, of }),
            Seen::Active(to) if self.config.duplicates == Duplicates::Tell || self.is_unknown(to) => {
                Some(Effect::Running { id, to })
            }
            Seen::Active(to) => {
                self.attached.entry(to).or_default().push(id);
                self.attached_to.insert(id, to);
                Some(Effect::Attach { id, to })
            }
        }
    }

    /// Whether nobody can tell what became of a call: no answer of it will come.
    pub fn is_unknown(&self, id: Id) -> bool {
        self.flying.get(id.0).is_some_and(|flying| flying.lease > Moment::ZERO)
    }

    /// A newcomer is forwarded at once only when nobody waits; else it waits if what is ahead can be served in time;
    /// else others give way, if the policy says so; else it is refused.
    fn meet(&mut self, now: Moment, ask: &Ask) -> Verdict {
        let returning = self.redeem(now, ask);
        self.weigh(now, ask, returning, 0)
    }

    /// The verdict if `more` requests like `ask` waited before it than do (fewer, if that is below zero).
    pub(super) fn weigh(&self, now: Moment, ask: &Ask, returning: bool, more: i64) -> Verdict {
        let remaining = ask.deadline.since(now);
        let service = self.service.get();
        let ready = now >= self.rest_until && self.queue.is_clear() && more <= 0;
        if ready && self.ledger.is_ready(ask) && (!self.config.recheck || remaining >= service) {
            return Verdict::Forward;
        }
        let mut scene = self.scene(now, ask, returning);
        let mut standing = self.queue.standing(ask, now + service, scene.level);
        if more != 0 {
            crowd(&mut scene, &mut standing, ask, more);
        }
        scene.wanted = standing.ahead + standing.own(ask.hold());
        let pushed = standing.room.map_or(Tokens::ZERO, |room| ask.hold() - room);
        let excess = |scene: &Scene| self.config.bound.excess(scene).or(Excess::of_tokens(pushed));
        let first = excess(&scene);
        if first.fits() {
            return Verdict::Admit(Vec::new());
        }
        if pushed == Tokens::ZERO && self.somebody_gives_way_to(ask) {
            let mut evicted = Vec::new();
            for (victim, own) in self.victims(ask).take(MOST_EVICTED) {
                let hold = victim.hold();
                // where fewer are supposed to wait than do, all of them may have gone
                scene.requests = scene.requests.saturating_sub(1);
                scene.tokens = scene.tokens - hold;
                scene.bytes = scene.bytes - victim.bytes;
                if own {
                    scene.wanted = scene.wanted - standing.own(hold);
                }
                evicted.push(victim.id);
                if excess(&scene).fits() {
                    return Verdict::Admit(evicted);
                }
            }
        }
        Verdict::Shed(self.time_to_clear(first, scene.drain))
    }

    /// What the bound may look at; `wanted` is filled in later.
    fn scene(&self, now: Moment, ask: &Ask, returning: bool) -> Scene {
        let slack =
            ask.deadline.since(now).saturating_sub(self.service.get()).saturating_sub(self.config.margin);
        let requests = self.queue.len() as u64 + 1;
        let tokens = self.queue.tokens() + ask.hold();
        let mean = Tokens::new(tokens.get() / requests);
        let factor = self.factor.get();
        let level = self.ledger.level(mean);
        let to_come = self.ledger.supply(slack, mean, self.service.mean()) - level;
        let to_come =
            if factor > 1.0 { Tokens::new((to_come.get() as f64 * factor) as u64) } else { to_come };
        let kept = self.reserve.filter(|_| !returning);
        Scene {
            drain: self.ledger.drain(mean, self.service.mean()) * factor,
            slack,
            level,
            supply: level + to_come,
            wanted: Tokens::ZERO,
            requests,
            tokens,
            bytes: self.queue.bytes() + ask.bytes,
            part: kept.map_or(1.0, |reserve| 1.0 - reserve.share.get()),
        }
    }

    /// Whether [`Self::victims`] are worth a look: a refusal costs the same however many wait.
    fn somebody_gives_way_to(&self, ask: &Ask) -> bool {
        let lower = || self.queue.least_important().is_some_and(|tier| tier > ask.tier);
        self.config.when_full == WhenFull::EvictOldest || (self.config.tiers.evict && lower())
    }

    /// Who may give way to `ask`, and whether they stand before it in its own lane.
    fn victims(&self, ask: &Ask) -> impl Iterator<Item = (&Ask, bool)> {
        let lower = self.config.tiers.evict.then(|| self.queue.less_important(ask)).into_iter().flatten();
        let oldest = self.config.when_full == WhenFull::EvictOldest;
        let one_line = self.queue.in_one_line();
        // where tiers are not apart the less important may stand in the same lane: they have given way already
        let twice = self.config.tiers.evict;
        let own = oldest.then(|| self.queue.own_lane(ask)).into_iter().flatten();
        let own = own.filter(move |victim| !(twice && victim.tier > ask.tier));
        lower.map(move |victim| (victim, one_line)).chain(own.map(|victim| (victim, true)))
    }

    fn time_to_clear(&self, excess: Excess, drain: f64) -> f64 {
        let mut most = excess.tokens.get() as f64;
        if excess.requests > 0 || excess.bytes > Bytes::ZERO {
            let tokens = self.queue.tokens().get() as f64;
            let by_requests = excess.requests as f64 * tokens / (self.queue.len() as f64).max(1.0);
            let by_bytes = excess.bytes.get() as f64 * tokens / (self.queue.bytes().get() as f64).max(1.0);
            most = most.max(by_requests).max(by_bytes);
        }
        most / drain
    }

    /// What a refused caller is told, and the promise that makes.
    pub(super) fn appoint(&mut self, now: Moment, ask: &Ask, until_room: f64) -> Option<Duration> {
        let reserve = self.reserve;
        let (lane, share) = self.lane(ask.tenant);
        let promises = &self.promises[lane];
        let promised = promises.open() + ask.hold();
        let scene = retry_after::Scene {
            drain: self.ledger.drain(ask.hold(), self.service.mean()) * self.factor.get(),
            waiting: self.queue.tokens(),
            until_room,
            // seen at the whole drain rate, as all else here
            promised: at_whole_rate(promised, share),
            returning: promises.returning(),
            draw: draw(ask.caller, 0),
        };
        let told = self.config.retry_after.announce(&scene)?;
        if reserve.is_some() {
            self.promises[lane].add(ask.caller, now + told, ask.hold());
        }
        Some(told)
    }
}

/// Puts `more` requests like `ask` before it, in its own line (or takes so many away).
fn crowd(scene: &mut Scene, standing: &mut Standing, ask: &Ask, more: i64) {
    let times = |amount: u64| amount.saturating_mul(more.unsigned_abs());
    let (hold, own) = (ask.hold(), standing.own(ask.hold()));
    let (tokens, ahead) = (Tokens::new(times(hold.get())), Tokens::new(times(own.get())));
    let bytes = Bytes::new(times(ask.bytes.get()));
    // what is taken away is never more than there is, itself left
    if more > 0 {
        scene.requests += more.unsigned_abs();
        scene.tokens += tokens;
        scene.bytes += bytes;
        standing.ahead += ahead;
        standing.room = standing.room.map(|room| room - tokens);
    } else {
        scene.requests = scene.requests.saturating_sub(more.unsigned_abs()).max(1);
        scene.tokens = (scene.tokens - tokens).max(hold);
        scene.bytes = (scene.bytes - bytes).max(ask.bytes);
        standing.ahead = standing.ahead - ahead;
        standing.room = standing.room.map(|room| room + tokens);
    }
}
