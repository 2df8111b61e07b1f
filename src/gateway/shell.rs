use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::metrics::{CallEnd, Counts, Holdings, Outcome};
use super::refusal::Refusal;
use super::reply::{Reply, Stored};
use super::runs::Runs;
use super::ticket::{Ticket, Word};
use super::unknown::Call;
use crate::admission::faults::Telling;
use crate::admission::{Ask, Config, Deployed, Effect, Event, Failure, Id, Operation, TenantId};
use crate::units::{Bytes, Moment, Tokens};

/// Where the time comes from: the instant on the machine's own time line, and the time on the wall since 1970.
pub(crate) struct Clocks {
    pub(crate) now: Box<dyn Fn() -> Moment>,
    pub(crate) unix: Box<dyn Fn() -> Duration>,
}

/// The rest before a wake that the machine asks for in the past: it never does, and if it did, one thread shall not
/// turn in a circle.
const GRAIN: Duration = Duration::from_millis(1);

/// The machine, and the requests that wait for its word.
///
/// Every event goes through `step`, which hands each effect to its request. A request holds a [`Ticket`]; when that
/// is dropped before its end, the machine is told that the caller left.
pub(crate) struct Shell {
    clocks: Clocks,
    tenants: Vec<Rc<str>>,
    /// How refusals are told, and what the provider is told.
    pub(super) telling: Telling,
    pub(super) state: RefCell<State>,
    /// The instant the waker sleeps to.
    armed: Cell<Option<Moment>>,
    rearm: Notify,
}

pub(super) struct State {
    machine: Deployed,
    /// The open requests; those that have no word yet with the way to reach them.
    pub(super) open: BTreeMap<Id, Option<oneshot::Sender<Verdict>>>,
    pub(super) runs: Runs,
    effects: Vec<Effect>,
    next: u64,
    pub(super) counts: Counts,
    pub(super) stopping: bool,
}

/// What the machine says to a request.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// To the provider.
    Forward,
    /// Back to the caller.
    Refuse(Refusal),
    /// Back to the caller: the last failure stands.
    Fail,
    /// Back to the caller, with the answer of another request of the same operation.
    Answer(Rc<Stored>),
}

/// What a request brings to the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    /// See [`Ask::caller`]; `None` for a caller never seen before.
    pub(crate) caller: Option<u64>,
    pub(crate) prompt: Tokens,
    pub(crate) max_output: Tokens,
    pub(crate) bytes: Bytes,
    pub(crate) deadline: Moment,
    pub(crate) tenant: TenantId,
    pub(crate) tier: u8,
    pub(crate) operation: Option<Operation>,
}

impl Shell {
    pub(crate) fn new(config: &Config, clocks: Clocks) -> Self {
        let state = State {
            machine: Deployed::new(config, (clocks.now)()),
            open: BTreeMap::new(),
            runs: Runs::default(),
            effects: Vec::new(),
            next: 0,
            counts: Counts::default(),
            stopping: false,
        };
        let tenants = config.tenants.iter().map(|tenant| tenant.name.as_str().into()).collect();
        Self {
            clocks,
            tenants,
            telling: config.bent().telling,
            state: RefCell::new(state),
            armed: Cell::new(None),
            rearm: Notify::new(),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        (self.clocks.now)()
    }

    /// The time on the wall since 1970.
    pub(crate) fn unix(&self) -> Duration {
        (self.clocks.unix)()
    }

    /// Puts a request to the machine. The error is its end, if that came at once; it is counted.
    pub(crate) fn admit(self: &Rc<Self>, terms: Terms) -> Result<Ticket, Verdict> {
        let id = {
            let mut state = self.state.borrow_mut();
            if state.stopping {
                state.counts.add(Outcome::Stopping);
                return Err(Verdict::Refuse(Refusal::Stopping));
            }
            state.next += 1;
            Id(state.next)
        };
        let Terms { caller, prompt, max_output, bytes, deadline, tenant, tier, operation } = terms;
        // a stranger gets a number no hash of a short text is likely to be
        let caller = caller.unwrap_or(!id.0);
        let keyed = operation.is_some();
        let operation = operation.map(Box::new);
        let ask = Ask { id, caller, prompt, max_output, bytes, deadline, tenant, tier, operation };
        let (word, sender) = match self.step(Event::Arrive(ask)) {
            Some(Verdict::Forward) => (Word::Forward, None),
            Some(ended) => return Err(ended),
            None => {
                let (sender, word) = oneshot::channel();
                (Word::Coming(word), Some(sender))
            }
        };
        let mut state = self.state.borrow_mut();
        state.open.insert(id, sender);
        if keyed && !state.runs.follows(id) {
            state.runs.begin(id);
        } else if !keyed && !state.machine.forgets_leaver(id) {
            state.runs.begin_alone(id);
        }
        Ok(Ticket::new(Rc::clone(self), id, word))
    }

    /// Counts a request that never came to the machine.
    pub(crate) fn count(&self, outcome: Outcome) {
        self.state.borrow_mut().counts.add(outcome);
    }

    /// The page at `/metrics`, as of now.
    pub(crate) fn metrics(&self) -> String {
        self.step(Event::Wake);
        let state = self.state.borrow();
        let holdings = Holdings { attached: state.runs.attached(), kept: state.runs.kept() };
        state.counts.render(&state.machine.gauge(), holdings)
    }

    /// The calls whose end nobody knows, as of now.
    pub(crate) fn unknown(&self) -> Vec<Call> {
        self.step(Event::Wake);
        let (now, state) = (self.now(), self.state.borrow());
        let tenant = |tenant: TenantId| self.tenants.get(usize::from(tenant.0)).cloned().unwrap_or_default();
        let calls = state.machine.unknown_ends().into_iter().map(|call| Call {
            id: call.id.0,
            tenant: tenant(call.tenant).to_string(),
            hold_tokens: call.hold.get(),
            held_for_s: call.until.since(now).as_secs_f64(),
        });
        calls.collect()
    }

    /// Somebody found out what call `id` used. False if there is no call of unknown end by that number.
    pub(crate) fn reconcile(&self, id: u64, used: Tokens) -> bool {
        self.step(Event::Wake);
        let unknown = self.state.borrow().machine.is_unknown(Id(id));
        if unknown {
            self.step(Event::Reconciled { id: Id(id), used });
        }
        unknown
    }

    /// Takes no new work, and refuses what waits. What is at the provider goes on, and whoever waits for its answer
    /// gets it.
    pub(crate) fn stop(&self) {
        let waiting: Vec<Id> = {
            let mut state = self.state.borrow_mut();
            state.stopping = true;
            let waits = |id: &Id| state.open.get(id).is_some_and(Option::is_some);
            let stays = |id: &Id| state.runs.leader(*id).is_some_and(|leader| !waits(&leader));
            let mut waiting: Vec<Id> =
                state.open.keys().copied().filter(|id| waits(id) && !stays(id)).collect();
            // those who follow leave first, so that nobody goes on for their sake
            waiting.sort_by_key(|id| !state.runs.follows(*id));
            waiting
        };
        for id in waiting {
            let sender = {
                let mut state = self.state.borrow_mut();
                state.counts.add(Outcome::Stopping);
                state.runs.unfollow(id);
                state.open.remove(&id).flatten()
            };
            self.step(Event::Left { id });
            // the caller may have left in this instant
            let _ = sender.map(|sender| sender.send(Verdict::Refuse(Refusal::Stopping)));
        }
    }

    /// Tells the machine each time the instant of its next wake has come. Timers have a grain of a millisecond and are
    /// never early; what a late one costs is that millisecond, since the budget has gone on filling.
    pub(crate) async fn keep_awake(self: Rc<Self>) {
        loop {
            let wake = self.state.borrow().machine.next_wake();
            self.armed.set(wake);
            let Some(at) = wake else {
                self.rearm.notified().await;
                continue;
            };
            let wait = at.since(self.now());
            if wait.is_zero() {
                self.step(Event::Wake);
                let next = self.state.borrow().machine.next_wake();
                if next.is_some_and(|next| next <= at) {
                    tokio::time::sleep(GRAIN).await;
                }
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.rearm.notified() => {}
            }
        }
    }

    /// Puts `event` to the machine and hands each effect to its request. If the event is an arrival, gives what was
    /// said to it at once.
    pub(super) fn step(&self, event: Event) -> Option<Verdict> {
        let now = self.now();
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        let arriving = if let Event::Arrive(ask) = &event { Some((ask.id, ask.tenant)) } else { None };
        let mut met = None;
        let mut effects = std::mem::take(&mut state.effects);
        let mut next = Some(event);
        while let Some(event) = next.take() {
            state.machine.handle(now, event, &mut effects);
            for effect in effects.drain(..) {
                if let Effect::Attach { id, to } = effect
                    && !state.runs.follow(id, to)
                {
                    // nobody can have that answer: this one is told so, and the machine too
                    next = Some(Event::Left { id });
                    met = state.tell(arriving.map(|(id, _)| id), id, Verdict::Refuse(Refusal::Running));
                } else if let Some((id, verdict)) =
                    self.verdict(state, now, effect, arriving.map(|(_, tenant)| tenant))
                {
                    met = state.tell(arriving.map(|(id, _)| id), id, verdict).or(met);
                }
            }
        }
        state.effects = effects;
        let sooner = match (state.machine.next_wake(), self.armed.get()) {
            (Some(next), Some(armed)) => next < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if sooner {
            self.rearm.notify_one();
        }
        met
    }

    /// What an effect says to which request; `tenant` is that of the one that arrives. What concerns no request is done.
    fn verdict(
        &self,
        state: &mut State,
        now: Moment,
        effect: Effect,
        tenant: Option<TenantId>,
    ) -> Option<(Id, Verdict)> {
        let refuse = |id, refusal| Some((id, Verdict::Refuse(refusal)));
        let told = |id, wait| self.telling.refusal(id, now, wait);
        match effect {
            Effect::Forward { id, .. } => Some((id, Verdict::Forward)),
            Effect::Shed { id, retry_after } => refuse(id, Refusal::Shed { told: told(id, retry_after) }),
            Effect::Throttle { id, limit, retry_after } => {
                let name = tenant.and_then(|tenant| self.tenants.get(usize::from(tenant.0)).cloned());
                let told = told(id, Some(retry_after));
                refuse(id, Refusal::Throttled { tenant: name.unwrap_or_default(), limit, told })
            }
            Effect::Expire { id, why, retry_after } => {
                state.counts.expired(why);
                refuse(id, Refusal::Expired { why, told: told(id, retry_after) })
            }
            Effect::Reject { id, hold, most, limit } => refuse(id, Refusal::NeverFits { hold, most, limit }),
            Effect::Running { id, .. } => refuse(id, Refusal::Running),
            Effect::Conflict { id } => refuse(id, Refusal::Conflict),
            Effect::Fail { id } => Some((id, Verdict::Fail)),
            Effect::Replay { id, of } => match state.runs.answer(of) {
                Some(answer) => Some((id, Verdict::Answer(answer))),
                // the machine names only what it has not let go; if it did, the answer would be as good as running
                None => refuse(id, Refusal::Running),
            },
            Effect::Cancel { id } => {
                state.runs.abort(id);
                None
            }
            Effect::Forget { id } => {
                state.runs.forget(id);
                None
            }
            Effect::Attach { .. } => None,
        }
    }

    /// Ends a request; `event` is not told if it had ended.
    pub(super) fn close(&self, id: Id, event: Event, outcome: Outcome) {
        let open = {
            let mut state = self.state.borrow_mut();
            let open = state.open.remove(&id).is_some();
            if open {
                state.counts.add(outcome);
            }
            open
        };
        if open {
            self.step(event);
            self.unfollow(id);
        }
    }

    /// A ticket was dropped. If its request was open, its caller has left, and so has its call to the provider: what
    /// that cost nobody knows.
    pub(super) fn dropped(&self, id: Id) {
        let (open, called) = {
            let state = self.state.borrow();
            let open = state.open.get(&id);
            (open.is_some(), open.is_some_and(Option::is_none))
        };
        if open {
            if called {
                self.state.borrow_mut().counts.call(CallEnd::Cancelled);
            }
            self.close(id, Event::Left { id }, Outcome::Left);
            self.step(Event::Failed { id, how: Failure::Unknown });
        }
        // otherwise its end is told by `deliver`
        let ended = self.state.borrow_mut().runs.drop_out(id, open);
        for follower in ended.map(|run| run.followers).unwrap_or_default() {
            self.refuse_follower(follower, Refusal::upstream("the call was given up"));
        }
    }

    /// The caller of a request that runs in a task of its own has left; or has its reply, and then nothing is to do.
    pub(super) fn caller_left(&self, id: Id) {
        let Some(alone) = self.state.borrow_mut().runs.caller_left(id) else { return };
        self.step(Event::Left { id });
        let state = self.state.borrow();
        if alone && state.machine.forgets_leaver(id) {
            state.runs.abort(id);
        }
    }

    /// Whether the call of `id` ends when its caller leaves.
    pub(super) fn forgets_leaver(&self, id: Id) -> bool {
        self.state.borrow().machine.forgets_leaver(id)
    }

    /// Whether idempotency keys are not looked at.
    pub(super) fn ignores_keys(&self) -> bool {
        self.state.borrow().machine.ignores_keys()
    }

    /// A streamed answer begins; nearly no machine minds.
    pub(super) fn begun(&self, id: Id) {
        if self.state.borrow().machine.minds_beginnings() {
            self.step(Event::Begun { id });
        }
    }

    fn unfollow(&self, id: Id) {
        let mut state = self.state.borrow_mut();
        if let Some(leader) = state.runs.unfollow(id) {
            state.runs.abort(leader);
        }
    }

    /// Gives what a request has come to to its caller and to those who follow it.
    pub(crate) fn deliver(&self, id: Id, reply: Reply) {
        let caller = if let Reply::Passing(_) = &reply {
            self.state.borrow_mut().runs.take_caller(id)
        } else {
            let run = self.state.borrow_mut().runs.end(id).unwrap_or_default();
            for follower in run.followers {
                match &reply {
                    Reply::Whole(answer) => {
                        self.tell_follower(follower, Verdict::Answer(Rc::clone(answer)), Outcome::Replayed);
                    }
                    Reply::Refused(refusal) => self.refuse_follower(follower, refusal.clone()),
                    Reply::Passing(_) => {}
                }
            }
            run.caller
        };
        // a reply that nobody takes is dropped here, where no state is borrowed
        if let Some(caller) = caller {
            let _ = caller.send(reply);
        }
    }

    pub(super) fn refuse_follower(&self, id: Id, refusal: Refusal) {
        let outcome = refusal.outcome();
        self.tell_follower(id, Verdict::Refuse(refusal), outcome);
    }

    fn tell_follower(&self, id: Id, verdict: Verdict, outcome: Outcome) {
        let mut state = self.state.borrow_mut();
        if let Some(sender) = state.open.remove(&id) {
            state.counts.add(outcome);
            // it may leave in this instant
            let _ = sender.map(|sender| sender.send(verdict));
        }
    }
}

impl State {
    /// Gives `verdict` to `id`: back, if that one is just arriving, else by the way it waits on.
    fn tell(&mut self, arriving: Option<Id>, id: Id, verdict: Verdict) -> Option<Verdict> {
        let ends = match &verdict {
            Verdict::Forward => None,
            Verdict::Refuse(refusal) => Some(refusal.outcome()),
            Verdict::Fail => Some(Outcome::Failed),
            Verdict::Answer(_) => Some(Outcome::Replayed),
        };
        match ends {
            Some(outcome) => self.counts.add(outcome),
            None => self.counts.forwards += 1,
        }
        if arriving == Some(id) {
            return Some(verdict);
        }
        let sender = match ends {
            Some(_) => self.open.remove(&id).flatten(),
            None => self.open.get_mut(&id).and_then(Option::take),
        };
        // a caller who leaves in this instant drops its ticket, which says so
        let _ = sender.map(|sender| sender.send(verdict));
        None
    }
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell").field("armed", &self.armed).finish_non_exhaustive()
    }
}
