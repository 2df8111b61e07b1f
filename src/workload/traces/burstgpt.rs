//! BurstGPT: seconds from the first day's midnight in a CSV. Newer files have columns more (session, elapsed time); the
//! ones that count are found by their names. An answer of no tokens is a request that failed.

use super::{Clock, Format, Layout};

pub(super) const FORMAT: Format = Format {
    name: "burstgpt",
    about: "BurstGPT: CSV of Timestamp, Request tokens, Response tokens and others",
    layout: Layout::Csv,
    columns: Some(["Timestamp", "Request tokens", "Response tokens"]),
    clock: Some(Clock::Seconds),
};
