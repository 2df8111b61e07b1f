//! A small plan, and a server that does what a test says.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::plan::{DeadlineForm, DeadlineHeader, Expect, Plan, Target, TargetKind, TargetRequest, Validity};
use crate::provider::wire::openai::OpenAi;
use crate::provider::{self, Count, Engine, Quota, Service};
use crate::units::{Faults, Key, Node, Place, Rate, Ratio, Read as _, Reader, Share, Value};
use crate::workload::{Late, Load, Mix, Phase, Probes, arrivals};

/// A plan of 50 arrivals in a second, small and patient for half a second, against `url`.
pub(super) fn plan(url: &str) -> Plan {
    let share = |value| Share::new(value).unwrap();
    Plan {
        name: "test".into(),
        about: String::new(),
        load: load("50/s", Duration::from_secs(1)),
        requests: mix("500ms"),
        provider: provider::Config {
            listen: "127.0.0.1:0".into(),
            advertise: None,
            engine: Engine::Wiremock,
            api: &OpenAi,
            count: Count::Words,
            quota: Quota::of_tokens(Rate::per_minute(1_000_000).unwrap(), Duration::from_secs(1)),
            service: Service::fixed(Duration::from_millis(10), Duration::ZERO),
            slots: None,
            faults: Vec::new(),
        },
        target: Target {
            kind: TargetKind::Url { url: url.into(), policy: None },
            request: TargetRequest {
                path: "/v1/chat/completions".into(),
                model: "rehearsal".into(),
                headers: BTreeMap::new(),
                ca_file: None,
                insecure: false,
                health: "/healthz".into(),
                transport: crate::plan::Transport::default(),
            },
            deadline: DeadlineHeader {
                header: "x-request-timeout-ms".into(),
                form: DeadlineForm::RemainingMs,
            },
            memory: None,
            metrics: None,
        },
        rehearsal: None,
        scale: Ratio::ONE,
        probes: Probes { every: 1, late_by: Duration::ZERO },
        expect: Expect::default(),
        validity: Validity {
            lag_p99: None,
            unsent: share(0.01),
            unjoined: share(0.01),
            achieved: share(0.99),
        },
        abort_when: Vec::new(),
        max_outstanding: 1_000,
        checks: BTreeMap::new(),
        variants: Vec::new(),
        levers: Vec::new(),
        diff: BTreeMap::new(),
    }
}

/// The arrival process of this name, as it is where nothing more is said.
pub(super) fn arrivals(name: &str) -> Arc<dyn arrivals::Process> {
    let kind = arrivals::ALL.iter().find(|kind| kind.name == name).unwrap();
    (kind.build)(None).unwrap()
}

/// One phase of evenly spaced arrivals.
pub(super) fn load(rate: &str, lasts: Duration) -> Load {
    Load {
        seed: 7,
        arrivals: arrivals("constant"),
        late: Late::Send,
        phases: vec![Phase {
            name: "steady".into(),
            rate: Rate::parse(rate).unwrap(),
            lasts,
            event: false,
            mix: None,
        }],
    }
}

/// One class: 8 words in, 4 out, with this deadline.
pub(super) fn mix(deadline: &str) -> Mix {
    mix_with(deadline, "give_up")
}

/// The same, and this is what its refused callers do.
pub(super) fn mix_with(deadline: &str, on_refusal: &str) -> Mix {
    class_with(deadline, &[("on_refusal", on_refusal)])
}

/// The same, some of whose requests are followed by a copy.
pub(super) fn mix_doubled(deadline: &str, share: &str) -> Mix {
    class_with(deadline, &[("duplicates", share)])
}

/// The same, whose answers are streamed.
pub(super) fn mix_streaming(deadline: &str, on_refusal: &str) -> Mix {
    class_with(deadline, &[("on_refusal", on_refusal), ("stream", "true")])
}

fn class_with(deadline: &str, more: &[(&str, &str)]) -> Mix {
    let place = Place::File { line: 1, column: 1 };
    let node = |value| Node { place: place.clone(), value };
    let text = |text: &str| node(Value::Text { text: text.into(), plain: true });
    let map = |pairs: Vec<(&str, Node)>| {
        let entry = |(key, value): (&str, Node)| (Key { text: key.into(), place: place.clone() }, value);
        node(Value::Map(pairs.into_iter().map(entry).collect()))
    };
    let mut keys = vec![
        ("name", text("ask")),
        ("prompt", map(vec![("tokens", text("8"))])),
        ("max_tokens", text("4")),
        ("deadline", text(deadline)),
    ];
    keys.extend(more.iter().map(|(key, value)| (*key, crate::plan::yaml::read(value).unwrap())));
    let class = map(keys);
    let (list, faults) = (node(Value::List(vec![class])), Faults::default());
    Mix::read(&Reader::root(&list, &faults)).unwrap()
}

/// A server of raw sockets that hands each request's bytes to a function and writes what that gives, if anything;
/// it closes each connection after one answer. Its threads end with the test's process.
pub(super) struct Server {
    /// Its base URL.
    pub(super) url: String,
    /// Requests it has read.
    pub(super) requests: Arc<AtomicUsize>,
}

impl Server {
    pub(super) fn start(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::new(answer), Arc::clone(&requests));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, count) = (Arc::clone(&answer), Arc::clone(&count));
                thread::spawn(move || serve(stream, &*answer, &count));
            }
        });
        Self { url, requests }
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&str) -> Option<String>, count: &AtomicUsize) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
    loop {
        let Ok(read @ 1..) = stream.read(&mut chunk) else { return };
        bytes.extend_from_slice(&chunk[..read]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break;
        }
    }
    count.fetch_add(1, Ordering::SeqCst);
    match answer(&String::from_utf8_lossy(&bytes)) {
        Some(text) => drop(stream.write_all(text.as_bytes())),
        // silence: until the caller closes
        None => while matches!(stream.read(&mut chunk), Ok(1..)) {},
    }
}

/// A whole answer with a length and `connection: close`.
pub(super) fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// A completion.
pub(super) fn completion() -> String {
    http("200 OK", "content-type: application/json\r\n", r#"{"choices":[{"message":{"content":"word"}}]}"#)
}
