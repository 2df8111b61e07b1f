//! The way to the provider: the client, and which headers pass.

use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use reqwest::Certificate;

use super::config::Config;
use super::server::ServeError;

/// How long a connection to the provider may take to open.
const CONNECT: Duration = Duration::from_secs(5);

/// The most idle connections that are kept.
pub(super) const IDLE: usize = 256;

/// Headers that belong to one connection (RFC 9110, 7.6.1), not to the request or the answer.
const HOP_BY_HOP: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The longest time a provider's `Retry-After` is believed.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A client that goes to the provider and nowhere else: no proxy from the environment, no redirect followed, no retry
/// of its own.
pub(super) fn client(config: &Config) -> Result<reqwest::Client, ServeError> {
    // a second installation fails, and the first stands
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(IDLE);
    builder = if config.provider.starts_with("http:") {
        // no certificate will be looked at, so none is read
        builder.tls_certs_only([])
    } else if let Some(file) = &config.ca_file {
        let unreadable = |why: String| ServeError::Certificates { file: file.clone(), why };
        let pem = std::fs::read(file).map_err(|error| unreadable(error.to_string()))?;
        let certificates =
            Certificate::from_pem_bundle(&pem).map_err(|error| unreadable(error.to_string()))?;
        if certificates.is_empty() {
            return Err(unreadable("no certificate in it".into()));
        }
        builder.tls_certs_merge(certificates)
    } else {
        builder
    };
    if config.insecure {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    builder.build().map_err(ServeError::Client)
}

/// The headers of a request that pass on to the provider: all that do not belong to the connection, but for the
/// deadline, which is written anew, and what this client writes itself. The values are copies, so that the
/// connection's buffer is free while the request waits.
pub(super) fn passed_on(headers: &HeaderMap, deadline: &HeaderName) -> HeaderMap {
    let ours =
        [header::HOST, header::CONTENT_LENGTH, header::EXPECT, header::ACCEPT_ENCODING, deadline.clone()];
    end_to_end(headers, &ours)
}

/// The headers of an answer that pass back to the caller.
pub(super) fn passed_back(headers: &HeaderMap) -> HeaderMap {
    end_to_end(headers, &[header::CONTENT_LENGTH])
}

fn end_to_end(headers: &HeaderMap, but: &[HeaderName]) -> HeaderMap {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::from_bytes(name.trim().as_bytes()).ok())
        .collect();
    let stays =
        |name: &HeaderName| !HOP_BY_HOP.contains(name) && !but.contains(name) && !named.contains(name);
    headers
        .iter()
        .filter(|(name, _)| stays(name))
        .filter_map(|(name, value)| {
            // a value that was received is one that can be sent: its copy is never refused
            Some((
                name.clone(),
                HeaderValue::from_maybe_shared(Bytes::copy_from_slice(value.as_bytes())).ok()?,
            ))
        })
        .fold(HeaderMap::new(), |mut map, (name, value)| {
            map.append(name, value);
            map
        })
}

/// When a provider that refused says to come back: `retry-after-ms`, else `retry-after` in seconds, whole or not.
/// A date is not read: the rest is then the machine's own.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &str| -> Option<f64> {
        let text = headers.get(name)?.to_str().ok()?.trim();
        text.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)
    };
    let millis = number("retry-after-ms").map(|ms| ms / 1e3);
    let secs = millis.or_else(|| number("retry-after"))?;
    Some(Duration::from_secs_f64(secs.min(LONGEST.as_secs_f64())))
}

/// Why a call failed, for the caller: the innermost cause, without the provider's address.
pub(super) fn describe(error: reqwest::Error) -> String {
    let what = if error.is_connect() {
        "the provider could not be reached"
    } else {
        "the call to the provider failed"
    };
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    format!("{what}: {cause}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&'static str, &'static str)]) -> HeaderMap {
        entries.iter().map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn what_belongs_to_the_connection_does_not_pass() {
        let deadline = HeaderName::from_static("x-request-timeout-ms");
        let came = map(&[
            ("authorization", "Bearer secret"),
            ("connection", "keep-alive, X-Hop"),
            ("content-length", "7"),
            ("host", "gateway"),
            ("keep-alive", "timeout=5"),
            ("traceparent", "00-1-2-01"),
            ("transfer-encoding", "chunked"),
            ("x-hop", "1"),
            ("x-request-id", "a"),
            ("x-request-timeout-ms", "25000"),
        ]);
        let passed = passed_on(&came, &deadline);
        let names: Vec<_> = passed.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["authorization", "traceparent", "x-request-id"]);
        let back = passed_back(&map(&[
            ("connection", "close"),
            ("x-ratelimit-limit-tokens", "5"),
            ("set-cookie", "a"),
        ]));
        assert_eq!(back.len(), 2);
    }

    #[test]
    fn the_providers_time_is_read_in_either_form_and_nothing_else_is() {
        let read = |entries| retry_after(&map(entries));
        assert_eq!(
            read(&[("retry-after-ms", "600"), ("retry-after", "1")]),
            Some(Duration::from_millis(600))
        );
        assert_eq!(read(&[("retry-after", "2")]), Some(Duration::from_secs(2)));
        assert_eq!(read(&[("retry-after", "1e30")]), Some(LONGEST));
        for bad in ["", "soon", "-1", "NaN", "inf", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(retry_after(&map(&[("retry-after", bad)])), None, "{bad}");
        }
    }
}
