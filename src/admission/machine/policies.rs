//! Each policy by itself, on a scripted clock.

use std::time::Duration;

use super::Admission;
use super::tests::config as plain;
use crate::admission::testing::read;
use crate::admission::{
    Ask, Config, Duplicates, Effect, Event, Expiry, Failure, Id, Kept, Limit, Operation, Tenant, TenantId,
    WhenFull,
};
use crate::units::{Bytes, Moment, Tokens};

/// 1,000 tokens a second with a burst of 1,000, service 1 s, margin 500 ms, fifo, bounded by the deadline.
fn config() -> Config {
    plain("fifo", true)
}

/// A machine, its clock, and every request it was asked.
struct Bench {
    machine: Admission,
    now: Moment,
    asked: Vec<Ask>,
}

/// A request of `tokens` whose caller waits for 10 s.
fn ask(tokens: u64) -> Ask {
    Ask {
        id: Id(0),
        caller: 0,
        prompt: Tokens::new(tokens),
        max_output: Tokens::ZERO,
        bytes: Bytes::new(6_000),
        deadline: Moment::from_secs(10),
        tenant: TenantId(0),
        tier: 1,
        operation: None,
    }
}

impl Bench {
    fn new(config: &Config) -> Self {
        Self { machine: Admission::new(config, Moment::ZERO), now: Moment::ZERO, asked: Vec::new() }
    }

    fn feed(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.machine.handle(self.now, event, &mut effects);
        effects
    }

    /// `ask` arrives now from a caller of its own, with the next id; its deadline counts from now.
    fn arrive(&mut self, ask: Ask) -> Vec<Effect> {
        let id = Id(self.asked.len() as u64);
        let deadline = self.now + ask.deadline.since(Moment::ZERO);
        let ask = Ask { id, caller: id.0, deadline, ..ask };
        self.asked.push(ask.clone());
        self.feed(Event::Arrive(ask))
    }

    fn settle(&mut self, id: u64, used: Option<u64>, answer: Option<u64>) -> Vec<Effect> {
        self.feed(Event::Settled { id: Id(id), used: used.map(Tokens::new), answer: answer.map(Bytes::new) })
    }

    /// Lets `ms` pass, waking the machine whenever it asks for it.
    fn pass(&mut self, ms: u64) -> Vec<Effect> {
        let until = self.now + Duration::from_millis(ms);
        let mut effects = Vec::new();
        while let Some(at) = self.machine.next_wake().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            effects.extend(self.feed(Event::Wake));
        }
        self.now = until;
        effects
    }

    /// Keeps every tenant backlogged for `secs`; gives the parts of requests and of tokens that were forwarded.
    fn shares(&mut self, sizes: &[u64], secs: u64) -> (Vec<f64>, Vec<f64>) {
        let of = |tenant: usize| Ask {
            tenant: TenantId(tenant as u16),
            deadline: Moment::from_secs(1_000_000),
            ..ask(sizes[tenant])
        };
        let mut effects: Vec<Effect> = Vec::new();
        for round in 0..5 * sizes.len() {
            effects.extend(self.arrive(of(round % sizes.len())));
        }
        let mut served = vec![(0.0, 0.0); sizes.len()];
        for _ in 0..secs * 10 {
            while let Some(Effect::Forward { id, .. }) = effects.pop() {
                let tenant = usize::from(self.asked[id.0 as usize].tenant.0);
                served[tenant].0 += 1.0;
                served[tenant].1 += sizes[tenant] as f64;
                effects.extend(self.settle(id.0, None, None));
                effects.extend(self.arrive(of(tenant)));
            }
            effects = self.pass(100);
        }
        let part = |pick: fn(&(f64, f64)) -> f64| {
            let sum: f64 = served.iter().map(pick).sum();
            served.iter().map(|s| pick(s) / sum).collect()
        };
        (part(|s| s.0), part(|s| s.1))
    }
}

fn tenants(weights: &[u32]) -> Vec<Tenant> {
    let tenant = |(i, weight): (usize, &u32)| read(&format!("{{ name: t{i}, weight: {weight} }}"));
    weights.iter().enumerate().map(tenant).collect()
}

fn forwarded(effects: &[Effect]) -> Vec<u64> {
    effects
        .iter()
        .filter_map(|e| if let Effect::Forward { id, .. } = e { Some(id.0) } else { None })
        .collect()
}

fn near(got: &[f64], wanted: [f64; 3]) {
    assert!(got.iter().zip(wanted).all(|(got, wanted)| (got - wanted).abs() < 0.01), "{got:?}");
}

#[test]
fn backlogged_tenants_get_dispatches_or_tokens_by_weight() {
    let with =
        |share| Config { share: read(share), tenants: tenants(&[2, 1, 1]), bound: read("none"), ..config() };
    let (requests, _) = Bench::new(&with("wrr")).shares(&[300, 300, 300], 1_000);
    near(&requests, [0.5, 0.25, 0.25]);
    let (requests, tokens) = Bench::new(&with("wrr")).shares(&[150, 300, 750], 1_000);
    near(&requests, [0.5, 0.25, 0.25]);
    near(&tokens, [0.222, 0.222, 0.556]);
    let (_, tokens) = Bench::new(&with("drr")).shares(&[150, 300, 750], 1_000);
    near(&tokens, [0.5, 0.25, 0.25]);
}

#[test]
fn an_urgent_newcomer_goes_first_but_makes_nobody_late() {
    let mut bench = Bench::new(&Config { order: read("edf"), ..config() });
    let due = |secs, tokens| Ask { deadline: Moment::from_secs(secs), ..ask(tokens) };
    assert_eq!(forwarded(&bench.arrive(due(100, 1_000))), [0], "the burst is spent");
    for _ in 0..4 {
        assert!(bench.arrive(due(6, 1_000)).is_empty(), "4,500 fit before 6 s less service and margin");
    }
    assert!(matches!(bench.arrive(due(6, 1_000))[..], [Effect::Shed { .. }]));
    // 3 s allow 1,500 ahead of a newcomer; but the fourth of the others starts at 4 s and must start by 5 s
    assert!(bench.arrive(due(3, 1_000)).is_empty());
    assert!(matches!(bench.arrive(due(3, 500))[..], [Effect::Shed { .. }]), "somebody would be late");
    let order = forwarded(&bench.pass(6_000));
    assert_eq!(order, [6, 1, 2, 3, 4], "the urgent one first, and all of them in time");
}

#[test]
fn a_more_important_tier_is_served_first_and_others_give_way_to_it() {
    let mut config = Config { bound: read("{ requests: 3 }"), ..config() };
    let tier = |tier| Ask { tier, ..ask(1_000) };
    let mut bench = Bench::new(&config);
    bench.arrive(tier(1));
    for _ in 0..3 {
        assert!(bench.arrive(tier(3)).is_empty());
    }
    assert!(matches!(bench.arrive(tier(3))[..], [Effect::Shed { .. }]), "its own tier does not give way");
    let effects = bench.arrive(tier(2));
    assert!(
        matches!(effects[..], [Effect::Expire { id: Id(3), why: Expiry::Evicted, .. }]),
        "the newest of the least important: {effects:?}"
    );
    assert_eq!(forwarded(&bench.pass(2_000)), [5, 1]);
    config.tiers.evict = false;
    let mut bench = Bench::new(&config);
    (0..4).for_each(|_| drop(bench.arrive(tier(3))));
    assert!(matches!(bench.arrive(tier(2))[..], [Effect::Shed { .. }]));
}

#[test]
fn when_full_the_oldest_can_give_way_to_the_newest() {
    let when_full = WhenFull::EvictOldest;
    let mut bench =
        Bench::new(&Config { bound: read("{ requests: 2 }"), order: read("lifo"), when_full, ..config() });
    (0..3).for_each(|_| drop(bench.arrive(ask(1_000))));
    let effects = bench.arrive(ask(1_000));
    assert!(matches!(effects[..], [Effect::Expire { id: Id(1), why: Expiry::Evicted, .. }]), "{effects:?}");
    assert_eq!(forwarded(&bench.pass(1_000)), [3]);
}

#[test]
fn adaptive_lifo_turns_at_its_marks() {
    let order = read("{ adaptive_lifo: { high: 4, low: 2 } }");
    let mut bench = Bench::new(&Config { order, bound: read("none"), ..config() });
    (0..5).for_each(|_| drop(bench.arrive(Ask { deadline: Moment::from_secs(100), ..ask(1_000) })));
    // four wait: the newest first until two do
    assert_eq!(forwarded(&bench.pass(4_000)), [4, 3, 1, 2]);
}

#[test]
fn a_tenant_over_its_own_limit_is_throttled_whatever_the_state_of_the_whole() {
    let tenants = vec![
        read("{ name: small, requests: 60/min, burst: 2s }"),
        read("{ name: heavy, tokens_per_minute: 6000, burst: 5s }"),
    ];
    let mut bench = Bench::new(&Config { tenants, ..config() });
    let of = |tenant, tokens| Ask { tenant: TenantId(tenant), ..ask(tokens) };
    assert_eq!(forwarded(&bench.arrive(of(0, 10))), [0]);
    assert_eq!(forwarded(&bench.arrive(of(0, 10))), [1]);
    let throttled = bench.arrive(of(0, 10));
    let retry_after = Duration::from_secs(1);
    assert_eq!(throttled, [Effect::Throttle { id: Id(2), limit: Limit::TenantRequests, retry_after }]);
    assert_eq!(forwarded(&bench.arrive(of(1, 400))), [3], "another tenant is served");
    let retry_after = Duration::from_secs(3);
    assert_eq!(
        bench.arrive(of(1, 400)),
        [Effect::Throttle { id: Id(4), limit: Limit::TenantTokens, retry_after }]
    );
    let effects = bench.arrive(of(1, 501));
    assert!(matches!(effects[..], [Effect::Reject { limit: Limit::TenantTokens, .. }]), "never: {effects:?}");
    bench.pass(1_000);
    assert_eq!(forwarded(&bench.arrive(of(0, 10))), [6], "what was refused took nothing");
}

#[test]
fn a_ceiling_without_carry_lets_one_of_one_point_eight_pass_each_round() {
    // a usual rate of 1.5 a round and a ceiling of 1.2 times that, as a fixed window of a round
    let tenants = vec![read("{ name: batch, usual: 1.5/s, ceiling: 1.2, window: { fixed: 1s } }")];
    let mut bench = Bench::new(&Config { tenants, ..config() });
    let mut passed = 0;
    for _ in 0..100 {
        passed += (0..2).filter(|_| !forwarded(&bench.arrive(ask(1))).is_empty()).count();
        bench.pass(1_000);
    }
    assert_eq!(passed, 100);
}

#[test]
fn slots_bound_the_calls_and_count_as_capacity() {
    // 60 slots of 50 ms serve 1,200 a second; callers wait 400 ms at most
    let budgets = read_budgets("{ concurrent: 60 }");
    let bound = read("{ seconds: 400ms }");
    let service = read("{ start: 50ms }");
    let mut bench = Bench::new(&Config { budgets, bound, service, ..config() });
    let mut shed_at = None;
    for n in 0..1_000 {
        if matches!(bench.arrive(ask(1))[..], [Effect::Shed { .. }]) {
            shed_at = Some(n - 60);
            break;
        }
    }
    assert_eq!(bench.machine.gauge().in_flight, 60);
    assert_eq!(shed_at, Some(480));
    assert_eq!(forwarded(&bench.settle(0, None, None)), [60], "a slot is free when the answer has ended");
}

fn read_budgets(text: &str) -> crate::admission::Budgets {
    let node = crate::admission::testing::node(&format!("{{ service: {{ start: 1s }}, budgets: {text} }}"));
    let faults = crate::units::Faults::default();
    let mut map = crate::units::Reader::root(&node, &faults).map().unwrap();
    Config::read(&mut map, None).unwrap().budgets
}

#[test]
fn what_is_given_back_lets_more_wait() {
    // hold 1,700 and use 1,200: the queue drains 1.417 times as fast as the quota fills
    let mut bench =
        Bench::new(&Config { budgets: read_budgets("{ tokens_per_minute: 500k, burst: 1s }"), ..config() });
    let long = |tokens| Ask { deadline: Moment::from_millis(25_500), ..ask(tokens) };
    for id in 0..200 {
        bench.arrive(long(1_700));
        bench.settle(id, Some(1_200), None);
        bench.pass(1_000);
    }
    let waiting =
        (0..1_000).take_while(|_| !matches!(bench.arrive(long(1_700))[..], [Effect::Shed { .. }])).count();
    // 25 s at 8,333 tokens a second are 122 holds of 1,700, but 173 answers of 1,200; 4.9 more are there at once
    assert!((176..=179).contains(&waiting), "{waiting}");
}

#[test]
fn one_operation_is_one_call() {
    let operation = |key, body| Ask { operation: Some(Box::new(Operation { key, body })), ..ask(100) };
    let kept = Kept { number: 1, ..Kept::default() };
    let mut bench = Bench::new(&Config { keep: kept, ..config() });
    assert_eq!(forwarded(&bench.arrive(operation(1, 1))), [0]);
    assert_eq!(bench.arrive(operation(1, 1)), [Effect::Attach { id: Id(1), to: Id(0) }]);
    assert_eq!(bench.arrive(operation(1, 2)), [Effect::Conflict { id: Id(2) }]);
    assert_eq!(bench.settle(0, None, Some(50)), []);
    assert_eq!(bench.arrive(operation(1, 1)), [Effect::Replay { id: Id(3), of: Id(0) }]);
    bench.arrive(operation(2, 1));
    assert_eq!(bench.settle(4, None, Some(50)), [Effect::Forget { id: Id(0) }], "one answer is kept");
    assert_eq!(forwarded(&bench.arrive(operation(1, 1))), [5], "forgotten: fresh again");
    let mut bench = Bench::new(&Config { duplicates: Duplicates::Tell, ..config() });
    bench.arrive(operation(1, 1));
    assert_eq!(bench.arrive(operation(1, 1)), [Effect::Running { id: Id(1), to: Id(0) }]);
}

#[test]
fn a_call_goes_on_for_those_attached_to_it_and_no_longer() {
    let operation = || Ask { operation: Some(Box::new(Operation { key: 1, body: 1 })), ..ask(100) };
    let mut bench = Bench::new(&config());
    bench.arrive(operation());
    bench.arrive(operation());
    assert_eq!(bench.feed(Event::Left { id: Id(0) }), [], "somebody waits for it");
    assert_eq!(bench.feed(Event::Left { id: Id(1) }), [Effect::Cancel { id: Id(0) }]);
    // its end is unknown: the same operation must not run twice
    bench.feed(Event::Failed { id: Id(0), how: Failure::Unknown });
    assert_eq!(bench.arrive(operation()), [Effect::Running { id: Id(2), to: Id(0) }]);
    bench.feed(Event::Reconciled { id: Id(0), used: Tokens::ZERO });
    assert_eq!(forwarded(&bench.arrive(operation())), [3]);
}

#[test]
fn only_what_surely_did_nothing_is_repeated_within_the_limits() {
    let mut config = config();
    config.upstream.attempts = 3;
    let mut bench = Bench::new(&config);
    bench.arrive(ask(100));
    for _ in 0..2 {
        assert_eq!(bench.feed(Event::Failed { id: Id(0), how: Failure::Repeatable }), []);
        assert_eq!(bench.machine.gauge().waiting, 1);
        assert_eq!(forwarded(&bench.pass(400)), [0], "after a rest, with the same id");
    }
    let given_up = bench.feed(Event::Failed { id: Id(0), how: Failure::Repeatable });
    assert_eq!(given_up, [Effect::Fail { id: Id(0) }], "three calls are the most");
    bench.arrive(ask(100));
    assert_eq!(bench.feed(Event::Failed { id: Id(1), how: Failure::Unknown }), []);
    assert_eq!(bench.machine.gauge().unknown, 1, "never repeated; its hold is kept");
    assert!(forwarded(&bench.pass(59_000)).is_empty());
    // a budget of repetitions, besides the cap for each
    config.upstream.budget = crate::units::Share::new(0.0);
    let mut bench = Bench::new(&config);
    bench.arrive(ask(100));
    assert_eq!(
        bench.feed(Event::Failed { id: Id(0), how: Failure::Repeatable }),
        [Effect::Fail { id: Id(0) }]
    );
}

#[test]
fn windows_other_than_a_bucket_are_kept_and_their_resets_known() {
    // 60,000 a minute: at a reset all of it is there, and the bound knows that it will be
    let mut bench = Bench::new(&Config {
        budgets: read_budgets("{ tokens_per_minute: 60k, window: { fixed: 60s } }"),
        ..config()
    });
    let sent = (0..100).filter(|_| !forwarded(&bench.arrive(ask(1_000))).is_empty()).count();
    assert_eq!(sent, 60, "the rest was refused at once: no reset within their deadlines");
    assert_eq!(bench.machine.gauge().waiting, 0);
    bench.pass(52_000);
    assert!(bench.arrive(ask(1_000)).is_empty(), "8 s before the reset one waits");
    assert_eq!(forwarded(&bench.pass(8_000)), [100]);
}

#[test]
fn one_event_does_a_bounded_amount_of_work() {
    let mut bench = Bench::new(&Config { bound: read("none"), ..config() });
    (0..5_000).for_each(|_| drop(bench.arrive(ask(1_000))));
    bench.now = Moment::from_secs(9);
    let first = bench.feed(Event::Wake).len();
    assert!(first <= 1_000, "{first} at once");
    let next = bench.machine.next_wake().unwrap();
    assert!(next > bench.now && next <= bench.now + Duration::from_millis(1));
    assert!(bench.pass(10).len() >= 3_900, "the rest a moment later");
}

/// As in BerriAI/litellm#39309: what is refused for one budget takes nothing from another.
#[test]
fn a_refusal_for_want_of_a_slot_leaves_the_rate_alone() {
    let budgets = read_budgets("{ requests_per_minute: 2, concurrent: 1, window: { fixed: 60s } }");
    let mut bench = Bench::new(&Config { budgets, bound: read("{ requests: 0 }"), ..config() });
    assert_eq!(forwarded(&bench.arrive(ask(1))), [0]);
    assert!(matches!(bench.arrive(ask(1))[..], [Effect::Shed { .. }]), "the slot is taken");
    bench.settle(0, None, None);
    assert_eq!(forwarded(&bench.arrive(ask(1))), [2], "two of two in this minute");
    bench.settle(2, None, None);
    assert!(matches!(bench.arrive(ask(1))[..], [Effect::Shed { .. }]), "and not a third");
}

/// As in lzvxck/seri-agent#125: each tenant within its limit, the sum above the provider's. What is too much is refused
/// here and never reaches the provider.
#[test]
fn tenants_within_their_limits_do_not_add_up_to_more_than_the_quota() {
    let tenant = |i| read(&format!("{{ name: t{i}, requests: 10/min, window: {{ fixed: 60s }} }}"));
    let budgets = read_budgets("{ requests_per_minute: 20, window: { fixed: 60s } }");
    let tenants = (0..3).map(tenant).collect();
    let mut bench = Bench::new(&Config { budgets, tenants, ..config() });
    for minute in 0..3 {
        let (mut sent, mut shed, mut throttled) = (0, 0, 0);
        for n in 0..36u16 {
            for effect in bench.arrive(Ask { tenant: TenantId(n % 3), ..ask(1) }) {
                match effect {
                    Effect::Forward { .. } => sent += 1,
                    Effect::Shed { .. } => shed += 1,
                    Effect::Throttle { .. } => throttled += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
        // twelve of each: what a shared lack refuses is not counted against the tenant
        assert_eq!((sent, shed, throttled), (20, 16, 0), "minute {minute}");
        bench.pass(60_000);
    }
}

/// As in BerriAI/litellm#16011: a limit of ten is ten, however many come.
#[test]
fn calls_at_once_stay_within_their_number() {
    let mut bench = Bench::new(&Config { budgets: read_budgets("{ concurrent: 10 }"), ..config() });
    let mut ends: Vec<(u64, u64)> = Vec::new();
    for ms in (0..20_000).step_by(10) {
        let mut effects = bench.pass(10);
        for (_, id) in ends.extract_if(.., |(end, _)| *end <= ms) {
            effects.extend(bench.settle(id, None, None));
        }
        effects.extend(bench.arrive(ask(1)));
        ends.extend(forwarded(&effects).into_iter().map(|id| (ms + 1_000, id)));
        assert!(bench.machine.gauge().in_flight <= 10);
    }
    assert_eq!(bench.machine.gauge().in_flight, 10);
}

/// As in digitalocean/nginxconfig.io#377: a fixed 120 s on a limiter of five a second is a fiction; what the state says
/// is true to the second.
#[test]
fn a_time_from_the_state_is_true_where_a_constant_is_not() {
    let with = |retry_after: &str| {
        let budgets = read_budgets("{ requests_per_minute: 300, burst: 2400ms }");
        let mut bench = Bench::new(&Config {
            budgets,
            bound: read("{ requests: 0 }"),
            retry_after: read(retry_after),
            ..config()
        });
        let told = (0..13).find_map(|_| match bench.arrive(ask(1))[..] {
            [Effect::Shed { retry_after, .. }] => retry_after,
            _ => None,
        });
        (bench, told.unwrap())
    };
    let (mut bench, told) = with("room");
    assert_eq!(told, Duration::from_secs(1));
    bench.pass(200);
    assert_eq!(forwarded(&bench.arrive(ask(1))), [13], "the next slot is there after 0.2 s");
    let (_, told) = with("{ constant: 120s }");
    assert_eq!(told, 600 * Duration::from_millis(200));
}
