//! The exit codes, stable for good.

/// Every check passed; for `diff`, no regression.
pub const PASSED: u8 = 0;
/// A check failed; for `diff`, a regression.
pub const CHECK_FAILED: u8 = 1;
/// The command line, a plan or a report file is wrong.
pub const USAGE: u8 = 2;
/// The run is invalid (our fault) or inconclusive (a check that applies had no data).
pub const INVALID: u8 = 3;
/// It could not run: the target is unreachable, a port is taken, a child ended before it was ready.
pub const COULD_NOT_RUN: u8 = 4;
/// The reports are not comparable.
pub const NOT_COMPARABLE: u8 = 5;
/// Ended by Ctrl-C.
pub const INTERRUPTED: u8 = 130;
/// Ended by SIGTERM.
pub const TERMINATED: u8 = 143;

/// All of them, in order, with what they mean: for the help text.
pub const ALL: &[(u8, &str)] = &[
    (PASSED, "every check passed (diff: no regression)"),
    (CHECK_FAILED, "a check failed (diff: a regression)"),
    (USAGE, "the command line, a plan or a report file is wrong"),
    (INVALID, "the run is invalid (our fault) or inconclusive (a check had no data)"),
    (COULD_NOT_RUN, "it could not run: target unreachable, port taken, child ended early"),
    (NOT_COMPARABLE, "diff: the sides are not comparable, or one lacks what the other has"),
    (INTERRUPTED, "interrupted by Ctrl-C"),
    (TERMINATED, "ended by SIGTERM"),
];

/// The table as the end of `tenfold --help`.
pub(super) fn help() -> String {
    let rows = ALL.iter().map(|(code, about)| format!("  {code:>3}  {about}\n"));
    format!("Exit codes:\n{}", rows.collect::<String>())
}
