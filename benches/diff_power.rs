//! How often `diff` is right: `cargo bench --bench diff_power` prints, for five runs a side of the smoke plan with Poisson
//! arrivals, how often a gateway slowed by 5 % is called a regression and how often one against itself is called changed.
//! It fails where the first is under 93 % or the second over 7 %.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

#[path = "../tests/diff/power.rs"]
mod power;

/// Comparisons of each kind.
const TRIES: u32 = 400;

fn main() {
    let tally = power::tries(TRIES);
    let percent = |count: u32| 100.0 * f64::from(count) / f64::from(TRIES);
    for (which, how) in ["runs of other seeds", "runs of the same seeds"].iter().enumerate() {
        let (found, alarms) = (tally.found[which], tally.alarms[which]);
        println!(
            "{how}: slowed by 5 %, called a regression in {found} of {TRIES} ({:.1} %); against itself, called changed in {alarms} ({:.1} %)",
            percent(found),
            percent(alarms)
        );
        assert!(percent(found) >= 93.0 && percent(alarms) <= 7.0, "that is not good enough");
    }
}
