use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use serde_json::{Value, json};

use crate::admission;
use crate::provider::wire::openai;
use crate::units::{Bytes, Read, Reader, plain_duration};

/// The longest deadline a caller can ask for; a longer one is taken as this, so that no number overflows.
const LONGEST: Duration = Duration::from_secs(86_400);

/// What `serve gateway` is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The provider, `http://host:port` or `https://…`, without a path.
    pub upstream: String,
    /// The path that is served, and called at the provider.
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
}

/// The forms of a deadline header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineForm {
    /// Remaining whole milliseconds.
    RemainingMs,
    /// Remaining seconds, with a fraction or without.
    RemainingS,
}

impl DeadlineForm {
    /// Every form a configuration can name, sorted.
    pub const ALL: &[(&'static str, Self)] =
        &[("remaining_ms", Self::RemainingMs), ("remaining_s", Self::RemainingS)];

    /// Its name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RemainingMs => "remaining_ms",
            Self::RemainingS => "remaining_s",
        }
    }

    /// The time that remains according to a header's `text`, at most a day. The error says what belongs there.
    pub fn parse(self, text: &str) -> Result<Duration, String> {
        let shown = || text.chars().take(40).collect::<String>().escape_debug().to_string();
        let digits = |run: &str| !run.is_empty() && run.bytes().all(|b| b.is_ascii_digit());
        let nanos = match self {
            Self::RemainingMs => digits(text).then(|| scaled(text, 6)),
            Self::RemainingS => match text.split_once('.') {
                Some((whole, part)) if digits(whole) && digits(part) => {
                    Some(scaled(whole, 9).saturating_add(scaled(&format!("{part:0<9}")[..9], 0)))
                }
                Some(_) => None,
                None => digits(text).then(|| scaled(text, 9)),
            },
        };
        let wanted = match self {
            Self::RemainingMs => "a whole number of milliseconds",
            Self::RemainingS => "a number of seconds",
        };
        nanos
            .map(|nanos| Duration::from_nanos(nanos).min(LONGEST))
            .ok_or_else(|| format!("`{}` is not {wanted}", shown()))
    }

    /// `remaining` as the header writes it.
    pub fn write(self, remaining: Duration) -> String {
        match self {
            Self::RemainingMs => remaining.as_millis().to_string(),
            Self::RemainingS => format!("{}.{:03}", remaining.as_secs(), remaining.subsec_millis()),
        }
    }
}

/// The number in `digits` times 10^`zeros`; the largest there is when it does not fit.
fn scaled(digits: &str, zeros: u32) -> u64 {
    digits.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(10u64.saturating_pow(zeros))
}

impl Read for Config {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let listen = map.reader("listen").map_or_else(
            || Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            |r| r.parse("an address", address),
        );
        let upstream = match map.reader("upstream") {
            Some(reader) => reader.parse("a URL", base_url),
            None => {
                map.here().fault("`upstream` is missing: which provider is to be called?");
                None
            }
        };
        let path =
            map.reader("path").map_or_else(|| Some(openai::PATH.to_owned()), |r| r.parse("a path", path));
        let deadline = map.or("deadline", Deadline::standard());
        let max_body = map.or("max_body", Bytes::new(4_000_000));
        let ca_file = map.reader("ca_file").map_or(Some(None), |r| String::read(&r).map(|p| Some(p.into())));
        let insecure = map.or("insecure", false);
        let admission = admission::Config::read(&mut map, None);
        Some(Self {
            listen: listen?,
            upstream: upstream?,
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
        all["upstream"] = json!(self.upstream);
        all["path"] = json!(self.path);
        all["deadline"] = json!({
            "header": self.deadline.header.as_str(),
            "form": self.deadline.form.name(),
            "default": plain_duration(self.deadline.default),
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
    /// `x-request-timeout-ms`, whole milliseconds, a minute where there is none.
    pub fn standard() -> Self {
        Self {
            header: HeaderName::from_static("x-request-timeout-ms"),
            form: DeadlineForm::RemainingMs,
            default: Duration::from_secs(60),
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
                r.parse("the name of a header", |text| {
                    HeaderName::from_bytes(text.as_bytes())
                        .map_err(|_| format!("`{text}` is no name of a header"))
                })
            },
        );
        let form = map.or("form", standard.form);
        let default = map.or("default", standard.default);
        Some(Self { header: header?, form: form?, default: default? })
    }
}

impl Read for DeadlineForm {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
        match reader.one_of("deadline form", &names)? {
            (name, None) => Self::ALL.iter().find(|(n, _)| *n == name).map(|(_, form)| *form),
            (name, Some(_)) => {
                reader.fault(format!("`{name}` has no settings"));
                None
            }
        }
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
            "upstream": "http://127.0.0.1:9",
            "service": { "start": "3s" },
            "budgets": { "tokens_per_minute": "500k" },
        });
        let full = json!({
            "listen": "127.0.0.1:8080", "upstream": "https://provider.test:443", "path": "/v2/chat",
            "deadline": { "header": "X-Deadline", "form": "remaining_s", "default": "1500us" },
            "max_body": "64KiB", "ca_file": "ca.pem", "insecure": true,
            "bound": "none", "order": "lifo", "recheck": false, "margin": "250ms",
            "service": { "start": "1s", "quantile": "p95" },
            "budgets": { "tokens_per_minute": 1_200_000, "burst": "2s" },
            "retry_after": { "constant": "7s" },
        });
        for value in [least, full] {
            let written = read(&value).expect("a good configuration").to_json();
            assert_eq!(read(&written).expect("what was written").to_json(), written);
        }
    }

    #[test]
    fn every_fault_is_shown_at_once() {
        let found = read(&json!({
            "listen": "8080", "upstream": "http://127.0.0.1:9/v1", "path": "v1", "lsiten": 1, "max_body": 5,
            "deadline": { "header": "a b", "form": "absolute" }, "service": { "start": "3s" },
        }))
        .expect_err("a bad configuration");
        for wanted in [
            "listen: `8080`",
            "upstream: ",
            "path: `v1`",
            "did you mean `listen`",
            "deadline.header",
            "budgets",
        ] {
            assert!(found.iter().any(|f| f.contains(wanted)), "{wanted} in {found:#?}");
        }
    }

    #[test]
    fn deadlines_are_numbers_and_never_overflow() {
        let ms = |t| DeadlineForm::RemainingMs.parse(t).ok();
        let s = |t| DeadlineForm::RemainingS.parse(t).ok();
        assert_eq!(ms("4500"), Some(Duration::from_millis(4_500)));
        assert_eq!(s("4.5"), Some(Duration::from_millis(4_500)));
        assert_eq!(s("25"), Some(Duration::from_secs(25)));
        assert_eq!((ms("99999999999999999999999"), s("99999999999.9")), (Some(LONGEST), Some(LONGEST)));
        for bad in ["", "-1", "1e3", " 5", "soon", "5.", ".5", "1_000", "٣"] {
            assert_eq!((ms(bad), s(bad)), (None, None), "{bad}");
        }
        assert_eq!(ms("4.5"), None);
        for form in [DeadlineForm::RemainingMs, DeadlineForm::RemainingS] {
            let span = Duration::from_millis(61_007);
            assert_eq!(form.parse(&form.write(span)), Ok(span));
        }
    }
}
