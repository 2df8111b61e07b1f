//! Who waits for whose answer, among requests with idempotency keys.

use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::reply::{Reply, Stored};
use crate::admission::Id;

/// The runs of requests with idempotency keys, by the request that leads, and the answers that are kept.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    open: BTreeMap<Id, Run>,
    following: BTreeMap<Id, Id>,
    answers: BTreeMap<Id, Rc<Stored>>,
}

/// A request that runs for its own caller and for those who sent the same.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The way to the caller it began with, if that one still waits.
    pub(crate) caller: Option<oneshot::Sender<Reply>>,
    /// Others that want its answer.
    pub(crate) followers: Vec<Id>,
    task: Option<AbortHandle>,
    /// Its answer passes through, and cannot be given twice.
    streams: bool,
    /// Nobody else can send the same: it runs apart only so that it can outlast its caller.
    alone: bool,
}

impl Runs {
    /// `id` leads from now on.
    pub(crate) fn begin(&mut self, id: Id) {
        self.open.insert(id, Run::default());
    }

    /// `id` runs apart from its caller, and nobody follows it.
    pub(crate) fn begin_alone(&mut self, id: Id) {
        self.open.insert(id, Run { alone: true, ..Run::default() });
    }

    /// Whether `id` runs apart from its caller.
    pub(crate) fn runs_apart(&self, id: Id) -> bool {
        self.open.contains_key(&id)
    }

    /// It runs as `task`, for a caller who is reached by `caller`.
    pub(crate) fn runs_as(&mut self, id: Id, task: AbortHandle, caller: oneshot::Sender<Reply>) {
        if let Some(run) = self.open.get_mut(&id) {
            (run.task, run.caller) = (Some(task), Some(caller));
        }
    }

    /// Whether others may want its answer.
    pub(crate) fn leads(&self, id: Id) -> bool {
        self.open.get(&id).is_some_and(|run| !run.alone)
    }

    pub(crate) fn follows(&self, id: Id) -> bool {
        self.following.contains_key(&id)
    }

    /// Whom `id` follows.
    pub(crate) fn leader(&self, id: Id) -> Option<Id> {
        self.following.get(&id).copied()
    }

    /// How many follow.
    pub(crate) fn attached(&self) -> usize {
        self.following.len()
    }

    /// How many answers are kept.
    pub(crate) fn kept(&self) -> usize {
        self.answers.len()
    }

    /// `id` wants the answer of `to`; false if that one cannot be given twice.
    pub(crate) fn follow(&mut self, id: Id, to: Id) -> bool {
        let Some(run) = self.open.get_mut(&to).filter(|run| !run.streams) else { return false };
        run.followers.push(id);
        self.following.insert(id, to);
        true
    }

    /// `id` does not wait for another's answer any more. Gives the one it followed if nobody waits for that now.
    pub(crate) fn unfollow(&mut self, id: Id) -> Option<Id> {
        let to = self.following.remove(&id)?;
        let run = self.open.get_mut(&to)?;
        run.followers.retain(|other| *other != id);
        (run.followers.is_empty() && run.caller.is_none()).then_some(to)
    }

    /// The caller of `id` has left. Gives whether nobody else waits for its answer; nothing if that caller was served.
    pub(crate) fn caller_left(&mut self, id: Id) -> Option<bool> {
        let run = self.open.get_mut(&id)?;
        run.caller.take().map(|_| run.followers.is_empty())
    }

    /// Ends the task of `id`: nobody waits for it.
    pub(crate) fn abort(&self, id: Id) {
        if let Some(task) = self.open.get(&id).and_then(|run| run.task.as_ref()) {
            task.abort();
        }
    }

    /// The answer of `id` passes through from now on; gives those that can have none of it.
    pub(crate) fn streams(&mut self, id: Id) -> Vec<Id> {
        let Some(run) = self.open.get_mut(&id) else { return Vec::new() };
        run.streams = true;
        let followers = std::mem::take(&mut run.followers);
        followers.iter().for_each(|follower| {
            self.following.remove(follower);
        });
        followers
    }

    /// Takes the way to the caller of `id`, whose answer passes through.
    pub(crate) fn take_caller(&mut self, id: Id) -> Option<oneshot::Sender<Reply>> {
        self.open.get_mut(&id)?.caller.take()
    }

    /// The ticket of `id` is gone: that ends a run whose answer passed through, and one that was `open` still.
    pub(crate) fn drop_out(&mut self, id: Id, open: bool) -> Option<Run> {
        let streams = self.open.get(&id).is_some_and(|run| run.streams);
        (open || streams).then(|| self.end(id))?
    }

    /// `id` has ended.
    pub(crate) fn end(&mut self, id: Id) -> Option<Run> {
        let run = self.open.remove(&id)?;
        run.followers.iter().for_each(|follower| {
            self.following.remove(follower);
        });
        Some(run)
    }

    /// Keeps the answer of `id` for those who send the same later.
    pub(crate) fn keep(&mut self, id: Id, answer: Rc<Stored>) {
        self.answers.insert(id, answer);
    }

    pub(crate) fn forget(&mut self, id: Id) {
        self.answers.remove(&id);
    }

    pub(crate) fn answer(&self, of: Id) -> Option<Rc<Stored>> {
        self.answers.get(&of).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_as_long_as_somebody_waits_for_it() {
        let mut runs = Runs::default();
        runs.begin(Id(1));
        if let Some(run) = runs.open.get_mut(&Id(1)) {
            run.caller = Some(oneshot::channel().0);
        }
        assert!(runs.follow(Id(2), Id(1)) && runs.follow(Id(3), Id(1)));
        assert_eq!(runs.caller_left(Id(1)), Some(false), "two others wait");
        assert_eq!(runs.caller_left(Id(1)), None, "once");
        assert!(runs.drop_out(Id(1), false).is_none(), "its end is still to be told");
        assert_eq!(runs.unfollow(Id(2)), None);
        assert_eq!(runs.unfollow(Id(3)), Some(Id(1)), "nobody waits any more");
        assert_eq!(runs.attached(), 0);
    }

    #[test]
    fn what_passes_through_is_nobody_elses() {
        let mut runs = Runs::default();
        runs.begin(Id(1));
        assert!(runs.follow(Id(2), Id(1)));
        assert_eq!(runs.streams(Id(1)), [Id(2)]);
        assert!(!runs.follow(Id(3), Id(1)));
        assert!(runs.end(Id(1)).is_some_and(|run| run.followers.is_empty()) && !runs.leads(Id(1)));
        assert!(!runs.follow(Id(4), Id(1)), "it has ended");
    }
}
