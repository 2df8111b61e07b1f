//! The laws of the machine, over every combination its tables allow.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::{
    Admission, Ask, Budgets, Codel, Config, Counts, Duplicates, Effect, Estimate, Event, Failure, Id, Kept,
    Operation, Tenant, TenantId, Tiers, Upstream, WhenFull, bounds, orders, retry_after, shares,
};
use crate::units::{Bytes, Moment, Rate, Share, Tokens, Window};

/// What a generated step does. Ids are chosen among those it makes sense for.
#[derive(Debug, Clone)]
enum Step {
    Arrive { caller: u64, tokens: u64, patience_ms: u64, tenant: u16, tier: u8, key: Option<u128> },
    Settle { which: usize, used: u64, bytes: Option<u64> },
    Refuse { which: usize, after_s: Option<u64> },
    Fail { which: usize, how: Failure },
    Reconcile { which: usize, used: u64 },
    Leave { which: usize },
    Pass { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let arrive =
        (0..20u64, 1..1_500u64, 0..6_000u64, 0..3u16, 0..3u8, proptest::option::weighted(0.3, 0..4u128));
    let how = prop_oneof![Just(Failure::Repeatable), Just(Failure::Final), Just(Failure::Unknown)];
    prop_oneof![
        6 => arrive.prop_map(|(caller, tokens, patience_ms, tenant, tier, key)| {
            Step::Arrive { caller, tokens, patience_ms, tenant, tier, key }
        }),
        3 => (any::<usize>(), 0..2_000u64, proptest::option::of(0..900u64))
            .prop_map(|(which, used, bytes)| Step::Settle { which, used, bytes }),
        1 => (any::<usize>(), proptest::option::of(0..4u64)).prop_map(|(which, after_s)| Step::Refuse { which, after_s }),
        1 => (any::<usize>(), how).prop_map(|(which, how)| Step::Fail { which, how }),
        1 => (any::<usize>(), 0..2_000u64).prop_map(|(which, used)| Step::Reconcile { which, used }),
        2 => any::<usize>().prop_map(|which| Step::Leave { which }),
        4 => (0..1_500u64).prop_map(|ms| Step::Pass { ms }),
    ]
}

/// Takes the next digit of `choice` to the base of a table's length.
fn digit(choice: &mut usize, base: usize) -> usize {
    let digit = *choice % base;
    *choice /= base;
    digit
}

const WINDOWS: [Option<Window>; 4] = [
    None,
    Some(Window::Fixed { period: Duration::from_millis(1_200) }),
    Some(Window::Round { period: Duration::from_millis(700) }),
    Some(Window::Sliding { period: Duration::from_millis(1_200) }),
];

/// Every combination of the tables and switches, by number.
fn config(mut choice: usize) -> Config {
    let mut pick = |base| digit(&mut choice, base);
    let rate = |n| Rate::per_second(n);
    let bound = (bounds::ALL[pick(bounds::ALL.len())].build)(None).unwrap();
    let order = (orders::ALL[pick(orders::ALL.len())].build)(None).unwrap();
    let retry_after = (retry_after::ALL[pick(retry_after::ALL.len())].build)(None).unwrap();
    let share = (shares::ALL[pick(shares::ALL.len())].build)(None).unwrap();
    let period = WINDOWS[pick(WINDOWS.len())];
    let on = |it: usize| it == 1;
    let (recheck, codel, strict, evict) = (on(pick(2)), on(pick(2)), on(pick(2)), on(pick(2)));
    let (oldest, slots, own, attach) = (on(pick(2)), on(pick(2)), on(pick(2)), on(pick(2)));
    let tenant = |(name, weight): (&str, u32)| Tenant {
        name: name.into(),
        weight,
        tokens: rate(700).filter(|_| own),
        requests: rate(2).filter(|_| own),
        window: Window::Bucket { burst: Duration::from_secs(3) },
        counts: Counts::Admitted,
    };
    Config {
        bound,
        order,
        when_full: if oldest { WhenFull::EvictOldest } else { WhenFull::RefuseNewest },
        recheck,
        codel: codel
            .then_some(Codel { target: Duration::from_millis(300), interval: Duration::from_millis(900) }),
        service: Estimate { start: Duration::from_millis(800), quantile: Share::new(0.99).unwrap() },
        margin: Duration::from_millis(200),
        budgets: Budgets {
            tokens: rate(1_000),
            requests: rate(3).filter(|_| slots),
            burst: Duration::from_millis(1_200),
            period,
            concurrent: slots.then_some(2),
        },
        tenants: [("a", 2), ("b", 1), ("c", 1)].into_iter().map(tenant).collect(),
        share,
        tiers: Tiers { strict, evict },
        duplicates: if attach { Duplicates::Attach } else { Duplicates::Tell },
        cancel: true,
        keep: Kept { number: 2, bytes: Bytes::new(1_000), age: Duration::from_secs(5) },
        upstream: Upstream { attempts: 3, lease: Duration::from_secs(4), ..Upstream::default() },
        retry_after,
        give_up_above: Config::GIVE_UP_ABOVE,
        replicas: 1,
        faults: super::faults::List::default(),
    }
}

/// How many combinations there are.
fn combinations() -> usize {
    bounds::ALL.len()
        * orders::ALL.len()
        * retry_after::ALL.len()
        * shares::ALL.len()
        * WINDOWS.len()
        * (1 << 8)
}

/// Where each request stands, as the effects and events tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Flying,
    /// Its caller has its answer or is gone; its hold is kept until its end is known or its lease is over.
    Orphan,
    Attached(Id),
    Ended,
}

/// Drives a machine and holds its effects against the laws.
struct Court {
    machine: Admission,
    now: Moment,
    state: BTreeMap<Id, State>,
    asks: BTreeMap<Id, Ask>,
    /// Forwarded with an operation's key and not ended, by that key.
    running: BTreeMap<u128, Id>,
    forwarded: Vec<(Moment, u64)>,
    given_back: u64,
}

impl Court {
    fn new(config: &Config) -> Self {
        Self {
            machine: Admission::new(config, Moment::ZERO),
            now: Moment::ZERO,
            state: BTreeMap::new(),
            asks: BTreeMap::new(),
            running: BTreeMap::new(),
            forwarded: Vec::new(),
            given_back: 0,
        }
    }

    fn feed(&mut self, event: Event) {
        let waking = event == Event::Wake;
        // of this very instant: a round's budget is gone a moment after its end
        let level = self.machine.level_at(self.now);
        let arrived = if let Event::Arrive(ask) = &event { Some(ask.id) } else { None };
        let mut effects = Vec::new();
        self.machine.handle(self.now, event, &mut effects);
        for effect in &effects {
            self.judge(effect, arrived, level);
        }
        if waking {
            assert!(self.machine.next_wake().is_none_or(|at| at > self.now), "woken for nothing");
        }
        self.weigh();
    }

    fn judge(&mut self, effect: &Effect, arrived: Option<Id>, level: Tokens) {
        let refused = |court: &Self, id| {
            assert_eq!(Some(id), arrived, "refused after it was admitted");
            assert!(court.machine.gauge().level >= level, "a refusal took from the budget");
        };
        let (id, next) = match *effect {
            Effect::Forward { id, .. } => {
                self.forwarded.push((self.now, self.asks[&id].hold().get()));
                if let Some(key) = self.asks[&id].operation.as_ref().map(|operation| operation.key) {
                    let other = self.running.insert(key, id).filter(|other| *other != id);
                    let over = other.is_none_or(|other| self.state[&other] == State::Ended);
                    assert!(over, "two calls of one operation");
                }
                (id, State::Flying)
            }
            Effect::Shed { id, .. } | Effect::Throttle { id, .. } | Effect::Reject { id, .. } => {
                refused(self, id);
                (id, State::Ended)
            }
            Effect::Running { id, to } | Effect::Replay { id, of: to } => {
                refused(self, id);
                assert_eq!(self.asks[&id].operation, self.asks[&to].operation);
                (id, State::Ended)
            }
            Effect::Conflict { id } => {
                refused(self, id);
                (id, State::Ended)
            }
            Effect::Attach { id, to } => {
                refused(self, id);
                assert!(
                    matches!(self.state[&to], State::Waiting | State::Flying),
                    "attached to one that has ended"
                );
                (id, State::Attached(to))
            }
            Effect::Expire { id, .. } | Effect::Fail { id } => (id, State::Ended),
            Effect::Cancel { id } => {
                assert_eq!(
                    self.state.insert(id, State::Orphan),
                    Some(State::Flying),
                    "a call that does not run"
                );
                return;
            }
            Effect::Forget { .. } => return,
        };
        assert_eq!(
            self.state.insert(id, next),
            Some(State::Waiting),
            "{effect:?} of a request that does not wait"
        );
        if next == State::Ended {
            self.end_attached(id);
        }
    }

    /// Those attached to a request that ended have its answer.
    fn end_attached(&mut self, to: Id) {
        self.state
            .values_mut()
            .filter(|state| **state == State::Attached(to))
            .for_each(|state| *state = State::Ended);
    }

    /// The machine's own numbers agree with what its effects said.
    fn weigh(&mut self) {
        let gauge = self.machine.gauge();
        let of = |court: &Self, state| -> Vec<Id> {
            court.state.iter().filter(|(_, s)| **s == state).map(|(id, _)| *id).collect()
        };
        // leases end by themselves, the oldest first
        let mut orphans = of(self, State::Orphan);
        assert!(gauge.unknown as usize <= orphans.len());
        if (gauge.unknown as usize) < orphans.len() {
            let held = self.machine.flying_ids();
            for id in orphans.iter().filter(|id| !held.contains(id)) {
                self.state.insert(*id, State::Ended);
            }
            orphans = of(self, State::Orphan);
        }
        let flying = of(self, State::Flying);
        let held = flying.iter().chain(&orphans).map(|id| self.asks[id].hold()).sum();
        assert_eq!(gauge.waiting as usize, of(self, State::Waiting).len(), "waiting");
        assert_eq!(gauge.in_flight as usize, flying.len() + orphans.len(), "in flight");
        assert_eq!((gauge.unknown as usize, gauge.held), (orphans.len(), held));
    }

    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(at) = self.machine.next_wake().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.feed(Event::Wake);
        }
        self.now = until;
    }

    fn pick(&self, which: usize, states: &[State]) -> Option<Id> {
        let open: Vec<Id> =
            self.state.iter().filter(|(_, s)| states.contains(s)).map(|(id, _)| *id).collect();
        (!open.is_empty()).then(|| open[which % open.len()])
    }

    fn step(&mut self, step: &Step) {
        let flying = |which| self.pick(which, &[State::Flying, State::Orphan]);
        match *step {
            Step::Pass { ms } => self.pass(Duration::from_millis(ms)),
            Step::Arrive { .. } => self.arrive(step),
            Step::Settle { which, used, bytes } => {
                let Some(id) = flying(which) else { return };
                self.given_back += self.asks[&id].hold().get().saturating_sub(used);
                self.state.insert(id, State::Ended);
                self.end_attached(id);
                self.feed(Event::Settled {
                    id,
                    used: Some(Tokens::new(used)),
                    answer: bytes.map(Bytes::new),
                });
            }
            Step::Refuse { which, after_s } => {
                let Some(id) = flying(which) else { return };
                self.given_back += self.asks[&id].hold().get();
                let next = if self.state[&id] == State::Orphan { State::Ended } else { State::Waiting };
                self.state.insert(id, next);
                self.feed(Event::Refused { id, retry_after: after_s.map(Duration::from_secs) });
            }
            Step::Fail { which, how } => {
                let Some(id) = flying(which) else { return };
                let orphan = self.state[&id] == State::Orphan;
                if how != Failure::Unknown {
                    self.given_back += self.asks[&id].hold().get();
                }
                let next = match how {
                    Failure::Unknown => State::Orphan,
                    Failure::Repeatable if !orphan => State::Waiting,
                    Failure::Repeatable | Failure::Final => State::Ended,
                };
                self.state.insert(id, next);
                if next != State::Waiting {
                    self.end_attached(id);
                }
                self.feed(Event::Failed { id, how });
            }
            Step::Reconcile { which, used } => {
                let Some(id) = self.pick(which, &[State::Orphan]) else { return };
                self.given_back += self.asks[&id].hold().get().saturating_sub(used);
                self.state.insert(id, State::Ended);
                self.feed(Event::Reconciled { id, used: Tokens::new(used) });
            }
            Step::Leave { which } => {
                let attached =
                    self.state.iter().find(|(_, s)| matches!(s, State::Attached(_))).map(|(id, _)| *id);
                let attached = attached.filter(|_| which.is_multiple_of(3));
                let Some(id) = attached.or_else(|| self.pick(which, &[State::Waiting, State::Flying])) else {
                    return;
                };
                self.leave(id);
            }
        }
    }

    /// A caller leaves. Its request goes on while others wait for its answer; a call that nobody waits for is cancelled
    /// by an effect, and a waiting one simply ends.
    fn leave(&mut self, id: Id) {
        let alone = |court: &Self, id| !court.state.values().any(|s| *s == State::Attached(id));
        let before = self.state[&id];
        if let State::Attached(_) = before {
            self.state.insert(id, State::Ended);
        } else if before == State::Waiting && alone(self, id) {
            self.state.insert(id, State::Ended);
        }
        let waiting: Vec<Id> =
            self.state.iter().filter(|(_, s)| **s == State::Waiting).map(|(id, _)| *id).collect();
        let mut effects = Vec::new();
        self.machine.handle(self.now, Event::Left { id }, &mut effects);
        for id in waiting {
            // the last one attached to a waiting request whose own caller is gone takes it along
            if matches!(before, State::Attached(to) if to == id) && !self.machine.waits(id) {
                let elsewhere =
                    effects.iter().any(|e| matches!(e, Effect::Forward { id: f, .. } if *f == id));
                let expired = effects.iter().any(|e| matches!(e, Effect::Expire { id: f, .. } if *f == id));
                if !elsewhere && !expired {
                    self.state.insert(id, State::Ended);
                }
            }
        }
        for effect in &effects {
            self.judge(effect, None, Tokens::ZERO);
        }
        self.weigh();
    }

    fn arrive(&mut self, step: &Step) {
        let Step::Arrive { caller, tokens, patience_ms, tenant, tier, key } = *step else { return };
        let id = Id(self.state.len() as u64);
        let ask = Ask {
            id,
            caller,
            prompt: Tokens::new(tokens / 2),
            max_output: Tokens::new(tokens - tokens / 2),
            bytes: Bytes::new(100),
            deadline: self.now + Duration::from_millis(patience_ms),
            tenant: TenantId(tenant),
            tier,
            operation: key
                .map(|key| Box::new(Operation { key: key / 2, body: key % 2 + u128::from(tokens % 2) })),
        };
        self.state.insert(id, State::Waiting);
        self.asks.insert(id, ask.clone());
        self.feed(Event::Arrive(ask));
    }

    /// In any window at most rate × window + burst is forwarded, besides what was given back; twice the amount of a
    /// fixed period can pass across its edge.
    fn audit_budget(&self, rate: u64, burst: u64) {
        for (i, (start, _)) in self.forwarded.iter().enumerate() {
            let mut spent = 0;
            for (at, hold) in &self.forwarded[i..] {
                spent += hold;
                let allowed = 2 * burst + rate * at.since(*start).as_millis() as u64 / 1_000 + 1;
                assert!(spent <= allowed + self.given_back, "{spent} spent where {allowed} was allowed");
            }
        }
    }

    /// Everyone leaves, leases end: nothing is held and nothing is due.
    fn close(&mut self) {
        while let Some(id) = self.pick(0, &[State::Flying, State::Waiting]) {
            let attached = self.state.iter().find(|(_, s)| **s == State::Attached(id)).map(|(id, _)| *id);
            self.leave(id);
            if let Some(attached) = attached {
                self.leave(attached);
            }
        }
        self.pass(Duration::from_secs(60));
        let gauge = self.machine.gauge();
        assert_eq!((gauge.waiting, gauge.in_flight, gauge.unknown, gauge.held), (0, 0, 0, Tokens::ZERO));
        assert_eq!((gauge.waiting_tokens, gauge.waiting_bytes), (Tokens::ZERO, Bytes::ZERO));
        assert_eq!(self.machine.next_wake(), None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn every_combination_keeps_the_laws(
        choice in 0..combinations(),
        steps in proptest::collection::vec(step(), 1..50),
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
fn the_tables_are_sorted() {
    let sorted = |names: Vec<&str>| names.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(sorted(bounds::ALL.iter().map(|k| k.name).collect()));
    assert!(sorted(orders::ALL.iter().map(|k| k.name).collect()));
    assert!(sorted(retry_after::ALL.iter().map(|k| k.name).collect()));
    assert!(sorted(shares::ALL.iter().map(|k| k.name).collect()));
}
