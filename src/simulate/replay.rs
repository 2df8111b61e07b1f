//! A recording is sent through the declared policy, and each verdict is held against the policy's own.
//!
//! The machine is made to do what was done: whom the gateway let in waits in it, too, whatever it thinks of that. So each
//! verdict is the policy's in the very state the gateway was in, one mistake does not make the next, and a gateway that
//! drifts away is seen to stand further and further off. No randomness of arrivals is left.
//!
//! It is fed with requests as they end and keeps those whose turn cannot have come yet: a request has its turn when
//! nothing sent before it can still be open. Memory follows what is open, and never the length of the run.

use std::collections::BTreeMap;
use std::time::Duration;

mod agreement;
mod following;
mod recorded;
#[cfg(test)]
mod tests;

pub use agreement::{Agreement, Mismatch, Misses};
pub use following::Following;
pub use recorded::Recorded;

use self::recorded::Answers;
use super::timers::{Due, Timers};
use crate::admission::{self, Ask, Deployed, Effect, Event, Failure, Id, Met, Says, TenantId};
use crate::observe::{Attempt, Record};
use crate::plan::Plan;
use crate::units::{Dense, Moment, Tokens};
use crate::workload::Sizes;

/// The most requests that wait for their turn (about 100 MB); beyond it they have it too early.
const MOST: usize = 1 << 20;
/// How much later than its caller's patience a request may end: a stalled machine.
const SLACK: Duration = Duration::from_secs(1);

/// When a request has its turn: in order of sending; of one instant those who come back before those who come.
type Turn = (Moment, bool, Attempt);

/// A recording that is being followed.
#[derive(Debug)]
pub struct Replay {
    world: World,
    answers: Answers,
    /// Those whose turn has not come.
    coming: BTreeMap<Turn, Recorded>,
    /// The last that had its turn.
    passed: Option<Turn>,
    horizon: Duration,
    agreement: Agreement,
}

impl Replay {
    /// Follows a run of `plan` with `policy`, from its epoch on. What is declared counts: faults are left out.
    pub fn new(plan: &Plan, policy: &admission::Config) -> Self {
        let patience = plan.requests.classes().iter().map(|class| class.patience).max().unwrap_or_default();
        Self {
            world: World::new(plan, policy),
            answers: Answers::new(plan),
            coming: BTreeMap::new(),
            passed: None,
            horizon: patience + SLACK,
            agreement: Agreement::default(),
        }
    }

    /// Takes in a request that has ended. They come in order of ending.
    pub fn see(&mut self, record: &Record) {
        let ended = record.ended;
        if let Some(recorded) = self.answers.recorded(record) {
            let turn = (recorded.sent, record.attempt.nth == 0, record.attempt);
            if self.passed.is_some_and(|passed| turn < passed) {
                self.agreement.overtaken += 1;
            } else {
                self.coming.insert(turn, recorded);
            }
        }
        while let Some((turn, recorded)) = self.coming.pop_first() {
            if turn.0 + self.horizon >= ended && self.coming.len() < MOST {
                self.coming.insert(turn, recorded);
                break;
            }
            self.pass(turn, &recorded);
        }
    }

    /// The run is over: nothing is open any more.
    pub fn finish(mut self) -> Agreement {
        while let Some((turn, recorded)) = self.coming.pop_first() {
            self.pass(turn, &recorded);
        }
        self.agreement
    }

    fn pass(&mut self, turn: Turn, recorded: &Recorded) {
        self.passed = Some(turn);
        let says = self.world.follow(recorded);
        if recorded.judged {
            self.agreement.note(recorded, &says);
        }
    }
}

/// A gateway that is sent what was recorded, and a provider that answers as was recorded.
#[derive(Debug)]
struct World {
    plan: Plan,
    tenants: Vec<TenantId>,
    gateway: Deployed,
    timers: Timers,
    next: u64,
    open: Dense<Open>,
    now: Moment,
    effects: Vec<Effect>,
}

/// A request in the gateway or at the provider.
#[derive(Debug, Clone, Copy)]
struct Open {
    recorded: Recorded,
    /// How often the provider is still to refuse it, and then to fail it.
    refusals: u32,
    failures: u32,
    /// Whether the provider has it.
    called: bool,
}

impl World {
    fn new(plan: &Plan, policy: &admission::Config) -> Self {
        let place = |name: &str| policy.tenants.iter().position(|tenant| tenant.name == name);
        let tenant = |name: &str| TenantId(place(name).and_then(|at| u16::try_from(at).ok()).unwrap_or(0));
        Self {
            tenants: plan.requests.classes().iter().map(|class| tenant(&class.tenant)).collect(),
            gateway: Deployed::new(&policy.declared(), Moment::ZERO),
            timers: Timers::new(std::iter::empty()),
            next: 0,
            open: Dense::default(),
            now: Moment::ZERO,
            effects: Vec::new(),
            plan: plan.clone(),
        }
    }

    /// Sends a request, and does with it what was done.
    fn follow(&mut self, recorded: &Recorded) -> Says {
        self.pass_time(recorded.sent);
        let id = Id(self.next);
        self.next += 1;
        let asks = self.plan.requests.class(recorded.class);
        let Sizes { prompt, max_output, .. } = recorded.sizes;
        let ask = Ask {
            id,
            caller: recorded.attempt.seq,
            prompt,
            max_output,
            bytes: asks.bytes_of(prompt),
            deadline: recorded.due + asks.deadline,
            tenant: self.tenants[usize::from(recorded.class.0)],
            tier: asks.tier,
            operation: None,
        };
        if recorded.met == Met::Admitted {
            let Recorded { refusals, failures, .. } = *recorded;
            self.open.insert(id.0, Open { recorded: *recorded, refusals, failures, called: false });
            if let Some(left) = recorded.left {
                self.timers.add(left, Due::Leave(id));
            }
        }
        let mut effects = std::mem::take(&mut self.effects);
        let says = self.gateway.follow(self.now, ask, recorded.met, &mut effects);
        self.carry_out(effects);
        says
    }

    /// Lets everything happen that happens before an arrival at `until`.
    fn pass_time(&mut self, until: Moment) {
        loop {
            let timer = self.timers.peek(until, |_| true);
            let wake = self.gateway.next_wake().filter(|at| *at <= until);
            match (timer, wake) {
                (Some(timer), wake) if wake.is_none_or(|wake| timer.0 <= wake) => {
                    self.now = self.now.max(timer.0);
                    self.timers.pop(timer);
                    if let Some(event) = self.event_of(timer.1) {
                        self.feed(event);
                    }
                }
                (_, Some(wake)) => {
                    self.now = self.now.max(wake);
                    self.feed(Event::Wake);
                }
                _ => break,
            }
        }
        self.now = self.now.max(until);
    }

    fn event_of(&mut self, due: Due) -> Option<Event> {
        match due {
            Due::Done(id) => {
                let used = self.open.remove(id.0).and_then(|open| open.recorded.used);
                Some(Event::Settled { id, used, answer: None })
            }
            Due::Breaks(id, _) => {
                self.open.remove(id.0);
                Some(Event::Failed { id, how: Failure::Unknown })
            }
            // it never was at the provider, whatever is thought here
            Due::Leave(id)
                if self.open.get(id.0).is_some_and(|open| open.recorded.expired && open.called) =>
            {
                self.open.remove(id.0);
                Some(Event::Settled { id, used: Some(Tokens::ZERO), answer: None })
            }
            Due::Leave(id) => {
                // what goes on for nobody ends by its lease
                if self.gateway.forgets_leaver(id) {
                    self.open.remove(id.0);
                }
                Some(Event::Left { id })
            }
            Due::Begins(_) | Due::Probe(..) | Due::Retry(..) => None,
        }
    }

    /// Feeds the gateway and carries out its calls.
    fn feed(&mut self, event: Event) {
        let mut effects = std::mem::take(&mut self.effects);
        self.gateway.handle(self.now, event, &mut effects);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, mut effects: Vec<Effect>) {
        let mut next = 0;
        while let Some(effect) = effects.get(next).copied() {
            next += 1;
            match effect {
                Effect::Forward { id, .. } => {
                    if let Some(event) = self.call(id) {
                        self.gateway.handle(self.now, event, &mut effects);
                    }
                }
                Effect::Expire { id, .. } | Effect::Fail { id } => {
                    self.open.remove(id.0);
                }
                _ => {}
            }
        }
        effects.clear();
        self.effects = effects;
    }

    /// The provider refuses, fails and answers a request as often, and at the instants, as it did.
    fn call(&mut self, id: Id) -> Option<Event> {
        let now = self.now;
        let open = self.open.get_mut(id.0)?;
        if open.refusals > 0 {
            open.refusals -= 1;
            return Some(Event::Refused { id, retry_after: Some(REFUSED_FOR) });
        }
        if open.failures > 0 {
            open.failures -= 1;
            return Some(Event::Failed { id, how: Failure::Repeatable });
        }
        let Recorded { takes, answered, broke, .. } = open.recorded;
        open.called = true;
        // what never ended is known by how long such an answer takes
        let until = answered.map_or(now + takes, |at| at.max(now));
        self.timers.add(until, if broke { Due::Breaks(id, false) } else { Due::Done(id) });
        None
    }
}

/// What a provider with a bucket says: in whole seconds, and at least one.
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// Sends records in any order through `policy`, and gives how it agrees with what was done.
#[cfg(test)]
pub(crate) fn replay(plan: &Plan, policy: &admission::Config, records: &[Record]) -> Agreement {
    let mut replay = Replay::new(plan, policy);
    records.iter().for_each(|record| replay.see(record));
    replay.finish()
}
