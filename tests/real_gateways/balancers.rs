//! Load balancers with a queue: twelve requests at once, while an answer takes a second.

use std::fs;
use std::path::Path;

use super::support::rehearse;

/// As in envoyproxy/envoy#15168 and #36771: a full circuit breaker answers 503, and without Retry-After.
#[test]
fn envoy_sheds_at_the_depth_of_its_circuit_breaker_and_says_not_when_to_come_back() {
    let Some(run) = rehearse("envoy", "envoy", &[]) else { return };
    // one before the crowd, and of twelve two at the provider and three pending
    assert_eq!((run.total("shed"), run.total("completed"), run.total("offered")), (7, 6, 13));
    assert_eq!(run.found("shedding.onset").0, "pass", "{}", run.found("shedding.onset").1);
    assert!(run.found("shedding.onset").1.contains("predicted 3"));
    assert_eq!(run.found("retry_after.present"), ("fail", "0 of 7"));
    assert_eq!(run.code, 1);
    let headers = run.report["refusals"][0]["headers"].to_string();
    assert!(headers.contains("x-envoy-overloaded"), "{headers}");
}

#[test]
fn haproxy_sheds_at_the_depth_of_its_rule_and_forgets_the_header_where_a_wait_was_too_long() {
    let Some(run) = rehearse("haproxy", "haproxy", &[]) else { return };
    assert_eq!((run.total("shed"), run.total("expired"), run.total("completed")), (7, 1, 5));
    assert_eq!(run.found("shedding.onset").0, "pass", "{}", run.found("shedding.onset").1);
    assert!(run.found("shedding.onset").1.contains("predicted 3"));
    assert_eq!(run.found("retry_after.present"), ("fail", "7 of 8"));
    assert_eq!(run.found("retry_after.parseable"), ("pass", "7 of 7; always 2 s"));
}

#[test]
fn nginx_delays_three_and_refuses_the_rest() {
    let Some(run) = rehearse("nginx", "nginx", &[]) else { return };
    assert_eq!((run.total("shed"), run.total("completed")), (8, 5));
    assert_eq!(run.found("shedding.onset").0, "pass", "{}", run.found("shedding.onset").1);
    assert_eq!(run.found("retry_after.present"), ("fail", "0 of 8"));
}

/// As in ducaale/xh#385 and snoyberg/http-client#521: an interim 103 was taken for the answer. HAProxy sends one before
/// each answer here.
#[test]
fn early_hints_are_no_answers() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/gateways/haproxy.cfg");
    let text = fs::read_to_string(config).unwrap();
    let hint =
        "    http-request early-hint Link \"</style.css>; rel=preload\"\n    default_backend provider\n";
    let hinting = text.replace("    default_backend provider\n", hint);
    assert_ne!(hinting, text);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hinting.cfg");
    fs::write(&file, hinting).unwrap();
    for sender in ["reqwest", "hyper"] {
        let sets =
            [format!("target.spawn.config={}", file.display()), format!("target.request.sender={sender}")];
        let Some(run) = rehearse("haproxy", "haproxy", &sets) else { return };
        assert_eq!((run.total("shed"), run.total("expired"), run.total("completed")), (7, 1, 5), "{sender}");
    }
}
