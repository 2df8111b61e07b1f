use std::time::Duration;

use super::*;
use crate::plan::{Limit, Target, TargetKind};
use crate::units::{Bytes, Rate, Window};
use proptest::prelude::*;

const SMOKE: &str = include_str!("../../../plans/smoke.yaml");
const FLASH: &str = include_str!("../../../plans/flash-promotion.yaml");

fn load(text: &str, overrides: &[&str]) -> Result<Loaded, Vec<String>> {
    let overrides: Vec<String> = overrides.iter().map(|o| (*o).to_owned()).collect();
    let env = |name: &str| (name == "KEY").then(|| "s3cret".to_owned());
    let show = |f: Fault| format!("{} {}: {}", f.place, f.path, f.message);
    parse(text, &overrides, &env).map_err(|faults| faults.into_iter().map(show).collect())
}

fn plan_of(text: &str, overrides: &[&str]) -> Plan {
    load(text, overrides).unwrap_or_else(|faults| panic!("{faults:#?}")).plan
}

fn faults(text: &str, overrides: &[&str]) -> Vec<String> {
    load(text, overrides).err().unwrap_or_default()
}

fn budgets(target: &Target) -> (Rate, Duration) {
    let TargetKind::Embedded(embedded) = &target.kind else { panic!("embedded") };
    (embedded.admission.budgets.tokens.unwrap(), embedded.admission.budgets.burst)
}

#[test]
fn the_defaults_are_those_of_the_manual() {
    let plan = plan_of(SMOKE, &[]);
    let class = &plan.requests.classes()[0];
    assert_eq!((class.deadline, class.patience), (Duration::from_millis(4_500), class.deadline));
    assert_eq!(budgets(&plan.target), (Rate::per_minute(1_200_000).unwrap(), Duration::from_millis(900)));
    assert_eq!((plan.probes.every, plan.max_outstanding), (12, 20_000));
    assert_eq!(plan.target.request.health, "/healthz");
    assert_eq!(plan.validity.unsent.to_string(), "0.10 %");
    assert_eq!(plan.lag_limit(), Duration::from_nanos(6_250_000));
    assert!(plan.rehearsal.is_none() && plan.load.event().is_some());
}

#[test]
fn a_rehearsal_scales_rates_quota_and_budgets_and_shortens_phases() {
    let small = plan_of(FLASH, &[]).rehearsed();
    assert_eq!(small.load.phases[1].rate, Rate::per_minute(1_000).unwrap());
    assert_eq!(small.load.end().as_nanos(), 130_000_000_000);
    assert_eq!(small.provider.quota.tokens, Rate::per_minute(250_000).unwrap());
    assert_eq!(budgets(&small.target), (Rate::per_minute(250_000).unwrap(), Duration::from_millis(900)));
}

#[test]
fn partly_named_budgets_are_filled_from_the_quota() {
    let plan = plan_of(SMOKE, &["target.embedded.budgets.tokens_per_minute=1000k"]);
    assert_eq!(budgets(&plan.target), (Rate::per_minute(1_000_000).unwrap(), Duration::from_millis(900)));
    let other = plan_of(SMOKE, &["target.embedded.budgets.burst=500ms"]);
    assert_eq!(budgets(&other.target), (Rate::per_minute(1_200_000).unwrap(), Duration::from_millis(500)));
}

#[test]
fn overrides_change_what_is_read() {
    let policy = |o: &str| {
        let plan = plan_of(SMOKE, &[o]);
        let policy = plan.policy().unwrap().clone();
        (policy.bound.name(), policy.retry_after.spec().to_string(), policy.recheck)
    };
    assert_eq!(policy("target.embedded.bound=none").0, "none");
    assert_eq!(policy("target.embedded.retry_after.constant=1s").1, r#"{"constant":"1000ms"}"#);
    assert_eq!(policy("target.embedded.retry_after=room").1, r#""room""#);
    assert!(!policy("target.embedded.recheck=false").2);
    assert_eq!(plan_of(SMOKE, &["rehearsal.probes.every=5"]).probes.every, 5);
    assert!(plan_of(SMOKE, &["rehearsal.probes.every=5"]).rehearsal.is_none());
    let limit = plan_of(SMOKE, &["checks.shedding.fast.limit=20ms"]).checks["shedding.fast"].limit;
    assert_eq!(limit, Some(Limit::Time(Duration::from_millis(20))));
}

#[test]
fn a_url_replaces_the_embedded_gateway_and_nothing_is_believed_of_it() {
    let plan = plan_of(SMOKE, &["target.url=http://127.0.0.1:9/"]);
    assert!(
        matches!(&plan.target.kind, TargetKind::Url { url, policy: None } if url == "http://127.0.0.1:9")
    );
    let plan = plan_of(
        SMOKE,
        &[
            "target.url=http://127.0.0.1:9",
            "target.policy={service: {start: 1s}}",
            "target.memory={pid: 4711, ceiling: 512MiB}",
        ],
    );
    assert!(plan.policy().is_some());
    assert_eq!(plan.target.memory.unwrap().ceiling, Some(Bytes::new(512 << 20)));
}

#[test]
fn a_command_is_a_target() {
    let plan = plan_of(
        SMOKE,
        &["target.spawn={command: [true, x], ready: 'http://127.0.0.1:8080/health', env: {A: b}}"],
    );
    let TargetKind::Spawn(spawn) = &plan.target.kind else { panic!("spawn") };
    assert_eq!((spawn.command[1].as_str(), spawn.url.as_str()), ("x", "http://127.0.0.1:8080"));
    assert_eq!((spawn.ready.as_str(), spawn.env["A"].as_str()), ("http://127.0.0.1:8080/health", "b"));
    assert_eq!(plan.target.request.health, "/health");
}

#[test]
fn each_fault_says_where_what_and_the_way_out() {
    let cases = [
        ("tenfold=2", "this tenfold reads plan format 1, not `2`"),
        ("name=../x", "names no folder"),
        (
            "requests.0.max_tokens=50k",
            "is 20,000 tokens, less than the 50,800 that one `ask` request holds (800 prompt + 50,000 max_tokens)",
        ),
        ("target.embedded.budgets.burst=50ms", "is 1,000 tokens, less than the 1,200"),
        ("rehearsal.scale=1/20", "at scale 1/20 is 1,000 tokens"),
        ("rehearsal.phases.pormotion=5s", "no phase is named `pormotion` (did you mean `promotion`?"),
        ("rehearsal.phases.after=0s", "more than nothing"),
        ("checks.shedding.fsat={off: true}", "did you mean `shedding.fast`?"),
        ("target.request.headers={x y: 1}", "no name of a header"),
        ("target.request.headers={Host: a}", "`host` is set by tenfold itself"),
        ("target.request.headers={x-request-timeout-ms: 1}", "carries the deadline"),
        ("target.request.headers={X-Tenant: a}", "`x-tenant` is set by tenfold itself"),
        ("target.embedded.tenants=[{name: gold}]", "and refuses: it knows gold"),
        ("requests.0.tenant=gold card", "of visible ASCII characters"),
        ("target.request.headers={a: \"b\\nc\"}", "a line break"),
        ("target.request.path=chat", "is no path"),
        ("target.url=http://a.example/v1", "has a path"),
        ("target.url=http://u:p@a.example", "a user name"),
        ("target.spawn={command: [], ready: 'http://127.0.0.1:1'}", "`command` is empty"),
        ("target={}", "what is tried?"),
        ("target.memory={pid: 1, rss: /x}", "unknown key `rss` (known: ceiling, cgroup, metric, pid)"),
        (
            "target.metrics={url: 'http://127.0.0.1:0/', memory: a}",
            "port 0 is a free one that a spawned target",
        ),
        ("expect.refusal.instead=[503]", "cannot be designed and come `instead`"),
        ("target.deadline.form=soap", "unknown form of a deadline `soap`"),
        ("expect.refusal.shed=[429]", "status 429 cannot mean both"),
        ("expect.refusal.shed=[200]", "status 200 is no refusal"),
        ("expect.refusal.body={type: present}", "write /type"),
        ("validity.unsent=101%", "is no share"),
        ("validity.lag_p99=0s", "never kept"),
        ("abort_when=[{goodput_below: 10%}]", "`for` is missing"),
        ("max_outstanding=0", "1 to 1000000"),
        ("lever=[]", "unknown key `lever`"),
        ("diff={godput: 2%}", "unknown measure `godput` (did you mean `goodput`?"),
        ("provider.slotz=[]", "unknown key `slotz`"),
        ("requests.0.deadline=${NO}", "the environment has no `NO`"),
        ("load.phases.0.rate=9999999999/s", "callers would arrive"),
        ("load.phases.0.name=''", "a name has 1 to 100 letters"),
        ("provider.advertise=ftp://x", "neither http nor https"),
        ("nmae=x", "unknown key `nmae` (did you mean `name`?"),
    ];
    let wrong: Vec<_> = cases
        .iter()
        .map(|(change, expected)| (change, expected, faults(SMOKE, &[change])))
        .filter(|(_, expected, found)| found.len() != 1 || !found[0].contains(*expected))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let warned =
        |o: &[&str]| load(SMOKE, o).unwrap().warnings.into_iter().map(|w| w.message).collect::<Vec<_>>();
    assert!(warned(&[]).is_empty(), "{:?}", warned(&[]));
    assert!(load(FLASH, &[]).unwrap().warnings.is_empty());
    let few = warned(&["requests.0.deadline=3s"]);
    assert!(few[0].contains("about 19 `ask` requests may wait"), "{few:?}");
    let none = warned(&["requests.0.deadline=1s"]);
    assert!(none.iter().any(|w| w.contains("leaves nothing to wait")), "{none:?}");
    assert!(none.iter().any(|w| w.contains("no answer can be in time")), "{none:?}");
    let far = warned(&["target.url=http://gateway.example"]);
    assert!(far[0].contains("gateway.example cannot call 127.0.0.1:0"), "{far:?}");
    assert!(
        warned(&["target.url=http://gateway.example", "provider.advertise=http://load.example:90"])
            .is_empty()
    );
    assert!(warned(&["target.policy={service: {start: 1s}}"])[0].contains("not used"));
}

#[test]
fn secrets_reach_the_plan_and_nothing_else() {
    let loaded = load(SMOKE, &["target.request.headers.authorization=Bearer ${KEY}"]).unwrap();
    assert_eq!(loaded.plan.target.request.headers["authorization"], "Bearer s3cret");
    assert!(loaded.source.to_json().to_string().contains("Bearer ${KEY}"));
    assert!(!loaded.source.to_json().to_string().contains("s3cret"));
    let found = faults(SMOKE, &["load.phases.0.rate=${KEY}"]);
    assert!(found[0].contains("`${KEY}` has no unit of time") && !found[0].contains("s3cret"), "{found:?}");
}

#[test]
fn what_is_shown_of_a_plan_reads_as_the_same_plan() {
    let first = load(FLASH, &["load.seed=11"]).unwrap();
    let again = load(&first.source.to_json().to_string(), &[]).unwrap();
    assert_eq!(format!("{:?}", first.plan), format!("{:?}", again.plan));
}

proptest! {
    #[test]
    fn no_override_makes_it_panic(path in "(load|target|checks|requests|[a-z0-9é]{0,3})(\\.[a-z0-9é.]{0,6}){0,4}", value in "\\PC{0,20}") {
        let _ = load(SMOKE, &[&format!("{path}={value}")]);
    }

    #[test]
    fn no_changed_letter_makes_it_panic(at in 0..SMOKE.len(), letter in "\\PC|\n") {
        let text: String = SMOKE.chars().enumerate().map(|(i, c)| if i == at { letter.clone() } else { c.into() }).collect();
        let _ = load(&text, &[]);
    }
}

/// As in LukeMathWalker/wiremock-rs#133: the library sends a body in one piece.
#[test]
fn streamed_answers_need_a_provider_that_streams() {
    let told = faults(SMOKE, &["requests.ask.stream=true"]);
    assert!(
        matches!(&told[..], [one] if one.contains("requests.0.stream") && one.contains("engine: stream")),
        "{told:?}"
    );
    let plan = plan_of(SMOKE, &["requests.ask.stream=true", "provider.engine=stream"]);
    assert!(plan.requests.classes()[0].stream);
    let elsewhere = plan_of(SMOKE, &["requests.ask.stream=true", "target.url=http://127.0.0.1:9"]);
    assert!(elsewhere.requests.classes()[0].stream, "what is behind another's gateway is its own affair");
}

#[test]
fn the_times_of_faults_shrink_with_the_phases_they_lie_in() {
    let faults = |set: &str| {
        let small = plan_of(FLASH, &[set]).rehearsed();
        small.provider.faults.iter().map(|f| (f.at.as_secs(), f.lasts.as_secs())).collect::<Vec<_>>()
    };
    // 5, 40 and 10 minutes are rehearsed in 20, 60 and 50 s
    assert_eq!(faults("provider.faults=[{at: 25m, for: 10m, capacity: 3/4}]"), [(50, 15)]);
    assert_eq!(faults("provider.faults=[{at: 0s, for: 55m, capacity: 3/4}]"), [(0, 130)]);
    assert_eq!(faults("provider.faults=[{at: 50m, for: 15m, capacity: 3/4}]"), [(105, 25 + 600)]);
}

#[test]
fn budgets_that_are_not_named_follow_the_providers_windows() {
    let window = |quota: &str| {
        let plan = plan_of(SMOKE, &[&format!("provider.quota={{tokens_per_minute: 1_200_000, {quota}}}")]);
        let budgets = plan.policy().unwrap().budgets;
        (budgets.window(), budgets.requests)
    };
    let sliding = |ms| Window::Sliding { period: Duration::from_millis(ms) };
    assert_eq!(window("window: {fixed: 10s}").0, sliding(10_100));
    let plan = plan_of(SMOKE, &["provider.quota={tokens_per_minute: 1_200_000, window: {fixed: 10s}}"]);
    let amount = plan.policy().unwrap().budgets.burst_tokens().get();
    assert!((199_990..=200_000).contains(&amount), "no more in the longer window: {amount}");
    assert_eq!(window("window: {sliding: 10s}, sub_windows: [1s]").0, sliding(1_010));
    let bucket = Window::Bucket { burst: Duration::from_millis(900) };
    assert_eq!(window("burst: 1s, requests_per_minute: 700"), (bucket, Rate::per_minute(700)));
}

#[test]
fn what_a_provider_cannot_be_is_told_with_the_way_out() {
    for (set, said) in [
        ("provider.quota.window={sliding: 1s}", "only a bucket has a `burst`"),
        ("provider.quota.sub_windows=[0s]", "longer than nothing"),
        ("provider.quota.accounts=['']", "none of them empty"),
        ("provider.quota.requests_per_minute=0", "nothing could ever be served"),
        ("provider.service.law=lognormal", "{ lognormal: { cv: 0.5 } }"),
        ("provider.service.law={lognormal: {cv: 11}}", "0 to 10"),
        ("provider.faults=[{at: 1s, for: 1s, cuts: 1%}]", "take `engine: stream`"),
        ("provider.faults=[{at: 1s, for: 1s}]", "name one of capacity, cuts"),
        ("provider.faults=[{at: 1s, for: 1s, garbage: 1%, latency: {times: 2}}]", "not 2"),
        ("provider.faults=[{at: 1s, for: 1s, latency: {}}]", "changes nothing"),
        ("provider.faults=[{at: 1s, for: 1s, errors: {status: 200}}]", "take 400 to 599"),
        ("provider.faults=[{at: 1s, for: 5s, garbage: 1%}, {at: 3s, for: 1s, garbage: 2%}]", "overlap"),
        ("load.phases.promotion.mix={aks: 1}", "did you mean `ask`?"),
        ("load.phases.promotion.mix={ask: 0}", "nothing would ever be sent"),
    ] {
        let faults = faults(SMOKE, &[set]);
        assert!(faults.iter().any(|fault| fault.contains(said)), "{set}: {faults:#?}");
    }
    // of different kinds they may be on at once
    let both = "provider.faults=[{at: 1s, for: 5s, garbage: 1%}, {at: 3s, for: 1s, capacity: 1/2}]";
    assert_eq!(plan_of(SMOKE, &[both]).provider.faults.len(), 2);
}

#[test]
fn the_gateways_faults_are_read_and_those_of_another_are_not_ours_to_make() {
    let plan = plan_of(SMOKE, &["target.embedded.faults=[leaked_holds, {early_shedding: 5%}]"]);
    let shown: Vec<_> = plan.policy().unwrap().faults.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["leaked_holds (1%)", "early_shedding (5%)"]);
    assert_eq!(
        plan.rehearsed().policy().unwrap().to_json()["faults"],
        plan.policy().unwrap().to_json()["faults"]
    );
    for (set, said) in [
        ("target.embedded.faults=[early_sheding]", "did you mean `early_shedding`?"),
        ("target.embedded.faults=[{early_shedding: 5}]", "no share between 0 and 1"),
        ("target.embedded.faults=early_shedding", "a list belongs here"),
        ("target.embedded.replicas=65", "from 1 to 64"),
        ("target.embedded.replicas=0", "from 1 to 64"),
        ("target.embedded.replicas=20", "a burst of 900"),
        (
            "target.policy={service: {start: 1s}, faults: [no_recheck]}",
            "only the embedded gateway can be given faults",
        ),
    ] {
        let faults = faults(SMOKE, &[set]);
        assert!(faults.iter().any(|fault| fault.contains(said)), "{set}: {faults:#?}");
        assert_eq!(faults.len(), 1, "{set}: {faults:#?}");
    }
    assert!(plan_of(SMOKE, &["target.embedded.replicas=4"]).policy().unwrap().replicas == 4);
}
