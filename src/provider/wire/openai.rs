//! OpenAI chat completions: the request, the answer, the errors and the rate-limit headers.
//!
//! Shapes as in the public API reference and the official Python client's types (2026).

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::provider::Limits;
use crate::units::Tokens;

/// The path of the API.
pub const PATH: &str = "/v1/chat/completions";

/// A request body, as far as the parties need it. Everything else passes through untouched.
#[derive(Debug, Deserialize)]
pub struct Request<'a> {
    /// Which model.
    pub model: Option<String>,
    /// The conversation.
    #[serde(borrow)]
    pub messages: Option<Vec<Message<'a>>>,
    /// The most tokens of the answer.
    pub max_completion_tokens: Option<u64>,
    /// Its older name.
    pub max_tokens: Option<u64>,
    /// Who asks, for the provider's own records.
    pub user: Option<String>,
    /// Whether the answer is to be streamed.
    #[serde(default)]
    pub stream: Option<bool>,
}

/// One message of a conversation.
#[derive(Debug, Deserialize)]
pub struct Message<'a> {
    /// Its text. Other kinds of content count no tokens here.
    #[serde(borrow, default)]
    pub content: Content<'a>,
}

/// A message's text, borrowed from the body where it has no escapes.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Option<std::borrow::Cow<'a, str>>")]
pub struct Content<'a>(std::borrow::Cow<'a, str>);

impl<'a> From<Option<std::borrow::Cow<'a, str>>> for Content<'a> {
    fn from(text: Option<std::borrow::Cow<'a, str>>) -> Self {
        Self(text.unwrap_or_default())
    }
}

impl Request<'_> {
    /// Tokens of the prompt, counted as blank-separated words.
    pub fn prompt_words(&self) -> Tokens {
        let messages = self.messages.as_deref().unwrap_or_default();
        let words = messages.iter().map(|m| m.content.0.split_ascii_whitespace().count()).sum::<usize>();
        Tokens::new(u64::try_from(words).unwrap_or(u64::MAX))
    }

    /// The most tokens of the answer, by either of its names.
    pub fn max_output(&self) -> Option<Tokens> {
        self.max_completion_tokens.or(self.max_tokens).map(Tokens::new)
    }
}

/// The body of a request: `words` blank-separated words padded to `bytes` of text, asking for `max_output` tokens.
pub fn request_body(model: &str, words: Tokens, bytes: u64, max_output: Tokens, user: &str) -> String {
    json!({
        "model": model,
        "messages": [{ "role": "user", "content": prompt(words.get(), bytes) }],
        "max_completion_tokens": max_output.get(),
        "user": user,
    })
    .to_string()
}

/// Exactly `words` words in exactly `bytes` bytes where that is possible (two bytes a word and more).
pub fn prompt(words: u64, bytes: u64) -> String {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let words = usize::try_from(words).unwrap_or(usize::MAX).max(1);
    let mut text = String::with_capacity(bytes);
    for i in 0..words {
        // the i-th word ends where i + 1 of `words` equal parts end
        let end = (bytes + 1) * (i + 1) / words - 1;
        while text.len() < end {
            text.push(char::from(b'a' + u8::try_from((i + text.len()) % 26).unwrap_or(0)));
        }
        if i + 1 < words {
            text.push(' ');
        }
    }
    text
}

/// The body of an answer of `output` words.
pub fn answer_body(id: &str, model: &str, prompt: Tokens, output: Tokens, created: u64) -> String {
    let words = usize::try_from(output.get()).unwrap_or(0);
    let content = "word ".repeat(words);
    json!({
        "id": format!("chatcmpl-{id}"),
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{
            "index": 0,
            "message": { "role": "assistant", "content": content.trim_end(), "refusal": null },
            "logprobs": null,
            "finish_reason": "stop",
        }],
        "usage": {
            "prompt_tokens": prompt.get(),
            "completion_tokens": output.get(),
            "total_tokens": prompt.get() + output.get(),
        },
    })
    .to_string()
}

/// Tokens an answer used, from the `usage` member of its body; `None` if there is none.
pub fn used_tokens(body: &[u8]) -> Option<Tokens> {
    #[derive(Deserialize)]
    struct Answer {
        usage: Option<Usage>,
    }
    #[derive(Deserialize)]
    struct Usage {
        total_tokens: u64,
    }
    serde_json::from_slice::<Answer>(body).ok()?.usage.map(|usage| Tokens::new(usage.total_tokens))
}

/// An error body in the API's form.
pub fn error_body(kind: &str, code: Option<&str>, param: Option<&str>, message: &str) -> String {
    json!({ "error": error_member(kind, code, param, message) }).to_string()
}

/// The `error` member by itself.
pub fn error_member(kind: &str, code: Option<&str>, param: Option<&str>, message: &str) -> Value {
    json!({ "message": message, "type": kind, "param": param, "code": code })
}

/// The body of a 429 for a spent token quota.
pub fn quota_error(model: &str, limits: &Limits, wanted: Tokens, retry_after: Duration) -> String {
    let message = format!(
        "Rate limit reached for {model} on tokens per min (TPM): Limit {}, Remaining {}, Requested {wanted}. \
         Please try again in {}.",
        limits.per_minute,
        limits.remaining,
        go_duration(retry_after),
    );
    error_body("tokens", Some("rate_limit_exceeded"), None, &message)
}

/// The rate-limit headers of every answer.
pub fn limit_headers(limits: &Limits) -> [(&'static str, String); 3] {
    [
        ("x-ratelimit-limit-tokens", limits.per_minute.to_string()),
        ("x-ratelimit-remaining-tokens", limits.remaining.to_string()),
        ("x-ratelimit-reset-tokens", go_duration(limits.reset)),
    ]
}

/// A duration the way these headers write it: `1s`, `6m0s`, `41.724s`, `12ms`.
pub fn go_duration(span: Duration) -> String {
    let millis = span.as_nanos().div_ceil(1_000_000);
    if millis < 1_000 {
        return format!("{millis}ms");
    }
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    let seconds = format!("{}.{:03}", rest / 1_000, rest % 1_000);
    let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
    if minutes == 0 { format!("{seconds}s") } else { format!("{minutes}m{seconds}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_have_exactly_the_words_and_bytes_asked_for() {
        for (words, bytes) in [(1, 2), (1, 100), (800, 6_000), (800, 1_600), (7, 6_000), (800, 40_000)] {
            let text = prompt(words, bytes);
            assert_eq!(text.len() as u64, bytes, "{words} words in {bytes} bytes");
            assert_eq!(text.split_ascii_whitespace().count() as u64, words);
        }
    }

    #[test]
    fn both_sides_count_what_was_asked() {
        let body = request_body("rehearsal", Tokens::new(800), 6_000, Tokens::new(400), "u");
        let request: Request<'_> = serde_json::from_str(&body).unwrap();
        assert_eq!(request.prompt_words(), Tokens::new(800));
        assert_eq!(request.max_output(), Some(Tokens::new(400)));
        let answer = answer_body("x", "rehearsal", Tokens::new(800), Tokens::new(400), 0);
        assert_eq!(used_tokens(answer.as_bytes()), Some(Tokens::new(1_200)));
    }

    #[test]
    fn durations_are_written_as_the_headers_write_them() {
        let show = |ms| go_duration(Duration::from_millis(ms));
        assert_eq!(show(12), "12ms");
        assert_eq!(show(1_000), "1s");
        assert_eq!(show(41_724), "41.724s");
        assert_eq!(show(360_000), "6m0s");
        assert_eq!(show(8_640), "8.64s");
    }
}
