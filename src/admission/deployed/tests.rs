//! What really runs keeps the laws of what it is made of: the healthy one is the machine, several are several of them, and
//! of a faulty one each caller still has exactly one end.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::admission::faults::ALL;
use crate::admission::{Failure, Operation, TenantId, testing};
use crate::units::{Bytes, Tokens};

/// A thing that happens after some milliseconds.
#[derive(Debug, Clone)]
enum Step {
    Arrive {
        tokens: u64,
        patience_ms: u64,
        tenant: u16,
        tier: u8,
        key: Option<u128>,
    },
    /// The oldest call but `which` ends.
    End {
        which: usize,
        how: Option<Failure>,
    },
    Refuse {
        which: usize,
    },
    Leave {
        which: usize,
    },
}

fn step() -> impl Strategy<Value = (u64, Step)> {
    let arrive = (1..900u64, 0..6_000u64, 0..2u16, 0..3u8, proptest::option::weighted(0.3, 0..4u128));
    let how = prop_oneof![Just(Failure::Repeatable), Just(Failure::Final), Just(Failure::Unknown)];
    let step = prop_oneof![
        6 => arrive.prop_map(|(tokens, patience_ms, tenant, tier, key)| Step::Arrive { tokens, patience_ms, tenant, tier, key }),
        4 => (any::<usize>(), proptest::option::weighted(0.2, how)).prop_map(|(which, how)| Step::End { which, how }),
        1 => any::<usize>().prop_map(|which| Step::Refuse { which }),
        2 => any::<usize>().prop_map(|which| Step::Leave { which }),
    ];
    (0..400u64, step)
}

/// A policy with everything in it that faults touch.
fn config(more: &str) -> Config {
    testing::config(&format!(
        "{{ service: {{ start: 800ms }}, margin: 200ms, share: drr, tenants: [{{ name: a }}, {{ name: b }}], \
         budgets: {{ tokens_per_minute: 60000, burst: 4s, concurrent: 8 }}, upstream: {{ lease: 4s }}, {more} }}"
    ))
}

/// Where a request stands by the effects, and whether its caller still waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Flying,
    Attached(Id),
    Ended,
}

/// Drives a gateway, or the plain machine.
struct Driver<M> {
    machine: M,
    now: Moment,
    states: BTreeMap<Id, State>,
    all: Vec<Effect>,
}

impl<M: Machine> Driver<M> {
    fn new(machine: M) -> Self {
        Self { machine, now: Moment::ZERO, states: BTreeMap::new(), all: Vec::new() }
    }

    fn note(&mut self, effects: &[Effect]) {
        for effect in effects {
            let (id, state) = match *effect {
                Effect::Forward { id, .. } => (id, State::Flying),
                Effect::Attach { id, to } => (id, State::Attached(to)),
                Effect::Cancel { .. } | Effect::Forget { .. } => continue,
                Effect::Shed { id, .. }
                | Effect::Throttle { id, .. }
                | Effect::Expire { id, .. }
                | Effect::Reject { id, .. }
                | Effect::Fail { id }
                | Effect::Running { id, .. }
                | Effect::Replay { id, .. }
                | Effect::Conflict { id } => (id, State::Ended),
            };
            let before = self.states.insert(id, state);
            assert_eq!(before, Some(State::Waiting), "{effect:?} of one that does not wait");
            if state == State::Ended {
                self.end(id);
            }
        }
        self.all.extend_from_slice(effects);
    }

    /// `id` has ended, and with it those who follow it.
    fn end(&mut self, id: Id) {
        self.states.insert(id, State::Ended);
        let follow = |state: &&mut State| **state == State::Attached(id);
        self.states.values_mut().filter(follow).for_each(|state| *state = State::Ended);
    }

    fn pick(&self, which: usize, such: impl Fn(State) -> bool) -> Option<Id> {
        let some: Vec<Id> =
            self.states.iter().filter(|(_, state)| such(**state)).map(|(id, _)| *id).collect();
        (!some.is_empty()).then(|| some[which % some.len()])
    }

    /// What `step` says to the machine, if it makes sense.
    fn event(&mut self, step: &Step) -> Option<Event> {
        Some(match *step {
            Step::Arrive { tokens, patience_ms, tenant, tier, key } => {
                let id = Id(self.states.len() as u64);
                self.states.insert(id, State::Waiting);
                Event::Arrive(Ask {
                    id,
                    caller: id.0,
                    prompt: Tokens::new(tokens / 2),
                    max_output: Tokens::new(tokens - tokens / 2),
                    bytes: Bytes::new(100),
                    deadline: self.now + Duration::from_millis(patience_ms),
                    tenant: TenantId(tenant),
                    tier,
                    operation: key.map(|key| Box::new(Operation { key, body: 1 })),
                })
            }
            Step::End { which, how } => {
                let id = self.pick(which, |state| state == State::Flying)?;
                match how {
                    None => {
                        self.end(id);
                        Event::Settled { id, used: Some(Tokens::new(10)), answer: None }
                    }
                    Some(how) => {
                        if how == Failure::Repeatable {
                            self.states.insert(id, State::Waiting);
                        } else {
                            self.end(id);
                        }
                        Event::Failed { id, how }
                    }
                }
            }
            Step::Refuse { which } => {
                let id = self.pick(which, |state| state == State::Flying)?;
                self.states.insert(id, State::Waiting);
                Event::Refused { id, retry_after: None }
            }
            Step::Leave { which } => {
                // who is followed or follows another goes by rules of its own, which are those of the machine
                let alone = |id: Id| !self.states.values().any(|state| *state == State::Attached(id));
                let id = self.pick(which, |state| state == State::Flying).filter(|id| alone(*id))?;
                if self.machine.forgets_leaver(id) {
                    self.states.insert(id, State::Ended);
                }
                Event::Left { id }
            }
        })
    }
}

/// The interface both have.
trait Machine {
    fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>);
    fn next_wake(&self) -> Option<Moment>;
    fn forgets_leaver(&self, id: Id) -> bool;
}

impl Machine for Admission {
    fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        Self::handle(self, now, event, effects);
    }

    fn next_wake(&self) -> Option<Moment> {
        Self::next_wake(self)
    }

    fn forgets_leaver(&self, _id: Id) -> bool {
        self.forgets_leavers()
    }
}

impl Machine for Deployed {
    fn handle(&mut self, now: Moment, event: Event, effects: &mut Vec<Effect>) {
        Self::handle(self, now, event, effects);
    }

    fn next_wake(&self) -> Option<Moment> {
        Self::next_wake(self)
    }

    fn forgets_leaver(&self, id: Id) -> bool {
        Self::forgets_leaver(self, id)
    }
}

impl<M: Machine> Driver<M> {
    fn play(mut self, steps: &[(u64, Step)]) -> Self {
        for (after, step) in steps {
            let until = self.now + Duration::from_millis(*after);
            while let Some(at) = self.machine.next_wake().filter(|at| *at <= until) {
                self.now = self.now.max(at);
                self.feed(Event::Wake);
                let next = self.machine.next_wake();
                assert!(next.is_none_or(|next| next > self.now), "woken for nothing");
            }
            self.now = until;
            if let Some(event) = self.event(step) {
                self.feed(event);
            }
        }
        self
    }

    fn feed(&mut self, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(self.now, event, &mut effects);
        self.note(&effects);
    }

    /// Whoever waits for another's answer leaves.
    fn leave_the_attached(&mut self) {
        let attached = self.states.iter().filter(|(_, state)| matches!(state, State::Attached(_)));
        for id in attached.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.states.insert(id, State::Ended);
            self.feed(Event::Left { id });
        }
    }

    /// Every call ends, until nobody waits.
    fn finish(mut self) -> Self {
        for _ in 0..10_000 {
            let flying: Vec<Id> =
                self.states.iter().filter(|(_, s)| **s == State::Flying).map(|(id, _)| *id).collect();
            for id in flying {
                self.end(id);
                self.feed(Event::Settled { id, used: None, answer: None });
            }
            let Some(at) = self.machine.next_wake() else {
                if self.states.values().any(|state| *state == State::Flying) {
                    continue;
                }
                break;
            };
            self.now = self.now.max(at);
            self.feed(Event::Wake);
        }
        self
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_healthy_one_is_the_machine_it_is_made_of(steps in proptest::collection::vec(step(), 1..60)) {
        let config = config("");
        let plain = Driver::new(Admission::new(&config, Moment::ZERO)).play(&steps);
        let deployed = Driver::new(Deployed::new(&config, Moment::ZERO)).play(&steps);
        prop_assert_eq!(&plain.all, &deployed.all);
        prop_assert_eq!(plain.machine.gauge(), deployed.machine.gauge());
    }

    #[test]
    fn of_replicas_everyone_has_one_end_and_nothing_is_held_then(
        count in 2..5u16,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let driver = Driver::new(Deployed::new(&config(&format!("replicas: {count}")), Moment::ZERO));
        let driver = driver.play(&steps).finish();
        prop_assert!(driver.states.values().all(|state| *state == State::Ended), "{:?}", driver.states);
        let gauge = driver.machine.gauge();
        prop_assert_eq!((gauge.waiting, gauge.in_flight, gauge.held), (0, 0, Tokens::ZERO));
    }

    #[test]
    fn of_a_faulty_one_everyone_has_one_end_all_the_same(
        which in 0..ALL.len(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let name = ALL[which].name;
        let replicas = if name == "per_replica_quotas" { "replicas: 2," } else { "" };
        let driver = Driver::new(Deployed::new(&config(&format!("{replicas} faults: [{name}]")), Moment::ZERO));
        let mut driver = driver.play(&steps).finish();
        if name == "leaked_holds" {
            // whoever comes under the key of a call whose end was lost waits for it until it leaves
            driver.leave_the_attached();
        }
        prop_assert!(driver.states.values().all(|state| *state == State::Ended), "{name}: {:?}", driver.states);
        let gauge = driver.machine.gauge();
        prop_assert_eq!(gauge.waiting, 0, "{}", name);
        prop_assert!(name == "leaked_holds" || gauge.in_flight == 0, "{name}: {gauge:?}");
    }
}
