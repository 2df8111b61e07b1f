use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::live::pacer::Pacer;
use crate::live::pacing;
use crate::live::testing::{self, Server, completion, http};
use crate::plan::SenderKind;
use crate::workload::Schedule;

mod strange;
mod streams;

/// What came of a load.
struct Played {
    sightings: Vec<Sighting>,
    evidence: Vec<Evidence>,
    not_waited_for: u64,
}

impl Played {
    fn count(&self, which: impl Fn(&Sighting) -> bool) -> usize {
        self.sightings.iter().filter(|sighting| which(sighting)).count()
    }

    fn answers(&self) -> impl Iterator<Item = &Answer> {
        self.sightings.iter().filter_map(|s| match s {
            Sighting::Answered { answer, .. } => Some(answer),
            _ => None,
        })
    }

    /// Tokens that were read of streams.
    fn tokens(&self) -> u64 {
        let read = self.sightings.iter().filter_map(|s| match s {
            Sighting::Tokens { first, gaps, .. } => Some(gaps.count() + u64::from(first.is_some())),
            _ => None,
        });
        read.sum()
    }

    fn sent(&self) -> usize {
        self.count(|s| matches!(s, Sighting::Sent { .. }))
    }

    fn broken(&self, how: Broken) -> usize {
        self.count(|s| matches!(s, Sighting::Broken { why, .. } if *why == how))
    }

    fn unsent(&self, how: Unsent) -> usize {
        self.count(|s| matches!(s, Sighting::Unsent { why, .. } if *why == how))
    }

    /// Every attempt has one `Due`; then one `Unsent`, or one `Sent`, not before it was due, and one end.
    fn check(&self) {
        let mut seen: BTreeMap<Attempt, (u32, u32, u32, u32)> = BTreeMap::new();
        let mut due = BTreeMap::new();
        for sighting in &self.sightings {
            let counts = seen.entry(sighting.attempt()).or_default();
            match sighting {
                Sighting::Due { at, attempt, .. } => {
                    counts.0 += 1;
                    due.insert(*attempt, *at);
                }
                Sighting::Unsent { .. } => counts.1 += 1,
                Sighting::Sent { at, attempt } => {
                    counts.2 += 1;
                    assert!(*at >= due[attempt], "sent before it was due");
                }
                Sighting::Again { .. } | Sighting::Tokens { .. } => {}
                _ => counts.3 += 1,
            }
        }
        for (attempt, counts) in seen {
            assert!(matches!(counts, (1, 1, 0, 0) | (1, 0, 1, 1)), "{attempt:?}: {counts:?}");
        }
    }
}

fn play(plan: &Plan, url: &str) -> Played {
    play_beside(plan, url, std::future::pending())
}

/// The same, and the thread that sends does something else, too.
fn play_beside(plan: &Plan, url: &str, ping: impl Future<Output = ()> + Send + 'static) -> Played {
    let clock = Clock::start();
    let start = clock.now() + Duration::from_millis(20);
    let (out, seen) = mpsc::channel();
    let (returns, coming) = tokio::sync::mpsc::unbounded_channel();
    let paced = Arc::new(Paced::default());
    let wire = Wire::new(url, plan, 7).unwrap();
    let ends = Ends { out: out.clone(), returns, paced: Arc::clone(&paced) };
    let callers = Callers::new(plan, wire, clock, start, ends).unwrap();
    let pacer = Pacer::new(Schedule::new(&plan.load, &plan.requests), &plan.load, start);
    let (_quit, quitting) = watch::channel(false);
    let ends = pacing::Ends { returns: coming, out };
    let client = super::start(Arc::clone(&callers), pacer, ends, quitting, ping).unwrap();
    client.join().unwrap().unwrap();
    let evidence = callers.take_evidence();
    assert_eq!(callers.open(), 0);
    drop(callers);
    let sightings = seen.iter().filter_map(|seen| match seen {
        Seen::Sighting(sighting) => Some(sighting),
        Seen::Vital(_) => None,
    });
    let played = Played {
        sightings: sightings.collect(),
        evidence,
        not_waited_for: paced.not_waited_for.load(Ordering::Relaxed),
    };
    played.check();
    played
}

/// The JSON body of a raw request.
fn body_of(request: &str) -> serde_json::Value {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn header<'r>(request: &'r str, name: &str) -> Option<&'r str> {
    request.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[test]
fn every_arrival_is_sent_and_read_and_carries_its_id_three_times() {
    let (say, heard) = mpsc::channel();
    let server = Server::start(move |request| {
        say.send(request.to_owned()).unwrap();
        Some(completion())
    });
    let played = play(&testing::plan(&server.url), &server.url);
    assert_eq!(played.sent(), 50);
    assert_eq!(played.answers().filter(|answer| answer.usable && answer.status == 200).count(), 50);
    let mut ids: Vec<_> = heard
        .try_iter()
        .map(|request| {
            let id = header(&request, "x-request-id").unwrap().to_owned();
            assert_eq!(body_of(&request)["user"], id);
            let parent = header(&request, "traceparent").unwrap();
            let read = crate::provider::wire::RequestId::parse(&id).unwrap();
            assert_eq!(crate::provider::wire::RequestId::parse_traceparent(parent), Some(read));
            let budget: u64 = header(&request, "x-request-timeout-ms").unwrap().parse().unwrap();
            assert!(budget <= 500, "{budget}");
            read.seq
        })
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..50).collect::<Vec<_>>());
}

/// As in tsenart/vegeta#344 and hatoo/oha#577: answers that never come neither slow the rate nor pile up
/// beyond the cap; what the cap keeps back is
/// counted.
#[test]
fn a_silent_target_meets_the_whole_rate_up_to_the_cap() {
    let server = Server::start(|_| None);
    let mut plan = testing::plan(&server.url);
    plan.max_outstanding = 20;
    plan.requests = testing::mix("3s");
    let played = play(&plan, &server.url);
    assert_eq!((played.sent(), played.unsent(Unsent::Outstanding)), (20, 30));
    assert_eq!(
        played.count(|s| matches!(s, Sighting::Left { .. })),
        20,
        "they leave when their patience ends"
    );
    assert_eq!(server.requests.load(Ordering::SeqCst), 20);
}

/// As in seanmonstar/reqwest#1639: a redirect is an answer of its own, not followed, and no success.
#[test]
fn a_redirect_is_not_followed() {
    let server = Server::start(|request| {
        let there = if request.starts_with("POST") { "location: /login\r\n" } else { "" };
        Some(http("302 Found", there, ""))
    });
    let mut plan = testing::plan(&server.url);
    plan.load = testing::load("10/s", Duration::from_millis(500));
    let played = play(&plan, &server.url);
    assert_eq!(played.answers().filter(|a| a.status == 302 && !a.usable).count(), 5);
    assert_eq!(server.requests.load(Ordering::SeqCst), 5, "one request each, and none to the login page");
}

#[test]
fn refused_callers_return_once_as_told_and_refusals_are_kept() {
    let server = Server::start(|request| {
        if header(request, "x-request-id")?.ends_with("-r1") {
            return Some(completion());
        }
        let late = header(request, "x-request-id")?.contains("-4-o");
        let reason = if late { "expired" } else { "shed" };
        Some(http("503 Service Unavailable", "retry-after: 0\r\n", &format!("{{\"reason\":\"{reason}\"}}")))
    });
    let mut plan = testing::plan(&server.url);
    plan.load = testing::load("10/s", Duration::from_secs(1));
    plan.probes.late_by = Duration::from_millis(250);
    let played = play(&plan, &server.url);
    let probes =
        played.count(|s| matches!(s, Sighting::Due { probe: true, attempt, .. } if attempt.nth == 1));
    // ten are refused; the fifth has expired and is no probe, those refused in the last 250 ms would return too late
    assert_eq!(probes + usize::try_from(played.not_waited_for).unwrap(), 9);
    assert!((6..=7).contains(&probes), "{probes}");
    assert_eq!(played.answers().filter(|a| a.status == 200).count(), probes);
    assert_eq!(played.evidence.len(), 10);
    assert!(
        played.answers().filter(|a| a.status == 503).all(|a| a.retry_after.is_some() && a.reason.is_some())
    );
}

/// As in Layr-Labs/d-inference#915 and martian56/raven#739: a body that is cut short is no success, whatever its status;
/// with either sender.
#[test]
fn what_breaks_is_told_apart() {
    let server = Server::start(|request| {
        let id = header(request, "x-request-id")?;
        let seq: u64 = id.split('-').nth(2)?.parse().ok()?;
        match seq % 5 {
            0 => Some(String::new()),
            1 => Some("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbytes".into()),
            2 => Some("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbytes\r\n".into()),
            3 => Some("220 mail.example ESMTP\r\n\r\n".into()),
            _ => Some(http("200 OK", "", &"x".repeat(LARGEST + 1))),
        }
    });
    let mut plan = testing::plan(&server.url);
    plan.load = testing::load("40/s", Duration::from_secs(1));
    plan.requests = testing::mix("20s");
    for (name, kind) in SenderKind::ALL {
        plan.target.request.transport.sender = kind;
        let played = play(&plan, &server.url);
        assert_eq!(played.sent(), 40, "{name}");
        assert_eq!((played.broken(Broken::Closed), played.broken(Broken::TooLarge)), (8, 8), "{name}");
        assert_eq!(
            played.broken(Broken::Cut),
            24,
            "{name}: parts of answers, and something that is no answer"
        );
        // what had come of each is known
        let mut bytes = BTreeMap::new();
        for sighting in &played.sightings {
            if let Sighting::Broken { why: Broken::Cut, read, .. } = sighting {
                *bytes.entry(*read).or_default() += 1;
            }
        }
        assert_eq!(bytes, BTreeMap::from([(0, 8), (5, 16)]), "{name}");
    }
}

#[test]
fn a_target_that_refuses_connections_is_its_own_fault_and_not_our_lag() {
    let plan = testing::plan("");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let played = play(&plan, &format!("http://{closed}"));
    assert_eq!((played.sent(), played.broken(Broken::Refused)), (50, 50));
}

#[test]
fn a_secret_goes_to_the_target_and_nowhere_else() {
    let server = Server::start(|request| {
        assert_eq!(header(request, "authorization"), Some("Bearer s3cret-token"));
        let echo = "x-echo: Bearer s3cret-token\r\n";
        Some(http("429 Too Many Requests", echo, "Bearer s3cret-token"))
    });
    let mut plan = testing::plan(&server.url);
    plan.load = testing::load("10/s", Duration::from_millis(300));
    plan.target.request.headers.insert("authorization".into(), "Bearer s3cret-token".into());
    let played = play(&plan, &server.url);
    assert_eq!(played.evidence.len(), 3);
    assert!(!serde_json::to_string(&played.evidence).unwrap().contains("s3cret"));
    assert!(!format!("{:?}", Wire::new(&server.url, &plan, 7)).contains("s3cret"));
}

/// As in seanmonstar/reqwest#2152: a proxy in the environment is not used. The test runs itself again with
/// one set.
#[test]
fn a_proxy_in_the_environment_is_not_used() {
    const NAME: &str = "live::client::tests::a_proxy_in_the_environment_is_not_used";
    if std::env::var_os("HTTP_PROXY").is_none_or(|proxy| proxy != "http://127.0.0.1:9") {
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
            again.env(name, "http://127.0.0.1:9");
        }
        let done =
            again.env_remove("NO_PROXY").env_remove("no_proxy").args(["--exact", NAME]).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let server = Server::start(|_| Some(completion()));
    let mut plan = testing::plan(&server.url);
    plan.load = testing::load("10/s", Duration::from_millis(500));
    assert_eq!(play(&plan, &server.url).answers().filter(|a| a.usable).count(), 5);
}

/// The smoke of a caller that does as this SDK, refused twice and then served.
fn refused_twice(retry: &str, headers: &'static str) -> (Vec<String>, Played) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let server = Server::start(move |request| {
        let mut seen = kept.lock().unwrap();
        seen.push(request.to_owned());
        Some(match seen.len() {
            1 | 2 => http("503 Unavailable", headers, ""),
            _ => completion(),
        })
    });
    let mut plan = testing::plan(&server.url);
    plan.load = testing::load("1/s", Duration::from_millis(900));
    plan.requests = testing::mix_with("9s", &format!("{{ retry: {retry} }}"));
    let played = play(&plan, &server.url);
    let requests = seen.lock().unwrap().clone();
    (requests, played)
}

#[test]
fn a_refused_caller_tries_again_as_its_sdk_does_and_its_last_attempt_counts() {
    let (requests, played) = refused_twice("{like: openai-python}", "retry-after-ms: 40\r\n");
    assert_eq!(requests.len(), 3);
    let ids: Vec<String> = requests.iter().map(|r| body_of(r)["user"].as_str().unwrap().to_owned()).collect();
    assert!(ids[1] == format!("{}-r1", ids[0]) && ids[2] == format!("{}-r2", ids[0]), "{ids:?}");
    for (nth, request) in requests.iter().enumerate() {
        assert!(request.to_lowercase().contains(&format!("x-stainless-retry-count: {nth}\r\n")), "{request}");
    }
    assert_eq!(played.count(|s| matches!(s, Sighting::Again { .. })), 2);
    // no retry before its time
    let dues: Vec<Moment> = played
        .sightings
        .iter()
        .filter_map(|s| if let Sighting::Due { at, .. } = s { Some(*at) } else { None })
        .collect();
    assert_eq!(dues.len(), 3);
    assert!(dues.windows(2).all(|pair| pair[1].since(pair[0]) >= Duration::from_millis(40)), "{dues:?}");
}

#[test]
fn whoever_is_told_not_to_come_or_to_come_after_the_run_does_not() {
    let (requests, played) = refused_twice("{like: openai-node}", "x-should-retry: false\r\n");
    assert_eq!((requests.len(), played.count(|s| matches!(s, Sighting::Again { .. }))), (1, 0));
    // as in earendil-works/pi#3671: two days
    let (requests, played) = refused_twice("{attempts: 3}", "retry-after: 198300\r\n");
    assert_eq!((requests.len(), played.not_waited_for), (1, 1));
    assert_eq!(played.count(|s| matches!(s, Sighting::Again { .. })), 0);
}
