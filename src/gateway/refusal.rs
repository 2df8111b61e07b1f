use std::time::Duration;

use bytes::Bytes as Buffer;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::json;

use super::body::Body;
use super::metrics::Outcome;
use crate::admission::Expiry;
use crate::provider::wire::openai;
use crate::units::{Bytes, Tokens};

/// Why a request is not answered by the provider. Each becomes a problem document (RFC 9457) that names its `reason`
/// and carries an `error` member in the API's form, so that its clients can read it too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Refused at once for scarcity.
    Shed { retry_after: Option<Duration> },
    /// It waited in vain.
    Expired { why: Expiry, retry_after: Option<Duration> },
    /// It could never fit.
    NeverFits { hold: Tokens, most: Tokens },
    /// The gateway is going down.
    Stopping,
    /// The request makes no sense; `param` is the field at fault.
    Malformed { param: Option<&'static str>, message: String },
    /// Its body is larger than is read.
    TooLarge { limit: Bytes },
    /// Its body did not come in time.
    SlowBody,
    /// The provider's answer did not come in time.
    Timeout,
    /// The provider could not be reached, or broke off.
    Upstream { message: String },
    /// There is nothing at this path.
    NotFound,
    /// Something is, but not for this method.
    Method { allowed: &'static str },
}

/// The parts of a problem document that stand fast for each kind of refusal.
struct Problem {
    status: StatusCode,
    title: &'static str,
    reason: &'static str,
    /// Type and code of the `error` member.
    error: (&'static str, &'static str),
}

/// The registered problem type for a lack of capacity that passes.
const REDUCED: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
const OVERLOADED: (&str, &str) = ("service_unavailable_error", "server_is_overloaded");

impl Refusal {
    /// What it is counted as.
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Shed { .. } => Outcome::Shed,
            Self::Expired { .. } => Outcome::Expired,
            Self::NeverFits { .. } => Outcome::NeverFits,
            Self::Stopping => Outcome::Stopping,
            Self::Malformed { .. } | Self::TooLarge { .. } | Self::SlowBody => Outcome::Malformed,
            Self::Timeout | Self::Upstream { .. } => Outcome::Failed,
            Self::NotFound | Self::Method { .. } => Outcome::NotFound,
        }
    }

    /// The answer.
    pub(crate) fn response(&self) -> Response<Body> {
        let Problem { status, title, reason, error: (kind, code) } = self.problem();
        let detail = self.detail();
        let param = if let Self::Malformed { param, .. } = self { *param } else { None };
        let lasting = !matches!(self, Self::Shed { .. } | Self::Expired { .. });
        let document = json!({
            "type": if lasting { "about:blank" } else { REDUCED },
            "title": title,
            "status": status.as_u16(),
            "detail": detail,
            "reason": reason,
            "error": openai::error_member(kind, Some(code), param, &detail),
        });
        let mut answer = Response::new(Body::from(Buffer::from(document.to_string())));
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Self::Shed { retry_after: Some(span) } | Self::Expired { retry_after: Some(span), .. } = self {
            headers.insert(header::RETRY_AFTER, whole_seconds(*span).into());
        }
        if let Self::Method { allowed } = self {
            headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
        }
        answer
    }

    const fn problem(&self) -> Problem {
        let (status, title, reason, error) = match self {
            Self::Shed { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "Refused for lack of capacity", "shed", OVERLOADED)
            }
            Self::Expired { .. } => {
                (StatusCode::SERVICE_UNAVAILABLE, "Waited in vain", "expired", OVERLOADED)
            }
            Self::NeverFits { .. } => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "Larger than the budget",
                "never_fits",
                invalid("request_too_large"),
            ),
            Self::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "Going down", "stopping", OVERLOADED),
            Self::Malformed { .. } => {
                (StatusCode::BAD_REQUEST, "Bad request", "malformed", invalid("invalid_value"))
            }
            Self::TooLarge { .. } => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "Body too large",
                "body_too_large",
                invalid("request_too_large"),
            ),
            Self::SlowBody => {
                (StatusCode::REQUEST_TIMEOUT, "Body too slow", "slow_body", invalid("request_timeout"))
            }
            Self::Timeout => {
                (StatusCode::GATEWAY_TIMEOUT, "Provider too slow", "timeout", ("server_error", "timeout"))
            }
            Self::Upstream { .. } => {
                (StatusCode::BAD_GATEWAY, "Provider failed", "upstream", ("server_error", "upstream_failed"))
            }
            Self::NotFound => (StatusCode::NOT_FOUND, "Not found", "not_found", invalid("unknown_url")),
            Self::Method { .. } => (
                StatusCode::METHOD_NOT_ALLOWED,
                "Method not allowed",
                "method_not_allowed",
                invalid("method_not_supported"),
            ),
        };
        Problem { status, title, reason, error }
    }

    fn detail(&self) -> String {
        match self {
            Self::Shed { .. } => {
                "the queue is at its bound: an answer could not be ready before the deadline".into()
            }
            Self::Expired { why: Expiry::Deadline, .. } => {
                "the request waited, and its deadline can no longer be met".into()
            }
            Self::Expired { why: Expiry::Upstream, .. } => {
                "the provider refused the request, and its deadline allows no other try".into()
            }
            Self::NeverFits { hold, most } => format!(
                "the request reserves {hold} tokens (prompt and the most it may answer), but at most {most} can ever \
                 be granted at once: shorten the prompt or lower max_completion_tokens"
            ),
            Self::Stopping => "the gateway is going down and takes no new work".into(),
            Self::Malformed { message, .. } | Self::Upstream { message } => message.clone(),
            Self::TooLarge { limit } => {
                format!("the body is larger than the {} bytes that are read", limit.get())
            }
            Self::SlowBody => "the body was not whole before the deadline".into(),
            Self::Timeout => "the provider's answer was not there before the deadline".into(),
            Self::NotFound => "there is nothing at this path".into(),
            Self::Method { allowed } => format!("this path answers {allowed} only"),
        }
    }
}

const fn invalid(code: &'static str) -> (&'static str, &'static str) {
    ("invalid_request_error", code)
}

/// Whole seconds, rounded up, at least one: what `Retry-After` can say (RFC 9110, 10.2.3).
fn whole_seconds(span: Duration) -> u64 {
    (span.as_secs() + u64::from(span.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    /// Status, `Retry-After` and document of an answer. Its body is there at once: nothing is waited for.
    fn read(refusal: &Refusal) -> (u16, Option<String>, serde_json::Value) {
        let answer = refusal.response();
        assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/problem+json");
        let retry = answer.headers().get(header::RETRY_AFTER).map(|v| v.to_str().unwrap().to_owned());
        let status = answer.status().as_u16();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let body = runtime.block_on(answer.into_body().collect()).unwrap().to_bytes();
        (status, retry, serde_json::from_slice(&body).unwrap())
    }

    #[test]
    fn a_refusal_for_scarcity_says_when_to_come_back_in_whole_seconds() {
        let shed = |ms| read(&Refusal::Shed { retry_after: Some(Duration::from_millis(ms)) });
        assert_eq!(shed(11_001).1.as_deref(), Some("12"));
        assert_eq!(shed(11_000).1.as_deref(), Some("11"));
        assert_eq!(shed(0).1.as_deref(), Some("1"), "SDKs take 0 for `at once`");
        let (status, retry, document) = read(&Refusal::Shed { retry_after: None });
        assert_eq!((status, retry), (503, None));
        assert_eq!(document["reason"], "shed");
        assert_eq!(document["type"], REDUCED);
        assert_eq!(document["error"]["code"], "server_is_overloaded");
        let expired = Refusal::Expired { why: Expiry::Upstream, retry_after: Some(Duration::from_secs(3)) };
        let (status, retry, document) = read(&expired);
        assert_eq!((status, retry.as_deref()), (503, Some("3")));
        assert_eq!(document["reason"], "expired");
    }

    #[test]
    fn what_can_never_fit_is_told_the_arithmetic_and_no_time() {
        let (status, retry, document) =
            read(&Refusal::NeverFits { hold: Tokens::new(9_000), most: Tokens::new(7_500) });
        assert_eq!((status, retry), (413, None));
        assert_eq!(document["reason"], "never_fits");
        let detail = document["detail"].as_str().unwrap();
        assert!(detail.contains("9000") && detail.contains("7500"), "{detail}");
    }

    #[test]
    fn the_document_repeats_its_status_and_the_field_at_fault() {
        let fault = Refusal::Malformed { param: Some("max_tokens"), message: "\u{1b}[31m".into() };
        for refusal in [fault, Refusal::Timeout, Refusal::NotFound, Refusal::Method { allowed: "POST" }] {
            let (status, _, document) = read(&refusal);
            assert_eq!(document["status"], status);
            assert_eq!(document["error"]["message"], document["detail"]);
            assert_eq!(document["error"]["param"] == "max_tokens", status == 400);
        }
    }
}
