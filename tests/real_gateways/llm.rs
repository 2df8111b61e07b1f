//! Gateways made for language models.

use super::support::{Rehearsed, rehearse};

/// As in sgl-project/sglang#32491 and vllm-project/router#280: the size of the queue bounds nothing, everybody is let in,
/// and who waits too long is answered 408.
fn a_queue_that_bounds_nothing(run: &Rehearsed) {
    assert_eq!(run.total("shed"), 0);
    assert!(run.total("expired") >= 6, "{}", run.report["totals"]);
    let (verdict, because) = run.found("shedding.onset");
    assert!(verdict == "fail" && because.contains("nobody was shed"), "{because}");
    let (verdict, because) = run.found("shedding.shape");
    assert!(verdict == "fail" && because.contains("status 408, not 429"), "{because}");
    assert_eq!(run.found("retry_after.present").0, "fail");
    let statuses = run.statuses();
    assert!(!statuses.is_empty() && statuses.iter().all(|status| *status == 408), "{statuses:?}");
    assert_eq!(run.code, 1);
}

#[test]
fn the_queue_of_vllm_router_bounds_nothing() {
    if let Some(run) = rehearse("vllm-router", "vllm-router", &[]) {
        a_queue_that_bounds_nothing(&run);
    }
}

#[test]
fn the_queue_of_sglang_router_bounds_nothing() {
    if let Some(run) = rehearse("sglang-router", "sglang-router", &[]) {
        a_queue_that_bounds_nothing(&run);
    }
}

#[test]
fn litellm_tells_everyone_to_come_back_in_a_second_which_is_too_soon() {
    let Some(run) = rehearse("litellm", "litellm", &[]) else { return };
    assert!(run.total("shed") > 20, "{}", run.report["totals"]);
    assert_eq!(run.found("retry_after.present").0, "pass");
    let (verdict, because) = run.found("retry_after.parseable");
    assert!(verdict == "pass" && because.contains("always 1 s"), "{because}");
    let (verdict, because) = run.found("retry_after.honoured");
    assert_eq!(verdict, "fail", "{because}");
}
