use std::rc::Rc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::metrics::{CallEnd, Outcome};
use super::refusal::Refusal;
use super::reply::{Reply, Stored};
use super::shell::{Shell, Verdict};
use crate::admission::{Event, Failure, Id};
use crate::units::Tokens;

/// An open request's hold on the machine. Dropped before it is closed, it says that the caller has left.
#[derive(Debug)]
pub(crate) struct Ticket {
    shell: Rc<Shell>,
    id: Id,
    word: Word,
}

/// The machine's next word.
#[derive(Debug)]
pub(crate) enum Word {
    /// It was said at once.
    Forward,
    /// It will come here.
    Coming(oneshot::Receiver<Verdict>),
}

impl Ticket {
    pub(super) const fn new(shell: Rc<Shell>, id: Id, word: Word) -> Self {
        Self { shell, id, word }
    }

    /// Whether it waits for the answer of another.
    pub(crate) fn follows(&self) -> bool {
        self.shell.state.borrow().runs.follows(self.id)
    }

    /// Whether others may wait for its answer.
    pub(crate) fn leads(&self) -> bool {
        self.shell.state.borrow().runs.leads(self.id)
    }

    /// Whether it runs in a task of its own, apart from its caller.
    pub(crate) fn runs_apart(&self) -> bool {
        self.shell.state.borrow().runs.runs_apart(self.id)
    }

    /// Waits for the machine's word.
    pub(crate) async fn verdict(&mut self) -> Verdict {
        match &mut self.word {
            Word::Forward => Verdict::Forward,
            // the sender is only ever dropped after a word was sent
            Word::Coming(word) => word.await.unwrap_or(Verdict::Refuse(Refusal::Stopping)),
        }
    }

    /// The provider refused it for its quota. Another word will come.
    pub(crate) fn refused(&mut self, retry_after: Option<Duration>) {
        self.again(CallEnd::Refused, Event::Refused { id: self.id, retry_after });
    }

    /// The call failed, and the provider surely did no work for it. Another word will come: to try again, or that it
    /// has failed.
    pub(crate) fn repeatable(&mut self, end: CallEnd) {
        self.again(end, Event::Failed { id: self.id, how: Failure::Repeatable });
    }

    fn again(&mut self, end: CallEnd, event: Event) {
        let (sender, word) = oneshot::channel();
        self.word = Word::Coming(word);
        let stopping = {
            let mut state = self.shell.state.borrow_mut();
            state.counts.call(end);
            if let Some(slot) = state.open.get_mut(&self.id) {
                *slot = Some(sender);
            }
            state.stopping
        };
        self.shell.step(event);
        if stopping {
            self.shell.stop();
        }
    }

    /// The provider's answer has ended; it `used` so many tokens, if it said. If it is all there, it is kept for those
    /// who send the same.
    pub(crate) fn settled(self, used: Option<Tokens>, answer: Option<&Rc<Stored>>) {
        let answer = answer.filter(|_| self.leads());
        if let Some(answer) = answer {
            self.shell.state.borrow_mut().runs.keep(self.id, Rc::clone(answer));
        }
        let event = Event::Settled { id: self.id, used, answer: answer.map(|answer| answer.size()) };
        self.end(CallEnd::Answered, event, Outcome::Completed);
    }

    /// The call has failed for good, and the caller has an answer.
    pub(crate) fn failed(self, how: Failure, end: CallEnd) {
        self.end(end, Event::Failed { id: self.id, how }, Outcome::Failed);
    }

    fn end(&self, end: CallEnd, event: Event, outcome: Outcome) {
        self.shell.state.borrow_mut().counts.call(end);
        self.shell.close(self.id, event, outcome);
    }

    /// Whoever follows has waited long enough.
    pub(crate) fn gives_up(self) {
        self.shell.close(self.id, Event::Left { id: self.id }, Outcome::Failed);
    }

    /// Its answer begins to come.
    pub(crate) fn begun(&self) {
        self.shell.begun(self.id);
    }

    /// Its answer passes through: those who wait for it can have none of it.
    pub(crate) fn streams(&self) {
        let followers = self.shell.state.borrow_mut().runs.streams(self.id);
        for id in followers {
            self.shell.refuse_follower(id, Refusal::Running);
            self.shell.step(Event::Left { id });
        }
    }

    /// Gives the place of a request that leads to `task`; what it comes to is then told to the seat.
    pub(crate) fn hand_over(self, task: impl FnOnce(Self) -> AbortHandle) -> Seat {
        let (shell, id) = (Rc::clone(&self.shell), self.id);
        let (caller, reply) = oneshot::channel();
        let task = task(self);
        shell.state.borrow_mut().runs.runs_as(id, task, caller);
        Seat { shell, id, reply }
    }

    pub(crate) const fn id(&self) -> Id {
        self.id
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.shell.dropped(self.id);
    }
}

/// The place of a caller whose request runs in a task of its own. Dropped before there was a reply, it says that the
/// caller has left.
#[derive(Debug)]
pub(crate) struct Seat {
    shell: Rc<Shell>,
    id: Id,
    reply: oneshot::Receiver<Reply>,
}

impl Seat {
    /// Waits for what the request comes to.
    pub(crate) async fn reply(mut self) -> Reply {
        let gone = || Reply::Refused(Refusal::upstream("the call was given up"));
        (&mut self.reply).await.unwrap_or_else(|_| gone())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shell.caller_left(self.id);
    }
}
