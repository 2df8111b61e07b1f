//! How the target is called: its address, the headers of each request, the HTTP client.

use std::fs;
use std::time::Duration;

use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, Url, redirect, retry};

use super::LiveError;
use super::preflight::Needs;
use super::sender::Sender;
use crate::observe::Attempt;
use crate::plan::{DeadlineHeader, Http, Plan, TargetRequest};
use crate::provider::wire::{RequestId, headers as names};
use crate::units::Tokens;
use crate::workload::Class;

/// What we call ourselves.
const AGENT: &str = concat!("tenfold/", env!("CARGO_PKG_VERSION"));
/// How long idle connections are kept: shorter than a server usually keeps them, so that none is closed just as it is used.
const IDLE_FOR: Duration = Duration::from_secs(3);

/// Everything needed to send a request to the target.
#[derive(Debug)]
pub(super) struct Wire {
    /// The sender, with its connections.
    pub(super) sender: Sender,
    headers: HeaderMap,
    deadline: DeadlineHeader,
    deadline_name: HeaderName,
    run: u32,
}

/// What sets one request apart from others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Errand<'a> {
    pub(super) id: &'a RequestId,
    /// The id's text form.
    pub(super) text: &'a str,
    pub(super) class: &'a Class,
    /// How much time is left for an answer.
    pub(super) remaining: Duration,
    /// The present instant on the wall clock, since 1970.
    pub(super) unix: Duration,
    /// The number of the arrival whose idempotency key it carries, if it carries one.
    pub(super) key: Option<u64>,
}

/// The header the id travels in.
const REQUEST_ID: HeaderName = HeaderName::from_static(names::REQUEST_ID);
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static(names::IDEMPOTENCY_KEY);
const TENANT: HeaderName = HeaderName::from_static(names::TENANT);
const TIER: HeaderName = HeaderName::from_static(names::TIER);
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");

impl Wire {
    /// Requests to `base` (scheme and authority), as `plan` says, of the run numbered `run`.
    ///
    /// # Errors
    /// If the address, a header or the certificates cannot be used.
    pub(super) fn new(base: &str, plan: &Plan, run: u32) -> Result<Self, LiveError> {
        let (request, deadline) = (&plan.target.request, &plan.target.deadline);
        let url = join(base, &request.path)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        for (name, value) in plan.provider.api.headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        for (name, value) in &request.headers {
            let unusable =
                || LiveError::Request(format!("target.request.headers.{name} can stand in no header"));
            let mut value = HeaderValue::from_str(value).map_err(|_| unusable())?;
            value.set_sensitive(true);
            headers.insert(header_name(name).ok_or_else(unusable)?, value);
        }
        let deadline_name = header_name(&deadline.header).ok_or_else(|| {
            LiveError::Request(format!("target.deadline.header: `{}` is no name", deadline.header))
        })?;
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        Ok(Self {
            sender: Sender::new(url, request, Needs::of(plan).open)?,
            headers,
            deadline: deadline.clone(),
            deadline_name,
            run,
        })
    }

    /// The id of an attempt that shall be answered with `output` tokens.
    pub(super) const fn id(&self, attempt: Attempt, output: Tokens) -> RequestId {
        RequestId { run: self.run, seq: attempt.seq, attempt: attempt.nth, output }
    }

    /// The headers for an errand. Its tenant and tier are told where its class names them.
    pub(super) fn headers(&self, errand: Errand<'_>) -> HeaderMap {
        let Errand { id, text, class, remaining, unix, key } = errand;
        let mut headers = self.headers.clone();
        // ids and numbers are plain ASCII, and a plan checks its tenants, so that these always are values
        let value = |text: &str| HeaderValue::from_str(text).ok();
        // an instant is written by the caller's own clock
        let budget = self.deadline.form.write(remaining, class.clock.shown(unix));
        let key = key.map(|seq| format!("tenfold-{:08x}-{seq}", self.run));
        let tenant = Some(class.tenant.as_str()).filter(|tenant| !tenant.is_empty());
        let tier = Some(class.tier).filter(|tier| *tier != names::STANDARD_TIER);
        let own = [
            (REQUEST_ID, value(text)),
            (TRACE_PARENT, id.traceparent().as_deref().and_then(value)),
            (self.deadline_name.clone(), value(&budget)),
            (TENANT, tenant.and_then(value)),
            (IDEMPOTENCY_KEY, key.as_deref().and_then(value)),
            (TIER, tier.map(|tier| HeaderValue::from(u16::from(tier)))),
        ];
        headers.extend(own.into_iter().filter_map(|(name, value)| Some((name, value?))));
        headers
    }
}

fn header_name(name: &str) -> Option<HeaderName> {
    HeaderName::from_bytes(name.as_bytes()).ok()
}

/// `path` on the scheme and authority of `base`.
pub(super) fn join(base: &str, path: &str) -> Result<Url, LiveError> {
    let bad =
        |why: String| LiveError::Request(format!("the target's address `{base}` with path `{path}`: {why}"));
    let url = Url::parse(base).and_then(|base| base.join(path)).map_err(|e| bad(e.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(bad(format!("`{other}` is neither http nor https"))),
    }
}

/// An HTTP client that does exactly what it is asked: no proxy from the environment, no redirect followed, nothing
/// repeated or unpacked behind our back, no limit of time but the caller's own.
pub(super) fn client(request: &TargetRequest) -> Result<ClientBuilder, LiveError> {
    // a second installation fails, which is all right: one is all that is needed
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .referer(false)
        .user_agent(AGENT)
        .tcp_nodelay(true)
        .pool_idle_timeout(IDLE_FOR)
        .tls_danger_accept_invalid_certs(request.insecure);
    builder = match request.transport.http {
        Http::One => builder.http1_only(),
        // prior knowledge; over TLS the same is offered by ALPN
        Http::Two { .. } => builder.http2_prior_knowledge(),
    };
    if let Some(path) = &request.ca_file {
        let unusable =
            |why: String| LiveError::Request(format!("target.request.ca_file {}: {why}", path.display()));
        let pem = fs::read(path).map_err(|e| unusable(e.to_string()))?;
        let certificates = Certificate::from_pem_bundle(&pem).map_err(|e| unusable(e.to_string()))?;
        if certificates.is_empty() {
            return Err(unusable("there is no certificate in it".into()));
        }
        builder = builder.tls_certs_merge(certificates);
    }
    Ok(builder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::plan;
    use crate::plan::DeadlineForm;

    #[test]
    fn a_request_tells_its_tenant_its_tier_and_its_deadline_in_the_form_of_the_plan() {
        let mut plan = plan("http://127.0.0.1:9");
        plan.target.deadline = DeadlineHeader { header: "grpc-timeout".into(), form: DeadlineForm::Grpc };
        let wire = Wire::new("http://127.0.0.1:9", &plan, 7).unwrap();
        let id = wire.id(Attempt { seq: 3, nth: 0 }, Tokens::new(5));
        let headers = |tenant: &str, tier| {
            let class = Class { tenant: tenant.into(), tier, ..plan.requests.classes()[0].clone() };
            let (remaining, unix) = (Duration::from_secs(25), Duration::from_secs(1_790_000_000));
            let errand = Errand { id: &id, text: "text", class: &class, remaining, unix, key: None };
            wire.headers(errand)
        };
        let told = headers("retail", 0);
        let text = |name: &str| told.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(
            (text("x-tenant"), text("x-tier"), text("x-request-id")),
            (Some("retail"), Some("0"), Some("text"))
        );
        assert_eq!(text("grpc-timeout"), Some("25000000u"));
        let told = headers("", names::STANDARD_TIER);
        assert!(!told.contains_key("x-tenant") && !told.contains_key("x-tier"), "what is usual is not said");
    }
}
