use proptest::prelude::*;

use super::*;

fn rule(honour: Honour) -> Retry {
    let rule = Rule {
        backoff: Duration::from_millis(500),
        longest: Duration::from_millis(1_500),
        jitter: Share::new(0.25).unwrap(),
        honour,
        on_timeout: true,
    };
    Retry { attempts: 4, manner: Manner::Own(rule), budget: Share::new(0.5) }
}

fn sdk(name: &str) -> Retry {
    let sdk = ALL.iter().find(|sdk| sdk.name == name).unwrap();
    Retry { attempts: SDK_ATTEMPTS, manner: Manner::Like(sdk), budget: None }
}

fn refused(status: u16, told: Option<Duration>) -> Signs {
    Signs { status: Some(status), refused: true, told, hint: told, loose: told, ..Signs::default() }
}

fn secs(secs: f64) -> Option<Duration> {
    Some(Duration::from_secs_f64(secs))
}

#[test]
fn waits_double_up_to_the_longest_and_shrink_by_the_draw() {
    let rule = rule(Honour::Never);
    let ms = |nth, draw| rule.wait(nth, &refused(503, secs(9.0)), draw).map(|span| span.as_millis());
    assert_eq!((ms(0, 0.0), ms(1, 0.0), ms(2, 0.0)), (Some(500), Some(1_000), Some(1_500)));
    assert_eq!(ms(0, 0.5), Some(437));
    assert_eq!(ms(3, 0.0), None, "four attempts in all");
}

#[test]
fn a_retry_after_is_honoured_as_far_as_the_rule_says() {
    let told = |honour, told| rule(honour).wait(0, &refused(503, secs(told)), 0.0);
    assert_eq!(told(Honour::Always, 900.0), secs(900.0));
    assert_eq!(told(Honour::UpTo(Duration::from_secs(120)), 120.0), secs(120.0));
    assert_eq!(told(Honour::UpTo(Duration::from_secs(120)), 121.0), None);
    assert_eq!(told(Honour::Never, 900.0), secs(0.5));
}

/// As in openclaw/openclaw#68543 and gojek/heimdall#21: whoever is told to wait never comes early, and jitter spreads
/// the others over what comes after it; without jitter they all come at once.
#[test]
fn jitter_never_pulls_a_retry_below_the_hint() {
    let waits = |rule: Retry| {
        let all = (0..100u32).map(move |seq| {
            let draw = crate::workload::stream::draw(7, crate::workload::stream::RETRIES, seq.into(), 0);
            rule.wait(0, &refused(503, secs(2.0)), draw).unwrap().as_secs_f64()
        });
        all.collect::<Vec<f64>>()
    };
    let spread = waits(rule(Honour::Always));
    assert!(spread.iter().all(|wait| (2.0..=2.5).contains(wait)), "{spread:?}");
    assert!(spread.iter().filter(|wait| **wait > 2.25).count() > 30);
    let together = rule(Honour::Always);
    let Manner::Own(own) = together.manner else { unreachable!() };
    let even = Rule { jitter: Share::new(0.0).unwrap(), ..own };
    let together = waits(Retry { manner: Manner::Own(even), ..together });
    assert!(together.iter().all(|wait| wait.to_bits() == 2f64.to_bits()), "a second wave of a hundred");
    for sdk in ["anthropic-python", "openai-node", "openai-python"].map(sdk) {
        assert!(waits(sdk).iter().all(|wait| wait.to_bits() == 2f64.to_bits()), "they add no jitter");
    }
}

/// The rows of the table of the three SDKs: which waits are kept, and what happens beyond them. As in
/// openai/openai-python#3555 (given up above 120 s) and openai/openai-node#1840 (its cap of 60 s).
#[test]
fn each_sdk_keeps_the_waits_it_keeps() {
    let backoff = secs(0.5);
    for (told, python, anthropic, node) in [
        (None, backoff, backoff, backoff),
        (secs(0.0), backoff, backoff, secs(0.0)),
        (secs(4.321), secs(4.321), secs(4.321), secs(4.321)),
        (secs(60.0), secs(60.0), secs(60.0), secs(60.0)),
        (secs(61.0), secs(61.0), backoff, backoff),
        (secs(120.0), secs(120.0), backoff, backoff),
        (secs(121.0), None, backoff, backoff),
        // as in earendil-works/pi#3671: two days, seven hours and five minutes
        (secs(198_300.0), None, backoff, backoff),
        (Some(Duration::MAX), None, backoff, backoff),
    ] {
        let wait = |name: &str| sdk(name).wait(0, &refused(503, told), 0.0);
        assert_eq!(wait("openai-python"), python, "{told:?}");
        assert_eq!(wait("anthropic-python"), anthropic, "{told:?}");
        assert_eq!(wait("openai-node"), node, "{told:?}");
    }
}

#[test]
fn each_sdk_knows_which_failures_pass() {
    assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
    for Sdk { name, .. } in ALL {
        let again = |signs: Signs| sdk(name).wait(0, &signs, 0.0).is_some();
        let status = |status| Signs { status: Some(status), ..Signs::default() };
        for passing in [408, 409, 429, 500, 502, 503, 529] {
            assert!(again(status(passing)), "{name} {passing}");
            assert!(!again(Signs { should_retry: Some(false), ..status(passing) }), "{name} {passing}");
        }
        for lasting in [400, 401, 404, 413, 422, 302] {
            assert!(!again(status(lasting)), "{name} {lasting}");
            assert!(again(Signs { should_retry: Some(true), ..status(lasting) }), "{name} {lasting}");
        }
        assert!(again(Signs::default()), "{name}: a broken connection");
        assert!(again(Signs { timed_out: true, ..Signs::default() }), "{name}: its time was up");
    }
    // the limit of 120 s comes before x-should-retry
    let long = Signs { should_retry: Some(true), ..refused(503, secs(121.0)) };
    assert_eq!(sdk("openai-python").wait(0, &long, 0.0), None);
    // a rule of the plan's own is for refusals and for patience that ended
    let own = |signs: Signs| rule(Honour::Always).wait(0, &signs, 0.0).is_some();
    assert!(!own(Signs { status: Some(500), ..Signs::default() }) && !own(Signs::default()));
    assert!(own(Signs { timed_out: true, ..Signs::default() }));
}

#[test]
fn an_sdk_waits_half_a_second_then_one_and_gives_up_after_two_retries() {
    for Sdk { name, .. } in ALL {
        let ms = |nth, draw| sdk(name).wait(nth, &refused(503, None), draw).map(|wait| wait.as_millis());
        assert_eq!((ms(0, 0.0), ms(1, 0.0), ms(2, 0.0)), (Some(500), Some(1_000), None), "{name}");
        assert_eq!(ms(0, 0.999_999_999), Some(375), "{name}: up to a quarter less");
    }
    assert_eq!(sdk_backoff(9, 0.0), Duration::from_secs(8), "the longest");
}

#[test]
fn a_budget_of_a_half_allows_a_retry_for_every_second_caller() {
    let mut allowance = Allowance::of(&OnRefusal::Retry(rule(Honour::Never)));
    let made = (0..100).filter(|_| {
        allowance.earn();
        allowance.spend()
    });
    assert_eq!(made.count(), 50);
    let mut without = Allowance::of(&OnRefusal::GiveUp);
    assert!(without.spend(), "no limit where no budget is named");
}

proptest! {
    /// Whatever an answer says, no wait is a panic, and nobody makes more attempts than it has.
    #[test]
    fn no_answer_leads_to_a_panic_or_to_endless_attempts(
        nth in 0u16..200, status in 0u16..1_000, nanos in any::<u64>(), some in any::<(bool, bool, bool)>(), draw in 0.0..1.0f64,
    ) {
        let told = some.0.then_some(Duration::from_nanos(nanos));
        let signs = Signs { status: some.1.then_some(status), refused: some.2, timed_out: !some.2, told, hint: told, loose: told,
            should_retry: None };
        let all = ALL.iter().map(|entry| sdk(entry.name)).chain([rule(Honour::Always), rule(Honour::Never)]);
        for retry in all {
            let wait = retry.wait(nth, &signs, draw);
            prop_assert!(nth + 1 < retry.attempts || wait.is_none());
        }
    }
}

#[test]
fn every_sdk_keeps_waits_up_to_its_cap_and_no_longer_and_stays_away_where_it_is_told_to() {
    for sdk in ALL {
        let next =
            |told: Duration, should_retry| (sdk.next)(&Signs { should_retry, ..refused(503, Some(told)) });
        let (cap, over) = (sdk.keeps, sdk.keeps + Duration::from_secs(1));
        assert_eq!(next(cap, None), Next::Wait(cap), "{}", sdk.name);
        assert!(!matches!(next(over, None), Next::Wait(_)), "{}", sdk.name);
        assert_eq!(next(over, Some(false)), Next::GiveUp, "{}", sdk.name);
        assert!(kept_by_all() <= cap);
    }
    assert_eq!(kept_by_all(), Duration::from_secs(60));
}
