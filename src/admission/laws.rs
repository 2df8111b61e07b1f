//! The laws of the machine, over every combination its tables allow.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::{Admission, Ask, Budgets, Config, Effect, Estimate, Event, Id, bounds, orders, retry_after};
use crate::units::{Bytes, Moment, Rate, Share, Tokens};

/// What a generated step does. Ids are chosen among those it makes sense for.
#[derive(Debug, Clone)]
enum Step {
    Arrive { caller: u64, tokens: u64, patience_ms: u64 },
    Settle { which: usize, used: u64 },
    Refuse { which: usize, after_s: Option<u64> },
    Fail { which: usize, known: bool },
    Leave { which: usize },
    Pass { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..20u64, 1..1_500u64, 0..6_000u64)
            .prop_map(|(caller, tokens, patience_ms)| Step::Arrive { caller, tokens, patience_ms }),
        2 => (any::<usize>(), 0..2_000u64).prop_map(|(which, used)| Step::Settle { which, used }),
        1 => (any::<usize>(), proptest::option::of(0..4u64)).prop_map(|(which, after_s)| Step::Refuse { which, after_s }),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(which, known)| Step::Fail { which, known }),
        1 => any::<usize>().prop_map(|which| Step::Leave { which }),
        3 => (0..1_500u64).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// Every combination of bound, order, Retry-After strategy and recheck, by number.
fn config(choice: usize) -> Config {
    let (b, rest) = (choice % bounds::ALL.len(), choice / bounds::ALL.len());
    let (o, rest) = (rest % orders::ALL.len(), rest / orders::ALL.len());
    let (r, rest) = (rest % retry_after::ALL.len(), rest / retry_after::ALL.len());
    Config {
        bound: (bounds::ALL[b].build)(None).unwrap(),
        order: (orders::ALL[o].build)(None).unwrap(),
        recheck: rest % 2 == 0,
        service: Estimate { start: Duration::from_millis(800), quantile: Share::new(0.99).unwrap() },
        margin: Duration::from_millis(200),
        budgets: Budgets { tokens: Rate::per_second(1_000).unwrap(), burst: Duration::from_millis(1_200) },
        retry_after: (retry_after::ALL[r].build)(None).unwrap(),
    }
}

const COMBINATIONS: usize = 2 * 2 * 5 * 2;

/// Where each request stands, as the effects tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Flying,
    Ended,
}

/// Drives a machine and holds its effects against the laws.
struct Court {
    machine: Admission,
    now: Moment,
    state: BTreeMap<Id, State>,
    holds: BTreeMap<Id, Tokens>,
    forwarded: Vec<(Moment, u64)>,
    given_back: u64,
}

impl Court {
    fn new(config: &Config) -> Self {
        Self {
            machine: Admission::new(config, Moment::ZERO),
            now: Moment::ZERO,
            state: BTreeMap::new(),
            holds: BTreeMap::new(),
            forwarded: Vec::new(),
            given_back: 0,
        }
    }

    fn feed(&mut self, event: Event) {
        let waking = event == Event::Wake;
        let before = self.machine.gauge();
        let arrived = if let Event::Arrive(ask) = &event { Some(ask.id) } else { None };
        let mut effects = Vec::new();
        self.machine.handle(self.now, event, &mut effects);
        for effect in &effects {
            let (id, wanted, next) = match *effect {
                Effect::Forward { id, .. } => {
                    self.forwarded.push((self.now, self.holds[&id].get()));
                    (id, State::Waiting, State::Flying)
                }
                Effect::Shed { id, .. } | Effect::Reject { id, .. } => {
                    assert_eq!(Some(id), arrived, "refused after it was admitted");
                    assert!(self.machine.gauge().level >= before.level, "a refusal took from the budget");
                    (id, State::Waiting, State::Ended)
                }
                Effect::Expire { id, .. } => (id, State::Waiting, State::Ended),
            };
            assert_eq!(
                self.state.insert(id, next),
                Some(wanted),
                "{effect:?} of a request that does not wait"
            );
        }
        if waking {
            assert!(self.machine.next_wake().is_none_or(|at| at > self.now), "woken for nothing");
        }
        self.weigh();
    }

    /// The machine's own numbers agree with what its effects said.
    fn weigh(&self) {
        let gauge = self.machine.gauge();
        let count = |state| self.state.values().filter(|s| **s == state).count() as u64;
        let held =
            self.state.iter().filter(|(_, s)| **s == State::Flying).map(|(id, _)| self.holds[id]).sum();
        assert_eq!(
            (gauge.waiting, gauge.in_flight, gauge.held),
            (count(State::Waiting), count(State::Flying), held)
        );
    }

    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(at) = self.machine.next_wake().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed(Event::Wake);
        }
        self.now = until;
    }

    fn pick(&self, state: State, which: usize) -> Option<Id> {
        let open: Vec<Id> = self.state.iter().filter(|(_, s)| **s == state).map(|(id, _)| *id).collect();
        (!open.is_empty()).then(|| open[which % open.len()])
    }

    fn step(&mut self, step: &Step) {
        let flying = |which| self.pick(State::Flying, which);
        let (id, next, event) = match *step {
            Step::Pass { ms } => return self.pass(Duration::from_millis(ms)),
            Step::Arrive { caller, tokens, patience_ms } => return self.arrive(caller, tokens, patience_ms),
            Step::Settle { which, used } => {
                let Some(id) = flying(which) else { return };
                self.given_back += self.holds[&id].get().saturating_sub(used);
                (id, State::Ended, Event::Settled { id, used: Some(Tokens::new(used)) })
            }
            Step::Refuse { which, after_s } => {
                let Some(id) = flying(which) else { return };
                self.given_back += self.holds[&id].get();
                (id, State::Waiting, Event::Refused { id, retry_after: after_s.map(Duration::from_secs) })
            }
            Step::Fail { which, known } => {
                let Some(id) = flying(which) else { return };
                self.given_back += if known { self.holds[&id].get() } else { 0 };
                (id, State::Ended, Event::Failed { id, known })
            }
            Step::Leave { which } => {
                let Some(id) = self.pick(State::Waiting, which).or_else(|| flying(which)) else { return };
                (id, State::Ended, Event::Left { id })
            }
        };
        self.state.insert(id, next);
        self.feed(event);
    }

    fn arrive(&mut self, caller: u64, tokens: u64, patience_ms: u64) {
        let id = Id(self.state.len() as u64);
        let ask = Ask {
            id,
            caller,
            prompt: Tokens::new(tokens / 2),
            max_output: Tokens::new(tokens - tokens / 2),
            bytes: Bytes::new(100),
            deadline: self.now + Duration::from_millis(patience_ms),
        };
        self.state.insert(id, State::Waiting);
        self.holds.insert(id, ask.hold());
        self.feed(Event::Arrive(ask));
    }

    /// In any window at most rate × window + burst is forwarded, besides what was given back.
    fn audit_budget(&self, rate: u64, burst: u64) {
        for (i, (start, _)) in self.forwarded.iter().enumerate() {
            let mut spent = 0;
            for (at, hold) in &self.forwarded[i..] {
                spent += hold;
                let allowed = burst + rate * at.since(*start).as_millis() as u64 / 1_000 + 1;
                assert!(spent <= allowed + self.given_back, "{spent} spent where {allowed} was allowed");
            }
        }
    }

    /// Everyone leaves or ends: nothing is held.
    fn close(&mut self) {
        while let Some(id) = self.pick(State::Flying, 0).or_else(|| self.pick(State::Waiting, 0)) {
            self.state.insert(id, State::Ended);
            self.feed(Event::Left { id });
        }
        let gauge = self.machine.gauge();
        assert_eq!((gauge.waiting, gauge.in_flight, gauge.held), (0, 0, Tokens::ZERO));
        assert_eq!(gauge.waiting_tokens, Tokens::ZERO);
        assert_eq!(gauge.waiting_bytes, Bytes::ZERO);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn every_combination_keeps_the_laws(
        choice in 0..COMBINATIONS,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let config = config(choice);
        let mut court = Court::new(&config);
        for step in &steps {
            court.step(step);
        }
        court.audit_budget(1_000, 1_200);
        court.close();
    }
}

#[test]
fn the_combinations_cover_the_tables() {
    assert_eq!(bounds::ALL.len() * orders::ALL.len() * retry_after::ALL.len() * 2, COMBINATIONS);
    let sorted = |names: Vec<&str>| names.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(sorted(bounds::ALL.iter().map(|k| k.name).collect()));
    assert!(sorted(orders::ALL.iter().map(|k| k.name).collect()));
    assert!(sorted(retry_after::ALL.iter().map(|k| k.name).collect()));
}
