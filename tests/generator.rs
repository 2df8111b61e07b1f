//! The generator against real sockets. Counts, never times: the machine may be busy.

use std::time::Duration;

use tenfold::live::Clock;
use tenfold::live::selftest::{Driven, Manner, Plain, drive};
use tenfold::observe::Outcome as Became;
use tenfold::plan::{self, Plan};

/// A plan of one phase with this load, against `url`, whose requests travel so.
fn plan_of(url: &str, load: &str, request: &str) -> Outcome<Plan> {
    let text = format!(
        "tenfold: 1\nname: test\nload: {{ arrivals: constant, phases: [{{ name: steady, {load} }}] }}\n\
         requests: [{{ name: ask, prompt: {{ tokens: 8 }}, max_tokens: 4, deadline: 60s }}]\n\
         provider: {{ quota: {{ tokens_per_minute: 10_000_000_000, burst: 10s }}, service: {{ first_token: 1ms, per_token: 0ms }} }}\n\
         target: {{ url: '{url}', request: {{ {request} }} }}\nmax_outstanding: 100_000\n"
    );
    Ok(plan::parse(&text, &[], &|_| None).map_err(|faults| format!("{faults:?}"))?.plan)
}

/// Plays the callers of such a plan against a server of this manner.
fn played(manner: Manner, load: &str, request: &str) -> Outcome<(Driven, Plain)> {
    let server = Plain::start(Clock::start(), manner)?;
    let plan = plan_of(&server.url(), load, request)?;
    Ok((drive(&plan, &server.url())?, server))
}

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const SENDERS: [&str; 4] =
    ["sender: reqwest", "sender: hyper", "sender: reqwest, http: 2", "sender: hyper, http: 2"];

/// As in tsenart/vegeta#620 and giltene/wrk2's account of coordinated omission: a target that freezes for five seconds
/// stops no arrival, and the percentiles show all of the freeze.
#[test]
fn a_frozen_target_stops_no_arrival_and_shows_in_the_percentiles() {
    let freeze = Some((Duration::from_secs(1), Duration::from_secs(5)));
    let (driven, server) =
        played(Manner { freeze, ..Manner::default() }, "rate: 100/s, for: 10s", "sender: hyper").unwrap();
    let measures = &driven.measures;
    assert_eq!((measures.offered, measures.arrivals.get(Became::Unsent)), (1_000, 0));
    assert_eq!(measures.arrivals.get(Became::Completed), 1_000);
    assert_eq!(server.take_arrivals().len(), 1_000);
    // first attempts by the second they were sent in: as many in the freeze as before it
    let sent: Vec<u64> = measures.windows.iter().map(|window| window.sent).collect();
    assert!(sent[2..5].iter().all(|sent| *sent >= 50), "{sent:?}");
    // whoever came in the first four seconds of the freeze waited a second or more for its end
    let from_due = measures.latencies.from_due(Became::Completed);
    let waited = from_due.quantile(0.65).unwrap();
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
    let p99 = from_due.quantile(0.99).unwrap();
    assert!(p99 >= Duration::from_millis(4_500), "{p99:?}");
}

/// Ten thousand answers are outstanding at once, as streams of some hundred connections, and none is lost.
#[test]
fn ten_thousand_answers_are_outstanding_and_none_is_lost() {
    let manner = Manner { delay: Duration::from_secs(4), ..Manner::default() };
    let (driven, server) = played(manner, "rate: 3000/s, for: 4s", "sender: hyper, http: 2").unwrap();
    let measures = &driven.measures;
    assert_eq!((measures.offered, measures.arrivals.get(Became::Completed)), (12_000, 12_000));
    assert_eq!((measures.unsent.exhausted, measures.unsent.outstanding), (0, 0));
    assert_eq!(server.take_arrivals().len(), 12_000, "each of them once");
    let most = measures.depths.peak.requests;
    assert!(most >= 10_000, "{most} at most");
    assert!(server.connections() <= 130, "{} connections", server.connections());
}

/// As in seanmonstar/reqwest#976: more streams than the server allows at once are not refused, not sent twice and not
/// lost: they wait, and the wait counts from the due time.
#[test]
fn streams_over_the_servers_limit_wait_and_are_sent_once() {
    for (sender, streams) in [("reqwest", 100), ("hyper", 100), ("hyper", 50)] {
        let manner = Manner { delay: Duration::from_millis(300), streams, ..Manner::default() };
        let request = format!("sender: {sender}, http: 2, connections: 1, streams: 1000");
        let (driven, server) = played(manner, "rate: 5000/s, for: 100ms", &request).unwrap();
        let measures = &driven.measures;
        assert_eq!(measures.arrivals.get(Became::Completed), 500, "{sender}: {:?}", measures.failures);
        assert_eq!((server.take_arrivals().len(), measures.attempts.total()), (500, 500), "{sender}");
        // turns of so many streams each
        let turns = u64::from(500 / streams);
        let last = measures.latencies.from_due(Became::Completed).max().unwrap();
        assert!(last >= (turns * 300 - 200) * 1_000, "{sender}, {streams}: the last waited {last} µs");
    }
}

/// As in nats-io/nats.rs#875 and tokio-rs/tokio#6029: a timer of whole milliseconds falls behind at five requests in each of
/// them. All are sent.
#[test]
fn five_thousand_a_second_are_sent_for_as_long_as_they_are_due() {
    let (driven, server) = played(Manner::default(), "rate: 5000/s, for: 5s", "sender: hyper").unwrap();
    let measures = &driven.measures;
    assert_eq!((measures.offered, measures.arrivals.get(Became::Unsent)), (25_000, 0));
    assert_eq!(measures.arrivals.get(Became::Completed), 25_000, "{:?}", measures.failures);
    assert_eq!(server.take_arrivals().len(), 25_000);
}

#[test]
fn every_sender_sends_each_request_once_over_the_protocol_it_is_told() {
    for request in SENDERS {
        let manner = Manner { delay: Duration::from_millis(200), ..Manner::default() };
        let (driven, server) = played(manner, "rate: 200/s, for: 1s", request).unwrap();
        let measures = &driven.measures;
        assert_eq!(measures.arrivals.get(Became::Completed), 200, "{request}: {:?}", measures.failures);
        assert_eq!(server.take_arrivals().len(), 200, "{request}");
        let connections = server.connections();
        match request.contains("http: 2") {
            // some forty streams are open at once; the ping has a connection of its own
            true => assert!((2..=4).contains(&connections), "{request}: {connections}"),
            false => assert!(connections >= 30, "{request}: {connections}"),
        }
    }
}

/// As in grafana/k6#826: connections that share the ports of several addresses.
#[test]
fn connections_come_from_every_source_address_in_turn() {
    for sender in ["reqwest", "hyper"] {
        let request = format!("sender: {sender}, source_addresses: [127.0.0.2, 127.0.0.3]");
        let manner = Manner { delay: Duration::from_millis(300), ..Manner::default() };
        let (driven, server) = played(manner, "rate: 100/s, for: 500ms", &request).unwrap();
        assert_eq!(driven.measures.arrivals.get(Became::Completed), 50, "{sender}");
        let sources = server.sources();
        for address in ["127.0.0.2", "127.0.0.3"] {
            let count = sources.get(&address.parse().unwrap()).copied().unwrap_or(0);
            assert!(count >= 5, "{sender}: {sources:?}");
        }
    }
}

/// Ten thousand answers outstanding over HTTP/1.1 are as many connections: their other ends are in a process of their own.
#[test]
#[ignore = "twenty thousand descriptors in two processes; .ci/scheduled runs it"]
fn ten_thousand_connections_are_open_and_none_is_lost() -> Outcome<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before })?;
    let quota = "provider.quota={tokens_per_minute: 10_000_000_000, burst: 10s}";
    let service = "provider.service={first_token: 10s, per_token: 0ms}";
    let serve = format!(
        "ulimit -n $(ulimit -Hn); exec {} serve provider plans/smoke.yaml --set '{quota}' --set '{service}' \
         --set provider.engine=stream",
        env!("CARGO_BIN_EXE_tenfold")
    );
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(env!("CARGO_MANIFEST_DIR")).args(["-c", &serve]).stdout(std::process::Stdio::piped());
    let mut server = shell.spawn()?;
    let mut said = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(server.stdout.take().ok_or("no stdout")?),
        &mut said,
    )?;
    let url = said.split_whitespace().find(|word| word.starts_with("http://")).ok_or("no address")?;
    let plan = plan_of(url, "rate: 1000/s, for: 12s", "sender: hyper")?;
    let driven = drive(&plan, url);
    server.kill()?;
    server.wait()?;
    let measures = driven?.measures;
    assert_eq!(
        (measures.offered, measures.arrivals.get(Became::Completed)),
        (12_000, 12_000),
        "{:?}",
        measures.failures
    );
    let most = measures.depths.peak.requests;
    assert!(most >= 9_900, "{most} at most");
    Ok(())
}

/// What is kept of a request that has ended is nothing: 1,000/s for five minutes, or `SOAK_MINUTES`. Gives what it saw.
fn soak(request: &str) -> Outcome<String> {
    let minutes = std::env::var("SOAK_MINUTES").map_or(Ok(5), |minutes| minutes.parse())?;
    let load = format!("rate: 1000/s, for: {minutes}m");
    let (driven, _server) = played(Manner::forgetful(), &load, request)?;
    let measures = &driven.measures;
    assert_eq!(measures.arrivals.get(Became::Completed), minutes * 60_000, "{:?}", measures.failures);
    let own: Vec<u64> = measures.windows.iter().map(|window| window.own_memory.get()).collect();
    let most = |tenth: usize| {
        own[tenth * own.len() / 10..(tenth + 1) * own.len() / 10].iter().copied().max().unwrap_or(0)
    };
    // a halt of the machine makes it grow once, for all that is open then; what is never given back, in every tenth
    let mut grown: Vec<u64> = (2..10).map(|tenth| most(tenth).saturating_sub(most(tenth - 1))).collect();
    let (early, late) = (most(1), most(9));
    assert!(early > 0, "it was not measured");
    let seen = format!("{early} bytes in the second tenth, {late} in the last; grown by {grown:?}");
    grown.sort_unstable();
    let (tenth, allowed) = (minutes * 6_000, (minutes * 20_000).max(100_000));
    assert!(grown[grown.len() / 2] <= allowed, "{seen} in tenths of {tenth} requests; {allowed} are allowed");
    Ok(seen)
}

#[test]
#[ignore = "five minutes; .ci/scheduled runs it"]
fn memory_is_flat_in_a_soak_with_hyper() -> Outcome<()> {
    println!("hyper: {}", soak("sender: hyper")?);
    Ok(())
}

#[test]
#[ignore = "five minutes; .ci/scheduled runs it"]
fn memory_is_flat_in_a_soak_with_reqwest() -> Outcome<()> {
    println!("reqwest: {}", soak("sender: reqwest")?);
    Ok(())
}
