//! `/unknown`: the calls whose end nobody knows, and the way to say what became of one.
//!
//! A call that was cut off keeps its tokens and its slot until its lease ends: a stale local timeout does not prove that
//! the provider stopped. Whoever has looked it up in the provider's own records says so here, and both are given back
//! at once. Like `/metrics` this is for the operator: a proxy in front of the gateway should not pass it on.

use bytes::Bytes as Buffer;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};

use super::body::{Body, Collected, collect};
use super::refusal::Refusal;
use super::shell::Shell;
use crate::units::{Bytes, Tokens};

/// Where it is.
pub(super) const PATH: &str = "/unknown";

/// The most that is read of what an operator sends.
const LARGEST: usize = 1_024;

/// A call whose end nobody knows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Call {
    /// Its number in this gateway.
    pub(crate) id: u64,
    /// On whose behalf; empty if on nobody's.
    pub(crate) tenant: String,
    /// What stays held for it.
    pub(crate) hold_tokens: u64,
    /// For how much longer, if nobody says what became of it.
    pub(crate) held_for_s: f64,
}

#[derive(Serialize)]
struct List {
    unknown: Vec<Call>,
}

/// What became of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Outcome {
    used_tokens: u64,
}

/// The list, as JSON.
pub(super) fn list(shell: &Shell) -> Response<Body> {
    let list = List { unknown: shell.unknown() };
    let text = serde_json::to_vec(&list).expect("texts and numbers always make a document");
    let mut answer = Response::new(Body::from(Buffer::from(text)));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Settles the call that `number` names with what the body says.
pub(super) async fn reconcile(
    shell: &Shell,
    number: &str,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let Ok(id) = number.parse() else { return Err(Refusal::NotFound) };
    let body = match collect(request.into_body(), LARGEST).await {
        Collected::Whole(body) => body,
        Collected::TooLarge => return Err(Refusal::TooLarge { limit: Bytes::new(LARGEST as u64) }),
        Collected::Broken => return Err(malformed("the body broke off before its end".into())),
    };
    let outcome: Outcome = serde_json::from_slice(&body).map_err(|error| {
        malformed(format!("{error}: send {{\"used_tokens\": 800}}, or 0 if it was never served"))
    })?;
    if !shell.reconcile(id, Tokens::new(outcome.used_tokens)) {
        return Err(Refusal::NotFound);
    }
    let mut answer = Response::new(Body::from(Buffer::new()));
    *answer.status_mut() = StatusCode::NO_CONTENT;
    Ok(answer)
}

fn malformed(message: String) -> Refusal {
    Refusal::Malformed { param: Some("used_tokens"), message }
}
