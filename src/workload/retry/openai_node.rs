//! As openai-node 7: a wait of up to 60 s is kept exactly, also one of nothing; told to wait longer it takes its own
//! backoff instead, and so comes early. What follows a number, as in `5s`, it does not look at.

use std::time::Duration;

use super::{Next, Sdk, Signs, is_transient};

pub(super) const SDK: Sdk = Sdk {
    name: "openai-node",
    about: "two retries; keeps a Retry-After from 0 to 60 s, comes early beyond it",
    keeps: MOST,
    timeout_headers: &["x-stainless-timeout"],
    whole_seconds: true,
    next,
};

const MOST: Duration = Duration::from_secs(60);

fn next(signs: &Signs) -> Next {
    if !signs.should_retry.unwrap_or_else(|| is_transient(signs.status)) {
        return Next::GiveUp;
    }
    signs.loose.filter(|hint| *hint <= MOST).map_or(Next::Backoff, Next::Wait)
}
