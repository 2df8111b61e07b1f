use std::time::Duration;

use super::*;
use crate::admission::testing::{ask, node};
use crate::admission::{Deployed, Operation};
use crate::units::{Faults, Reader, Tokens};

fn config(more: &str) -> Config {
    let usual = "budgets: { tokens_per_minute: 60000, burst: 1s }, ";
    let usual = if more.contains("budgets:") { "" } else { usual };
    let policy = format!("service: {{ start: 1s }}, margin: 0ms, {usual}");
    let (node, faults) = (node(&format!("{{ {policy} {more} }}")), Faults::default());
    let config = Reader::root(&node, &faults).map().and_then(|mut map| Config::read(&mut map, None));
    config.unwrap_or_else(|| panic!("{:?}", faults.into_sorted()))
}

struct Gateway(Deployed);

impl Gateway {
    fn new(more: &str) -> Self {
        Self(Deployed::new(&config(more), Moment::ZERO))
    }

    fn at(&mut self, ms: u64, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.0.handle(Moment::from_millis(ms), event, &mut effects);
        effects
    }

    /// How many of a hundred at once are forwarded, and how many wait.
    fn crowd(&mut self) -> (usize, usize) {
        let effects: Vec<_> = (0..100).flat_map(|id| self.at(0, Event::Arrive(ask(0, id)))).collect();
        let forwarded = effects.iter().filter(|effect| matches!(effect, Effect::Forward { .. })).count();
        (forwarded, self.0.waiting())
    }

    /// Tokens forwarded in ten seconds in which everybody who waits waits as long as it takes.
    fn spent(&mut self) -> u64 {
        let mut spent = 0;
        let mut see = |effects: Vec<Effect>| {
            spent +=
                100 * effects.iter().filter(|effect| matches!(effect, Effect::Forward { .. })).count() as u64;
        };
        for id in 0..1_000 {
            see(self.at(0, Event::Arrive(Ask { deadline: Moment::from_secs(1_000), ..ask(0, id) })));
        }
        while let Some(at) = self.0.next_wake().filter(|at| *at <= Moment::from_secs(10)) {
            let mut effects = Vec::new();
            self.0.handle(at, Event::Wake, &mut effects);
            see(effects);
        }
        spent
    }
}

#[test]
fn together_they_have_what_one_has() {
    assert_eq!(Gateway::new("bound: deadline").crowd(), Gateway::new("bound: deadline, replicas: 2").crowd());
    // 4,000 tokens less what is kept for those who return; four bursts of 250 have place for two and a half each, and
    // what is left of them is there for those who wait
    assert_eq!(Gateway::new("replicas: 1").crowd(), (10, 30));
    assert_eq!(Gateway::new("replicas: 4").crowd(), (8, 32));
    for bound in ["{ requests: 22 }", "{ tokens: 2200 }", "{ bytes: 2200B }", "[deadline, { requests: 22 }]"]
    {
        let whole = format!("retry_after: none, bound: {bound}");
        assert_eq!(Gateway::new(&whole).crowd().1, 22, "{bound}");
        let (forwarded, waiting) = Gateway::new(&format!("{whole}, replicas: 5")).crowd();
        assert_eq!((forwarded, 22 - waiting < 5), (10, true), "{bound}: {waiting}");
    }
}

#[test]
fn what_is_left_over_of_slots_and_bounds_is_the_first_ones() {
    let all =
        config("bound: { requests: 7 }, budgets: { tokens_per_minute: 60000, concurrent: 5 }, replicas: 3");
    let parts: Vec<_> = (0..3).map(|which| all.of_replica(which, true)).collect();
    assert_eq!(
        parts.iter().map(|part| part.budgets.concurrent).collect::<Vec<_>>(),
        [Some(2), Some(2), Some(1)]
    );
    let bounds: Vec<_> = parts.iter().map(|part| part.bound.spec()["requests"].to_string()).collect();
    assert_eq!(bounds, ["\"3\"", "\"2\"", "\"2\""]);
    let rate = |part: &Config| part.budgets.tokens.map(|rate| rate.whole_in(Duration::from_secs(60)));
    assert_eq!(parts.iter().filter_map(rate).sum::<u64>(), 60_000);
    assert_eq!(share_of(10, 4, 0) + share_of(10, 4, 1) + share_of(10, 4, 2) + share_of(10, 4, 3), 10);
}

#[test]
fn the_sum_stays_in_the_quota_unless_each_believes_it_has_the_whole() {
    let most = |more: &str| Gateway::new(&format!("bound: none, {more}")).spent();
    let one = most("replicas: 1");
    assert_eq!(one, 11_000, "a second at once, and ten");
    let four = most("replicas: 4");
    assert!((10_400..=11_000).contains(&four), "{four}");
    assert_eq!(most("replicas: 4, faults: [per_replica_quotas]"), 44_000);
}

#[test]
fn requests_go_round_and_what_follows_goes_where_they_are() {
    let mut gateway = Gateway::new("bound: none, budgets: { concurrent: 3 }, replicas: 3");
    let mut forwarded = |ms, event| -> Vec<u64> {
        let id = |effect: &Effect| match effect {
            Effect::Forward { id, .. } => Some(id.0),
            _ => None,
        };
        gateway.at(ms, event).iter().filter_map(id).collect()
    };
    for id in 0..3 {
        assert_eq!(forwarded(0, Event::Arrive(ask(0, id))), [id]);
    }
    for id in 3..6 {
        assert_eq!(forwarded(1, Event::Arrive(ask(1, id))), [0u64; 0], "each has one slot");
    }
    assert_eq!(forwarded(9, Event::Settled { id: Id(1), used: None, answer: None }), [4]);
    assert_eq!(forwarded(9, Event::Left { id: Id(5) }), [0u64; 0]);
    assert_eq!(forwarded(9, Event::Settled { id: Id(2), used: None, answer: None }), [0u64; 0]);
    let gauge = gateway.0.gauge();
    assert_eq!((gauge.in_flight, gauge.waiting, gauge.held.get()), (2, 1, 200));
}

#[test]
fn all_of_a_key_and_who_comes_back_go_to_the_same_machine() {
    let mut gateway = Gateway::new("replicas: 7");
    let keyed = |id| Ask { operation: Some(Box::new(Operation { key: 3, body: 3 })), ..ask(0, id) };
    assert!(matches!(gateway.at(0, Event::Arrive(keyed(0)))[..], [Effect::Forward { .. }]));
    assert!(matches!(gateway.at(0, Event::Arrive(keyed(1)))[..], [Effect::Attach { to: Id(0), .. }]));
    let used = Some(Tokens::new(100));
    gateway.at(900, Event::Settled { id: Id(0), used, answer: None });
    assert_eq!(gateway.0.gauge().in_flight, 0);
    // a crowd fills every machine; whoever was refused and comes back in time finds what was kept for those who do
    let told = |effects: Vec<Effect>| match effects[..] {
        [Effect::Shed { retry_after: Some(span), .. }] => Some(span),
        _ => None,
    };
    let mut refused = None;
    for id in 2..200 {
        let span = told(gateway.at(900, Event::Arrive(ask(900, id))));
        refused = refused.or_else(|| span.map(|span| (id, span)));
    }
    let (caller, span) = refused.unwrap();
    let promises = gateway.0.gauge().promises;
    assert!(span >= Duration::from_secs(1) && promises > 50, "{promises}");
    let ms = 900 + u64::try_from(span.as_millis()).unwrap();
    let back = (200..207).find(|id| id % 7 != caller % 7).unwrap();
    gateway.at(ms, Event::Arrive(Ask { caller, ..ask(ms, back) }));
    assert_eq!(
        gateway.0.gauge().promises,
        promises - 1,
        "its promise is kept, wherever its number would send it"
    );
}

#[test]
fn what_ended_elsewhere_is_forgotten() {
    let mut replicas = Replicas::new(&config("replicas: 3"), true, Moment::ZERO);
    let mut effects = Vec::new();
    for n in 0..20_000 {
        let now = Moment::from_millis(100 * n);
        let operation = Some(Box::new(Operation { key: u128::from(n % 3 + 1), body: 1 }));
        replicas.handle(now, Event::Arrive(Ask { operation, ..ask(100 * n, n) }), &mut effects);
        replicas.handle(now, Event::Settled { id: Id(n), used: None, answer: None }, &mut effects);
    }
    assert!(replicas.elsewhere.len() <= FEW, "{}", replicas.elsewhere.len());
    assert_eq!(replicas.gauge().in_flight, 0);
}
