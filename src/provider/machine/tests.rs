use super::*;
use crate::provider::wire::openai::OpenAi;
use crate::provider::{Charge, Count, Engine, Law, Quota, Service, Slots, Strain};
use crate::units::{Rate, Share, Window};

/// Tokens of the first account that could be used at once.
fn left(provider: &Provider) -> u64 {
    provider.limits(AccountId(0)).remaining.get()
}

fn provider() -> Provider {
    Provider::new(&config(), Moment::ZERO)
}

fn config() -> Config {
    Config {
        listen: "127.0.0.1:0".into(),
        advertise: None,
        engine: Engine::Wiremock,
        api: &OpenAi,
        count: Count::Words,
        quota: Quota::of_tokens(Rate::per_minute(60_000).unwrap(), Duration::from_secs(3)),
        service: Service::fixed(Duration::from_millis(200), Duration::from_millis(2)),
        slots: None,
        faults: Vec::new(),
    }
}

#[test]
fn capacity_is_smaller_during_a_fault_and_only_then() {
    let fault = |at, lasts, part| Fault {
        at: Duration::from_secs(at),
        lasts: Duration::from_secs(lasts),
        what: What::Capacity(Ratio::parse(part).unwrap()),
    };
    let faults = vec![fault(10, 20, "3/4"), fault(30, 10, "1/2")];
    let mut provider = Provider::new(&Config { faults, ..config() }, Moment::ZERO);
    let call = Call { prompt: Tokens::new(90), max_output: Tokens::new(10), output: Tokens::new(10), ..CALL };
    // as many calls as it takes, every 10 ms: 1,000 tokens a second are ten calls
    let mut served = |from: u64, to: u64| {
        (from * 100..to * 100)
            .map(|step| provider.call(Moment::from_millis(step * 10), call))
            .map(|answer| matches!(answer, Answer::Served(_)))
            .filter(|served| *served)
            .count()
    };
    assert!(served(0, 10).abs_diff(130) <= 1, "the burst and ten seconds");
    assert!(served(10, 30).abs_diff(150) <= 1);
    assert!(served(30, 40).abs_diff(50) <= 1);
    assert!(served(40, 50).abs_diff(100) <= 1);
}

#[test]
fn two_slots_and_a_queue_of_one_refuse_the_fourth() {
    let slots = Some(Slots { count: 2, queue: 1 });
    let quota = Quota::of_tokens(config().quota.tokens, Duration::from_secs(60));
    let mut provider = Provider::new(&Config { slots, quota, ..config() }, Moment::ZERO);
    let takes = |answer: &Answer| match answer {
        Answer::Served(work) => Ok(work.takes.as_millis()),
        Answer::Refused { retry_after, .. } => Err(retry_after.as_millis()),
        _ => panic!("it fits, and nothing is wrong"),
    };
    let mut call = |ms| takes(&provider.call(Moment::from_millis(ms), CALL));
    assert_eq!((call(0), call(100), call(200)), (Ok(400), Ok(400), Ok(600)));
    assert_eq!(call(300), Err(100), "until the first slot is free and the queue moves");
    assert_eq!(call(400), Ok(500), "it waits for the second slot until 500");
}

#[test]
fn exponential_times_have_their_mean_and_spread() {
    let service = Service { law: Law::Exponential, ..config().service };
    let quota = Quota { tokens: Rate::per_second(1_000_000_000).unwrap(), ..config().quota };
    let mut provider = Provider::new(&Config { service, quota, ..config() }, Moment::ZERO);
    let (mut sum, mut square, n) = (0.0, 0.0, 20_000);
    for i in 0..n {
        let Answer::Served(Work { takes, .. }) = provider.call(Moment::from_secs(i), CALL) else { panic!() };
        sum += takes.as_secs_f64();
        square += takes.as_secs_f64().powi(2);
    }
    // mean 0.4 s, mean square 2 * 0.16; 4 standard deviations of each estimate
    assert!((sum / n as f64 - 0.4).abs() < 0.0115, "{sum}");
    assert!((square / n as f64 - 0.32).abs() < 0.021, "{square}");
}

const CALL: Call = Call {
    prompt: Tokens::new(800),
    max_output: Tokens::new(400),
    output: Tokens::new(100),
    account: AccountId(0),
};

/// How many of the calls at these milliseconds are served.
fn served(provider: &mut Provider, call: Call, ms: impl Iterator<Item = u64>) -> usize {
    let answers = ms.map(|ms| provider.call(Moment::from_millis(ms), call));
    answers.filter(|answer| matches!(answer, Answer::Served(_))).count()
}

#[test]
fn every_window_holds_and_a_shorter_one_spreads_what_the_longer_would_give_at_once() {
    // 1,000 tokens a second are ten calls
    let call = Call { prompt: Tokens::new(90), max_output: Tokens::new(10), ..CALL };
    let quota = |window, sub_windows: &[u64]| Quota {
        window,
        sub_windows: sub_windows.iter().map(|secs| Duration::from_secs(*secs)).collect(),
        ..config().quota
    };
    let minute = Duration::from_secs(60);
    let (fixed, sliding) = (Window::Fixed { period: minute }, Window::Sliding { period: minute });
    let count = |quota: Quota, from: u64, to: u64| {
        let mut provider = Provider::new(&Config { quota, ..config() }, Moment::ZERO);
        served(&mut provider, call, (from * 1_000..to * 1_000).step_by(10))
    };
    // twice the amount passes across an edge of a fixed window, and not of one that slides
    assert_eq!((count(quota(fixed, &[]), 50, 70), count(quota(sliding, &[]), 50, 70)), (1_200, 600));
    assert_eq!((count(quota(fixed, &[1]), 50, 70), count(quota(sliding, &[1]), 50, 70)), (200, 200));
    assert_eq!(count(quota(fixed, &[10, 1]), 0, 60), 600, "in the long run they agree");
    assert_eq!(quota(sliding, &[10, 1]).burst_tokens(), Tokens::new(1_000));
}

#[test]
fn requests_are_limited_too_and_one_always_fits() {
    let requests = Rate::per_minute(20);
    let quota = Quota { requests, ..config().quota };
    let mut provider = Provider::new(&Config { quota, ..config() }, Moment::ZERO);
    let call = Call { prompt: Tokens::new(1), max_output: Tokens::new(1), ..CALL };
    assert_eq!(served(&mut provider, call, (0..60_000).step_by(100)), 20);
    let answer = provider.call(Moment::from_millis(59_900), call);
    let Answer::Refused { retry_after, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(retry_after, Duration::from_millis(100), "the next is there at 60 s");
}

#[test]
fn actual_use_is_charged_when_the_answer_ends_and_may_overdraw() {
    let quota = Quota { charge: Charge::Actual, ..config().quota };
    let mut provider = Provider::new(&Config { quota, ..config() }, Moment::ZERO);
    // 3,000 tokens there; each call takes 800 at once and 100 at 400 ms
    let call = |provider: &mut Provider, ms| provider.call(Moment::from_millis(ms), CALL);
    for _ in 0..3 {
        let Answer::Served(work) = call(&mut provider, 0) else { panic!() };
        assert_eq!(work.charged, Tokens::new(900));
        assert!(left(&provider) >= 600);
    }
    assert!(matches!(call(&mut provider, 0), Answer::Refused { .. }));
    // 600 and 399 are there just before the answers end, 300 less when they have
    assert!(matches!(call(&mut provider, 399), Answer::Served(_)));
    assert_eq!(left(&provider), 199);
    assert!(matches!(call(&mut provider, 401), Answer::Refused { .. }));
    assert_eq!(left(&provider), 0, "overdrawn by 99");
    assert!(
        matches!(call(&mut provider, 1_301), Answer::Refused { .. }),
        "900 more came, and the fourth answer took 100"
    );
    assert_eq!(left(&provider), 701);
}

#[test]
fn each_account_has_the_quota_for_itself_and_a_strange_key_has_none() {
    let quota = Quota { accounts: vec!["a".into(), "b".into()], ..config().quota };
    let mut provider = Provider::new(&Config { quota, ..config() }, Moment::ZERO);
    let (a, b) = (provider.account_of(Some("a")).unwrap(), provider.account_of(Some("b")).unwrap());
    assert_eq!((provider.account_of(Some("c")), provider.account_of(None)), (None, None));
    let mut taken = |account| served(&mut provider, Call { account, ..CALL }, std::iter::repeat_n(0, 5));
    assert_eq!((taken(a), taken(a), taken(b)), (2, 0, 2));
}

#[test]
fn a_provider_is_slower_with_many_at_work() {
    let strain = Some(Strain { above: 2, each: 0.5 });
    let service = Service { strain, ..config().service };
    let quota = Quota::of_tokens(config().quota.tokens, Duration::from_secs(60));
    let mut provider = Provider::new(&Config { service, quota, ..config() }, Moment::ZERO);
    let mut takes = |ms| match provider.call(Moment::from_millis(ms), CALL) {
        Answer::Served(work) => work.takes.as_millis(),
        other => panic!("{other:?}"),
    };
    assert_eq!([takes(0), takes(0), takes(0), takes(0)], [400, 400, 600, 800]);
    assert_eq!(takes(700), 400, "one is left");
}

#[test]
fn a_fault_hits_its_share_while_it_lasts_and_what_fails_at_once_costs_nothing() {
    let half = Share::new(0.5).unwrap();
    let told = Some(Duration::from_secs(7));
    let kinds = [
        What::Errors { status: 529, share: half, retry_after: told },
        What::Resets(half),
        What::Cuts(half),
        What::Garbage(half),
        What::Stalls(half),
    ];
    for what in kinds {
        let (at, lasts) = (Duration::from_secs(100), Duration::from_secs(900));
        let faults = vec![Fault { at, lasts, what }];
        let mut provider = Provider::new(&Config { faults, ..config() }, Moment::ZERO);
        let mut hit = 0;
        for second in 0..1_200u64 {
            match provider.call(Moment::from_secs(second * 2), CALL) {
                Answer::Served(work) => assert_eq!(work.charged, Tokens::new(1_200)),
                answer @ (Answer::Failed(_) | Answer::Spoilt(..)) => {
                    assert!((50..500).contains(&second), "{what:?} at {second}");
                    let taken = match answer {
                        Answer::Failed(Failing::Error { status: 529, retry_after })
                            if retry_after == told =>
                        {
                            None
                        }
                        Answer::Failed(Failing::Reset) => None,
                        Answer::Spoilt(_, Spoilt::Cut { .. }) => Some((200, 1_200)),
                        Answer::Spoilt(..) => Some((400, 1_200)),
                        other => panic!("{other:?}"),
                    };
                    let said = answer.taken().map(|(works, charged)| (works.as_millis(), charged.get()));
                    assert_eq!(said, taken);
                    assert_eq!(left(&provider), if taken.is_some() { 1_800 } else { 3_000 });
                    hit += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        // half of 450, 4.5 standard deviations
        assert!((177..=273).contains(&hit), "{what:?}: {hit}");
    }
}

#[test]
fn latency_steps_up_and_down_again() {
    let what = What::Latency { times: Ratio::parse("2").unwrap(), plus: Duration::from_millis(5) };
    let faults = vec![Fault { at: Duration::from_secs(10), lasts: Duration::from_secs(10), what }];
    let mut provider = Provider::new(&Config { faults, ..config() }, Moment::ZERO);
    let mut takes = |secs| match provider.call(Moment::from_secs(secs), CALL) {
        Answer::Served(work) => work.takes.as_millis(),
        other => panic!("{other:?}"),
    };
    assert_eq!([takes(5), takes(10), takes(19), takes(20)], [400, 805, 805, 400]);
}

#[test]
fn a_spent_quota_refuses_with_the_time_until_the_call_fits_and_takes_nothing() {
    let mut provider = provider();
    let Answer::Served(Work { charged, takes, .. }) = provider.call(Moment::ZERO, CALL) else {
        panic!("quota was full")
    };
    assert_eq!((charged, takes), (Tokens::new(1_200), Duration::from_millis(400)));
    assert!(matches!(provider.call(Moment::ZERO, CALL), Answer::Served(_)));
    let Answer::Refused { retry_after, .. } = provider.call(Moment::ZERO, CALL) else { panic!("spent") };
    assert_eq!(left(&provider), 600);
    assert_eq!(retry_after, Duration::from_millis(600));
    assert!(matches!(provider.call(Moment::ZERO + retry_after, CALL), Answer::Served(_)));
}

#[test]
fn a_call_above_the_burst_is_refused_for_good() {
    let call = Call { max_output: Tokens::new(4_000), ..CALL };
    let most = Tokens::new(3_000);
    assert_eq!(provider().call(Moment::ZERO, call), Answer::TooLarge { wanted: Tokens::new(4_800), most });
}

/// What a gateway is refused while a fault has taken some of the quota says nothing of how it keeps to the whole.
#[test]
fn a_refusal_is_the_faults_while_it_takes_some_of_the_quota() {
    let fault = |at, what| Fault { at: Duration::from_secs(at), lasts: Duration::from_secs(10), what };
    let less = What::Capacity(Ratio::parse("1/2").unwrap());
    let errors = What::Errors { status: 500, share: Share::new(0.25).unwrap(), retry_after: None };
    let both = Config { faults: vec![fault(10, less), fault(15, errors)], ..config() };
    let parts = |secs| {
        let at = Moment::from_secs(secs);
        [both.granted_at(at), both.part_at(at)].map(|part| (part * 1_000.0) as u32)
    };
    let all = [9, 10, 15, 20, 25].map(parts);
    assert_eq!(all, [[1_000, 1_000], [500, 500], [500, 375], [1_000, 750], [1_000, 1_000]]);
    assert_eq!(both.turns(), [10, 15, 20, 25].map(Moment::from_secs));
    let mut provider = Provider::new(&Config { faults: vec![fault(10, less)], ..config() }, Moment::ZERO);
    let mut refused = |secs| {
        let calls: Vec<_> = (0..5).map(|_| provider.call(Moment::from_secs(secs), CALL)).collect();
        calls.iter().find(|answer| matches!(answer, Answer::Refused { .. })).map(Answer::is_faulty)
    };
    assert_eq!([refused(5), refused(12), refused(25)], [Some(false), Some(true), Some(false)]);
}
