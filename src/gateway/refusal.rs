use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;

use super::metrics::Outcome;
use crate::admission::faults::{Told, Wait};
use crate::admission::{Expiry, Limit};
use crate::units::{Bytes, Tokens};

/// Why a request is not answered by the provider. How it is written is [`super::problem`]'s part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Refused at once for scarcity.
    Shed { told: Told },
    /// Refused at once for entitlement: its tenant is over a limit of its own.
    Throttled { tenant: Rc<str>, limit: Limit, told: Told },
    /// It waited in vain.
    Expired { why: Expiry, told: Told },
    /// It could never fit.
    NeverFits { hold: Tokens, most: Tokens, limit: Limit },
    /// The same operation already runs.
    Running,
    /// Its idempotency key was used with another body.
    Conflict,
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
    /// The provider could not be reached, did not serve it, or broke off.
    Upstream { message: String },
    /// There is nothing at this path.
    NotFound,
    /// Something is, but not for this method.
    Method { allowed: &'static str },
}

/// What stands fast for each kind of refusal.
pub(super) struct Kind {
    pub(super) status: StatusCode,
    /// The problem type (RFC 9457).
    pub(super) type_uri: &'static str,
    pub(super) title: &'static str,
    pub(super) reason: &'static str,
    /// Type and code of OpenAI's `error` member.
    pub(super) openai: (&'static str, &'static str),
    /// Type of Anthropic's.
    pub(super) anthropic: &'static str,
}

/// The registered problem types for a lack of capacity that passes, and for a spent quota.
const REDUCED: &str = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
const QUOTA: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const BLANK: &str = "about:blank";

const OVERLOADED: (&str, &str) = ("service_unavailable_error", "server_is_overloaded");

/// How soon it is worth asking again for an operation that runs: nobody knows, and this is the least that can be said.
const RUNNING: Duration = Duration::from_secs(1);

impl Refusal {
    /// A failure of the provider's, or on the way to it.
    pub(crate) fn upstream(message: &str) -> Self {
        Self::Upstream { message: message.to_owned() }
    }

    /// What it is counted as.
    pub(crate) const fn outcome(&self) -> Outcome {
        match self {
            Self::Shed { .. } => Outcome::Shed,
            Self::Throttled { .. } => Outcome::Throttled,
            Self::Expired { .. } => Outcome::Expired,
            Self::NeverFits { .. } => Outcome::NeverFits,
            Self::Running => Outcome::DuplicateActive,
            Self::Conflict => Outcome::Conflict,
            Self::Stopping => Outcome::Stopping,
            Self::Malformed { .. } | Self::TooLarge { .. } | Self::SlowBody => Outcome::Malformed,
            Self::Timeout | Self::Upstream { .. } => Outcome::Failed,
            Self::NotFound | Self::Method { .. } => Outcome::NotFound,
        }
    }

    /// How the caller is told, where the machine said so.
    pub(super) const fn told(&self) -> Option<&Told> {
        match self {
            Self::Shed { told } | Self::Expired { told, .. } | Self::Throttled { told, .. } => Some(told),
            _ => None,
        }
    }

    /// When to come back, if ever.
    pub(super) const fn wait(&self) -> Wait {
        match (self.told(), self) {
            (Some(told), _) => told.wait,
            (None, Self::Running) => Wait::After(RUNNING),
            (None, _) => Wait::Nothing,
        }
    }

    /// Whether the request is sent to the provider although it is refused.
    pub(crate) const fn costs(&self) -> bool {
        match self {
            Self::Shed { told } | Self::Throttled { told, .. } => told.costly,
            _ => false,
        }
    }

    /// What stands fast; scarcity and entitlement have each other's status where they are mixed up.
    pub(super) const fn kind(&self) -> Kind {
        let kind = self.designed();
        let mixed = matches!(self.told(), Some(told) if told.mixed);
        match kind.status {
            StatusCode::SERVICE_UNAVAILABLE if mixed => {
                Kind { status: StatusCode::TOO_MANY_REQUESTS, ..kind }
            }
            StatusCode::TOO_MANY_REQUESTS if mixed => {
                Kind { status: StatusCode::SERVICE_UNAVAILABLE, ..kind }
            }
            _ => kind,
        }
    }

    const fn designed(&self) -> Kind {
        use StatusCode as S;
        match self {
            Self::Shed { .. } => scarce("Refused for lack of capacity", "shed"),
            Self::Expired { .. } => scarce("Waited in vain", "expired"),
            Self::Throttled { limit, .. } => Kind {
                status: S::TOO_MANY_REQUESTS,
                type_uri: QUOTA,
                title: "Over the tenant's own limit",
                reason: "throttled",
                openai: (
                    if matches!(limit, Limit::TenantRequests) { "requests" } else { "tokens" },
                    "rate_limit_exceeded",
                ),
                anthropic: "rate_limit_error",
            },
            Self::Stopping => Kind { type_uri: BLANK, ..scarce("Going down", "stopping") },
            Self::NeverFits { .. } => {
                wrong(S::PAYLOAD_TOO_LARGE, "Larger than the budget", "never_fits", "request_too_large")
            }
            Self::Running => {
                wrong(S::CONFLICT, "The operation already runs", "duplicate_active", "duplicate_active")
            }
            Self::Conflict => wrong(
                S::UNPROCESSABLE_ENTITY,
                "The key belongs to another request",
                "conflict",
                "idempotency_conflict",
            ),
            Self::Malformed { .. } => wrong(S::BAD_REQUEST, "Bad request", "malformed", "invalid_value"),
            Self::TooLarge { .. } => {
                wrong(S::PAYLOAD_TOO_LARGE, "Body too large", "body_too_large", "request_too_large")
            }
            Self::SlowBody => wrong(S::REQUEST_TIMEOUT, "Body too slow", "slow_body", "request_timeout"),
            Self::Timeout => Kind {
                status: S::GATEWAY_TIMEOUT,
                type_uri: BLANK,
                title: "Provider too slow",
                reason: "timeout",
                openai: ("server_error", "timeout"),
                anthropic: "timeout_error",
            },
            Self::Upstream { .. } => Kind {
                status: S::BAD_GATEWAY,
                type_uri: BLANK,
                title: "Provider failed",
                reason: "upstream",
                openai: ("server_error", "upstream_failed"),
                anthropic: "api_error",
            },
            Self::NotFound => Kind {
                anthropic: "not_found_error",
                ..wrong(S::NOT_FOUND, "Not found", "not_found", "unknown_url")
            },
            Self::Method { .. } => wrong(
                S::METHOD_NOT_ALLOWED,
                "Method not allowed",
                "method_not_allowed",
                "method_not_supported",
            ),
        }
    }

    /// What happened, for whoever reads the answer.
    pub(super) fn detail(&self) -> Cow<'_, str> {
        match self {
            Self::Shed { .. } => {
                "the queue is at its bound: an answer could not be ready before the deadline".into()
            }
            Self::Throttled { tenant, limit, .. } => {
                let (tenant, what) =
                    (shown(tenant), if *limit == Limit::TenantRequests { "requests" } else { "tokens" });
                format!("tenant `{tenant}` is over its own limit of {what}, whatever the state of the whole")
                    .into()
            }
            Self::Expired { why, .. } => expired(*why).into(),
            Self::NeverFits { hold, most, limit } => {
                let whose = if *limit == Limit::TenantTokens { "to its tenant " } else { "" };
                format!(
                    "the request reserves {hold} tokens (prompt and the most it may answer), but at most {most} can \
                     ever be granted {whose}at once: shorten the prompt or lower max_completion_tokens"
                )
                .into()
            }
            Self::Running => {
                "a request with this idempotency-key is being served: ask again with the same key".into()
            }
            Self::Conflict => {
                "this idempotency-key was used with another body: a new request needs a key of its own".into()
            }
            Self::Stopping => "the gateway is going down and takes no new work".into(),
            Self::Malformed { message, .. } | Self::Upstream { message } => message.as_str().into(),
            Self::TooLarge { limit } => {
                format!("the body is larger than the {} bytes that are read", limit.get()).into()
            }
            Self::SlowBody => "the body was not whole before the deadline".into(),
            Self::Timeout => "the provider's answer was not there before the deadline".into(),
            Self::NotFound => "there is nothing at this path".into(),
            Self::Method { allowed } => format!("this path answers {allowed} only").into(),
        }
    }
}

const fn expired(why: Expiry) -> &'static str {
    match why {
        Expiry::Deadline => "the request waited, and its deadline can no longer be met",
        Expiry::Upstream => "the provider refused the request, and its deadline allows no other try",
        Expiry::Delay => {
            "the request waited longer than the queue is to be: requests have been waiting too long for a while"
        }
        Expiry::Evicted => {
            "the request waited, and gave way to another: a more important one, or a newer one of its own tier"
        }
    }
}

const fn scarce(title: &'static str, reason: &'static str) -> Kind {
    Kind {
        status: StatusCode::SERVICE_UNAVAILABLE,
        type_uri: REDUCED,
        title,
        reason,
        openai: OVERLOADED,
        anthropic: "overloaded_error",
    }
}

const fn wrong(status: StatusCode, title: &'static str, reason: &'static str, code: &'static str) -> Kind {
    let openai = ("invalid_request_error", code);
    Kind { status, type_uri: BLANK, title, reason, openai, anthropic: "invalid_request_error" }
}

/// A tenant's name, short enough for a sentence.
fn shown(tenant: &str) -> String {
    tenant.chars().take(40).collect::<String>().escape_debug().to_string()
}
