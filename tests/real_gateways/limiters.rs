//! Limiters of which there are two.

use super::support::rehearse;

/// As in kubernetes/ingress-nginx#2250: the status was set for one limiter, and the other went on answering 503. Half of
/// the callers meet the limit of requests, which was told to answer 429, half that of connections.
#[test]
fn the_status_of_one_limiter_is_not_that_of_the_other() {
    let sets = [
        "target.spawn.config=../../fixtures/gateways/nginx-two-limiters.conf",
        "requests=[{name: a, tenant: a, prompt: {tokens: 8}, max_tokens: 8, output: {tokens: 8}, deadline: 10s}, \
         {name: b, tenant: b, prompt: {tokens: 8}, max_tokens: 8, output: {tokens: 8}, deadline: 10s}]",
    ];
    let sets: Vec<_> = sets.iter().map(|&set| set.to_owned()).collect();
    let Some(run) = rehearse("nginx", "nginx", &sets) else { return };
    let refused = |name: &str| {
        let classes = run.report["classes"].as_array().unwrap().iter();
        classes
            .filter(|class| class["name"] == name)
            .map(|class| class["refused"].as_u64().unwrap())
            .sum::<u64>()
    };
    assert!(refused("a") > 0 && refused("b") > 0, "{}", run.report["classes"]);
    assert_eq!((run.total("throttled"), run.total("shed")), (refused("a"), refused("b")));
    let statuses = run.statuses();
    assert!(statuses.contains(&429) && statuses.contains(&503), "{statuses:?}");
}
