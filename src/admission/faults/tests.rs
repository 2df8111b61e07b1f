use super::*;
use crate::admission::testing::{ask, node};
use crate::admission::{Ask, Deployed, Effect, Event, Failure, Gauge, Id, Operation, TenantId};
use crate::units::{Faults, Moment, Tokens};

/// 1,000 tokens a second, one second of it at once; requests of 100 tokens that take a second.
const POLICY: &str = "service: { start: 1s }, margin: 0ms, retry_after: { constant: 40s }, budgets: { tokens_per_minute: 60000, burst: 1s }";

fn read(text: &str) -> (Option<Config>, Vec<String>) {
    let (node, faults) = (node(text), Faults::default());
    let config = Reader::root(&node, &faults).map().and_then(|mut map| Config::read(&mut map, None));
    (config, faults.into_sorted().into_iter().map(|fault| fault.message).collect())
}

fn config(more: &str, faults: &str) -> Config {
    let (config, said) = read(&format!("{{ {POLICY}, {more} faults: [{faults}] }}"));
    config.unwrap_or_else(|| panic!("{said:?}"))
}

fn arrives(ms: u64, id: u64) -> (u64, Event) {
    (ms, Event::Arrive(ask(ms, id)))
}

fn arrives_as(ms: u64, id: u64, change: impl Fn(&mut Ask)) -> (u64, Event) {
    let mut ask = ask(ms, id);
    change(&mut ask);
    (ms, Event::Arrive(ask))
}

fn settled(ms: u64, id: u64) -> (u64, Event) {
    (ms, Event::Settled { id: Id(id), used: Some(Tokens::new(100)), answer: None })
}

fn failed(ms: u64, id: u64) -> (u64, Event) {
    (ms, Event::Failed { id: Id(id), how: Failure::Repeatable })
}

type Effects = Vec<(u64, Effect)>;

/// What a gateway does at which millisecond when it meets `events`, and what it holds ten seconds after the last.
fn play(config: &Config, events: &[(u64, Event)]) -> (Effects, Gauge) {
    let mut gateway = Deployed::new(config, Moment::ZERO);
    let (mut all, mut effects) = (Vec::new(), Vec::new());
    let end = events.last().map_or(0, |(ms, _)| ms + 10_000);
    for (ms, event) in events.iter().cloned().chain([(end, Event::Wake)]) {
        let now = Moment::from_millis(ms);
        while let Some(at) = gateway.next_wake().filter(|at| *at <= now) {
            gateway.handle(at, Event::Wake, &mut effects);
            all.extend(effects.drain(..).map(|effect| (at.as_nanos() / 1_000_000, effect)));
        }
        if gateway.minds_beginnings() || !matches!(event, Event::Begun { .. }) {
            gateway.handle(now, event, &mut effects);
        }
        all.extend(effects.drain(..).map(|effect| (ms, effect)));
    }
    (all, gateway.gauge())
}

/// What `events` come to without and with the fault.
fn both(more: &str, fault: &str, events: &[(u64, Event)]) -> (Effects, Effects) {
    (play(&config(more, ""), events).0, play(&config(more, fault), events).0)
}

fn forwarded(effects: &Effects) -> Vec<u64> {
    let id = |(_, effect): &(u64, Effect)| match effect {
        Effect::Forward { id, .. } => Some(id.0),
        _ => None,
    };
    effects.iter().filter_map(id).collect()
}

fn first_shed(effects: &Effects) -> Option<u64> {
    effects.iter().find_map(|(_, effect)| match effect {
        Effect::Shed { id, .. } => Some(id.0),
        _ => None,
    })
}

fn count(effects: &Effects, such: impl Fn(&Effect) -> bool) -> usize {
    effects.iter().filter(|(_, effect)| such(effect)).count()
}

/// A hundred at once: ten are forwarded, and of those that wait 4,000 tokens can be served within four seconds.
fn crowd() -> Vec<(u64, Event)> {
    (0..100).map(|id| arrives(0, id)).collect()
}

#[test]
fn the_table_is_sorted_and_each_line_names_the_usual_amount() {
    assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
    for kind in ALL {
        let named = kind.about.contains(&format!("({})", kind.usual));
        assert!(named || kind.usual == Amount::Whole, "{}: {}", kind.name, kind.usual);
        assert_eq!(kind.live_only, kind.about.ends_with("; live only"), "{}", kind.name);
    }
}

#[test]
fn each_fault_bends_one_thing() {
    for kind in ALL {
        let name = kind.name;
        let replicas = if name == "per_replica_quotas" { "replicas: 2," } else { "" };
        let policy = format!("{replicas} {TENANTS}");
        let healthy = config(&policy, "");
        let bent = config(&policy, name).bent();
        let changed = [
            format!("{healthy:?}") != format!("{:?}", bent.policy),
            bent.habits.any(),
            format!("{:?}", bent.telling) != format!("{:?}", healthy.bent().telling),
            bent.whole_quotas,
        ];
        let count = changed.iter().filter(|changed| **changed).count();
        assert_eq!(count, usize::from(!kind.live_only), "{name}: {changed:?}");
        let declared = config(&policy, name).declared();
        assert_eq!(format!("{declared:?}"), format!("{healthy:?}"), "{name}: what is declared stays");
    }
}

#[test]
fn who_meets_no_overload_meets_no_fault() {
    let calm: Vec<_> = (0..20)
        .flat_map(|id| {
            [
                arrives(id * 500, id),
                (id * 500 + 100, Event::Begun { id: Id(id) }),
                settled(id * 500 + 499, id),
            ]
        })
        .collect();
    let healthy = play(&config("", ""), &calm);
    assert_eq!((forwarded(&healthy.0).len(), healthy.0.len()), (20, 20));
    for kind in ALL.iter().filter(|kind| kind.name != "per_replica_quotas") {
        assert_eq!(play(&config("", kind.name), &calm).0, healthy.0, "{}", kind.name);
    }
}

#[test]
fn a_bound_is_smaller_or_larger_by_its_part_or_not_there() {
    let (healthy, early) = both("", "early_shedding", &crowd());
    // ten are forwarded; forty wait, thirty-two, forty-eight
    assert_eq!((first_shed(&healthy), first_shed(&early)), (Some(50), Some(42)));
    let with = |fault| first_shed(&both("", fault, &crowd()).1);
    assert_eq!(with("late_shedding"), Some(58));
    assert_eq!(with("{ early_shedding: 50% }"), Some(30));
    assert_eq!(with("{ late_shedding: 5% }"), Some(52));
    assert_eq!(with("unbounded_queue"), None);
    let (healthy, late) = both("bound: { requests: 20 },", "late_shedding", &crowd());
    assert_eq!((first_shed(&healthy), first_shed(&late)), (Some(30), Some(34)));
    let (_, early) = both("bound: [deadline, { requests: 20 }],", "{ early_shedding: 0.1 }", &crowd());
    assert_eq!(first_shed(&early), Some(28));
}

/// The provider asks for a rest of three seconds; who was to be served in them is late.
#[test]
fn without_the_recheck_nobody_expires() {
    let mut events = crowd();
    events.push((100, Event::Refused { id: Id(0), retry_after: Some(Duration::from_secs(3)) }));
    let (healthy, faulty) = both("", "no_recheck", &events);
    let expired = |effects: &Effects| count(effects, |effect| matches!(effect, Effect::Expire { .. }));
    assert!(expired(&healthy) > 20, "{healthy:?}");
    assert_eq!(expired(&faulty), 0);
    assert_eq!(first_shed(&healthy), first_shed(&faulty), "the bound is the same");
}

#[test]
fn failures_are_repeated_as_long_as_there_is_time() {
    // the rest between two calls grows to two seconds, so three seconds apart each has begun
    let long = |(ms, id)| arrives_as(ms, id, |ask| ask.deadline = Moment::from_secs(30));
    let events: Vec<_> = [long((0, 0))].into_iter().chain((1..14).map(|n| failed(n * 3_000, 0))).collect();
    let (healthy, faulty) = both("", "unlimited_retries", &events);
    let fails = |effects: &Effects| count(effects, |effect| matches!(effect, Effect::Fail { .. }));
    assert_eq!((forwarded(&healthy).len(), fails(&healthy)), (5, 1));
    assert_eq!(forwarded(&faulty).len(), 10, "one every three seconds until the thirtieth: {faulty:?}");
    assert_eq!(fails(&faulty), 1, "its time is over");
}

const TENANTS: &str = "share: drr, tenants: [{ name: a }, { name: b }],";

#[test]
fn a_greedy_tenant_takes_what_it_sends() {
    // three of four are tenant 0's
    let tenant = |id: u64| TenantId(u16::from(id % 4 == 3));
    let events: Vec<_> = (0..400).map(|id| arrives_as(id * 20, id, |ask| ask.tenant = tenant(id))).collect();
    let (healthy, faulty) = both(TENANTS, "greedy_tenant", &events);
    let part = |effects: &Effects| {
        let all: Vec<_> = forwarded(effects).into_iter().filter(|id| *id >= 100).collect();
        all.iter().filter(|id| **id % 4 == 3).count() as f64 / all.len() as f64
    };
    assert!((part(&healthy) - 0.5).abs() < 0.05, "{}", part(&healthy));
    assert!((part(&faulty) - 0.25).abs() < 0.05, "{}", part(&faulty));
}

#[test]
fn tiers_are_served_upside_down() {
    // ten take the burst; of twenty that wait every second is of the first tier
    let tier = |id: u64| if id < 10 { 1 } else { (id % 2) as u8 };
    let events: Vec<_> = (0..30).map(|id| arrives_as(0, id, |ask| ask.tier = tier(id))).collect();
    let (healthy, faulty) = both("", "tier_inversion", &events);
    assert!(forwarded(&healthy)[10..20].iter().all(|id| id % 2 == 0), "{:?}", forwarded(&healthy));
    assert!(forwarded(&faulty)[10..20].iter().all(|id| id % 2 == 1), "{:?}", forwarded(&faulty));
}

#[test]
fn each_of_two_requests_of_one_key_is_a_call() {
    let keyed = |ask: &mut Ask| ask.operation = Some(Box::new(Operation { key: 7, body: 7 }));
    let events = [arrives_as(0, 0, keyed), arrives_as(10, 1, keyed), settled(900, 0), settled(910, 1)];
    let (healthy, faulty) = both("", "duplicate_calls", &events);
    assert_eq!((forwarded(&healthy), forwarded(&faulty)), (vec![0], vec![0, 1]));
    assert_eq!(count(&healthy, |effect| matches!(effect, Effect::Attach { .. })), 1);
}

#[test]
fn a_part_of_the_holds_is_never_given_back() {
    let events: Vec<_> =
        (0..200).flat_map(|id| [arrives(id * 200, id), settled(id * 200 + 150, id)]).collect();
    let (_, healthy) = play(&config("", ""), &events);
    assert_eq!((healthy.in_flight, healthy.held), (0, Tokens::ZERO));
    for (fault, least, most) in
        [("leaked_holds", 1, 6), ("{ leaked_holds: 50% }", 80, 120), ("{ leaked_holds: 100% }", 200, 200)]
    {
        let (effects, gauge) = play(&config("", fault), &events);
        assert_eq!(forwarded(&effects).len(), 200, "{fault}");
        assert!((least..=most).contains(&gauge.in_flight), "{fault}: {gauge:?}");
        assert_eq!(gauge.held.get(), gauge.in_flight * 100, "{fault}");
    }
}

#[test]
fn a_slot_is_free_when_the_answer_begins() {
    let slots = "budgets: { concurrent: 1 },";
    let text = format!("{{ {}, {slots} ", POLICY.split(", budgets").next().unwrap());
    let with = |fault: &str| read(&format!("{text} faults: [{fault}] }}")).0.unwrap();
    let begun = (200, Event::Begun { id: Id(0) });
    let events = [arrives(0, 0), arrives(100, 1), begun, settled(900, 0), settled(1_800, 1)];
    let at = |effects: &Effects| effects.iter().map(|(ms, _)| *ms).collect::<Vec<_>>();
    let (healthy, gauge) = play(&with(""), &events);
    assert_eq!((at(&healthy), gauge.held), (vec![0, 900], Tokens::ZERO));
    let (faulty, gauge) = play(&with("early_release"), &events);
    assert_eq!((at(&faulty), gauge.held), (vec![0, 200], Tokens::ZERO), "{faulty:?}");
}

#[test]
fn who_left_is_served_all_the_same() {
    let mut events = crowd();
    events.extend([(100, Event::Left { id: Id(0) }), (100, Event::Left { id: Id(20) })]);
    let (healthy, faulty) = both("", "abandoned_work", &events);
    let cancelled = |effects: &Effects| count(effects, |effect| matches!(effect, Effect::Cancel { .. }));
    assert_eq!((cancelled(&healthy), cancelled(&faulty)), (1, 0));
    assert_eq!((forwarded(&healthy).contains(&20), forwarded(&faulty).contains(&20)), (false, true));
    assert!(!Deployed::new(&config("", "abandoned_work"), Moment::ZERO).forgets_leaver(Id(0)));
    let half = Deployed::new(&config("", "{ abandoned_work: 50% }"), Moment::ZERO);
    let kept = (0..1_000).filter(|id| !half.forgets_leaver(Id(*id))).count();
    assert!((450..550).contains(&kept), "{kept}");
}

#[test]
fn what_is_told_changes_nothing_that_is_decided() {
    let told = |fault: &str, id: u64| {
        let config = config("", fault);
        assert_eq!(play(&config, &crowd()), play(&self::config("", ""), &crowd()), "{fault}");
        let wait = Some(Duration::from_secs(40));
        config.bent().telling.refusal(Id(id), Moment::from_millis(12_300), wait)
    };
    let plain = Told::plainly(Some(Duration::from_secs(40)));
    let after = |secs| Told { wait: Wait::After(Duration::from_secs(secs)), ..plain };
    assert_eq!(told("", 1), plain);
    assert_eq!(told("constant_retry_after", 1), after(1));
    assert_eq!(told("{ constant_retry_after: 7s }", 1), after(7));
    assert_eq!(told("short_retry_after", 1), after(35));
    assert_eq!(told("{ short_retry_after: 50s }", 1), after(1), "at least a second");
    assert_eq!(told("missing_retry_after", 1), Told { wait: Wait::Nothing, ..plain });
    assert_eq!(told("malformed_retry_after", 1), Told { wait: Wait::Nonsense, ..plain });
    assert_eq!(told("synchronized_retry_after", 1), after(18), "the thirtieth second, rounded up");
    assert_eq!(told("{ synchronized_retry_after: 5s }", 1), after(3));
    assert_eq!(told("unmarked_long_waits", 1), plain, "forty seconds are kept");
    let long = |faults| {
        let wait = Some(Duration::from_secs(61));
        config("", faults).bent().telling.refusal(Id(1), Moment::ZERO, wait).should_retry
    };
    assert_eq!(
        (long(""), long("mixed_refusals"), long("unmarked_long_waits")),
        (Some(false), Some(false), None)
    );
    assert_eq!(long("short_retry_after"), None, "of what is told");
    assert_eq!(told("mixed_refusals", 1), Told { mixed: true, ..plain });
    assert_eq!(told("wrong_error_shape", 1), Told { shapeless: true, ..plain });
    assert_eq!(told("costly_refusal", 1), Told { costly: true, ..plain });
    assert_eq!(told("deadline_reset", 1), plain);
    for name in ["missing_retry_after", "malformed_retry_after"] {
        let telling = config("", &format!("{{ {name}: 25% }}")).bent().telling;
        let hit = |id: &u64| {
            telling.refusal(Id(*id), Moment::ZERO, Some(Duration::from_secs(2))).wait.span().is_none()
        };
        let hits = (0..4_000).filter(hit).count();
        assert!((900..1_100).contains(&hits), "{name}: {hits}");
    }
    let nothing = config("", "short_retry_after").bent().telling.refusal(Id(1), Moment::ZERO, None);
    assert_eq!(nothing.wait, Wait::Nothing, "no time is shorter than none");
}

#[test]
fn the_provider_is_told_what_is_left_unless_that_is_the_fault() {
    let (left, whole) = (Duration::from_secs(3), Duration::from_secs(25));
    let told = |fault| config("", fault).bent().telling.deadline(left, whole);
    assert_eq!((told(""), told("costly_refusal"), told("deadline_reset")), (left, left, whole));
}

#[test]
fn what_is_written_is_read_back() {
    let faults = "leaked_holds, { early_shedding: 0.07 }, { short_retry_after: 1500ms }, { leak_per_request: 100B }, { crash: 7 }, no_recheck";
    let written = config("", faults).to_json();
    let expected = json!([
        { "leaked_holds": "1%" }, { "early_shedding": "0.07" }, { "short_retry_after": "1500ms" },
        { "leak_per_request": "100B" }, { "crash": "7" }, "no_recheck",
    ]);
    assert_eq!(written["faults"], expected);
    let shown: Vec<_> = config("", faults).faults.iter().map(ToString::to_string).collect();
    assert_eq!(shown[..2], ["leaked_holds (1%)", "early_shedding (0.07)"]);
    assert_eq!(config("", "").to_json().get("faults"), None);
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    for (faults, expected) in [
        ("leeked_holds", "did you mean `leaked_holds`"),
        ("{ early_shedding: 0% }", "a fault of nothing"),
        ("{ early_shedding: 120% }", "no share between 0 and 1"),
        ("{ slow_refusal: 0ms }", "a fault of nothing"),
        ("{ leak_per_request: 0B }", "a fault of nothing"),
        ("{ crash: 0 }", "a fault of nothing"),
        ("{ no_recheck: 5% }", "write its name alone"),
        ("no_recheck, no_recheck", "stands here twice"),
        ("per_replica_quotas", "write `replicas: 2`"),
    ] {
        let (config, said) = read(&format!("{{ {POLICY}, faults: [{faults}] }}"));
        assert!(config.is_none() && said.iter().any(|said| said.contains(expected)), "{faults}: {said:?}");
    }
}
