use super::*;
use crate::admission::{
    Budgets, Duplicates, Estimate, Expiry, Failure, Kept, Limit, TenantId, Tiers, Upstream, WhenFull, bounds,
    orders, retry_after, shares,
};
use crate::units::{Bytes, Rate, Share};

/// 1,000 tokens a second with a burst of 1,000, service 1 s, margin 500 ms.
fn machine(order: &str, recheck: bool) -> Admission {
    Admission::new(&config(order, recheck), Moment::ZERO)
}

pub(super) fn config(order: &str, recheck: bool) -> Config {
    Config {
        bound: bounds::standard(),
        order: (orders::ALL.iter().find(|kind| kind.name == order).unwrap().build)(None).unwrap(),
        when_full: WhenFull::RefuseNewest,
        recheck,
        codel: None,
        service: Estimate { start: Duration::from_secs(1), quantile: Share::new(0.99).unwrap() },
        margin: Duration::from_millis(500),
        budgets: Budgets::of_tokens(Rate::per_second(1_000).unwrap(), Duration::from_secs(1)),
        tenants: Vec::new(),
        share: shares::standard(),
        tiers: Tiers { strict: true, evict: true },
        duplicates: Duplicates::Attach,
        cancel: true,
        keep: Kept::default(),
        upstream: Upstream::default(),
        retry_after: (retry_after::ALL.iter().find(|kind| kind.name == "room").unwrap().build)(None).unwrap(),
        give_up_above: Config::GIVE_UP_ABOVE,
        replicas: 1,
        faults: crate::admission::faults::List::default(),
    }
}

fn feed(machine: &mut Admission, ms: u64, event: Event) -> Vec<Effect> {
    let mut effects = Vec::new();
    machine.handle(Moment::from_millis(ms), event, &mut effects);
    effects
}

/// A request of `tokens` at `ms` whose caller waits for 10 s.
fn arrive(machine: &mut Admission, id: u64, ms: u64, tokens: u64) -> Vec<Effect> {
    let ask = Ask {
        id: Id(id),
        caller: id,
        prompt: Tokens::new(tokens / 2),
        max_output: Tokens::new(tokens - tokens / 2),
        bytes: Bytes::new(100),
        deadline: Moment::from_millis(ms + 10_000),
        tenant: TenantId::default(),
        tier: 1,
        operation: None,
    };
    feed(machine, ms, Event::Arrive(ask))
}

fn forwarded(effects: &[Effect]) -> Vec<u64> {
    effects
        .iter()
        .filter_map(|e| if let Effect::Forward { id, .. } = e { Some(id.0) } else { None })
        .collect()
}

#[test]
fn no_newcomer_overtakes_the_queue() {
    let mut machine = machine("fifo", true);
    assert_eq!(forwarded(&arrive(&mut machine, 0, 0, 900)), [0]);
    assert!(arrive(&mut machine, 1, 1, 900).is_empty(), "waits: 101 of 900 there");
    assert!(arrive(&mut machine, 2, 2, 50).is_empty(), "50 would fit, but somebody waits");
    assert_eq!(machine.next_wake(), Some(Moment::from_millis(800)));
    assert_eq!(forwarded(&feed(&mut machine, 800, Event::Wake)), [1]);
    assert_eq!(forwarded(&feed(&mut machine, 850, Event::Wake)), [2]);
}

#[test]
fn the_bound_counts_the_tokens_ahead_less_the_level() {
    let mut machine = machine("fifo", true);
    arrive(&mut machine, 0, 0, 1_000);
    // 10 s less 1 s of service less 0.5 s of margin at 1,000 a second: 8,500 may wait
    for id in 1..=8 {
        assert!(arrive(&mut machine, id, 0, 1_000).is_empty(), "{id}");
    }
    let shed = arrive(&mut machine, 9, 0, 1_000);
    assert_eq!(shed, [Effect::Shed { id: Id(9), retry_after: Some(Duration::from_secs(1)) }]);
    assert!(arrive(&mut machine, 10, 0, 500).is_empty(), "a smaller one still fits");
    assert!(matches!(arrive(&mut machine, 11, 499, 500)[..], [Effect::Shed { .. }]));
    assert!(arrive(&mut machine, 12, 500, 500).is_empty(), "half a second later the level is 500 higher");
}

#[test]
fn a_request_that_can_never_be_granted_is_refused_for_good() {
    let mut machine = machine("fifo", true);
    let effects = arrive(&mut machine, 0, 0, 1_001);
    assert_eq!(
        effects,
        [Effect::Reject {
            id: Id(0),
            hold: Tokens::new(1_001),
            most: Tokens::new(1_000),
            limit: Limit::Tokens
        }]
    );
    assert_eq!(machine.gauge().level, Tokens::new(1_000));
}

#[test]
fn the_buried_of_a_stack_expire_by_timer_before_they_come_up() {
    let mut machine = machine("lifo", true);
    arrive(&mut machine, 0, 0, 1_000);
    arrive(&mut machine, 1, 0, 1_000);
    let mut served = Vec::new();
    let mut expired = None;
    for id in 2..40 {
        // somebody newer is always there when the budget is
        let ms = (id - 1) * 999;
        let effects = arrive(&mut machine, id, ms, 990);
        served.extend(forwarded(&effects));
        expired = expired.or_else(|| {
            let at =
                effects.iter().any(|e| matches!(e, Effect::Expire { id: Id(1), why: Expiry::Deadline, .. }));
            at.then_some(ms)
        });
    }
    assert!(!served.contains(&1));
    // its deadline less the service time is 9 s; the first event after that comes at 9.99 s
    assert_eq!(expired, Some(9_990), "{served:?}");
}

#[test]
fn without_recheck_the_hopeless_are_forwarded_all_the_same() {
    let mut machine = machine("fifo", false);
    arrive(&mut machine, 0, 0, 1_000);
    arrive(&mut machine, 1, 0, 1_000);
    feed(&mut machine, 1, Event::Refused { id: Id(0), retry_after: Some(Duration::from_secs(60)) });
    assert_eq!(forwarded(&feed(&mut machine, 60_001, Event::Wake)), [0]);
}

#[test]
fn a_refusal_by_the_provider_rests_the_queue_and_keeps_the_place() {
    let mut machine = machine("fifo", true);
    arrive(&mut machine, 0, 0, 600);
    arrive(&mut machine, 1, 0, 600);
    assert!(
        feed(&mut machine, 100, Event::Refused { id: Id(0), retry_after: Some(Duration::from_secs(2)) })
            .is_empty()
    );
    assert_eq!(machine.gauge().waiting, 2);
    assert_eq!(machine.next_wake(), Some(Moment::from_millis(2_100)), "not before the provider said");
    let effects = feed(&mut machine, 2_100, Event::Wake);
    assert_eq!(forwarded(&effects), [0], "the old place; 1,000 tokens are there for one of them");
    let late = feed(&mut machine, 9_500, Event::Refused { id: Id(0), retry_after: None });
    assert!(matches!(late[..], [Effect::Expire { id: Id(0), why: Expiry::Upstream, .. }, ..]), "{late:?}");
}

#[test]
fn what_was_not_used_is_given_back_and_what_was_is_charged() {
    let mut machine = machine("fifo", true);
    arrive(&mut machine, 0, 0, 1_000);
    feed(&mut machine, 0, Event::Settled { id: Id(0), used: Some(Tokens::new(300)), answer: None });
    assert_eq!(machine.gauge().level, Tokens::new(700));
    arrive(&mut machine, 1, 0, 700);
    feed(&mut machine, 0, Event::Failed { id: Id(1), how: Failure::Final });
    assert_eq!(machine.gauge().level, Tokens::new(700), "a failure that cost nothing");
    arrive(&mut machine, 2, 0, 700);
    assert_eq!(feed(&mut machine, 0, Event::Left { id: Id(2) }), [Effect::Cancel { id: Id(2) }]);
    assert_eq!(machine.gauge().held, Tokens::new(700), "the provider may go on: its end is awaited");
    feed(&mut machine, 0, Event::Failed { id: Id(2), how: Failure::Unknown });
    assert_eq!((machine.gauge().held, machine.gauge().unknown), (Tokens::new(700), 1));
    feed(&mut machine, 60_000, Event::Wake);
    assert_eq!((machine.gauge().held, machine.gauge().unknown), (Tokens::ZERO, 0), "until its lease ends");
}

#[test]
fn callers_who_leave_their_calls_show_how_long_answers_take_at_least() {
    let mut machine = machine("fifo", true);
    assert_eq!(machine.gauge().service, Duration::from_secs(1));
    // each is forwarded at once, and leaves before its answer has come
    for id in 0..3 {
        let began = id * 5_000;
        assert_eq!(forwarded(&arrive(&mut machine, id, began, 100)), [id]);
        feed(&mut machine, began + 4_000, Event::Left { id: Id(id) });
    }
    assert_eq!(machine.gauge().service, Duration::from_secs(4), "the third slowest of the last 200");
    arrive(&mut machine, 3, 20_000, 100);
    feed(&mut machine, 20_500, Event::Left { id: Id(3) });
    assert_eq!(machine.gauge().service, Duration::from_secs(4), "who leaves early has seen nothing");
}

#[test]
fn promises_are_kept_by_lanes_where_tenants_have_theirs() {
    use crate::admission::testing::read;
    let with = |share: &str| Config {
        tenants: vec![read("{ name: a, weight: 3 }"), read("{ name: b, weight: 1 }")],
        share: read(share),
        retry_after: read("{ appointment: { reserve: 0.25, returning: { start: 1, learn: false } } }"),
        ..config("fifo", true)
    };
    // tenant a is refused twenty requests of 100 tokens, and then one of `tenant`: what that is told, in seconds
    let told = |config: &Config, tenant: u16| {
        let mut machine = Admission::new(config, Moment::ZERO);
        let mut refused = |id: u64, tenant: u16| {
            let ask = Ask {
                id: Id(id),
                caller: id,
                prompt: Tokens::new(100),
                max_output: Tokens::ZERO,
                bytes: Bytes::new(100),
                deadline: Moment::from_secs(10),
                tenant: TenantId(tenant),
                tier: 1,
                operation: None,
            };
            machine.appoint(Moment::ZERO, &ask, 0.0).unwrap().as_secs()
        };
        (0..20).for_each(|id| {
            refused(id, 0);
        });
        refused(20, tenant)
    };
    // 2,100 tokens at a reserve of 250 a second are 8.4 s, and up to a tenth more
    let together = with("none");
    assert!((9..=10).contains(&told(&together, 0)), "{}", told(&together, 0));
    assert_eq!(told(&together, 0), told(&together, 1));
    // three quarters of it are a's own; b has promised nothing yet
    let apart = with("{ drr: { quantum: 100 } }");
    assert!((12..=13).contains(&told(&apart, 0)), "{}", told(&apart, 0));
    assert!(told(&apart, 1) <= 2, "{}", told(&apart, 1));
}
