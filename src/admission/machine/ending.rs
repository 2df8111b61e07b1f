//! How requests end once they were admitted.

use std::time::Duration;

use super::{Admission, Flying, draw};
use crate::admission::queue::Waiting;
use crate::admission::{Ask, Effect, Expiry, Failure, Id};
use crate::units::{Bytes, Moment, Tokens};

/// How long forwarding rests at least after a refusal by the provider.
const REST: Duration = Duration::from_millis(100);

impl Admission {
    pub(super) fn settled(
        &mut self,
        now: Moment,
        id: Id,
        used: Option<Tokens>,
        answer: Option<Bytes>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(Flying { ask, since, .. }) = self.land(id) else { return };
        let used = used.unwrap_or_else(|| ask.hold());
        self.ledger.settle(&ask, used);
        self.service.saw(now.since(since));
        self.factor.saw(ask.hold(), used);
        self.detach(id);
        if let Some(operation) = &ask.operation {
            let forgotten = match answer {
                Some(bytes) => self.desk.finish(operation, now, bytes),
                None => {
                    self.desk.drop(operation);
                    Vec::new()
                }
            };
            effects.extend(forgotten.into_iter().map(|id| Effect::Forget { id }));
        }
    }

    /// The provider's quota is spent. The request takes its old place again if its deadline allows another try.
    pub(super) fn refused(
        &mut self,
        now: Moment,
        id: Id,
        retry_after: Option<Duration>,
        effects: &mut Vec<Effect>,
    ) {
        let Some(Flying { ask, since, tries, lease, .. }) = self.land(id) else { return };
        self.ledger.release(&ask);
        self.ledger.believe_empty();
        self.rest_until = self.rest_until.max(now + retry_after.unwrap_or(REST).max(REST));
        let hopeless = self.config.recheck && self.rest_until + self.service.get() > ask.deadline;
        if lease > Moment::ZERO {
            // nobody waits for it any more
            self.close(&ask);
        } else if hopeless || tries >= self.config.upstream.attempts {
            self.expire(now, &ask, Expiry::Upstream, effects);
        } else {
            self.queue.insert(Waiting { ask, since, tries, rests_until: Moment::ZERO });
        }
    }

    /// What surely cost nothing is repeated within the limits; what may have cost tokens keeps its hold.
    pub(super) fn failed(&mut self, now: Moment, id: Id, how: Failure, effects: &mut Vec<Effect>) {
        if how == Failure::Unknown {
            return self.unknown(now, id);
        }
        let Some(Flying { ask, since, tries, lease, .. }) = self.land(id) else { return };
        self.ledger.release(&ask);
        if lease > Moment::ZERO || how == Failure::Final {
            return self.close(&ask);
        }
        let until = now + self.config.upstream.rest(tries, draw(ask.caller, u64::from(tries)));
        let hopeless = self.config.recheck && until + self.service.get() > ask.deadline;
        if hopeless || tries >= self.config.upstream.attempts || !self.retries.take() {
            self.close(&ask);
            effects.push(Effect::Fail { id });
        } else {
            self.queue.rest(Waiting { ask, since, tries, rests_until: until }, until);
        }
    }

    fn unknown(&mut self, now: Moment, id: Id) {
        // one whose caller had left has its lease already
        let Some(flying) = self.flying.get_mut(id.0).filter(|flying| flying.lease == Moment::ZERO) else {
            return;
        };
        flying.lease = now + self.config.upstream.lease;
        self.leases.insert((flying.lease, id));
        self.detach(id);
    }

    /// Gives slot and hold back while the call goes on.
    pub(super) fn release_early(&mut self, id: Id) {
        if let Some(flying) = self.flying.get_mut(id.0).filter(|flying| !flying.released) {
            flying.released = true;
            self.ledger.free(&flying.ask);
        }
    }

    pub(super) fn reconciled(&mut self, id: Id, used: Tokens) {
        if self.flying.get(id.0).is_none_or(|flying| flying.lease == Moment::ZERO) {
            return;
        }
        if let Some(Flying { ask, .. }) = self.land(id) {
            self.settle_unknown(&ask, used);
        }
    }

    /// Leases that end by `now` count as used whole.
    pub(super) fn end_leases(&mut self, now: Moment) {
        while let Some((_, id)) = self.leases.first().copied().filter(|(at, _)| *at <= now) {
            if let Some(Flying { ask, .. }) = self.land(id) {
                self.settle_unknown(&ask, ask.hold());
            }
        }
    }

    /// Until now its operation was not to be repeated.
    fn settle_unknown(&mut self, ask: &Ask, used: Tokens) {
        self.ledger.settle(ask, used);
        if let Some(operation) = &ask.operation {
            self.desk.drop(operation);
        }
    }

    /// A waiting request is forgotten, and the call of a forwarded one is ended, unless others wait for its answer.
    pub(super) fn left(&mut self, now: Moment, id: Id, effects: &mut Vec<Effect>) {
        if !self.config.cancel {
            return;
        }
        if let Some(to) = self.attached_to.remove(&id) {
            let others = self.attached.get_mut(&to);
            others.into_iter().for_each(|others| others.retain(|other| *other != id));
            if self.attached.get(&to).is_some_and(Vec::is_empty) {
                self.attached.remove(&to);
                if self.absent.remove(&to) {
                    self.left(now, to, effects);
                }
            }
            return;
        }
        if self.attached.contains_key(&id) {
            self.absent.insert(id);
            return;
        }
        if let Some(Waiting { ask, .. }) = self.queue.remove(id) {
            return self.close(&ask);
        }
        let lease = now + self.config.upstream.lease;
        let Some(flying) = self.flying.get_mut(id.0).filter(|flying| flying.lease == Moment::ZERO) else {
            return;
        };
        // who left before its answer came has seen how long that takes at least: slower answers than are believed in would
        // else never be seen
        let took = now.since(flying.since);
        if took > self.service.get() {
            self.service.saw(took);
        }
        // its end is awaited, but not for ever
        flying.lease = lease;
        self.leases.insert((lease, id));
        effects.push(Effect::Cancel { id });
    }

    /// Drops a waiting request and tells its caller why.
    pub(super) fn drop_waiting(&mut self, now: Moment, id: Id, why: Expiry, effects: &mut Vec<Effect>) {
        if let Some(Waiting { ask, .. }) = self.queue.remove(id) {
            self.expire(now, &ask, why, effects);
        }
    }

    /// Tells the caller of a request that is no longer anywhere why it waited in vain.
    pub(super) fn expire(&mut self, now: Moment, ask: &Ask, why: Expiry, effects: &mut Vec<Effect>) {
        self.close(ask);
        let drain = self.ledger.drain(ask.hold(), self.service.mean());
        let until_room = self.queue.tokens().get() as f64 / drain;
        let retry_after = self.appoint(now, ask, until_room);
        effects.push(Effect::Expire { id: ask.id, why, retry_after });
    }

    /// An admitted request has ended without use: its tenant gets its tokens back, its operation may be tried anew.
    fn close(&mut self, ask: &Ask) {
        self.ledger.return_own(ask);
        self.detach(ask.id);
        if let Some(operation) = &ask.operation {
            self.desk.drop(operation);
        }
    }

    fn detach(&mut self, id: Id) {
        self.absent.remove(&id);
        for other in self.attached.remove(&id).unwrap_or_default() {
            self.attached_to.remove(&other);
        }
    }

    fn land(&mut self, id: Id) -> Option<Flying> {
        let flying = self.flying.remove(id.0)?;
        if flying.released {
            // what follows gives it back: once is enough
            self.ledger.occupy(&flying.ask);
        }
        if !self.leases.is_empty() {
            self.leases.remove(&(flying.lease, id));
        }
        Some(flying)
    }
}
