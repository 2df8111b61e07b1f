//! Anthropic messages: the request, the answer, the errors and the rate-limit headers.
//!
//! Shapes as in the public API reference and the types of the official Python client (2026).

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use super::api::{Api, Asked, Frames, Made, Said, Told, Trouble, event, words};
use super::content::{self, Content, Message};
use super::headers::ANTHROPIC_VERSION;
use super::sse::Event;
use crate::provider::Limits;
use crate::units::Tokens;

/// The path of the API.
pub const PATH: &str = "/v1/messages";

/// Anthropic's messages.
#[derive(Debug)]
pub struct Anthropic;

/// A request body, as far as the parties need it. Everything else passes through untouched.
#[derive(Deserialize)]
struct Request {
    model: Option<String>,
    messages: Option<Vec<Message>>,
    #[serde(default)]
    system: Content,
    #[serde(default, deserialize_with = "max_tokens")]
    max_tokens: Option<u64>,
    metadata: Option<Metadata>,
    #[serde(default)]
    stream: Option<bool>,
}

#[derive(Deserialize)]
struct Metadata {
    user_id: Option<String>,
}

/// What an answer used.
#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    output_tokens: u64,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
}

impl Usage {
    fn total(&self) -> Tokens {
        let input = [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens];
        Tokens::new(input.into_iter().flatten().fold(self.output_tokens, u64::saturating_add))
    }
}

/// Reads the limit, and names it in what goes wrong.
fn max_tokens<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    super::named("max_tokens", deserializer)
}

impl Api for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn about(&self) -> &'static str {
        "Anthropic messages (/v1/messages)"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[(ANTHROPIC_VERSION, "2023-06-01")]
    }

    fn read(&self, body: &[u8]) -> Result<Asked, String> {
        let request: Request = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let messages = request.messages.unwrap_or_default();
        Ok(Asked {
            model: request.model,
            has_messages: !messages.is_empty(),
            prompt: Tokens::new(content::words(&messages).saturating_add(request.system.words)),
            max_output: request.max_tokens.map(Tokens::new),
            max_output_field: "max_tokens",
            user: request.metadata.and_then(|metadata| metadata.user_id),
            stream: request.stream == Some(true),
            // it always says so
            stream_usage: true,
        })
    }

    fn request(&self, model: &str, text: &str, max_output: Tokens, user: &str, stream: bool) -> String {
        let mut request = json!({
            "model": model,
            "max_tokens": max_output.get(),
            "messages": [{ "role": "user", "content": text }],
            "metadata": { "user_id": user },
        });
        if stream {
            request["stream"] = json!(true);
        }
        request.to_string()
    }

    fn answer(&self, made: &Made<'_>) -> String {
        json!({
            "id": format!("msg_{}", made.id),
            "type": "message",
            "role": "assistant",
            "model": made.model,
            "content": [{ "type": "text", "text": words(made.output) }],
            "stop_reason": "end_turn",
            "stop_sequence": null,
            "usage": {
                "input_tokens": made.prompt.get(),
                "output_tokens": made.output.get(),
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "service_tier": "standard",
            },
        })
        .to_string()
    }

    fn headers_of_answer(&self, made: &Made<'_>) -> Vec<(&'static str, String)> {
        let mut headers = limit_headers(made.limits, made.unix);
        headers.push(("request-id", format!("req_{}", made.id)));
        headers
    }

    fn has_text(&self, body: &[u8]) -> bool {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            content: Vec<Block<'a>>,
        }
        #[derive(Deserialize)]
        struct Block<'a> {
            #[serde(borrow, default)]
            text: Cow<'a, str>,
        }
        let answer = serde_json::from_slice::<Answer<'_>>(body);
        answer.is_ok_and(|answer| answer.content.iter().any(|block| !block.text.is_empty()))
    }

    fn used(&self, body: &[u8]) -> Option<Tokens> {
        #[derive(Deserialize)]
        struct Answer {
            usage: Option<Usage>,
        }
        Some(serde_json::from_slice::<Answer>(body).ok()?.usage?.total())
    }

    fn frames(&self, made: &Made<'_>, _: bool) -> Frames {
        let part = |name: &str, mut data: Value| {
            data["type"] = json!(name);
            event(Some(name), &data)
        };
        let message = json!({ "message": {
            "id": format!("msg_{}", made.id),
            "type": "message",
            "role": "assistant",
            "model": made.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": { "input_tokens": made.prompt.get(), "output_tokens": 1 },
        } });
        let block = json!({ "index": 0, "content_block": { "type": "text", "text": "" } });
        let opening =
            [part("message_start", message), part("content_block_start", block), part("ping", json!({}))];
        let end = json!({
            "delta": { "stop_reason": "end_turn", "stop_sequence": null },
            "usage": { "input_tokens": made.prompt.get(), "output_tokens": made.output.get() },
        });
        let closing = [
            part("content_block_stop", json!({ "index": 0 })),
            part("message_delta", end),
            part("message_stop", json!({})),
        ];
        let text = json!({ "index": 0, "delta": { "type": "text_delta", "text": "word " } });
        let error = json!({ "error": { "type": "overloaded_error", "message": "Overloaded" } });
        Frames {
            opening: opening.concat(),
            token: part("content_block_delta", text),
            closing: closing.concat(),
            error: part("error", error),
        }
    }

    fn said(&self, event: &Event<'_>) -> Said {
        #[derive(Deserialize)]
        struct Part<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            delta: Option<Delta<'a>>,
            usage: Option<Usage>,
            error: Option<Value>,
        }
        #[derive(Deserialize)]
        struct Delta<'a> {
            stop_reason: Option<IgnoredAny>,
            #[serde(borrow)]
            text: Option<Cow<'a, str>>,
        }
        let Ok(part) = serde_json::from_str::<Part<'_>>(event.data) else {
            return if event.name == "error" { Said::error(event.data) } else { Said::default() };
        };
        let nothing = Said::default();
        match &*part.kind {
            // a tool's input is content too
            "content_block_delta" => {
                let text = part.delta.and_then(|delta| delta.text);
                Said { content: text.is_none_or(|text| !text.is_empty()), ..nothing }
            }
            "message_delta" => Said {
                used: part.usage.map(|usage| usage.total()),
                finished: part.delta.is_some_and(|delta| delta.stop_reason.is_some()),
                ..nothing
            },
            "message_stop" => Said { end: true, ..nothing },
            "error" => {
                let message =
                    part.error.as_ref().and_then(|error| error.get("message")).and_then(Value::as_str);
                Said::error(message.unwrap_or_default())
            }
            _ => nothing,
        }
    }

    fn out_of_time(&self) -> String {
        let message = "The time for this request was up before its answer ended.";
        let error = json!({ "type": "error", "error": { "type": "timeout_error", "message": message } });
        event(Some("error"), &error)
    }

    fn error(&self, trouble: &Trouble<'_>, unix: Duration) -> Told {
        let invalid = |message: &str| Told::new(400, body("invalid_request_error", message));
        match trouble {
            Trouble::NotJson(why) => invalid(&format!("The request body is not valid JSON: {why}")),
            Trouble::Missing(field) => invalid(&format!("{field}: Field required")),
            Trouble::Invalid(field, why) => invalid(&format!("{field}: {why}")),
            Trouble::Quota { wanted, limits, retry_after, .. } => {
                let of_requests = limits.requests.filter(|requests| requests.remaining == 0).map(|requests| {
                    let most = requests.per_minute;
                    format!("This request would exceed your organization's rate limit of {most} requests per minute.")
                });
                let of_tokens = || {
                    format!(
                        "This request would exceed your organization's rate limit of {} tokens per minute: {wanted} \
                     requested, {} left. Reduce the prompt length or the maximum tokens requested, or try again later.",
                        limits.per_minute, limits.remaining
                    )
                };
                let message = of_requests.unwrap_or_else(of_tokens);
                let mut told = Told::new(429, body("rate_limit_error", &message));
                told.headers = limit_headers(limits, unix);
                told.headers.extend(retry_after.map(|span| ("retry-after", whole_seconds(span).to_string())));
                told
            }
            Trouble::TooLarge { wanted, most, .. } => {
                let message = format!(
                    "This request would exceed your organization's rate limit: {wanted} tokens requested, and at most \
                     {most} can ever be granted at once. Reduce the prompt length or the maximum tokens requested."
                );
                Told::new(429, body("rate_limit_error", &message))
            }
            Trouble::UnknownKey => Told::new(401, body("authentication_error", "invalid x-api-key")),
            Trouble::Failing { status, retry_after } => {
                let (kind, message) = match status {
                    429 => {
                        ("rate_limit_error", "This request would exceed your rate limit. Try again later.")
                    }
                    504 => ("timeout_error", "The request timed out."),
                    529 => ("overloaded_error", "Overloaded"),
                    500.. => ("api_error", "Internal server error"),
                    _ => ("invalid_request_error", "The request was refused."),
                };
                let mut told = Told::new(*status, body(kind, message));
                told.headers.extend(retry_after.map(|span| ("retry-after", whole_seconds(span).to_string())));
                told
            }
            Trouble::NotFound { method, path } => {
                Told::new(404, body("not_found_error", &format!("Not found: {method} {path}")))
            }
        }
    }
}

fn body(kind: &str, message: &str) -> String {
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": null }).to_string()
}

/// The rate-limit headers of every answer. Instants are in RFC 3339, in whole seconds, rounded up.
fn limit_headers(limits: &Limits, unix: Duration) -> Vec<(&'static str, String)> {
    let instant = |reset: Duration| {
        let at = i64::try_from(whole_seconds(unix.saturating_add(reset))).ok()?;
        Some(DateTime::from_timestamp(at, 0)?.to_rfc3339_opts(SecondsFormat::Secs, true))
    };
    let mut headers = vec![
        ("anthropic-ratelimit-tokens-limit", limits.per_minute.get().to_string()),
        ("anthropic-ratelimit-tokens-remaining", limits.remaining.get().to_string()),
    ];
    headers.extend(instant(limits.reset).map(|at| ("anthropic-ratelimit-tokens-reset", at)));
    if let Some(requests) = limits.requests {
        headers.push(("anthropic-ratelimit-requests-limit", requests.per_minute.to_string()));
        headers.push(("anthropic-ratelimit-requests-remaining", requests.remaining.to_string()));
        headers.extend(instant(requests.reset).map(|at| ("anthropic-ratelimit-requests-reset", at)));
    }
    headers
}

fn whole_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_in_the_system_prompt_and_in_every_block() {
        let asked = |rest: &str| {
            let body = format!(r#"{{"model":"m","max_tokens":5,{rest}}}"#);
            Anthropic.read(body.as_bytes()).map(|asked| asked.prompt.get()).ok()
        };
        assert_eq!(asked(r#""messages":[{"role":"user","content":"a b"}],"system":"c d e""#), Some(5));
        let blocks = r#"[{"type":"text","text":"a b"},{"type":"image","source":{"data":"x y"}}]"#;
        assert_eq!(
            asked(&format!(r#""messages":[{{"role":"user","content":{blocks}}}],"system":{blocks}"#)),
            Some(4)
        );
        assert_eq!(asked(r#""messages":[{"content":7}]"#), None);
    }

    #[test]
    fn an_instant_of_reset_is_in_rfc_3339() {
        let limits = Limits {
            per_minute: Tokens::new(50),
            remaining: Tokens::ZERO,
            reset: Duration::from_millis(1_500),
            requests: None,
        };
        let headers = limit_headers(&limits, Duration::from_millis(1_772_049_755_100));
        assert_eq!(headers[2], ("anthropic-ratelimit-tokens-reset", "2026-02-25T20:02:37Z".to_owned()));
    }

    #[test]
    fn cached_tokens_are_used_too_and_no_number_overflows() {
        let used =
            |usage: &str| Anthropic.used(format!(r#"{{"usage":{usage}}}"#).as_bytes()).map(Tokens::get);
        assert_eq!(used(r#"{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":4}"#), Some(7));
        assert_eq!(used(r#"{"input_tokens":18446744073709551615,"output_tokens":2}"#), Some(u64::MAX));
        assert_eq!(
            (used("null"), used(r#"{"input_tokens":1}"#)),
            (None, None),
            "an answer without output is none"
        );
    }
}
