use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use serde_json::{Value, json};

use crate::admission;
use crate::provider::wire::openai::{self, OpenAi};
use crate::provider::wire::{Api, DeadlineForm, headers};
use crate::units::{Bytes, Read, Reader, plain_duration};

/// Headers that mean something else here.
const OTHERS: [&str; 4] = [headers::REQUEST_ID, headers::TENANT, headers::TIER, headers::IDEMPOTENCY_KEY];

/// What `serve gateway` is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The provider, `http://host:port` or `https://…`, without a path.
    pub provider: String,
    /// The API that callers and provider speak.
    pub api: &'static dyn Api,
    /// The path that is served, and called at the provider: the API's, unless another is named.
    pub path: String,
    /// What it decides by.
    pub admission: admission::Config,
    /// How a caller's deadline travels.
    pub deadline: Deadline,
    /// The largest request body that is read.
    pub max_body: Bytes,
    /// Certificates to trust at the provider besides the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Whether any certificate of the provider is taken.
    pub insecure: bool,
}

/// How a caller's deadline travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadline {
    /// The header it comes and goes in.
    pub header: HeaderName,
    /// How it is written there.
    pub form: DeadlineForm,
    /// For callers who send none.
    pub default: Duration,
    /// The most that is believed. A longer time, or an instant further away, is taken as this: a clock that is ahead, or
    /// a slip in the unit, gets nobody a place for days. An instant that has passed leaves no time, and is refused.
    pub longest: Duration,
}

impl Read for Config {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let listen = map.reader("listen").map_or_else(
            || Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            |r| r.parse("an address", address),
        );
        let provider = match map.reader("provider") {
            Some(reader) => reader.parse("a URL", base_url),
            None => {
                map.here().fault("`provider` is missing: which one is to be called? (write provider: http://127.0.0.1:9000)");
                None
            }
        };
        let api = map.or("api", &OpenAi as &dyn Api);
        let path = match map.reader("path") {
            Some(reader) => reader.parse("a path", path),
            None => api.map(|api| api.path().to_owned()),
        };
        let deadline = map.or("deadline", Deadline::standard());
        let max_body = map.or("max_body", Bytes::new(4_000_000));
        let ca_file = map.reader("ca_file").map_or(Some(None), |r| String::read(&r).map(|p| Some(p.into())));
        let insecure = map.or("insecure", false);
        let admission = admission::Config::read(&mut map, None);
        if admission.as_ref().is_some_and(|policy| !policy.cancel) {
            map.here().fault("`cancel: false` can be simulated only: this gateway always ends the call of a caller who leaves");
            return None;
        }
        Some(Self {
            listen: listen?,
            provider: provider?,
            api: api?,
            path: path?,
            admission: admission?,
            deadline: deadline?,
            max_body: max_body?,
            ca_file: ca_file?,
            insecure: insecure?,
        })
    }
}

impl Config {
    /// The configuration in the form [`Read::read`] reads.
    pub fn to_json(&self) -> Value {
        let mut all = self.admission.to_json();
        all["listen"] = json!(self.listen.to_string());
        all["provider"] = json!(self.provider);
        all["api"] = json!(self.api.name());
        all["path"] = json!(self.path);
        all["deadline"] = json!({
            "header": self.deadline.header.as_str(),
            "form": self.deadline.form.name(),
            "default": plain_duration(self.deadline.default),
            "longest": plain_duration(self.deadline.longest),
        });
        all["max_body"] = json!(format!("{}B", self.max_body.get()));
        if let Some(file) = &self.ca_file {
            all["ca_file"] = json!(file.to_string_lossy());
        }
        all["insecure"] = json!(self.insecure.to_string());
        all
    }
}

impl Deadline {
    /// The most that is believed unless a configuration says otherwise.
    pub const LONGEST: Duration = DeadlineForm::LONGEST_BELIEVED;

    /// `x-request-timeout-ms`, whole milliseconds, a minute where there is none.
    pub fn standard() -> Self {
        Self {
            header: HeaderName::from_static("x-request-timeout-ms"),
            form: DeadlineForm::RemainingMs,
            default: Duration::from_secs(60),
            longest: Self::LONGEST,
        }
    }
}

impl Read for Deadline {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let standard = Self::standard();
        let header = map.reader("header").map_or_else(
            || Some(standard.header),
            |r| {
                r.parse("the name of a header", |text| match HeaderName::from_bytes(text.as_bytes()) {
                    Ok(name) if OTHERS.contains(&name.as_str()) => {
                        Err(format!("the header `{name}` has another use"))
                    }
                    Ok(name) => Ok(name),
                    Err(_) => Err(format!("`{text}` is no name of a header")),
                })
            },
        );
        let form = map.or("form", standard.form);
        let default = map.or("default", standard.default);
        let longest = map.or("longest", standard.longest);
        let it = Self { header: header?, form: form?, default: default?, longest: longest? };
        if it.default.is_zero() || it.default > it.longest {
            map.here().fault(
                "`default` must be more than nothing and at most `longest`, which is 10m unless it is named",
            );
            return None;
        }
        Some(it)
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no address with a port (write 127.0.0.1:8080)"))
}

fn path(text: &str) -> Result<String, String> {
    let plain =
        text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic() && !b"?#\"<>".contains(&b));
    plain.then(|| text.to_owned()).ok_or_else(|| format!("`{text}` is no path (write {})", openai::PATH))
}

fn base_url(text: &str) -> Result<String, String> {
    let bad = |why: &str| Err(format!("`{text}` {why} (write http://127.0.0.1:9000)"));
    let Ok(uri) = text.parse::<http::Uri>() else { return bad("is no URL") };
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return bad("is neither http nor https");
    }
    if uri.authority().is_some_and(|a| a.as_str().contains('@')) {
        return bad("has a user in it");
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
        return bad("has a path, which belongs in `path`");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Faults, Key, Node, Place};

    fn node(value: &Value) -> Node {
        let place = Place::File { line: 1, column: 1 };
        let inner = match value {
            Value::Null => crate::units::Value::Null,
            Value::Array(items) => crate::units::Value::List(items.iter().map(node).collect()),
            Value::Object(map) => crate::units::Value::Map(
                map.iter()
                    .map(|(key, v)| (Key { text: key.clone(), place: place.clone() }, node(v)))
                    .collect(),
            ),
            Value::String(text) => return Node::text(text.as_str(), place),
            Value::Bool(_) | Value::Number(_) => return Node::text(value.to_string(), place),
        };
        Node { place, value: inner }
    }

    fn read(value: &Value) -> Result<Config, Vec<String>> {
        let (node, faults) = (node(value), Faults::default());
        let config = Config::read(&Reader::root(&node, &faults));
        let faults: Vec<_> =
            faults.into_sorted().into_iter().map(|f| format!("{}: {}", f.path, f.message)).collect();
        match config {
            Some(config) if faults.is_empty() => Ok(config),
            _ => Err(faults),
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let least = json!({
            "provider": "http://127.0.0.1:9",
            "service": { "start": "3s" },
            "budgets": { "tokens_per_minute": "500k" },
        });
        let full = json!({
            "listen": "127.0.0.1:8080", "provider": "https://provider.test:443", "path": "/v2/chat",
            "deadline": { "header": "X-Deadline", "form": "absolute_ms", "default": "1500us", "longest": "2m" },
            "max_body": "64KiB", "ca_file": "ca.pem", "insecure": true,
            "bound": "none", "order": "lifo", "recheck": false, "margin": "250ms",
            "service": { "start": "1s", "quantile": "p95" },
            "budgets": { "tokens_per_minute": 1_200_000, "burst": "2s" },
            "retry_after": { "constant": "7s" }, "when_full": "evict_oldest", "share": "wrr", "duplicates": "tell",
            "tiers": { "strict": true, "evict": false }, "codel": { "target": "1s", "interval": "3s" },
            "tenants": [{ "name": "a", "weight": 2, "tokens_per_minute": 9_000, "burst": "30s" }, { "name": "b" }],
            "keep": { "number": 5, "bytes": "1MiB", "age": "1m" }, "upstream": { "attempts": 3, "lease": "5s" },
        });
        for value in [least, full] {
            let written = read(&value).expect("a good configuration").to_json();
            assert_eq!(read(&written).expect("what was written").to_json(), written);
        }
    }

    #[test]
    fn every_fault_is_shown_at_once() {
        let found = read(&json!({
            "listen": "8080", "provider": "http://127.0.0.1:9/v1", "path": "v1", "lsiten": 1, "max_body": 5,
            "deadline": { "header": "X-Tenant", "form": "absolute" }, "service": { "start": "3s" },
        }))
        .expect_err("a bad configuration");
        for wanted in [
            "listen: `8080`",
            "provider: ",
            "path: `v1`",
            "did you mean `listen`",
            "deadline.header",
            "budgets",
        ] {
            assert!(found.iter().any(|f| f.contains(wanted)), "{wanted} in {found:#?}");
        }
    }
}
