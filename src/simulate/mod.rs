//! Virtual time: the same workload, the same admission and the same provider as a live run, without sockets.
//!
//! [`run`] steps from event to event and emits the same [`Sighting`]s a live run does, so everything after `observe`
//! cannot tell the two apart. Transit takes no time. Events of one instant happen in the order: answers end, callers
//! leave, the gateway wakes, callers arrive.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use crate::admission::{self, Admission, Ask, Effect, Event, Failure, Id, TenantId};
use crate::observe::{Answer, Attempt, Reason, RetryAfter, Sighting};
use crate::plan::Plan;
use crate::provider::{self, Call, Provider};
use crate::units::{Moment, Tokens};
use crate::workload::{Arrival, ClassId, Cohort, Schedule};

/// How a simulated run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The last event, or the end of the load if that is later.
    pub at: Moment,
    /// Probes told to return after the load had ended: not waited for.
    pub censored: u64,
}

/// Runs `plan` as given under `policy` in virtual time and hands every sighting to `see`, in order of time.
///
/// The run ends when the arrivals are over and no request is open.
pub fn run(plan: &Plan, policy: &admission::Config, see: &mut dyn FnMut(Sighting)) -> Ended {
    let mut world = World::new(plan, policy, see);
    let mut schedule = Schedule::new(&plan.load, &plan.requests).peekable();
    loop {
        let arrival = schedule.peek().map(|arrival| arrival.due);
        let wake = world.gateway.next_wake();
        let timer = world.timers.peek().map(|Reverse(timer)| timer.at);
        let soonest = [timer, wake, arrival].into_iter().flatten().min();
        let Some(now) = soonest else { break };
        world.now = now;
        if timer == Some(now) {
            world.tick();
        } else if wake == Some(now) {
            world.feed(Event::Wake);
        } else if let Some(arrival) = schedule.next() {
            world.arrive(&arrival);
        }
    }
    Ended { at: world.now.max(plan.load.end()), censored: world.censored }
}

/// Something that will happen. The order of the variants is their order within an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// The provider has finished.
    Done(Id),
    /// The caller's patience ends.
    Leave(Id),
    /// A refused caller comes back as told.
    Return(u64, ClassId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    at: Moment,
    due: Due,
}

/// A request whose caller is still there.
#[derive(Debug, Clone, Copy)]
struct Open {
    attempt: Attempt,
    class: ClassId,
    used: Tokens,
}

struct World<'a> {
    plan: &'a Plan,
    gateway: Admission,
    provider: Provider,
    cohort: Cohort,
    now: Moment,
    last: Moment,
    next_id: u64,
    open: BTreeMap<Id, Open>,
    timers: BinaryHeap<Reverse<Timer>>,
    censored: u64,
    see: &'a mut dyn FnMut(Sighting),
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan, policy: &admission::Config, see: &'a mut dyn FnMut(Sighting)) -> Self {
        Self {
            plan,
            gateway: Admission::new(policy, Moment::ZERO),
            provider: Provider::new(&plan.provider, Moment::ZERO),
            cohort: Cohort::new(plan.probes),
            now: Moment::ZERO,
            last: plan.load.end(),
            next_id: 0,
            open: BTreeMap::new(),
            timers: BinaryHeap::new(),
            censored: 0,
            see,
        }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        self.send(Attempt { seq: arrival.seq, nth: 0 }, arrival.class, false);
    }

    fn send(&mut self, attempt: Attempt, class: ClassId, probe: bool) {
        let at = self.now;
        let id = Id(self.next_id);
        self.next_id += 1;
        (self.see)(Sighting::Due { attempt, at, class, probe });
        (self.see)(Sighting::Sent { attempt, at });
        let asks = self.plan.requests.class(class);
        self.open.insert(id, Open { attempt, class, used: Tokens::ZERO });
        self.timers.push(Reverse(Timer { at: at + asks.patience, due: Due::Leave(id) }));
        let ask = Ask {
            id,
            caller: attempt.seq,
            prompt: asks.prompt,
            max_output: asks.max_tokens,
            bytes: asks.bytes,
            deadline: at + asks.deadline,
            tenant: TenantId::default(),
            tier: asks.tier,
            operation: None,
        };
        self.feed(Event::Arrive(ask));
    }

    fn tick(&mut self) {
        let Some(Reverse(timer)) = self.timers.pop() else { return };
        match timer.due {
            Due::Done(id) => self.done(id),
            Due::Leave(id) => self.leave(id),
            Due::Return(seq, class) => self.send(Attempt { seq, nth: 1 }, class, true),
        }
    }

    fn done(&mut self, id: Id) {
        let Some(open) = self.open.get(&id).copied() else { return };
        self.answer(id, 200, None, None);
        self.feed(Event::Settled { id, used: Some(open.used), answer: None });
    }

    fn leave(&mut self, id: Id) {
        let Some(open) = self.open.remove(&id) else { return };
        (self.see)(Sighting::Left { attempt: open.attempt, at: self.now });
        self.feed(Event::Left { id });
    }

    /// Feeds the gateway an event and carries out what it says, which may feed it more.
    fn feed(&mut self, event: Event) {
        let mut effects = Vec::new();
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            self.gateway.handle(self.now, event, &mut effects);
            for effect in effects.drain(..) {
                events.extend(self.carry_out(effect));
            }
        }
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Forward { id, remaining } => return self.forward(id, remaining),
            Effect::Shed { id, retry_after } => {
                self.invite(id, retry_after);
                self.answer(id, 503, Some(Reason::Shed), retry_after);
            }
            Effect::Expire { id, retry_after, .. } => {
                self.answer(id, 503, Some(Reason::Expired), retry_after)
            }
            Effect::Throttle { id, retry_after, .. } => {
                self.invite(id, Some(retry_after));
                self.answer(id, 429, Some(Reason::Throttled), Some(retry_after));
            }
            Effect::Reject { id, .. } => self.answer(id, 413, Some(Reason::NeverFits), None),
            Effect::Fail { id } => self.answer(id, 502, None, None),
            // no caller of a plan carries a key, and a call that is not needed any more ends when it would have
            Effect::Attach { .. }
            | Effect::Running { .. }
            | Effect::Replay { .. }
            | Effect::Conflict { .. }
            | Effect::Forget { .. }
            | Effect::Cancel { .. } => {}
        }
        None
    }

    fn forward(&mut self, id: Id, remaining: Duration) -> Option<Event> {
        let (attempt, class) = self.open.get(&id).map(|open| (open.attempt, open.class))?;
        let asks = self.plan.requests.class(class);
        let call = Call { prompt: asks.prompt, max_output: asks.max_tokens, output: asks.output };
        let at = self.now;
        let mut seen = |until, charged, refused| {
            (self.see)(Sighting::AtProvider {
                attempt,
                at,
                until,
                charged,
                refused,
                budget: Some(remaining),
            });
        };
        match self.provider.call(at, call) {
            provider::Answer::Served { charged, output, takes, .. } => {
                seen(at + takes, charged, false);
                if let Some(open) = self.open.get_mut(&id) {
                    open.used = asks.prompt + output;
                }
                self.timers.push(Reverse(Timer { at: at + takes, due: Due::Done(id) }));
                None
            }
            provider::Answer::Refused { retry_after, .. } => {
                seen(at, Tokens::ZERO, true);
                // the header carries whole seconds
                let told =
                    Duration::from_secs(retry_after.as_secs() + u64::from(retry_after.subsec_nanos() > 0));
                Some(Event::Refused { id, retry_after: Some(told) })
            }
            provider::Answer::TooLarge { .. } => {
                seen(at, Tokens::ZERO, true);
                self.answer(id, 400, None, None);
                Some(Event::Failed { id, how: Failure::Final })
            }
        }
    }

    /// The answer reaches its caller, if it is still there.
    fn answer(&mut self, id: Id, status: u16, reason: Option<Reason>, retry_after: Option<Duration>) {
        let Some(open) = self.open.remove(&id) else { return };
        let answer = Answer {
            status,
            retry_after: retry_after.map(RetryAfter::After),
            reason,
            usable: status == 200,
            marked: true,
            shape: Ok(()),
        };
        (self.see)(Sighting::Answered { attempt: open.attempt, at: self.now, answer });
    }

    /// A refused caller may be one of those who come back as told.
    fn invite(&mut self, id: Id, told: Option<Duration>) {
        let Some(open) = self.open.get(&id).copied().filter(|open| open.attempt.nth == 0) else { return };
        let Some(at) = told.and_then(|told| self.cohort.refused(self.now, told)) else { return };
        if at < self.last {
            self.timers.push(Reverse(Timer { at, due: Due::Return(open.attempt.seq, open.class) }));
        } else {
            self.censored += 1;
        }
    }
}

#[cfg(test)]
mod tests;
