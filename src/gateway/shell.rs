use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use super::metrics::{Counts, Outcome};
use super::refusal::Refusal;
use crate::admission::{Admission, Ask, Config, Effect, Event, Id};
use crate::units::{Bytes, Moment, Tokens};

/// Where the time comes from.
pub(crate) type Now = Box<dyn Fn() -> Moment>;

/// The rest before a wake that the machine asks for in the past: it never does, and if it did, one thread shall not
/// turn in a circle.
const GRAIN: Duration = Duration::from_millis(1);

/// The machine, and the requests that wait for its word.
///
/// Every event goes through `handle`, which hands each effect to its request. A request holds a [`Ticket`]; when that
/// is dropped before its end, the machine is told that the caller left.
pub(crate) struct Shell {
    now: Now,
    state: RefCell<State>,
    /// The instant the waker sleeps to.
    armed: Cell<Option<Moment>>,
    rearm: Notify,
}

struct State {
    machine: Admission,
    /// The open requests; those that have no word yet with the way to reach them.
    open: BTreeMap<Id, Option<oneshot::Sender<Verdict>>>,
    effects: Vec<Effect>,
    next: u64,
    counts: Counts,
    stopping: bool,
}

/// What the machine says to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// To the provider.
    Forward,
    /// Back to the caller.
    Refuse(Refusal),
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
}

impl Shell {
    pub(crate) fn new(config: &Config, now: Now) -> Self {
        let state = State {
            machine: Admission::new(config, now()),
            open: BTreeMap::new(),
            effects: Vec::new(),
            next: 0,
            counts: Counts::default(),
            stopping: false,
        };
        Self { now, state: RefCell::new(state), armed: Cell::new(None), rearm: Notify::new() }
    }

    pub(crate) fn now(&self) -> Moment {
        (self.now)()
    }

    /// Puts a request to the machine.
    pub(crate) fn admit(self: &Rc<Self>, terms: Terms) -> Result<Ticket, Refusal> {
        let (sender, verdict) = oneshot::channel();
        let id = {
            let mut state = self.state.borrow_mut();
            if state.stopping {
                return Err(Refusal::Stopping);
            }
            let id = Id(state.next);
            state.next += 1;
            state.open.insert(id, Some(sender));
            id
        };
        let ticket = Ticket { shell: Rc::clone(self), id, verdict };
        let Terms { caller, prompt, max_output, bytes, deadline } = terms;
        // a stranger gets a number no hash of a short text is likely to be
        let caller = caller.unwrap_or(!id.0);
        self.handle(Event::Arrive(Ask { id, caller, prompt, max_output, bytes, deadline }));
        Ok(ticket)
    }

    /// Counts a request that never came to the machine.
    pub(crate) fn count(&self, outcome: Outcome) {
        self.state.borrow_mut().counts.add(outcome);
    }

    /// The page at `/metrics`, as of now.
    pub(crate) fn metrics(&self) -> String {
        self.handle(Event::Wake);
        let state = self.state.borrow();
        state.counts.render(&state.machine.gauge())
    }

    /// Takes no new work, and refuses what waits. What is at the provider goes on.
    pub(crate) fn stop(&self) {
        let waiting: Vec<_> = {
            let mut state = self.state.borrow_mut();
            state.stopping = true;
            let ids: Vec<_> = state.open.iter().filter(|(_, s)| s.is_some()).map(|(id, _)| *id).collect();
            ids.into_iter().filter_map(|id| Some((id, state.open.remove(&id)??))).collect()
        };
        for (id, sender) in waiting {
            self.count(Outcome::Stopping);
            self.handle(Event::Left { id });
            // the caller may have left in this instant
            let _ = sender.send(Verdict::Refuse(Refusal::Stopping));
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
                self.handle(Event::Wake);
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

    fn handle(&self, event: Event) {
        let now = self.now();
        let mut guard = self.state.borrow_mut();
        let state = &mut *guard;
        state.machine.handle(now, event, &mut state.effects);
        for effect in state.effects.drain(..) {
            let (id, verdict) = match effect {
                Effect::Forward { id, .. } => (id, Verdict::Forward),
                Effect::Shed { id, retry_after } => (id, Verdict::Refuse(Refusal::Shed { retry_after })),
                Effect::Expire { id, why, retry_after } => {
                    (id, Verdict::Refuse(Refusal::Expired { why, retry_after }))
                }
                Effect::Reject { id, hold, most } => (id, Verdict::Refuse(Refusal::NeverFits { hold, most })),
            };
            let sender = match &verdict {
                Verdict::Forward => {
                    state.counts.forwards += 1;
                    state.open.get_mut(&id).and_then(Option::take)
                }
                Verdict::Refuse(refusal) => {
                    state.counts.add(refusal.outcome());
                    state.open.remove(&id).flatten()
                }
            };
            if let Some(sender) = sender {
                // a caller who leaves in this instant drops its ticket, which says so
                let _ = sender.send(verdict);
            }
        }
        let sooner = match (state.machine.next_wake(), self.armed.get()) {
            (Some(next), Some(armed)) => next < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if sooner {
            self.rearm.notify_one();
        }
    }

    /// Ends a request that is at the provider; false if it had ended.
    fn close(&self, id: Id, event: Event, outcome: Outcome) {
        let open = self.state.borrow_mut().open.remove(&id).is_some();
        if open {
            self.count(outcome);
            self.handle(event);
        }
    }
}

impl fmt::Debug for Shell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shell").field("armed", &self.armed).finish_non_exhaustive()
    }
}

/// An open request's hold on the machine. Dropped before it is closed, it says that the caller has left.
#[derive(Debug)]
pub(crate) struct Ticket {
    shell: Rc<Shell>,
    id: Id,
    verdict: oneshot::Receiver<Verdict>,
}

impl Ticket {
    /// Waits for the machine's word.
    pub(crate) async fn verdict(&mut self) -> Verdict {
        // the sender is only ever dropped after a word was sent
        (&mut self.verdict).await.unwrap_or(Verdict::Refuse(Refusal::Stopping))
    }

    /// The provider refused it for its quota. Another word will come.
    pub(crate) fn refused(&mut self, retry_after: Option<Duration>) {
        let (sender, verdict) = oneshot::channel();
        self.verdict = verdict;
        let stopping = {
            let mut state = self.shell.state.borrow_mut();
            state.counts.upstream_refusals += 1;
            if let Some(slot) = state.open.get_mut(&self.id) {
                *slot = Some(sender);
            }
            state.stopping
        };
        self.shell.handle(Event::Refused { id: self.id, retry_after });
        if stopping {
            self.shell.stop();
        }
    }

    /// The provider's answer has ended; it `used` so many tokens, if it said.
    pub(crate) fn settled(self, used: Option<Tokens>) {
        self.shell.close(self.id, Event::Settled { id: self.id, used }, Outcome::Completed);
    }

    /// The call failed; `known` if the provider surely did no work for it.
    pub(crate) fn failed(self, known: bool) {
        self.shell.close(self.id, Event::Failed { id: self.id, known }, Outcome::Failed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.shell.close(self.id, Event::Left { id: self.id }, Outcome::Left);
    }
}
