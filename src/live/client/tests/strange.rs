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
    assert_eq!(refusals.faults.keys().collect::<Vec<_>>(), ["status 502, not 503 or 429"]);
}
