//! Comparing builds: how often it is right, and the command from end to end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop there")]

mod power;

#[test]
fn a_gateway_slowed_by_5_percent_is_found_and_one_against_itself_is_not() {
    let tally = power::tries(40);
    // the bounds of the bench (93 % and 7 %) and two standard errors of forty tries
    assert!(tally.found.iter().all(|found| *found >= 34), "{tally:?}");
    assert!(tally.alarms.iter().all(|alarms| *alarms <= 6), "{tally:?}");
}
