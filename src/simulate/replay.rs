use std::time::Duration;

use super::timers::{Due, Timers};
use super::world::{refused_for, turned_away};
use crate::admission::{self, Admission, Ask, Effect, Event, Failure, Id, TenantId};
use crate::observe::Attempt;
use crate::plan::Plan;
use crate::provider::{self, AccountId, Call, Failing, Provider, Spoilt};
use crate::units::{Moment, Tokens};
use crate::workload::{ClassId, Sizes};

/// What a gateway did with a request when it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Met {
    /// It was let in: forwarded at once, or it waited.
    Admitted,
    /// Refused for scarcity.
    Shed,
    /// Refused for entitlement.
    Throttled,
    /// Refused for good.
    Rejected,
}

/// A request as a live run recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recorded {
    /// Which.
    pub attempt: Attempt,
    /// When it was sent.
    pub sent: Moment,
    /// Its class.
    pub class: ClassId,
    /// How large it and its answer are.
    pub sizes: Sizes,
    /// True if it is a refused caller that came back.
    pub returning: bool,
    /// What the gateway did with it.
    pub met: Met,
    /// When its caller left before the end, if it did.
    pub left: Option<Moment>,
}

/// A request that was met otherwise than the policy says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mismatch {
    /// Which.
    pub attempt: Attempt,
    /// When it was sent.
    pub sent: Moment,
    /// True if it is a refused caller that came back: whether it may use what is kept for those depends on what the
    /// policy told it before.
    pub returning: bool,
    /// What the gateway did.
    pub recorded: Met,
    /// What the policy does.
    pub declared: Met,
    /// What waited before it, by the policy, in tokens.
    pub waiting: Tokens,
    /// How many requests' worth of room stood between it and the other verdict, by the policy: what waited, against what
    /// waited when the nearest request of the other verdict came. `None` if there was none.
    pub margin_requests: Option<f64>,
}

/// How a recording agrees with a declared policy.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Agreement {
    /// Requests compared.
    pub compared: u64,
    /// Those met alike.
    pub alike: u64,
    /// The others, in order of sending.
    pub mismatches: Vec<Mismatch>,
    /// The place of the first shed among all requests: as recorded, and by the policy.
    pub first_shed: (Option<u64>, Option<u64>),
}

impl Agreement {
    /// The share met alike; all of nothing is all.
    pub fn share(&self) -> f64 {
        if self.compared == 0 { 1.0 } else { self.alike as f64 / self.compared as f64 }
    }

    /// Mismatches that a difference of `transit` between the instants the two sides saw cannot explain, at `rate`
    /// arrivals a second: those further from the other verdict than 1 + λ·ε requests.
    pub fn beyond(&self, rate: f64, transit: Duration) -> usize {
        let allowed = 1.0 + rate * transit.as_secs_f64();
        let far = |m: &&Mismatch| m.margin_requests.is_none_or(|margin| margin > allowed);
        self.mismatches.iter().filter(far).count()
    }
}

/// Sends the recorded requests of a run of `plan` through `policy` at the instants they were sent, and compares what
/// each meets with what was recorded.
///
/// Verdict by verdict, so no randomness of arrivals is left; the provider answers as the plan says. Callers who left
/// are taken out when they left. `recorded` is in order of sending.
pub fn replay(plan: &Plan, policy: &admission::Config, recorded: &[Recorded]) -> Agreement {
    let mut world = Replay::new(plan, policy);
    let mut agreement = Agreement::default();
    let mut nearest = Nearest::default();
    for (place, request) in recorded.iter().enumerate() {
        world.pass(request.sent);
        let waiting = world.waiting_tokens();
        let declared = world.arrive(request);
        let hold = request.sizes.hold();
        nearest.see(declared, waiting);
        agreement.compared += 1;
        let first = |kept: &mut Option<u64>, met: Met| {
            if met == Met::Shed && kept.is_none() {
                *kept = Some(place as u64);
            }
        };
        first(&mut agreement.first_shed.0, request.met);
        first(&mut agreement.first_shed.1, declared);
        if declared == request.met {
            agreement.alike += 1;
        } else {
            agreement.mismatches.push(Mismatch {
                attempt: request.attempt,
                sent: request.sent,
                returning: request.returning,
                recorded: request.met,
                declared,
                waiting,
                margin_requests: nearest.margin(request.met, waiting, hold),
            });
        }
    }
    agreement
}

/// What waited when the latest request of each verdict came.
#[derive(Debug, Default)]
struct Nearest {
    admitted: Option<Tokens>,
    shed: Option<Tokens>,
}

impl Nearest {
    const fn see(&mut self, met: Met, waiting: Tokens) {
        match met {
            Met::Admitted => self.admitted = Some(waiting),
            Met::Shed => self.shed = Some(waiting),
            Met::Throttled | Met::Rejected => {}
        }
    }

    fn margin(&self, other: Met, waiting: Tokens, hold: Tokens) -> Option<f64> {
        let then = match other {
            Met::Admitted => self.admitted?,
            Met::Shed => self.shed?,
            Met::Throttled | Met::Rejected => return None,
        };
        Some(waiting.get().abs_diff(then.get()) as f64 / hold.get().max(1) as f64)
    }
}

/// A gateway and a provider that are sent what was recorded.
struct Replay<'a> {
    plan: &'a Plan,
    tenants: Vec<TenantId>,
    gateway: Admission,
    provider: Provider,
    timers: Timers,
    /// Class of each request by its number in the machine.
    /// Sizes by number of sending.
    sent: Vec<Sizes>,
    now: Moment,
}

impl<'a> Replay<'a> {
    fn new(plan: &'a Plan, policy: &admission::Config) -> Self {
        let place = |name: &str| policy.tenants.iter().position(|tenant| tenant.name == name);
        let tenant = |name: &str| TenantId(place(name).and_then(|at| u16::try_from(at).ok()).unwrap_or(0));
        Self {
            tenants: plan.requests.classes().iter().map(|class| tenant(&class.tenant)).collect(),
            gateway: Admission::new(policy, Moment::ZERO),
            provider: Provider::new(&plan.provider, Moment::ZERO),
            timers: Timers::new(std::iter::empty()),
            sent: Vec::new(),
            now: Moment::ZERO,
            plan,
        }
    }

    fn waiting_tokens(&self) -> Tokens {
        self.gateway.gauge().waiting_tokens
    }

    /// Lets everything happen that happens before an arrival at `until`.
    fn pass(&mut self, until: Moment) {
        loop {
            let timer = self.timers.peek(until, |_| true);
            let wake = self.gateway.next_wake().filter(|at| *at <= until);
            match (timer, wake) {
                (Some(timer), wake) if wake.is_none_or(|wake| timer.0 <= wake) => {
                    self.now = timer.0;
                    self.timers.pop(timer);
                    match timer.1 {
                        Due::Done(id) => {
                            drop(self.feed(Event::Settled { id, used: self.used(id), answer: None }))
                        }
                        Due::Breaks(id, whole) => {
                            let how = Failure::Unknown;
                            let event = if whole {
                                Event::Settled { id, used: None, answer: None }
                            } else {
                                Event::Failed { id, how }
                            };
                            drop(self.feed(event));
                        }
                        Due::Leave(id) => drop(self.feed(Event::Left { id })),
                        Due::Probe(..) | Due::Copy(..) | Due::Retry(..) => {}
                    }
                }
                (_, Some(wake)) => {
                    self.now = wake;
                    drop(self.feed(Event::Wake));
                }
                _ => break,
            }
        }
        self.now = self.now.max(until);
    }

    fn used(&self, id: Id) -> Option<Tokens> {
        let sizes = self.sent.get(usize::try_from(id.0).ok()?)?;
        Some(sizes.used())
    }

    fn arrive(&mut self, request: &Recorded) -> Met {
        let id = Id(self.sent.len() as u64);
        self.sent.push(request.sizes);
        let asks = self.plan.requests.class(request.class);
        let ask = Ask {
            id,
            caller: request.attempt.seq,
            prompt: request.sizes.prompt,
            max_output: request.sizes.max_output,
            bytes: asks.bytes_of(request.sizes.prompt),
            deadline: request.sent + asks.deadline,
            tenant: self.tenants[usize::from(request.class.0)],
            tier: asks.tier,
            operation: None,
        };
        if let Some(left) = request.left {
            self.timers.add(left, Due::Leave(id));
        }
        let effects = self.feed(Event::Arrive(ask));
        let met = effects.iter().find_map(|effect| match effect {
            Effect::Shed { id: of, .. } if *of == id => Some(Met::Shed),
            Effect::Throttle { id: of, .. } if *of == id => Some(Met::Throttled),
            Effect::Reject { id: of, .. } if *of == id => Some(Met::Rejected),
            _ => None,
        });
        met.unwrap_or(Met::Admitted)
    }

    /// Feeds the gateway, carries out its calls, and gives back everything it said.
    fn feed(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.gateway.handle(self.now, event, &mut effects);
        let mut next = 0;
        while let Some(effect) = effects.get(next).copied() {
            next += 1;
            if let Effect::Forward { id, .. } = effect
                && let Some(event) = self.call(id)
            {
                self.gateway.handle(self.now, event, &mut effects);
            }
        }
        effects
    }

    fn call(&mut self, id: Id) -> Option<Event> {
        let sizes = *self.sent.get(usize::try_from(id.0).ok()?)?;
        let call = Call {
            prompt: sizes.prompt,
            max_output: sizes.max_output,
            output: sizes.output,
            account: AccountId::default(),
        };
        let answer = self.provider.call(self.now, call);
        let (works, _) = answer.taken().unwrap_or_default();
        match answer {
            provider::Answer::Served(_) => {
                self.timers.add(self.now + works, Due::Done(id));
                None
            }
            provider::Answer::Spoilt(_, Spoilt::Stall) => None,
            provider::Answer::Spoilt(_, how) => {
                self.timers.add(self.now + works, Due::Breaks(id, how == Spoilt::Garbage));
                None
            }
            provider::Answer::Refused { retry_after, .. } => Some(refused_for(id, retry_after)),
            provider::Answer::TooLarge { .. } => Some(Event::Failed { id, how: Failure::Final }),
            provider::Answer::Failed(Failing::Error { status, retry_after }) => {
                Some(turned_away(id, status, retry_after))
            }
            provider::Answer::Failed(Failing::Reset) => Some(Event::Failed { id, how: Failure::Unknown }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Reason, Sighting};
    use crate::plan::testing;
    use crate::simulate::run;

    /// The arrivals of a simulated run of the smoke plan, as a live run would record them.
    fn recording(plan: &Plan, policy: &admission::Config) -> Vec<Recorded> {
        let mut all: Vec<Recorded> = Vec::new();
        let mut places = std::collections::BTreeMap::new();
        run(plan, policy, &mut |sighting| match sighting {
            Sighting::Due { attempt, at, class, hold, probe } => {
                places.insert(attempt, all.len());
                let met = Met::Admitted;
                let asks = plan.requests.class(class);
                let (max_output, output) = (asks.max_tokens, asks.output.most());
                let sizes = Sizes { prompt: hold - max_output, max_output, output };
                all.push(Recorded { attempt, sent: at, class, sizes, returning: probe, met, left: None });
            }
            Sighting::Answered { attempt, answer, .. } => match answer.reason {
                Some(Reason::Shed) => all[places[&attempt]].met = Met::Shed,
                Some(Reason::Throttled) => all[places[&attempt]].met = Met::Throttled,
                _ => {}
            },
            Sighting::Left { attempt, at } => all[places[&attempt]].left = Some(at),
            _ => {}
        });
        all
    }

    #[test]
    fn a_recording_of_the_policy_itself_agrees_whole() {
        let plan = testing::plan();
        let policy = plan.policy().unwrap();
        let recorded = recording(&plan, policy);
        assert!(recorded.iter().filter(|r| r.met == Met::Shed).count() > 500);
        let agreement = replay(&plan, policy, &recorded);
        assert_eq!(agreement.mismatches, []);
        assert_eq!(agreement.compared, recorded.len() as u64);
        assert!(agreement.first_shed.0.is_some() && agreement.first_shed.0 == agreement.first_shed.1);
        assert!((agreement.share() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_little_jitter_moves_verdicts_only_at_the_edge() {
        let plan = testing::plan();
        let policy = plan.policy().unwrap();
        let mut recorded = recording(&plan, policy);
        for (n, request) in recorded.iter_mut().enumerate() {
            request.sent = request.sent + Duration::from_micros((n as u64 * 7_919) % 2_000);
        }
        recorded.sort_by_key(|request| request.sent);
        let agreement = replay(&plan, policy, &recorded);
        assert!(agreement.share() > 0.9, "{}", agreement.share());
        // 80 a second and 2 ms: a request more or less
        assert_eq!(agreement.beyond(80.0, Duration::from_millis(2)), 0, "{:?}", agreement.mismatches);
    }

    #[test]
    fn another_policy_is_found_out() {
        let plan = testing::plan();
        let quota = &plan.provider.quota;
        let bound = testing::map(&[("requests", testing::text("20"))]);
        let other = testing::policy(&[("bound", bound)], quota);
        let recorded = recording(&plan, &other);
        let agreement = replay(&plan, plan.policy().unwrap(), &recorded);
        let (theirs, ours) = agreement.first_shed;
        assert!(theirs.unwrap() + 10 < ours.unwrap(), "{theirs:?} {ours:?}");
        let early = agreement.mismatches.first().unwrap();
        assert_eq!((early.recorded, early.declared), (Met::Shed, Met::Admitted));
        assert!(agreement.beyond(80.0, Duration::from_millis(2)) > 10, "{:?}", agreement.mismatches.len());
    }
}
