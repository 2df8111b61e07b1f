//! OpenAI chat completions: the request, the answer, the errors and the rate-limit headers.
//!
//! Shapes as in the public API reference and the official Python client's types (2026).

use std::fmt;
use std::time::Duration;

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::provider::Limits;
use crate::units::Tokens;

/// The path of the API.
pub const PATH: &str = "/v1/chat/completions";

/// A request body, as far as the parties need it. Everything else passes through untouched.
#[derive(Debug, Deserialize)]
pub struct Request {
    /// Which model.
    pub model: Option<String>,
    /// The conversation.
    pub messages: Option<Vec<Message>>,
    /// The most tokens of the answer.
    #[serde(default, deserialize_with = "max_completion_tokens")]
    pub max_completion_tokens: Option<u64>,
    /// Its older name.
    #[serde(default, deserialize_with = "max_tokens")]
    pub max_tokens: Option<u64>,
    /// Who asks, for the provider's own records.
    pub user: Option<String>,
    /// Whether the answer is to be streamed.
    #[serde(default)]
    pub stream: Option<bool>,
}

/// One message of a conversation.
#[derive(Debug, Deserialize)]
pub struct Message {
    /// Its text: a string, or a list of parts.
    #[serde(default)]
    pub content: Content,
}

/// A message's content, of which nothing is kept but the number of blank-separated words in its texts. Images, audio
/// and the like count none.
#[derive(Debug, Default)]
pub struct Content {
    words: u64,
}

/// A part of a content that is a list.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Content,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = Content;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message's text or list of parts")
            }
            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content { words: text.split_ascii_whitespace().count() as u64 })
            }
            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
                let mut words = 0u64;
                while let Some(part) = parts.next_element::<Part>()? {
                    words = words.saturating_add(part.text.words);
                }
                Ok(Content { words })
            }
        }
        deserializer.deserialize_any(Words)
    }
}

/// Reads a limit, and names it in what goes wrong.
fn named<'de, D: Deserializer<'de>>(name: &str, deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::deserialize(deserializer).map_err(|error| Error::custom(format_args!("`{name}`: {error}")))
}

fn max_completion_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    named("max_completion_tokens", deserializer)
}

fn max_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    named("max_tokens", deserializer)
}

impl Request {
    /// Tokens of the prompt, counted as blank-separated words.
    pub fn prompt_words(&self) -> Tokens {
        let messages = self.messages.as_deref().unwrap_or_default();
        Tokens::new(messages.iter().fold(0, |sum, message| sum.saturating_add(message.content.words)))
    }

    /// The most tokens of the answer, by either of its names.
    pub fn max_output(&self) -> Option<Tokens> {
        self.max_completion_tokens.or(self.max_tokens).map(Tokens::new)
    }
}

/// The body of a request with the text `prompt`, asking for `max_output` tokens.
pub fn request_body(model: &str, prompt: &str, max_output: Tokens, user: &str) -> String {
    json!({
        "model": model,
        "messages": [{ "role": "user", "content": prompt }],
        "max_completion_tokens": max_output.get(),
        "user": user,
    })
    .to_string()
}

/// Exactly `words` words in exactly `bytes` bytes where that is possible (two bytes a word and more).
pub fn prompt(words: u64, bytes: u64) -> String {
    prompt_of(words, bytes, |nth, letters, text| {
        let letter = |at: usize| char::from(b'a' + u8::try_from((nth as usize + at) % 26).unwrap_or(0));
        let at = text.len();
        text.extend((at..at + letters).map(letter));
    })
}

/// The same of words that `write` appends, by their number and how many letters they shall have.
///
/// The i-th word ends where i of `words` equal parts end, so that the first n words of a text end there too.
pub fn prompt_of(words: u64, bytes: u64, mut write: impl FnMut(u64, usize, &mut String)) -> String {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    let words = usize::try_from(words).unwrap_or(usize::MAX).max(1);
    let mut text = String::with_capacity(bytes);
    for i in 0..words {
        // the i-th word ends where i + 1 of `words` equal parts end
        let end = (bytes + 1) * (i + 1) / words - 1;
        write(i as u64, end.saturating_sub(text.len()), &mut text);
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
        let body = request_body("rehearsal", &prompt(800, 6_000), Tokens::new(400), "u");
        let request: Request = serde_json::from_str(&body).unwrap();
        assert_eq!(request.prompt_words(), Tokens::new(800));
        assert_eq!(request.max_output(), Some(Tokens::new(400)));
        let answer = answer_body("x", "rehearsal", Tokens::new(800), Tokens::new(400), 0);
        assert_eq!(used_tokens(answer.as_bytes()), Some(Tokens::new(1_200)));
    }

    #[test]
    fn words_are_counted_in_every_form_of_a_message() {
        let words = |content: &str| {
            let body = format!(r#"{{"messages":[{{"content":{content}}},{{"role":"user"}}]}}"#);
            serde_json::from_str::<Request>(&body).map(|r| r.prompt_words().get()).ok()
        };
        assert_eq!(words(r#""a b\nc""#), Some(3));
        assert_eq!(words("null"), Some(0));
        assert_eq!(
            words(r#"[{"type":"text","text":"a b"},{"type":"image_url","image_url":{"url":"x y"}}]"#),
            Some(2)
        );
        assert_eq!(words("7"), None);
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
