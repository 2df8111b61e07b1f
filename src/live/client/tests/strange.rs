//! Answers that mean something else than they seem to.

use super::*;
use crate::measure::{Fold, Measures};
use crate::observe::Outcome;

/// What the load comes to.
fn measured(plan: &Plan, played: &Played) -> Measures {
    let mut fold = Fold::new(plan);
    let mut sightings = played.sightings.clone();
    sightings.sort_by_key(Sighting::at);
    sightings.into_iter().for_each(|sighting| fold.see(sighting));
    fold.finish(Moment::from_secs(60))
}

/// As in snoyberg/http-client#521, fpco/http-reverse-proxy#44 and ducaale/xh#385: an interim 103 was taken for the answer,
/// or waited on for ever.
#[test]
fn an_interim_answer_is_none() {
    let hint = "HTTP/1.1 103 Early Hints\r\nlink: </style.css>; rel=preload\r\n\r\n";
    for sender in [SenderKind::Reqwest, SenderKind::Hyper] {
        let server = Server::start(move |_| Some(format!("{hint}{hint}{}", completion())));
        let mut plan = testing::plan(&server.url);
        plan.target.request.transport.sender = sender;
        let played = play(&plan, &server.url);
        let whole = played.answers().filter(|answer| answer.status == 200 && answer.usable).count();
        assert_eq!((played.sent(), whole), (50, 50), "{sender:?}");
    }
}

/// As in BerriAI/litellm#27823 and #4695: the time to wait stands only in the sentence, and no client reads that.
#[test]
fn a_wait_that_only_a_sentence_tells_is_not_told() {
    let body = r#"{"error":{"message":"Rate limit exceeded. Try again in 60 seconds.","code":"429"}}"#;
    let server = Server::start(move |_| Some(http("429 Too Many Requests", "", body)));
    let plan = testing::plan(&server.url);
    let played = play(&plan, &server.url);
    // every refused caller would come back as told
    assert_eq!((played.sent(), played.not_waited_for), (50, 0));
    let measures = measured(&plan, &played);
    assert_eq!((measures.refusals.answers, measures.refusals.missing), (50, 50));
    // who looks at the evidence sees the sentence
    assert!(!played.evidence.is_empty());
    assert!(played.evidence.iter().all(|raw| raw.body.contains("Try again in 60 seconds")));
}

/// As in haproxy/haproxy#2659: a second hop made a 502 of the 503. It is no refusal, and where a plan knows of it, one of
/// the wrong form.
#[test]
fn a_second_hop_that_changes_the_status_does_not_pass_for_a_refusal() {
    let server = Server::start(|_| Some(http("502 Bad Gateway", "retry-after: 1\r\n", "")));
    let mut plan = testing::plan(&server.url);
    let measures = measured(&plan, &play(&plan, &server.url));
    assert_eq!((measures.arrivals.get(Outcome::Failed), measures.refusals.answers), (50, 0));
    let causes: Vec<_> =
        measures.failures.iter().map(|(cause, often)| (cause.to_string(), often.count)).collect();
    assert_eq!(causes, [("status 502".to_owned(), 50)]);
    plan.expect.refusal.instead = vec![502];
    plan.probes.every = 0;
    let played = play(&plan, &server.url);
    assert!(!played.evidence.is_empty() && played.evidence.iter().all(|raw| raw.status == 502));
    let refusals = measured(&plan, &played).refusals;
    assert_eq!((refusals.answers, refusals.unshapely, refusals.missing), (50, 50, 0));
    let faults: Vec<_> = refusals.faults.iter().collect();
    assert_eq!(faults, [("status 502, not 503 or 429", 50)]);
}

/// As in Layr-Labs/d-inference#915 and martian56/raven#739: a chunked body that is reset half way is a failure whose end is
/// that of its body, and no part of how long good answers took.
#[test]
fn a_body_that_is_reset_half_way_is_no_success() {
    let halves = Duration::from_millis(150);
    for sender in [SenderKind::Reqwest, SenderKind::Hyper] {
        let url = resetting(halves);
        let mut plan = testing::plan(&url);
        plan.target.request.transport.sender = sender;
        plan.load = testing::load("10/s", Duration::from_secs(1));
        plan.requests = testing::mix("20s");
        let played = play(&plan, &url);
        assert_eq!((played.sent(), played.broken(Broken::Cut)), (10, 10), "{sender:?}");
        let measures = measured(&plan, &played);
        assert_eq!(measures.arrivals.get(Outcome::Failed), 10);
        assert_eq!(measures.latencies.from_due(Outcome::Completed).count(), 0);
        let took = measures.latencies.from_sent(Outcome::Failed).min().unwrap();
        assert!(Duration::from_micros(took) >= halves, "the end is that of the body: {took}");
        let (cause, often) = measures.failures.iter().next().unwrap();
        assert_eq!((cause.to_string().as_str(), often.count, often.read), ("answer cut short", 10, 50));
    }
}

/// A server that sends a piece of a chunked body and, some time later, resets the connection.
fn resetting(after: Duration) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut request = [0; 16 << 10];
                assert!(stream.read(&mut request).unwrap() > 0);
                let half = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbytes\r\n";
                stream.write_all(half.as_bytes()).unwrap();
                thread::sleep(after);
                // closed with nothing to linger for: a reset
                socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
            });
        }
    });
    url
}

/// What refusals say besides `Retry-After` comes through with them, and a fraction of a second is a time to come back at.
#[test]
fn hints_and_fractions_of_refusals_are_read() {
    let headers = "retry-after: 0.25\r\nx-ratelimit-reset-tokens: 6m0s\r\nx-ratelimit-limit-tokens: 9\r\n";
    let server = Server::start(move |request| {
        // who comes back is served
        let back = header(request, "x-request-id").is_some_and(|id| id.contains("-r1"));
        Some(if back { completion() } else { http("503 Unavailable", headers, "") })
    });
    let plan = testing::plan(&server.url);
    let played = play(&plan, &server.url);
    let measures = measured(&plan, &played);
    let refusals = &measures.refusals;
    assert_eq!((refusals.answers, refusals.fractional, refusals.unreadable), (50, 50, 0));
    assert_eq!((refusals.announced.count(), refusals.announced.max()), (50, Some(1)), "rounded up");
    let hints: Vec<_> = refusals.hints.iter().map(|(name, hinted)| (name, hinted.waits.max())).collect();
    assert_eq!(hints, [("x-ratelimit-reset-tokens", Some(360_000))]);
    let returned = measures.returns.inside.returned + measures.returns.after.returned;
    assert_eq!(returned + played.not_waited_for, 50, "each of them comes back a quarter of a second later");
    assert!(returned >= 30, "{returned}");
}

/// A thread that had no time for those who waited for it is what they left for: they were not sent, and that is our fault.
#[test]
fn who_leaves_while_this_thread_is_behind_was_not_sent() {
    for sender in [SenderKind::Reqwest, SenderKind::Hyper] {
        let server = Server::start(|_| Some(completion()));
        let mut plan = testing::plan(&server.url);
        plan.target.request.transport.sender = sender;
        plan.load = testing::load("500/s", Duration::from_secs(1));
        plan.requests = testing::mix("60ms");
        // again and again it does something else for longer than anybody waits
        let hold = async {
            loop {
                tokio::time::sleep(Duration::from_millis(20)).await;
                thread::sleep(Duration::from_millis(100));
            }
        };
        let played = play_beside(&plan, &server.url, hold);
        let late = played.unsent(Unsent::Late);
        assert!(late > 100, "{sender:?}: {late} of 500 not sent");
        assert_eq!(played.sent() + late, 500, "{sender:?}");
        // whoever is booked on the target was written to it
        thread::sleep(Duration::from_millis(200));
        let read = server.requests.load(Ordering::SeqCst);
        // but for those that were just being written when it was too late
        assert!(read + 40 >= played.sent(), "{sender:?}: {read} of {} reached the target", played.sent());
    }
}

/// A target that lets nobody's connection come up is left by its callers, however long the thread that sends has slept.
#[test]
fn who_leaves_a_target_that_lets_nobody_in_has_left_the_target() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // it takes connections, and says nothing where TLS is to begin
    let mut plan = testing::plan(&format!("https://{}", listener.local_addr().unwrap()));
    plan.target.request.insecure = true;
    plan.load = testing::load("20/s", Duration::from_secs(1));
    plan.requests = testing::mix("1s");
    for sender in [SenderKind::Reqwest, SenderKind::Hyper] {
        plan.target.request.transport.sender = sender;
        let played = play(&plan, &format!("https://{}", listener.local_addr().unwrap()));
        let left = played.count(|s| matches!(s, Sighting::Left { .. }));
        assert_eq!((left, played.unsent(Unsent::Late)), (20, 0), "{sender:?}");
    }
}
