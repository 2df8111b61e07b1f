//! As openai-python from 2.52 on: a wait of up to 120 s is kept exactly, told to wait longer it gives up, whatever
//! `x-should-retry` says; a wait of nothing is taken for none.

use std::time::Duration;

use super::{Next, Sdk, Signs, is_transient};

pub(super) const SDK: Sdk = Sdk {
    name: "openai-python",
    about: "two retries; keeps a Retry-After up to 120 s, gives up beyond it",
    keeps: MOST,
    timeout_headers: &["x-stainless-read-timeout"],
    whole_seconds: false,
    next,
};

const MOST: Duration = Duration::from_secs(120);

fn next(signs: &Signs) -> Next {
    match signs.hint {
        Some(hint) if hint > MOST => Next::GiveUp,
        _ if !signs.should_retry.unwrap_or_else(|| is_transient(signs.status)) => Next::GiveUp,
        Some(hint) if !hint.is_zero() => Next::Wait(hint),
        _ => Next::Backoff,
    }
}
