//! How a refusal is written: a problem document (RFC 9457) that names its `reason`, with an `error` member in the form
//! of the API the caller speaks, so that its client can read it too.

use std::time::Duration;

use bytes::Bytes as Buffer;
use http::{HeaderMap, HeaderValue, Response, header};
use serde::Serialize;

use super::body::Body;
use super::refusal::{Kind, Refusal};
use crate::admission::Limit;
use crate::admission::faults::Wait;
use crate::provider::wire::headers as names;

/// Where Anthropic's API answers.
const MESSAGES: &str = "/v1/messages";

/// The longest request id that is repeated to a caller.
const LONGEST_ID: usize = 128;

/// Which API a caller speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// OpenAI's, and everyone else's.
    OpenAi,
    /// Anthropic's, which wants a request's id repeated.
    Anthropic { request: Option<Box<str>> },
}

/// The document. RFC 9457 and Anthropic's API both claim the member `type`: the first for a URI, the second for the
/// word `error`. The content type says that this is a problem, so the URI stands there; Anthropic's clients look for
/// the status and for `error`.
#[derive(Serialize)]
struct Document<'a> {
    #[serde(rename = "type")]
    type_uri: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    /// Names of the limits that were met (draft-ietf-httpapi-ratelimit-headers).
    #[serde(rename = "violated-policies", skip_serializing_if = "Option::is_none")]
    violated: Option<[&'a str; 1]>,
    error: ErrorMember<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ErrorMember<'a> {
    OpenAi {
        message: &'a str,
        #[serde(rename = "type")]
        kind: &'a str,
        param: Option<&'a str>,
        code: &'a str,
    },
    Anthropic {
        #[serde(rename = "type")]
        kind: &'a str,
        message: &'a str,
    },
}

impl Dialect {
    /// What a request with these `headers` at `path` speaks.
    pub(super) fn of(headers: &HeaderMap, path: &str) -> Self {
        if !path.ends_with(MESSAGES) && !headers.contains_key(names::ANTHROPIC_VERSION) {
            return Self::OpenAi;
        }
        let id = headers.get(names::REQUEST_ID).and_then(|id| id.to_str().ok());
        Self::Anthropic { request: id.filter(|id| id.len() <= LONGEST_ID).map(Into::into) }
    }
}

impl Refusal {
    /// The answer to a caller who speaks `dialect`.
    pub(crate) fn response(&self, dialect: &Dialect) -> Response<Body> {
        let Kind { status, type_uri, title, reason, openai: (kind, code), anthropic } = self.kind();
        let detail = self.detail();
        let (error, request_id) = match dialect {
            Dialect::OpenAi => {
                let param = if let Self::Malformed { param, .. } = self { *param } else { None };
                (ErrorMember::OpenAi { message: &detail, kind, param, code }, None)
            }
            Dialect::Anthropic { request } => {
                (ErrorMember::Anthropic { kind: anthropic, message: &detail }, request.as_deref())
            }
        };
        let (tenant, violated) = match self {
            Self::Throttled { tenant, limit, .. } => (Some(&**tenant), Some([policy(*limit)])),
            _ => (None, None),
        };
        let status_code = status.as_u16();
        let document = Document {
            type_uri,
            title,
            status: status_code,
            detail: &detail,
            reason,
            tenant,
            violated,
            error,
            request_id,
        };
        let shapeless = self.told().is_some_and(|told| told.shapeless);
        let (kind, text) = if shapeless {
            ("text/plain", format!("{detail}\n").into_bytes())
        } else {
            let mut text = Vec::with_capacity(512);
            serde_json::to_writer(&mut text, &document).expect("texts and numbers always make a document");
            ("application/problem+json", text)
        };
        let mut answer = Response::new(Body::from(Buffer::from(text)));
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let wait = match self.wait() {
            Wait::Nothing => None,
            Wait::After(span) => Some(whole_seconds(span).into()),
            Wait::Nonsense => Some(HeaderValue::from_static(Wait::NONSENSE)),
        };
        if let Some(wait) = wait {
            headers.insert(header::RETRY_AFTER, wait);
        }
        if let Some(again) = self.told().and_then(|told| told.should_retry) {
            headers
                .insert(names::SHOULD_RETRY, HeaderValue::from_static(if again { "true" } else { "false" }));
        }
        if let Self::Method { allowed } = self {
            headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
        }
        answer
    }
}

/// A limit's name in `violated-policies`.
const fn policy(limit: Limit) -> &'static str {
    match limit {
        Limit::Tokens => "tokens",
        Limit::TenantTokens => "tenant_tokens",
        Limit::TenantRequests => "tenant_requests",
    }
}

/// Whole seconds, rounded up, at least one: what `Retry-After` can say (RFC 9110, 10.2.3).
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::Value;

    use super::*;
    use crate::admission::Expiry;
    use crate::admission::faults::Told;
    use crate::units::{Bytes, Tokens};

    /// Status, `Retry-After` and document of an answer. Its body is there at once: nothing is waited for.
    fn read_as(refusal: &Refusal, dialect: &Dialect) -> (u16, Option<String>, Value) {
        let answer = refusal.response(dialect);
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/problem+json");
        let retry = answer.headers().get(header::RETRY_AFTER).map(|v| v.to_str().unwrap().to_owned());
        let status = answer.status().as_u16();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        (status, retry, serde_json::from_slice(&body).unwrap())
    }

    fn read(refusal: &Refusal) -> (u16, Option<String>, Value) {
        read_as(refusal, &Dialect::OpenAi)
    }

    fn throttled(limit: Limit) -> Refusal {
        let told = Told::plainly(Some(Duration::from_millis(2_001)));
        Refusal::Throttled { tenant: "re\u{1b}tail".into(), limit, told }
    }

    /// One of each.
    fn all() -> Vec<Refusal> {
        let told = Told::plainly(Some(Duration::from_secs(3)));
        let expired = [Expiry::Deadline, Expiry::Upstream, Expiry::Delay, Expiry::Evicted];
        let mut all: Vec<_> = expired.map(|why| Refusal::Expired { why, told }).into();
        all.extend([
            Refusal::Shed { told },
            throttled(Limit::TenantTokens),
            Refusal::NeverFits { hold: Tokens::new(9_000), most: Tokens::new(7_500), limit: Limit::Tokens },
            Refusal::Running,
            Refusal::Conflict,
            Refusal::Stopping,
            Refusal::Malformed { param: Some("max_tokens"), message: "\u{1b}[31m".into() },
            Refusal::TooLarge { limit: Bytes::new(7) },
            Refusal::SlowBody,
            Refusal::Timeout,
            Refusal::Upstream { message: "gone".into() },
            Refusal::NotFound,
            Refusal::Method { allowed: "POST" },
        ]);
        all
    }

    #[test]
    fn a_refusal_for_scarcity_says_when_to_come_back_in_whole_seconds() {
        let shed = |ms| read(&Refusal::Shed { told: Told::plainly(Some(Duration::from_millis(ms))) });
        assert_eq!(shed(11_001).1.as_deref(), Some("12"));
        assert_eq!(shed(11_000).1.as_deref(), Some("11"));
        assert_eq!(shed(0).1.as_deref(), Some("1"), "SDKs take 0 for `at once`");
        let (status, retry, document) = read(&Refusal::Shed { told: Told::plainly(None) });
        assert_eq!((status, retry), (503, None));
        assert_eq!(document["reason"], "shed");
        assert!(document["type"].as_str().unwrap().ends_with("#temporary-reduced-capacity"));
        assert_eq!(document["error"]["code"], "server_is_overloaded");
        assert_eq!(whole_seconds(Duration::MAX), u64::MAX);
    }

    #[test]
    fn a_wait_that_nobody_keeps_says_not_to_try_again() {
        let sign = |should_retry| {
            let told = Told { should_retry, ..Told::plainly(Some(Duration::from_secs(61))) };
            let answer = Refusal::Shed { told }.response(&Dialect::OpenAi);
            answer.headers().get(names::SHOULD_RETRY).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(sign(Some(false)).as_deref(), Some("false"));
        assert_eq!(sign(None), None);
    }

    #[test]
    fn entitlement_names_its_tenant_and_its_limit() {
        let (status, retry, document) = read(&throttled(Limit::TenantRequests));
        assert_eq!((status, retry.as_deref()), (429, Some("3")));
        assert!(document["type"].as_str().unwrap().ends_with("#quota-exceeded"));
        assert_eq!((&document["reason"], &document["tenant"]), (&"throttled".into(), &"re\u{1b}tail".into()));
        assert_eq!(document["violated-policies"], serde_json::json!(["tenant_requests"]));
        assert_eq!(document["error"]["type"], "requests");
        assert!(!document["detail"].as_str().unwrap().contains('\u{1b}'));
        assert_eq!(read(&throttled(Limit::TenantTokens)).2["error"]["type"], "tokens");
    }

    #[test]
    fn what_can_never_fit_is_told_the_arithmetic_and_no_time() {
        let hold = Refusal::NeverFits {
            hold: Tokens::new(9_000),
            most: Tokens::new(7_500),
            limit: Limit::TenantTokens,
        };
        let (status, retry, document) = read(&hold);
        assert_eq!((status, retry), (413, None));
        assert_eq!(document["reason"], "never_fits");
        let detail = document["detail"].as_str().unwrap();
        assert!(detail.contains("9000") && detail.contains("7500") && detail.contains("tenant"), "{detail}");
    }

    #[test]
    fn the_document_repeats_its_status_and_the_field_at_fault() {
        for refusal in all() {
            let (status, retry, document) = read(&refusal);
            assert_eq!(document["status"], status);
            assert_eq!(document["error"]["message"], document["detail"]);
            assert_eq!(document["error"]["param"] == "max_tokens", status == 400);
            assert_eq!(document.get("request_id"), None);
            let comes_back = ["shed", "expired", "throttled", "duplicate_active"];
            assert_eq!(
                retry.is_some(),
                comes_back.contains(&document["reason"].as_str().unwrap()),
                "{refusal:?}"
            );
        }
    }

    #[test]
    fn callers_of_the_other_api_find_its_error() {
        let headers = |name: &'static str| {
            HeaderMap::from_iter([(name.parse().unwrap(), HeaderValue::from_static("x"))])
        };
        assert_eq!(Dialect::of(&headers("x-request-id"), "/v1/chat/completions"), Dialect::OpenAi);
        assert_eq!(Dialect::of(&headers("anthropic-version"), "/any"), Dialect::Anthropic { request: None });
        let dialect = Dialect::of(&headers("x-request-id"), "/v1/messages");
        assert_eq!(dialect, Dialect::Anthropic { request: Some("x".into()) });
        let kinds = [
            (413, "invalid_request_error"),
            (404, "not_found_error"),
            (429, "rate_limit_error"),
            (503, "overloaded_error"),
            (504, "timeout_error"),
            (502, "api_error"),
        ];
        for refusal in all() {
            let (status, _, document) = read_as(&refusal, &dialect);
            let kind =
                kinds.iter().find(|(s, _)| *s == status).map_or("invalid_request_error", |(_, kind)| *kind);
            assert_eq!(document["error"], serde_json::json!({ "type": kind, "message": document["detail"] }));
            assert_eq!(document["request_id"], "x");
        }
    }
}
