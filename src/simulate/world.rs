use std::time::Duration;

mod streaming;

use super::Ended;
use super::copies::{self, Attached};
use super::refusal::refusal;
use super::timers::{Due, Timers};
use crate::admission::faults::Telling;
use crate::admission::{self, Ask, Deployed, Effect, Event, Failure, Id, Meaning, TenantId};
use crate::measure::Holds;
use crate::observe::{self, Answer, Attempt, HintSet, Reason, RetryAfter, Sighting, Streamed};
use crate::plan::Plan;
use crate::provider::{self, AccountId, Call, Engine, Failing, Flow, Provider, Spoilt, Work};
use crate::units::{Dense, Moment, Newest, Tokens};
use crate::workload::{
    Allowance, Arrival, ClassId, Cohort, Copies, OnRefusal, Schedule, Signs, Sizes, stream,
};

/// A request the gateway has not closed yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Open {
    pub(super) attempt: Attempt,
    class: ClassId,
    sizes: Sizes,
    used: Tokens,
    /// Whether its caller still waits.
    pub(super) here: bool,
}

/// Everything that goes on in a simulated run.
pub(super) struct World<'a, See> {
    pub(super) plan: &'a Plan,
    gateway: Deployed,
    telling: Telling,
    /// Whether the gateway is told when a streamed answer begins.
    minds_beginnings: bool,
    /// By class.
    tenants: Vec<TenantId>,
    provider: Provider,
    /// Whether any answer is streamed, or seen to be cut off.
    flowing: bool,
    /// The answers the provider makes, where they flow.
    flows: Dense<Flow>,
    cohort: Cohort,
    pub(super) copies: Copies,
    pub(super) attached: Attached,
    /// How many retries each class has left.
    allowances: Vec<Allowance>,
    pub(super) now: Moment,
    last: Moment,
    next_id: u64,
    pub(super) open: Newest<Open>,
    pub(super) timers: Timers,
    wake: Option<Moment>,
    effects: Vec<Effect>,
    ended: Ended,
    pub(super) see: &'a mut See,
}

impl<'a, See: FnMut(Sighting)> World<'a, See> {
    pub(super) fn new(plan: &'a Plan, policy: &admission::Config, see: &'a mut See) -> Self {
        let classes = plan.requests.classes();
        let place = |name: &str| policy.tenants.iter().position(|tenant| tenant.name == name);
        let tenant = |name: &str| TenantId(place(name).and_then(|at| u16::try_from(at).ok()).unwrap_or(0));
        let gateway = Deployed::new(policy, Moment::ZERO);
        Self {
            wake: gateway.next_wake(),
            telling: policy.bent().telling,
            minds_beginnings: gateway.minds_beginnings(),
            gateway,
            tenants: classes.iter().map(|class| tenant(&class.tenant)).collect(),
            provider: Provider::new(&plan.provider, Moment::ZERO),
            flowing: plan.provider.engine == Engine::Stream || classes.iter().any(|class| class.stream),
            flows: Dense::default(),
            cohort: Cohort::new(plan.probes),
            copies: Copies::new(plan.load.seed, &plan.requests),
            attached: Attached::default(),
            allowances: classes.iter().map(|class| Allowance::of(&class.on_refusal)).collect(),
            now: Moment::ZERO,
            last: plan.load.end(),
            next_id: 0,
            open: Newest::default(),
            timers: Timers::new(classes.iter().map(|class| class.patience)),
            effects: Vec::new(),
            ended: Ended { at: Moment::ZERO, censored: 0, events: 0, held: Holds::default() },
            plan,
            see,
        }
    }

    /// Runs to the end, or from `until` on only as long as somebody waits in the gateway.
    pub(super) fn run(mut self, until: Moment) -> Ended {
        let mut schedule = Schedule::new(&self.plan.load, &self.plan.requests);
        let mut next = schedule.next();
        loop {
            let other = Moment::sooner(self.wake, next.as_ref().map(|arrival| arrival.due));
            let open = &self.open;
            let here = |id: Id| open.get(id.0).is_some_and(|open| open.here);
            let timer = self.timers.peek(other.unwrap_or(Moment::NEVER), here);
            let Some(now) = Moment::sooner(timer.map(|(at, _)| at), other) else { break };
            if timer.is_none() && next.is_none() && self.copies.are_any() && self.open.is_empty() {
                // answers that are kept for copies are given up long after
                break;
            }
            if now >= until && self.gateway.waiting() == 0 {
                self.now = self.now.max(until);
                break;
            }
            self.now = now;
            self.ended.events += 1;
            match (timer, &next) {
                (Some(timer), _) if timer.0 == now => self.tick(timer),
                _ if self.wake == Some(now) => self.feed(Event::Wake),
                (_, Some(arrival)) => {
                    self.arrive(arrival);
                    next = schedule.next();
                }
                _ => break,
            }
        }
        let gauge = self.gateway.gauge();
        let held = Holds { requests: gauge.in_flight - gauge.unknown, tokens: gauge.held };
        Ended { at: self.now.max(if until == Moment::NEVER { self.last } else { until }), held, ..self.ended }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        self.allowances[usize::from(arrival.class.0)].earn();
        self.send(Attempt { seq: arrival.seq, nth: 0 }, arrival.class, arrival.sizes, false);
        if self.copies.are_any() {
            self.copy(arrival);
        }
    }

    fn send(&mut self, attempt: Attempt, class: ClassId, sizes: Sizes, probe: bool) {
        let at = self.now;
        let id = Id(self.next_id);
        self.next_id += 1;
        let asks = self.plan.requests.class(class);
        (self.see)(Sighting::Due { attempt, at, class, hold: sizes.hold(), probe });
        (self.see)(Sighting::Sent { attempt, at });
        self.open.insert(id.0, Open { attempt, class, sizes, used: Tokens::ZERO, here: true });
        let patience = asks.patience;
        let ask = Ask {
            id,
            caller: attempt.seq,
            prompt: sizes.prompt,
            max_output: sizes.max_output,
            bytes: asks.bytes_of(sizes.prompt),
            deadline: at + self.plan.believed(asks),
            tenant: self.tenants[usize::from(class.0)],
            tier: asks.tier,
            operation: copies::operation(&self.copies, class, attempt.seq),
        };
        if ask.deadline == at {
            // by what it was told its time is over: the gateway calls it malformed
            return self.answer(id, 400, None, None);
        }
        self.feed(Event::Arrive(ask));
        // most of an overload is refused at once: who is gone needs no patience
        let open = &self.open;
        let here = |id: Id| open.get(id.0).is_some_and(|open| open.here);
        if here(id) {
            self.timers.leave_after(at, patience, id, here);
        }
    }

    fn tick(&mut self, timer: (Moment, Due)) {
        self.timers.pop(timer);
        match timer.1 {
            Due::Begins(id) => self.feed(Event::Begun { id }),
            Due::Done(id) => self.done(id),
            Due::Breaks(id, garbage) => self.breaks(id, garbage),
            Due::Leave(id) => self.leave(id),
            Due::Probe(seq, class, sizes) => self.send(Attempt { seq, nth: 1 }, class, sizes, true),
            Due::Copy(seq, class, sizes) => {
                self.send(Attempt { seq, nth: Attempt::COPY }, class, sizes, false);
            }
            Due::Retry(seq, class, nth, sizes) => self.send(Attempt { seq, nth }, class, sizes, false),
        }
    }

    fn done(&mut self, id: Id) {
        let flow = if self.flowing { self.flows.remove(id.0) } else { None };
        let Some(Open { attempt, class, used, here, .. }) = self.open.get(id.0).copied() else { return };
        match flow.filter(|_| self.plan.requests.class(class).stream) {
            Some(flow) if here => {
                self.read(attempt, flow);
                self.open.remove(id.0);
                let streamed = Some(Streamed { used: Some(used), flawed: false });
                (self.see)(Sighting::Answered { attempt, at: self.now, answer: whole(streamed.clone()) });
                self.relay(id, &whole(streamed));
            }
            _ => self.answer(id, 200, None, None),
        }
        let kept = self.copies.are_any().then(|| copies::size_of(used.get()));
        self.feed(Event::Settled { id, used: Some(used), answer: kept });
    }

    fn leave(&mut self, id: Id) {
        let Some(open) = self.open.get_mut(id.0).filter(|open| open.here) else { return };
        open.here = false;
        let open = *open;
        let flow = if self.flowing { self.flows.get(id.0).copied() } else { None };
        let streams = flow.is_some() && self.plan.requests.class(open.class).stream;
        // who has begun to read a stream does not ask again
        if !streams {
            self.comes_back(&open, Signs { timed_out: true, ..Signs::default() });
        }
        if let Some(flow) = flow {
            self.break_off(id, &open, flow, streams);
        }
        (self.see)(Sighting::Left { attempt: open.attempt, at: self.now });
        self.feed(Event::Left { id });
        if self.gateway.forgets_leaver(id) && !self.attached.wait_for(id) {
            self.open.remove(id.0);
        }
    }

    /// Feeds the gateway an event and carries out what it says, which may feed it more.
    fn feed(&mut self, event: Event) {
        let mut effects = std::mem::take(&mut self.effects);
        self.gateway.handle(self.now, event, &mut effects);
        let mut next = 0;
        while let Some(effect) = effects.get(next).copied() {
            next += 1;
            if let Some(event) = self.carry_out(effect) {
                self.gateway.handle(self.now, event, &mut effects);
            }
        }
        self.wake = self.gateway.next_wake();
        effects.clear();
        self.effects = effects;
    }

    fn carry_out(&mut self, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Forward { id, remaining } => return self.forward(id, remaining),
            Effect::Shed { id, retry_after } => self.refuse(id, Reason::Shed, retry_after),
            Effect::Expire { id, retry_after, .. } => self.refuse(id, Reason::Expired, retry_after),
            Effect::Throttle { id, retry_after, .. } => {
                self.refuse(id, Reason::Throttled, Some(retry_after));
            }
            Effect::Reject { id, .. } => self.answer(id, 413, Some(Reason::NeverFits), None),
            Effect::Fail { id } => self.fails(id, 502),
            Effect::Attach { id, to } => self.attach(id, to),
            Effect::Running { id, .. } => self.answer(id, 409, None, None),
            Effect::Replay { id, .. } => self.answer(id, 200, None, None),
            Effect::Conflict { id } => self.answer(id, 422, None, None),
            // a call that is not needed any more ends when it would have
            Effect::Forget { .. } | Effect::Cancel { .. } => {}
        }
        None
    }

    fn forward(&mut self, id: Id, remaining: Duration) -> Option<Event> {
        let whole = self.plan.believed(self.plan.requests.class(self.open.get(id.0)?.class));
        let (answer, until) = self.call(id, Some(self.telling.deadline(remaining, whole)))?;
        match answer {
            provider::Answer::Served(work) => {
                self.begins(id, work, true);
                self.timers.add(until, Due::Done(id));
                None
            }
            provider::Answer::Spoilt(work, how) => {
                self.begins(id, work, matches!(how, Spoilt::Cut { .. }));
                // an answer that never comes has no end; its caller leaves
                if how != Spoilt::Stall {
                    self.timers.add(until, Due::Breaks(id, how == Spoilt::Garbage));
                }
                None
            }
            provider::Answer::Refused { retry_after, .. } => Some(refused_for(id, retry_after)),
            provider::Answer::TooLarge { .. } => {
                self.answer(id, 400, None, None);
                Some(Event::Failed { id, how: Failure::Final })
            }
            provider::Answer::Failed(Failing::Error { status, retry_after }) => {
                if matches!(Meaning::of(status), Meaning::Broken | Meaning::Rejected) {
                    self.fails(id, status);
                }
                Some(turned_away(id, status, retry_after))
            }
            provider::Answer::Failed(Failing::Reset) => {
                self.fails(id, 502);
                Some(Event::Failed { id, how: Failure::Unknown })
            }
        }
    }

    /// Calls the provider, which says what comes of it and until when it is busy with it.
    fn call(&mut self, id: Id, budget: Option<Duration>) -> Option<(provider::Answer, Moment)> {
        let Open { attempt, sizes, .. } = *self.open.get(id.0)?;
        let call = Call {
            prompt: sizes.prompt,
            max_output: sizes.max_output,
            output: sizes.output,
            account: AccountId::default(),
        };
        let at = self.now;
        let draw = stream::draw(self.plan.load.seed, stream::SERVICE, attempt.seq, u64::from(attempt.nth));
        let answer = self.provider.call_drawn(at, call, draw);
        let (faulty, taken) = (answer.is_faulty(), answer.taken());
        let (works, charged) = taken.unwrap_or_default();
        let (until, refused) = (at + works, taken.is_none());
        (self.see)(Sighting::AtProvider { attempt, at, until, charged, refused, faulty, budget });
        Some((answer, until))
    }

    /// The provider begins to make an answer, whose tokens its caller can read as they come if it `flows`.
    fn begins(&mut self, id: Id, work: Work, flows: bool) {
        let Some(open) = self.open.get_mut(id.0) else { return };
        open.used = open.sizes.prompt + work.output;
        if self.flowing && flows {
            let (until, tokens) = (self.now + work.takes, work.output.get());
            let flow = Flow { until, gap: work.gap, tokens };
            if self.minds_beginnings && self.plan.requests.class(open.class).stream {
                self.timers.add(flow.due(0), Due::Begins(id));
            }
            self.flows.insert(id.0, flow);
        }
    }

    /// An answer breaks off, or is none of its API though its status says so.
    fn breaks(&mut self, id: Id, garbage: bool) {
        if garbage {
            // the gateway passes it on, and nobody can use it
            if let Some(open) = self.open.remove(id.0).filter(|open| open.here) {
                let answer = Answer { usable: false, ..whole(None) };
                (self.see)(Sighting::Answered { attempt: open.attempt, at: self.now, answer });
            }
            return self.feed(Event::Settled { id, used: None, answer: None });
        }
        let flow = if self.flowing { self.flows.remove(id.0) } else { None };
        let open = self.open.get(id.0).copied().filter(|open| open.here);
        match (flow, open) {
            (Some(flow), Some(Open { attempt, class, .. })) if self.plan.requests.class(class).stream => {
                self.read(attempt, flow);
                self.relay(id, &told_of(502, None, None));
                self.open.remove(id.0);
                (self.see)(Sighting::Broken { attempt, at: self.now, why: observe::Broken::Cut, read: 0 });
            }
            _ => self.fails(id, 502),
        }
        self.feed(Event::Failed { id, how: Failure::Unknown });
    }

    /// A request has failed with `status`. Its caller may try again.
    fn fails(&mut self, id: Id, status: u16) {
        if let Some(open) = self.open.get(id.0).copied().filter(|open| open.here) {
            self.comes_back(&open, Signs { status: Some(status), ..Signs::default() });
        }
        self.answer(id, status, None, None);
    }

    /// A refusal reaches its caller, who may come back.
    fn refuse(&mut self, id: Id, reason: Reason, wait: Option<Duration>) {
        let told = self.telling.refusal(id, self.now, wait);
        if told.costly && reason != Reason::Expired {
            // it goes as it came, and nobody reads the answer
            let asks = self.open.get(id.0).map(|open| self.plan.requests.class(open.class));
            let _ = self.call(id, asks.map(|asks| self.plan.believed(asks)));
        }
        let should_retry = told.should_retry;
        let (answer, told) = refusal(&self.plan.expect.refusal, reason, told);
        self.relay(id, &answer);
        let Some(open) = self.open.remove(id.0).filter(|open| open.here) else { return };
        if matches!(self.plan.requests.class(open.class).on_refusal, OnRefusal::Retry(_)) {
            let status = Some(answer.status);
            let signs = Signs {
                status,
                refused: true,
                timed_out: false,
                told,
                hint: told,
                loose: told,
                should_retry,
            };
            self.comes_back(&open, signs);
        } else if reason != Reason::Expired && self.comes_once(open.class, open.attempt) {
            self.invite(&open, told);
        }
        (self.see)(Sighting::Answered { attempt: open.attempt, at: self.now, answer });
    }

    /// An answer reaches its caller, if it is still there, and the request is closed.
    fn answer(&mut self, id: Id, status: u16, reason: Option<Reason>, retry_after: Option<Duration>) {
        let answer = told_of(status, reason, retry_after);
        self.relay(id, &answer);
        if let Some(open) = self.open.remove(id.0).filter(|open| open.here) {
            self.tell(open.attempt, answer);
        }
    }

    fn tell(&mut self, attempt: Attempt, answer: Answer) {
        (self.see)(Sighting::Answered { attempt, at: self.now, answer });
    }

    /// A refused caller may be one of those who come back as told.
    fn invite(&mut self, open: &Open, told: Option<Duration>) {
        let Some(at) = told.and_then(|told| self.cohort.refused(self.now, told)) else { return };
        if at < self.last {
            self.timers.add(at, Due::Probe(open.attempt.seq, open.class, open.sizes));
        } else {
            self.ended.censored += 1;
        }
    }

    /// A caller may try again by its own rule; whether it will is known before this attempt ends.
    fn comes_back(&mut self, open: &Open, signs: Signs) {
        let OnRefusal::Retry(retry) = &self.plan.requests.class(open.class).on_refusal else { return };
        if open.attempt.is_copy() {
            return;
        }
        let Attempt { seq, nth } = open.attempt;
        let draw = stream::draw(self.plan.load.seed, stream::RETRIES, seq, u64::from(nth));
        let Some(wait) = retry.wait(nth, &signs, draw) else { return };
        if self.now + wait >= self.last {
            self.ended.censored += 1;
            return;
        }
        if !self.allowances[usize::from(open.class.0)].spend() {
            return;
        }
        (self.see)(Sighting::Again { attempt: open.attempt, at: self.now });
        self.timers.add(self.now + wait, Due::Retry(seq, open.class, nth + 1, open.sizes));
    }
}

/// What a gateway is told by a provider whose quota is spent: its header carries whole seconds.
pub(super) const fn refused_for(id: Id, retry_after: Duration) -> Event {
    let whole = retry_after.as_secs() + (retry_after.subsec_nanos() > 0) as u64;
    Event::Refused { id, retry_after: Some(Duration::from_secs(whole)) }
}

/// What a gateway makes of an error that the provider answers at once.
pub(super) fn turned_away(id: Id, status: u16, retry_after: Option<Duration>) -> Event {
    match Meaning::of(status) {
        Meaning::Spent => Event::Refused { id, retry_after },
        Meaning::Busy => Event::Failed { id, how: Failure::Repeatable },
        Meaning::Broken => Event::Failed { id, how: Failure::Unknown },
        Meaning::Rejected | Meaning::Answered => Event::Failed { id, how: Failure::Final },
    }
}

/// An answer that says no more than this.
fn told_of(status: u16, reason: Option<Reason>, retry_after: Option<Duration>) -> Answer {
    let retry_after = retry_after.map(RetryAfter::After);
    Answer { status, retry_after, reason, usable: status == 200, ..whole(None) }
}

/// A whole answer.
const fn whole(streamed: Option<Streamed>) -> Answer {
    Answer {
        status: 200,
        retry_after: None,
        hints: HintSet::NONE,
        should_retry: None,
        reason: None,
        usable: true,
        marked: true,
        shape: Ok(()),
        streamed,
    }
}
