//! As anthropic-sdk-python: a wait of up to 60 s is kept exactly; told to wait longer, or not at all, it takes its own
//! backoff instead, and so comes early.

use std::time::Duration;

use super::{Next, Sdk, Signs, is_transient};

pub(super) const SDK: Sdk = Sdk {
    name: "anthropic-python",
    about: "two retries; keeps a Retry-After up to 60 s, comes early beyond it",
    keeps: MOST,
    timeout_headers: &["x-stainless-read-timeout", "x-stainless-timeout"],
    whole_seconds: false,
    next,
};

const MOST: Duration = Duration::from_secs(60);

fn next(signs: &Signs) -> Next {
    if !signs.should_retry.unwrap_or_else(|| is_transient(signs.status)) {
        return Next::GiveUp;
    }
    signs.hint.filter(|hint| !hint.is_zero() && *hint <= MOST).map_or(Next::Backoff, Next::Wait)
}
