//! What a request asks for, read from its head and body.

use std::time::Duration;

use http::HeaderMap;

use super::config::Deadline;
use super::refusal::Refusal;
use crate::provider::wire::{caller_of, openai};
use crate::units::Tokens;

/// The header a request's id travels in.
const REQUEST_ID: &str = "x-request-id";

/// The most tokens a request may name: beyond it is a slip of the pen, and sums stay far from overflow.
const MOST_TOKENS: Tokens = Tokens::new(1_000_000_000);

/// How long the caller will wait, by the deadline header or by default.
pub(super) fn remaining(headers: &HeaderMap, deadline: &Deadline) -> Result<Duration, Refusal> {
    let Some(value) = headers.get(&deadline.header) else { return Ok(deadline.default) };
    let text = value.to_str().unwrap_or("\u{fffd}");
    deadline.form.parse(text).map_err(|why| Refusal::Malformed {
        param: None,
        message: format!("header `{}`: {why}", deadline.header),
    })
}

/// Who is calling: the same number for every attempt of one caller; `None` if the request has no id.
pub(super) fn caller(headers: &HeaderMap) -> Option<u64> {
    let id = headers.get(REQUEST_ID)?.to_str().ok().filter(|id| !id.is_empty())?;
    Some(fnv(caller_of(id).as_bytes()))
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Tokens of the prompt, and the most of the answer.
pub(super) fn tokens(body: &[u8]) -> Result<(Tokens, Tokens), Refusal> {
    let bad = |param, message: String| Err(Refusal::Malformed { param, message });
    let request: openai::Request = match serde_json::from_slice(body) {
        Ok(request) => request,
        Err(error) => return bad(None, format!("the body is no chat completion request: {error}")),
    };
    let name = if request.max_completion_tokens.is_some() { "max_completion_tokens" } else { "max_tokens" };
    let Some(most) = request.max_output() else {
        return bad(
            Some("max_completion_tokens"),
            "`max_completion_tokens` (or `max_tokens`) is missing: without it no tokens can be reserved"
                .into(),
        );
    };
    if most == Tokens::ZERO || most > MOST_TOKENS {
        return bad(Some(name), format!("`{name}` is {most}: it must lie between 1 and {MOST_TOKENS}"));
    }
    Ok((request.prompt_words(), most))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(body: &str) -> (Option<&'static str>, String) {
        match tokens(body.as_bytes()) {
            Err(Refusal::Malformed { param, message }) => (param, message),
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn the_hold_is_the_prompt_and_the_most_of_the_answer() {
        let body =
            |max: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a b c"}}],{max}}}"#);
        let read = |max| tokens(body(max).as_bytes());
        assert_eq!(read(r#""max_tokens":5"#), Ok((Tokens::new(3), Tokens::new(5))));
        assert_eq!(read(r#""max_tokens":5,"max_completion_tokens":7"#), Ok((Tokens::new(3), Tokens::new(7))));
        assert_eq!(read(r#""max_tokens":5,"n":1,"tools":[{"x":{}}]"#), Ok((Tokens::new(3), Tokens::new(5))));
    }

    #[test]
    fn a_fault_names_its_field() {
        let with = |max: &str| format!(r#"{{"messages":[],{max}}}"#);
        assert_eq!(fault(&with(r#""x":1"#)).0, Some("max_completion_tokens"));
        assert_eq!(fault(&with(r#""max_tokens":0"#)).0, Some("max_tokens"));
        assert_eq!(fault(&with(r#""max_completion_tokens":1000000001"#)).0, Some("max_completion_tokens"));
        for max in
            [r#""max_tokens":-1"#, r#""max_tokens":1.5"#, r#""max_tokens":"many""#, r#""max_tokens":1e400"#]
        {
            let (_, message) = fault(&with(max));
            assert!(message.contains("max_tokens") || message.contains("out of range"), "{message}");
        }
        for body in ["", "{", "[]", "null", "\u{0}", "{\"max_tokens\":5"] {
            assert!(fault(body).1.contains("no chat completion request"), "{body}");
        }
        let deep = format!("{}{}", r#"{"messages":"#, "[".repeat(100_000));
        assert!(fault(&deep).1.contains("no chat completion request"));
    }

    #[test]
    fn attempts_of_one_caller_are_one_caller() {
        let of = |id: &str| {
            caller(&HeaderMap::from_iter([(http::HeaderName::from_static(REQUEST_ID), id.parse().unwrap())]))
        };
        assert_eq!(of("tenfold-9f3c2a11-412-o400"), of("tenfold-9f3c2a11-412-o400-r1"));
        assert_ne!(of("tenfold-9f3c2a11-412-o400"), of("tenfold-9f3c2a11-413-o400"));
        assert_eq!((of(""), caller(&HeaderMap::new())), (None, None));
    }
}
