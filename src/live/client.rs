//! The callers: one runtime on one thread, an exchange a task. It never waits for an answer in order to send.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};

use super::body::{Template, Written};
use super::comebacks::{self, Comeback, Comebacks, Told};
use super::evidence::{Evidence, Locker};
use super::listening::{self, Pulse};
use super::pacer::{Departure, Fate, Pacer, fate};
use super::pacing::{self, Paced, Timer};
use super::request::{Errand, Wire};
use super::sender::{Outgoing, Reply};
use super::trouble::Trouble;
use super::{Clock, LiveError, Looked, Seen, hints, reading};
use crate::observe::{Answer, Attempt, Broken, Reason, RetryAfter, Sighting, Unsent};
use crate::plan::{Plan, Refusal};
use crate::provider::wire::Api;
use crate::units::Moment;
use crate::workload::{Arrival, Class, Cohort, Copies, Late, Mix, OnRefusal, Signs};

/// The most of a body that is read.
const LARGEST: usize = 1 << 20;

/// What every exchange of a run shares.
#[derive(Debug)]
pub(super) struct Callers {
    wire: Wire,
    mix: Mix,
    templates: Vec<Template>,
    api: &'static dyn Api,
    expect: Refusal,
    late: Late,
    most_open: u32,
    open: AtomicU32,
    /// Wakes the loop when the last open exchange has ended.
    closed: Notify,
    cohort: Mutex<Cohort>,
    copies: Copies,
    comebacks: Comebacks,
    locker: Mutex<Locker>,
    clock: Clock,
    out: Sender<Seen>,
    returns: UnboundedSender<Departure>,
    paced: Arc<Paced>,
}

/// What has come of an answer.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Whether it has begun to stream.
    opened: AtomicBool,
    /// Bytes of its body.
    bytes: AtomicU64,
}

impl Heard {
    /// So many bytes more.
    pub(super) fn more(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The ends of the channels the client holds.
#[derive(Debug)]
pub(super) struct Ends {
    /// Sightings go here.
    pub(super) out: Sender<Seen>,
    /// Returning callers go back to the pacing path here.
    pub(super) returns: UnboundedSender<Departure>,
    /// What the pacing path counts.
    pub(super) paced: Arc<Paced>,
}

impl Callers {
    /// The callers of `plan`, sending over `wire`; the load begins at `start`.
    ///
    /// # Errors
    ///
    /// If no prompts can be made that count as they should.
    pub(super) fn new(
        plan: &Plan,
        wire: Wire,
        clock: Clock,
        start: Moment,
        ends: Ends,
    ) -> Result<Arc<Self>, LiveError> {
        let request = &plan.target.request;
        let template = |class| Template::new(plan.provider.api, &request.model, class, plan.provider.count);
        Ok(Arc::new(Self {
            templates: plan.requests.classes().iter().map(template).collect::<Result<_, _>>()?,
            mix: plan.requests.clone(),
            api: plan.provider.api,
            expect: plan.expect.refusal.clone(),
            late: plan.load.late,
            most_open: plan.max_outstanding,
            open: AtomicU32::new(0),
            closed: Notify::new(),
            cohort: Mutex::new(Cohort::new(plan.probes)),
            copies: Copies::new(plan.load.seed, &plan.requests),
            comebacks: Comebacks::new(plan, start),
            locker: Mutex::new(Locker::new(request.headers.values().cloned(), start)),
            wire,
            clock,
            out: ends.out,
            returns: ends.returns,
            paced: ends.paced,
        }))
    }

    /// How many exchanges are open.
    pub(super) fn open(&self) -> u32 {
        self.open.load(Ordering::Acquire)
    }

    /// The raw refusals that were kept; none are left.
    pub(super) fn take_evidence(&self) -> Vec<Evidence> {
        let mut locker = self.locker.lock().unwrap_or_else(PoisonError::into_inner);
        locker.take()
    }

    /// How the target's name was looked up, if it has one.
    pub(super) fn looked(&self) -> Option<Looked> {
        self.wire.sender.looked()
    }

    fn say(&self, sighting: Sighting) {
        // nobody listens any more once the run is over
        let _ = self.out.send(Seen::Sighting(sighting));
    }

    /// Begins an exchange, or says why not.
    fn begin(self: &Arc<Self>, departure: Departure) {
        let (attempt, class) = (departure.attempt, self.mix.class(departure.class));
        if attempt.nth == 0 {
            self.comebacks.earn(departure.class);
            self.copy(departure);
        }
        let at = self.clock.now();
        // whoever would have left by now is not sent any more: the lateness is ours. So is what this thread was late by
        let why =
            if at >= departure.due + class.patience || fate(self.late, departure.due, at) == Fate::TooLate {
                Some(Unsent::Late)
            } else if self.open() >= self.most_open {
                Some(Unsent::Outstanding)
            } else {
                None
            };
        if let Some(why) = why {
            self.say(Sighting::Unsent { attempt, at, why });
            return;
        }
        let open = Open::new(Arc::clone(self));
        let busy = self.wire.sender.busy();
        tokio::spawn(async move { open.0.exchange(departure, (at, busy)).await });
    }

    /// A copy of an arrival's first attempt follows it, if it has one.
    fn copy(&self, departure: Departure) {
        if let Some(after) = self.copies.after(departure.class, departure.attempt.seq) {
            let attempt = Attempt { nth: Attempt::COPY, ..departure.attempt };
            // nobody listens any more once the last phase is over: then it is not sent
            let _ = self.returns.send(Departure { due: departure.due + after, attempt, ..departure });
        }
    }

    /// One exchange from its first byte to its last, or to the end of its caller's patience.
    /// `begun` is when that was, and how long the thread that sends had been behind until then.
    async fn exchange(&self, departure: Departure, (begun, busy_before): (Moment, Duration)) {
        let Departure { due, attempt, .. } = departure;
        let class = self.mix.class(departure.class);
        let leaves = self.clock.tokio_instant(due + class.patience);
        let written = Written::new(attempt, self.clock, self.out.clone());
        let heard = Heard::default();
        let talk = self.talk(departure, class, begun, &written, &heard);
        // dropping the exchange closes its connection
        let result = tokio::time::timeout_at(leaves, talk).await;
        let (mut at, mut told) = (self.clock.now(), Told::default());
        let unsent = |why| Sighting::Unsent { attempt, at, why };
        let sighting = match result {
            // whether before it was written or after: the target has no part in it
            Ok(Err(Trouble::Exhausted)) => unsent(Unsent::Exhausted),
            // most of its time it waited for this thread, which had none for it
            Err(_)
                if written.at().is_none()
                    && self.wire.sender.busy().saturating_sub(busy_before) * 2 >= at.since(begun) =>
            {
                unsent(Unsent::Late)
            }
            // where no connection came up, the target would not let us write: we had begun in time
            other => {
                written.mark(begun);
                match other {
                    Err(_) => Sighting::Left { attempt, at },
                    Ok(Ok((answer, headers, read))) => {
                        at = read;
                        told = headers;
                        Sighting::Answered { attempt, at, answer }
                    }
                    Ok(Err(trouble)) => {
                        let why = trouble.broken().unwrap_or(Broken::Closed);
                        Sighting::Broken { attempt, at, why, read: heard.bytes.load(Ordering::Relaxed) }
                    }
                }
            }
        };
        let returns = match (&class.on_refusal, &sighting) {
            // no SDK repeats what has begun to stream
            _ if attempt.is_copy() => false,
            (OnRefusal::Retry(_), _) if heard.opened.into_inner() => false,
            (OnRefusal::Retry(_), ended) => self.send_back(self.comes_back(departure, at, ended, &told)),
            (OnRefusal::GiveUp, Sighting::Answered { answer, .. }) => {
                self.perhaps_return(departure, at, answer, &written);
                false
            }
            (OnRefusal::GiveUp, _) => false,
        };
        if returns {
            self.say(Sighting::Again { attempt, at });
        }
        self.say(sighting);
    }

    /// Whether the caller of an attempt that has ended tries again, by its own rule.
    fn comes_back(&self, departure: Departure, at: Moment, ended: &Sighting, told: &Told) -> Comeback {
        let signs = match ended {
            Sighting::Answered { answer, .. } if answer.usable => return Comeback::None,
            Sighting::Answered { answer, .. } => {
                let never = answer.reason == Some(Reason::NeverFits);
                comebacks::signs(answer, told, self.refusal(answer.status) && answer.marked && !never)
            }
            Sighting::Left { .. } => Signs { timed_out: true, ..Signs::default() },
            Sighting::Broken { .. } => Signs::default(),
            // what was not sent is our fault: nobody knows what would have become of it
            _ => return Comeback::None,
        };
        self.comebacks.next(departure, &self.mix, &signs, at)
    }

    /// Sends a caller back to where it will be due. False if it does not come back, or not before the run ends.
    fn send_back(&self, comeback: Comeback) -> bool {
        let due = match comeback {
            Comeback::None => return false,
            Comeback::TooLate => None,
            Comeback::Due(departure) => Some(departure),
        };
        // nobody listens any more once the last phase is over
        let taken = due.is_some_and(|departure| self.returns.send(departure).is_ok());
        if !taken {
            self.paced.not_waited_for.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }

    /// The answer, and when its last byte was read.
    async fn talk(
        &self,
        departure: Departure,
        class: &Class,
        now: Moment,
        written: &Arc<Written>,
        heard: &Heard,
    ) -> Result<(Answer, Told, Moment), Trouble> {
        let mut reply = self.wire.sender.send(self.outgoing(departure, class, now, written)).await?;
        let (status, headers) = (reply.status, std::mem::take(&mut reply.headers));
        if class.stream && status == 200 {
            heard.opened.store(true, Ordering::Relaxed);
            let pulse = Pulse::new(departure.attempt, self.out.clone());
            let (answer, at) =
                listening::answer(self.api, (reply, heard), &headers, pulse, &self.expect, self.clock)
                    .await?;
            return Ok((answer, Told::default(), at));
        }
        let body = whole_body(reply, heard).await?;
        let at = self.clock.now();
        let mut answer = reading::answer(self.api, status, &headers, &body, &self.expect);
        if self.refusal(status) {
            answer.hints = hints::read(&headers, self.clock.unix());
            let mut locker = self.locker.lock().unwrap_or_else(PoisonError::into_inner);
            locker.keep(departure.attempt, at, status, &headers, &body);
        }
        // what only an SDK looks at is read where one is played, and has something to repeat
        let repeats = class.on_refusal != OnRefusal::GiveUp && !answer.usable;
        let told = if repeats { Told::read(&headers, self.clock.unix()) } else { Told::default() };
        Ok((answer, told, at))
    }

    /// The request of an attempt that is sent at `now`.
    fn outgoing(
        &self,
        departure: Departure,
        class: &Class,
        now: Moment,
        written: &Arc<Written>,
    ) -> Box<Outgoing> {
        let Departure { attempt, sizes, .. } = departure;
        let doubled = self.copies.after(departure.class, attempt.seq).is_some();
        let id = self.wire.id(attempt, sizes.output);
        let text = id.to_string();
        let remaining = (departure.due + class.deadline).since(now);
        let key = doubled.then_some(attempt.seq);
        let errand = Errand { id: &id, text: &text, class, remaining, unix: self.clock.unix(), key };
        let mut headers = self.wire.headers(errand);
        comebacks::introduce(class, attempt, &mut headers);
        let template = &self.templates[usize::from(departure.class.0)];
        // under one key goes one body, whatever attempt it is
        let inside = if doubled {
            self.wire.id(Attempt { nth: 0, ..attempt }, sizes.output).to_string()
        } else {
            text
        };
        Box::new(Outgoing { headers, body: template.body(inside, sizes.prompt, Arc::clone(written)) })
    }

    fn refusal(&self, status: u16) -> bool {
        self.expect.means_refusal(status)
    }

    /// A caller whose first attempt was refused, and that is one of the cohort, comes back exactly as told.
    fn perhaps_return(&self, departure: Departure, at: Moment, answer: &Answer, written: &Written) {
        // who has a copy does not come back as told: the copy was told something else
        let once =
            departure.attempt.nth == 0 && self.copies.after(departure.class, departure.attempt.seq).is_none();
        let first = once && self.refusal(answer.status);
        let quick = written.at().is_none_or(|sent| at.since(sent) <= self.expect.fast_within);
        let refused = match answer.reason {
            Some(Reason::Shed | Reason::Throttled) => true,
            Some(Reason::Expired | Reason::NeverFits) => false,
            None => quick,
        };
        let told = answer.retry_after.as_ref().and_then(RetryAfter::wait);
        let Some(told) = told.filter(|_| first && refused) else { return };
        let due = self.cohort.lock().unwrap_or_else(PoisonError::into_inner).refused(at, told);
        let Some(due) = due else { return };
        let attempt = Attempt { nth: 1, ..departure.attempt };
        if self.returns.send(Departure { due, attempt, probe: true, ..departure }).is_err() {
            // nothing is due any more: the last phase is over
            self.paced.not_waited_for.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Reads a body to its end, or to [`LARGEST`].
pub(super) async fn whole_body(mut reply: Reply, heard: &Heard) -> Result<Vec<u8>, Trouble> {
    let mut body = Vec::new();
    while let Some(chunk) = reply.chunk().await? {
        heard.more(chunk.len());
        if body.len() + chunk.len() > LARGEST {
            return Err(Trouble::Broken(Broken::TooLarge));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Counts an exchange as open for as long as it lives, however it ends.
struct Open(Arc<Callers>);

impl Open {
    fn new(callers: Arc<Callers>) -> Self {
        callers.open.fetch_add(1, Ordering::AcqRel);
        Self(callers)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.closed.notify_one();
        }
    }
}

/// Tasks of the runtime between two looks at what has come in: whatever is due waits for so many at most.
const TASKS_A_LOOK: u32 = 16;

/// Starts the client's thread, which paces `pacer` and sends what is due. It ends when nothing more is due and no
/// exchange is open, or at once when `quit` turns true; what is open then is dropped.
pub(super) fn start<S>(
    callers: Arc<Callers>,
    pacer: Pacer<S>,
    ends: pacing::Ends,
    mut quit: watch::Receiver<bool>,
    ping: impl Future<Output = ()> + Send + 'static,
) -> Result<JoinHandle<io::Result<()>>, LiveError>
where
    S: Iterator<Item = Arrival> + Send + 'static,
{
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let (rests, wakes) = (Arc::clone(&callers), Arc::clone(&callers));
    builder
        .enable_all()
        .event_interval(TASKS_A_LOOK)
        .on_thread_park(move || rests.wire.sender.rest())
        .on_thread_unpark(move || wakes.wire.sender.wake());
    let runtime = builder.build().map_err(LiveError::Thread)?;
    let timer = {
        let _inside = runtime.enter();
        Timer::new(callers.clock).map_err(LiveError::Thread)?
    };
    let body = move || {
        // it is said once
        let _ = callers.paced.scheduling.set(super::run_before_others());
        let ended = runtime.block_on(async {
            let ping = tokio::spawn(ping);
            let work = async {
                let paced = pacing::pace(pacer, timer, ends, &callers.paced, |due| callers.begin(due)).await;
                if paced.is_ok() {
                    callers.paced.over();
                }
                while paced.is_ok() && callers.open() > 0 {
                    callers.closed.notified().await;
                }
                paced
            };
            let ended = tokio::select! {
                biased;
                paced = work => paced,
                _ = quit.wait_for(|quit| *quit) => Ok(()),
            };
            // of one that failed it stays known how far it came
            if ended.is_ok() {
                callers.paced.over();
            }
            ping.abort();
            ended
        });
        runtime.shutdown_background();
        ended
    };
    thread::Builder::new().name("client".into()).spawn(body).map_err(|e: io::Error| LiveError::Thread(e))
}

#[cfg(test)]
mod tests;
