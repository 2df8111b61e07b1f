//! Comparing builds: how often it is right, and the command from end to end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on shall stop there")]

#[cfg(feature = "cli")]
mod command;
mod merge;
mod power;

#[test]
fn a_gateway_slowed_by_5_percent_is_found_and_one_against_itself_is_not() {
    let tally = power::tries(24);
    // the bounds of the bench (93 % and 7 %) and two standard errors of so few tries
    assert!(tally.found.iter().all(|found| *found >= 20), "{tally:?}");
    assert!(tally.alarms.iter().all(|alarms| *alarms <= 4), "{tally:?}");
}
