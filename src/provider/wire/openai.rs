//! OpenAI chat completions: the request, the answer, the errors and the rate-limit headers.
//!
//! Shapes as in the public API reference and the official Python client's types (2026).

use std::borrow::Cow;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::api::{Api, Asked, Frames, Made, Said, Told, Trouble, event, words};
use super::content::{self, Message};
use super::sse::Event;
use crate::provider::Limits;
use crate::units::Tokens;

/// The path of the API.
pub const PATH: &str = "/v1/chat/completions";

/// OpenAI's chat completions.
#[derive(Debug)]
pub struct OpenAi;

impl Api for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn about(&self) -> &'static str {
        "OpenAI chat completions (/v1/chat/completions)"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn read(&self, body: &[u8]) -> Result<Asked, String> {
        let request: Request = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let older = request.max_completion_tokens.is_none() && request.max_tokens.is_some();
        let messages = request.messages.unwrap_or_default();
        Ok(Asked {
            has_messages: !messages.is_empty(),
            prompt: Tokens::new(content::words(&messages)),
            max_output: request.max_completion_tokens.or(request.max_tokens).map(Tokens::new),
            max_output_field: if older { "max_tokens" } else { "max_completion_tokens" },
            model: request.model,
            user: request.user,
            stream: request.stream == Some(true),
            stream_usage: request.stream_options.is_some_and(|options| options.include_usage == Some(true)),
        })
    }

    fn request(&self, model: &str, text: &str, max_output: Tokens, user: &str, stream: bool) -> String {
        let mut request = json!({
            "model": model,
            "messages": [{ "role": "user", "content": text }],
            "max_completion_tokens": max_output.get(),
            "user": user,
        });
        if stream {
            request["stream"] = json!(true);
            request["stream_options"] = json!({ "include_usage": true });
        }
        request.to_string()
    }

    fn answer(&self, made: &Made<'_>) -> String {
        json!({
            "id": format!("chatcmpl-{}", made.id),
            "object": "chat.completion",
            "created": made.unix.as_secs(),
            "model": made.model,
            "choices": [{
                "index": 0,
                "message": { "role": "assistant", "content": words(made.output), "refusal": null },
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": usage_member(made.prompt, made.output),
        })
        .to_string()
    }

    fn headers_of_answer(&self, made: &Made<'_>) -> Vec<(&'static str, String)> {
        let mut headers: Vec<_> = limit_headers(made.limits);
        headers.push(("openai-version", "2020-10-01".to_owned()));
        headers
    }

    fn has_text(&self, body: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Completion<'a> {
            #[serde(borrow)]
            choices: Vec<Choice<'a>>,
        }
        #[derive(Deserialize)]
        struct Choice<'a> {
            #[serde(borrow)]
            message: Message<'a>,
        }
        #[derive(Deserialize)]
        struct Message<'a> {
            #[serde(borrow)]
            content: Cow<'a, str>,
        }
        let completion = serde_json::from_slice::<Completion<'_>>(body);
        completion.is_ok_and(|c| c.choices.first().is_some_and(|choice| !choice.message.content.is_empty()))
    }

    fn used(&self, body: &[u8]) -> Option<Tokens> {
        #[derive(Deserialize)]
        struct Answer {
            usage: Option<Usage>,
        }
        serde_json::from_slice::<Answer>(body).ok()?.usage.map(|usage| Tokens::new(usage.total_tokens))
    }

    fn frames(&self, made: &Made<'_>, usage: bool) -> Frames {
        let chunk = |choices: Value, used: Value| {
            let mut chunk = json!({
                "id": format!("chatcmpl-{}", made.id),
                "object": "chat.completion.chunk",
                "created": made.unix.as_secs(),
                "model": made.model,
                "choices": choices,
            });
            if usage {
                chunk["usage"] = used;
            }
            event(None, &chunk)
        };
        let delta = |delta: Value, finish: Value| {
            chunk(
                json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": finish }]),
                Value::Null,
            )
        };
        let mut closing = delta(json!({}), json!("stop"));
        if usage {
            closing.push_str(&chunk(json!([]), usage_member(made.prompt, made.output)));
        }
        closing.push_str("data: [DONE]\n\n");
        let error = json!({ "error": {
            "message": "The server is overloaded or not ready yet.",
            "type": "server_error",
            "param": null,
            "code": null,
        } });
        Frames {
            opening: delta(json!({ "role": "assistant", "content": "", "refusal": null }), Value::Null),
            token: delta(json!({ "content": "word " }), Value::Null),
            closing,
            error: event(None, &error),
        }
    }

    fn said(&self, event: &Event<'_>) -> Said {
        #[derive(Deserialize)]
        struct Chunk<'a> {
            #[serde(borrow, default)]
            choices: Vec<Choice<'a>>,
            usage: Option<Usage>,
            error: Option<Value>,
        }
        #[derive(Deserialize)]
        struct Choice<'a> {
            #[serde(borrow)]
            delta: Option<Delta<'a>>,
            finish_reason: Option<IgnoredAny>,
        }
        #[derive(Deserialize)]
        struct Delta<'a> {
            #[serde(borrow)]
            content: Option<Cow<'a, str>>,
            tool_calls: Option<IgnoredAny>,
        }
        if event.data.starts_with("[DONE]") {
            return Said { end: true, ..Said::default() };
        }
        let chunk = serde_json::from_str::<Chunk<'_>>(event.data);
        if let Some(error) = chunk.as_ref().ok().and_then(|chunk| chunk.error.as_ref()) {
            return Said::error(error.get("message").and_then(Value::as_str).unwrap_or_default());
        }
        if event.name == "error" {
            return Said::error(event.data);
        }
        let Ok(chunk) = chunk else { return Said::default() };
        let speaks = |delta: &Delta<'_>| {
            delta.content.as_ref().is_some_and(|text| !text.is_empty()) || delta.tool_calls.is_some()
        };
        Said {
            content: chunk.choices.iter().any(|choice| choice.delta.as_ref().is_some_and(speaks)),
            used: chunk.usage.map(|usage| Tokens::new(usage.total_tokens)),
            finished: chunk.choices.iter().any(|choice| choice.finish_reason.is_some()),
            ..Said::default()
        }
    }

    fn out_of_time(&self) -> String {
        let body =
            error_body("timeout", None, None, "The time for this request was up before its answer ended.");
        format!("data: {body}\n\n")
    }

    fn error(&self, trouble: &Trouble<'_>, _: Duration) -> Told {
        let invalid = |param: Option<&str>, message: &str| {
            Told::new(400, error_body("invalid_request_error", None, param, message))
        };
        match *trouble {
            Trouble::NotJson(why) => {
                invalid(None, &format!("We could not parse the JSON body of your request: {why}"))
            }
            Trouble::Missing("model") => invalid(Some("model"), "you must provide a model parameter"),
            Trouble::Missing(field) => {
                invalid(Some(field), &format!("Missing required parameter: '{field}'."))
            }
            Trouble::Invalid(field, why) => invalid(Some(field), &format!("Invalid '{field}': {why}")),
            Trouble::Quota { model, wanted, limits, retry_after } => {
                let mut told =
                    Told::new(429, quota_error(model, limits, wanted, retry_after.unwrap_or(limits.reset)));
                told.headers = limit_headers(limits);
                if let Some(span) = retry_after {
                    let millis = span.as_nanos().div_ceil(1_000_000);
                    told.headers.push(("retry-after", millis.div_ceil(1_000).to_string()));
                    told.headers.push(("retry-after-ms", millis.to_string()));
                }
                told
            }
            Trouble::TooLarge { model, wanted, most } => {
                let message = format!(
                    "Request too large for {model} on tokens per min (TPM): Limit {most}, Requested {wanted}. The input \
                     or output tokens must be reduced in order to run successfully."
                );
                Told::new(429, error_body("tokens", Some("rate_limit_exceeded"), None, &message))
            }
            Trouble::UnknownKey => {
                let message = "Incorrect API key provided.";
                Told::new(401, error_body("invalid_request_error", Some("invalid_api_key"), None, message))
            }
            Trouble::Failing { status, retry_after } => {
                let (kind, code, message) = match status {
                    429 => (
                        "requests",
                        Some("rate_limit_exceeded"),
                        "Rate limit reached. Please try again later.",
                    ),
                    503 => (
                        "service_unavailable_error",
                        Some("server_is_overloaded"),
                        "The server is overloaded.",
                    ),
                    500.. => ("server_error", None, "The server had an error while processing your request."),
                    _ => ("invalid_request_error", None, "The request was refused."),
                };
                let mut told = Told::new(status, error_body(kind, code, None, message));
                let seconds = |span: Duration| span.as_nanos().div_ceil(1_000_000_000).to_string();
                told.headers.extend(retry_after.map(|span| ("retry-after", seconds(span))));
                told
            }
            Trouble::NotFound { method, path } => {
                let message = format!("Invalid URL ({method} {path})");
                Told::new(404, error_body("invalid_request_error", None, None, &message))
            }
        }
    }
}

/// A request body, as far as the parties need it. Everything else passes through untouched.
#[derive(Deserialize)]
struct Request {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    #[serde(default, deserialize_with = "max_completion_tokens")]
    max_completion_tokens: Option<u64>,
    /// Its older name.
    #[serde(default, deserialize_with = "max_tokens")]
    max_tokens: Option<u64>,
    user: Option<String>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

fn max_completion_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    super::named("max_completion_tokens", deserializer)
}

fn max_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    super::named("max_tokens", deserializer)
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

fn usage_member(prompt: Tokens, output: Tokens) -> Value {
    json!({
        "prompt_tokens": prompt.get(),
        "completion_tokens": output.get(),
        "total_tokens": prompt.get() + output.get(),
    })
}

#[derive(Deserialize)]
struct Usage {
    total_tokens: u64,
}

/// An error body in the API's form.
fn error_body(kind: &str, code: Option<&str>, param: Option<&str>, message: &str) -> String {
    json!({ "error": { "message": message, "type": kind, "param": param, "code": code } }).to_string()
}

/// The body of a 429 for a spent token quota.
fn quota_error(model: &str, limits: &Limits, wanted: Tokens, retry_after: Duration) -> String {
    if let Some(requests) = limits.requests.filter(|requests| requests.remaining == 0) {
        let message = format!(
            "Rate limit reached for {model} on requests per min (RPM): Limit {}, Requested 1. Please try again in {}.",
            requests.per_minute,
            go_duration(retry_after),
        );
        return error_body("requests", Some("rate_limit_exceeded"), None, &message);
    }
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
fn limit_headers(limits: &Limits) -> Vec<(&'static str, String)> {
    let mut headers = vec![
        ("x-ratelimit-limit-tokens", limits.per_minute.to_string()),
        ("x-ratelimit-remaining-tokens", limits.remaining.to_string()),
        ("x-ratelimit-reset-tokens", go_duration(limits.reset)),
    ];
    if let Some(requests) = limits.requests {
        headers.extend([
            ("x-ratelimit-limit-requests", requests.per_minute.to_string()),
            ("x-ratelimit-remaining-requests", requests.remaining.to_string()),
            ("x-ratelimit-reset-requests", go_duration(requests.reset)),
        ]);
    }
    headers
}

/// A duration the way these headers write it: `1s`, `6m0s`, `41.724s`, `12ms`.
fn go_duration(span: Duration) -> String {
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
    fn words_are_counted_in_every_form_of_a_message() {
        let words = |content: &str| {
            let body = format!(r#"{{"messages":[{{"content":{content}}},{{"role":"user"}}]}}"#);
            OpenAi.read(body.as_bytes()).map(|asked| asked.prompt.get()).ok()
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

    #[test]
    fn an_answer_is_usable_if_it_has_text() {
        for (body, good) in [
            (r#"{"choices":[{"message":{"role":"assistant","content":"word"}}],"usage":{}}"#, true),
            (r#"{"choices":[{"message":{"content":"a \"quoted\" one"}}]}"#, true),
            (r#"{"choices":[{"message":{"content":""}}]}"#, false),
            (r#"{"choices":[]}"#, false),
            (r#"{"error":{"message":"overloaded"}}"#, false),
            ("<html>", false),
            ("", false),
        ] {
            assert_eq!(OpenAi.has_text(body.as_bytes()), good, "{body}");
        }
    }
}
