//! What is tried and how it is called: the keys of `target`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::address::Address;
use super::{
    DeadlineForm, DeadlineHeader, Embedded, Files, MemoryFrom, MemorySource, Metrics, Target, TargetKind,
    TargetRequest, Transport, spawn,
};
use crate::admission::{self, Budgets};
use crate::provider;
use crate::provider::wire::{headers, openai};
use crate::units::{MapReader, Rate, Ratio, Read, Reader, Window};

/// Headers tenfold sets itself, and those that belong to the connection.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "content-type",
    "host",
    headers::IDEMPOTENCY_KEY,
    "keep-alive",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    headers::REQUEST_ID,
    headers::TENANT,
    headers::TIER,
];

/// How much smaller the gateway's burst is than the provider's: two buckets spent exactly alike would refuse every
/// request that travelled a little faster than the first.
const BURST_LESS: Duration = Duration::from_millis(100);

/// The budgets of a gateway that knows its provider's `quota`.
pub(super) fn standard_budgets(quota: Option<&provider::Quota>) -> Option<Budgets> {
    // the provider's own fault is reported already
    let Some(quota) = quota else {
        return Rate::per_minute(1).map(|tokens| Budgets::of_tokens(tokens, Duration::from_secs(1)));
    };
    if let Window::Bucket { burst } = quota.window
        && quota.sub_windows.is_empty()
    {
        let bucket = Budgets::of_tokens(quota.tokens, burst.saturating_sub(BURST_LESS));
        return Some(Budgets { requests: quota.requests, ..bucket });
    }
    Some(sliding_budgets(quota))
}

/// Where the provider's window is no bucket, one that slides: whatever the instant at which the provider's begin, no more
/// than its amount falls into one, or into a longer one. It is a little longer, for the same amount: what was sent at the
/// edge of one may arrive within the next.
fn sliding_budgets(quota: &provider::Quota) -> Budgets {
    let theirs = quota.burst();
    let period = theirs + BURST_LESS.min(theirs / 100);
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let part = Ratio::new(nanos(theirs), nanos(period)).unwrap_or(Ratio::ONE);
    Budgets {
        requests: quota.requests.map(|rate| rate.scaled(part)),
        period: Some(Window::Sliding { period }),
        ..Budgets::of_tokens(quota.tokens.scaled(part), period)
    }
}

/// Reads `target`. Budgets that are not named follow the quota of `provider`, and a path its API; what the target's
/// configuration is made from is opened with `files`.
pub(super) fn read(
    reader: &Reader<'_>,
    provider: Option<&provider::Config>,
    files: Files<'_>,
) -> Option<Target> {
    let mut map = reader.map()?;
    let standard = standard_budgets(provider.map(|provider| &provider.quota));
    let embedded = map.reader("embedded");
    let spawn = map.reader("spawn");
    let url = map.reader("url");
    let policy = match map.reader("policy") {
        None => Some(None),
        Some(policy) => read_policy(&policy, standard).map(Some),
    };
    let named = [("embedded", embedded.is_some()), ("spawn", spawn.is_some()), ("url", url.is_some())];
    let named: Vec<_> = named.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
    let kind = match (named.len(), embedded, spawn, url) {
        (1, Some(embedded), _, _) => read_embedded(&embedded, standard).map(TargetKind::Embedded),
        (1, _, Some(spawn), _) => spawn::read(&spawn, policy.clone().flatten(), files).map(TargetKind::Spawn),
        (1, _, _, Some(url)) => {
            url.parse("a URL", origin).map(|url| TargetKind::Url { url, policy: policy.clone().flatten() })
        }
        (0, ..) => {
            map.here().fault("what is tried? name one of embedded, spawn, url");
            None
        }
        _ => {
            map.here().fault(format!("one target belongs here, not {}: {}", named.len(), named.join(", ")));
            None
        }
    };
    let api_path = provider.map_or(openai::PATH, |provider| provider.api.path());
    let request = read_request(map.reader("request").as_ref(), kind.as_ref(), api_path);
    let deadline = map.or("deadline", DeadlineHeader::default());
    let memory =
        map.reader("memory").map_or(Some(None), |memory| read_memory(&memory, kind.as_ref()).map(Some));
    let metrics = map.reader("metrics").map_or(Some(None), |metrics| Metrics::read(&metrics).map(Some));
    policy?;
    Some(Target { kind: kind?, request: request?, deadline: deadline?, memory: memory?, metrics: metrics? })
}

/// Reads what a foreign target is believed to do: the keys of `embedded`, and `slots` for a gateway that limits nothing
/// but the calls it makes at once.
fn read_policy(reader: &Reader<'_>, standard: Option<Budgets>) -> Option<admission::Config> {
    let mut map = reader.map()?;
    let standard = match map.reader("slots") {
        None => standard,
        Some(slots) => match u32::read(&slots)? {
            0 => {
                slots.fault("`slots: 0` would serve nobody");
                return None;
            }
            count => Some(Budgets::of_slots(count)),
        },
    };
    let faults = map.reader("faults");
    if let Some(faults) = &faults {
        faults.fault(
            "only the embedded gateway can be given faults: this one is as it is, and `policy` says what it is believed to do",
        );
    }
    admission::Config::read(&mut map, standard).filter(|_| faults.is_none())
}

/// A target that runs already is no process of ours: the plan must say where its memory is read.
fn read_memory(reader: &Reader<'_>, kind: Option<&TargetKind>) -> Option<MemorySource> {
    let memory = MemorySource::read(reader)?;
    if memory.from == MemoryFrom::Own && matches!(kind, Some(TargetKind::Url { .. })) {
        reader.fault(
            "a ceiling alone is for a target that tenfold starts: name `pid`, `cgroup` or `metric`, too",
        );
        return None;
    }
    Some(memory)
}

impl Target {
    /// Whether it is called over TLS and any certificate is taken: nobody vouches for who answers.
    pub fn takes_any_certificate(&self) -> bool {
        let over_tls = match &self.kind {
            TargetKind::Embedded(_) => false,
            TargetKind::Spawn(spawn) => spawn.url.starts_with("https:"),
            TargetKind::Url { url, .. } => url.starts_with("https:"),
        };
        over_tls && self.request.insecure
    }
}

fn read_embedded(reader: &Reader<'_>, standard: Option<Budgets>) -> Option<Embedded> {
    let mut map = reader.map()?;
    let own_budgets = reader.node().get("budgets").is_some();
    admission::Config::read(&mut map, standard).map(|admission| Embedded { admission, own_budgets })
}

/// A URL without a path.
pub(super) fn origin(text: &str) -> Result<String, String> {
    let address = Address::parse(text)?;
    if address.path == "/" {
        Ok(address.origin())
    } else {
        Err(format!(
            "`{text}` has a path: write `{}` here and the path under `target.request.path`",
            address.origin()
        ))
    }
}

fn read_request(
    reader: Option<&Reader<'_>>,
    kind: Option<&TargetKind>,
    api_path: &str,
) -> Option<TargetRequest> {
    let health = match kind {
        Some(TargetKind::Spawn(spawn)) => {
            Address::parse_or_free(&spawn.ready).map_or_else(|_| "/".into(), |ready| ready.path)
        }
        _ => "/healthz".to_owned(),
    };
    let standard = TargetRequest {
        path: api_path.into(),
        model: "rehearsal".into(),
        headers: BTreeMap::new(),
        ca_file: None,
        insecure: false,
        health,
        transport: Transport::default(),
    };
    let Some(reader) = reader else { return Some(standard) };
    let mut map = reader.map()?;
    let path = read_path(&mut map, "path", standard.path);
    let model = map.or("model", standard.model);
    let headers = texts(&mut map, "headers", header_name);
    let ca_file = map.get::<String>("ca_file").map(PathBuf::from);
    let insecure = map.or("insecure", false);
    let health = read_path(&mut map, "health", standard.health);
    let transport = Transport::read(&mut map);
    let headers = headers?;
    if let Some(name) = headers.keys().find(|name| OURS.contains(&name.as_str())) {
        map.here().fault(format!("the header `{name}` is set by tenfold itself: leave it out"));
        return None;
    }
    Some(TargetRequest {
        path: path?,
        model: model?,
        headers,
        ca_file,
        insecure: insecure?,
        health: health?,
        transport: transport?,
    })
}

fn read_path(map: &mut MapReader<'_>, key: &'static str, standard: String) -> Option<String> {
    let Some(reader) = map.reader(key) else { return Some(standard) };
    reader.parse("a path", |text| {
        let tidy = text.starts_with('/') && text.bytes().all(|b| b.is_ascii_graphic() && b != b'#');
        if tidy {
            Ok(text.to_owned())
        } else {
            Err(format!("`{text}` is no path (write /v1/chat/completions)"))
        }
    })
}

/// A map of names to texts without control characters. `name` says what a name may be, and how it is written.
pub(super) fn texts(
    map: &mut MapReader<'_>,
    key: &'static str,
    name: fn(&str) -> Result<String, String>,
) -> Option<BTreeMap<String, String>> {
    let Some(reader) = map.reader(key) else { return Some(BTreeMap::new()) };
    let mut out = BTreeMap::new();
    let mut whole = true;
    for (written, entry) in reader.map()?.rest() {
        let value = entry.scalar("a text").filter(|value| {
            let tidy = !value.chars().any(char::is_control);
            if !tidy {
                entry.fault("the value has a line break or another control character in it");
            }
            tidy
        });
        match (name(&written), value) {
            (Ok(name), Some(value)) => {
                if out.insert(name, value.to_owned()).is_some() {
                    entry.fault(format!("`{written}` stands here twice"));
                    whole = false;
                }
            }
            (name, _) => {
                whole = false;
                if let Err(message) = name {
                    entry.fault(message);
                }
            }
        }
    }
    whole.then_some(out)
}

/// A header's name in lower case, if it is one (RFC 9110, section 5.6.2).
pub(super) fn header_name(text: &str) -> Result<String, String> {
    let tidy = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    if tidy { Ok(text.to_ascii_lowercase()) } else { Err(format!("`{text}` is no name of a header")) }
}

impl Default for DeadlineHeader {
    fn default() -> Self {
        Self { header: "x-request-timeout-ms".into(), form: DeadlineForm::RemainingMs }
    }
}

impl Read for DeadlineHeader {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let standard = Self::default();
        let mut map = reader.map()?;
        let header = match map.reader("header") {
            None => Some(standard.header),
            Some(header) => header.parse("a header", |text| match header_name(text)? {
                name if OURS.contains(&name.as_str()) => Err(format!("the header `{name}` has another use")),
                name => Ok(name),
            }),
        };
        let form = map.or("form", standard.form);
        Some(Self { header: header?, form: form? })
    }
}
