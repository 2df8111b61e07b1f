//! A gateway on its own thread, callers and a provider that are sockets.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};
use tenfold::gateway::{Bound, Config};
use tenfold::live::Clock;
use tenfold::provider::wire::Api as _;
use tenfold::provider::wire::openai::{self, OpenAi};
use tenfold::units::{self, Faults, Key, Node, Place, Read as _, Reader, Tokens};

/// Long enough for any machine; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A request body of `prompt` words that asks for `most` tokens.
pub(crate) fn chat(prompt: u64, most: u64) -> String {
    OpenAi.request("m", &openai::prompt(prompt, prompt * 6), Tokens::new(most), "u", false)
}

/// A budget of 300 tokens that fills by one a second: what waits is moved by answers, not by time.
pub(crate) fn still() -> Value {
    json!({
        "bound": "none", "service": { "start": "10ms" }, "margin": "0ms",
        "budgets": { "tokens_per_minute": 60, "burst": "300s" },
    })
}

/// A budget that is never short.
pub(crate) fn plenty() -> Value {
    json!({ "service": { "start": "10ms" }, "margin": "0ms", "budgets": { "tokens_per_minute": "6M", "burst": "1s" } })
}

/// A policy with some keys put in or replaced.
pub(crate) fn with(mut policy: Value, keys: Value) -> Value {
    if let (Some(policy), Value::Object(keys)) = (policy.as_object_mut(), keys) {
        policy.extend(keys);
    }
    policy
}

/// A header of a head.
pub(crate) fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The request id in a head.
pub(crate) fn id_of(head: &str) -> String {
    header_of(head, "x-request-id").unwrap_or_default().to_owned()
}

/// A gateway that runs.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    pub(crate) fn start(config: Value, upstream: &Upstream) -> Self {
        Self::start_towards(config, upstream.address)
    }

    pub(crate) fn start_towards(mut config: Value, provider: SocketAddr) -> Self {
        config["provider"] = json!(format!("http://{provider}"));
        let (node, faults) = (node(&config), Faults::default());
        let config = Config::read(&Reader::root(&node, &faults));
        let config = config.unwrap_or_else(|| panic!("{:#?}", faults.into_sorted()));
        let bound = Bound::new(config).expect("a free port");
        let (address, clock) = (bound.address(), Clock::start());
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let stopped = async move {
            let _ = stopped.await;
        };
        let thread = thread::spawn(move || {
            bound.serve(move || clock.now(), move || clock.unix(), || Ok(stopped)).expect("it serves")
        });
        Self { address, stop: Some(stop), thread: Some(thread) }
    }

    /// Sends a chat completion request with a minute's time.
    pub(crate) fn call(&self, id: &str, body: &str) -> Caller {
        self.call_within(id, 60_000, body)
    }

    pub(crate) fn call_within(&self, id: &str, millis: u64, body: &str) -> Caller {
        Caller::post(self.address, &format!("x-request-id: {id}\r\nx-request-timeout-ms: {millis}\r\n"), body)
    }

    /// Sends a chat completion request with these headers, each line with its end.
    pub(crate) fn send(&self, head: &str, body: &str) -> Caller {
        Caller::post(self.address, head, body)
    }

    /// A number of `/metrics`.
    pub(crate) fn read(&self, name: &str) -> u64 {
        let page =
            Caller::send(self.address, "GET /metrics HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n")
                .answer()
                .body;
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix("tenfold_gateway_")?.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().expect("a whole number")
    }

    /// Waits until a number of `/metrics` is `wanted`.
    pub(crate) fn until(&self, name: &str, wanted: u64) {
        self.wait(name, wanted, |is| is == wanted);
    }

    /// Waits until a number of `/metrics` is `wanted` or more.
    pub(crate) fn until_at_least(&self, name: &str, wanted: u64) {
        self.wait(name, wanted, |is| is >= wanted);
    }

    fn wait(&self, name: &str, wanted: u64, done: impl Fn(u64) -> bool) {
        let clock = Clock::start();
        while !done(self.read(name)) {
            let waited = clock.now().since(units::Moment::ZERO);
            assert!(waited < PATIENCE, "{name} is {} and not {wanted}", self.read(name));
            thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn stop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
    }

    /// Waits until it has ended.
    pub(crate) fn join(mut self) {
        self.thread.take().expect("it is joined once").join().expect("it ends in order");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // its thread ends with the last connection, or with the test
        self.stop();
    }
}

/// A caller's side of a connection. Dropped, the caller leaves.
pub(crate) struct Caller {
    stream: TcpStream,
    seen: String,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Caller {
    pub(crate) fn post(address: SocketAddr, head: &str, body: &str) -> Self {
        let (path, length) = (openai::PATH, body.len());
        Self::send(
            address,
            &format!("POST {path} HTTP/1.1\r\nhost: g\r\ncontent-length: {length}\r\n{head}\r\n{body}"),
        )
    }

    pub(crate) fn send(address: SocketAddr, text: &str) -> Self {
        let mut stream = TcpStream::connect(address).expect("the gateway listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(text.as_bytes()).expect("the gateway reads");
        Self { stream, seen: String::new() }
    }

    /// Reads until `text` has come; all that has.
    pub(crate) fn read_until(&mut self, text: &str) -> &str {
        while !self.seen.contains(text) {
            self.more(text);
        }
        &self.seen
    }

    /// The whole answer.
    pub(crate) fn answer(&mut self) -> Answered {
        self.read_until("\r\n\r\n");
        let (head, _) = self.seen.split_once("\r\n\r\n").expect("it was read");
        let head = head.to_lowercase();
        let length: Option<usize> = head
            .lines()
            .find_map(|l| l.strip_prefix("content-length: "))
            .map(|n| n.parse().expect("a length"));
        match length {
            Some(length) => {
                while self.seen.len() < head.len() + 4 + length {
                    self.more("a body");
                }
            }
            None => {
                self.read_until("0\r\n\r\n");
            }
        }
        let body = self.seen[head.len() + 4..].to_owned();
        Answered { status: head[9..12].parse().expect("a status"), head, body }
    }

    fn more(&mut self, wanted: &str) {
        let mut buffer = [0; 4_096];
        let n = self.stream.read(&mut buffer).expect("an answer in time");
        assert!(n > 0, "the connection ended before {wanted}: {}", self.seen);
        self.seen.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
}

impl Answered {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header_of(&self.head, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("a document")
    }
}

/// A provider that does nothing but what a test tells it.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    calls: Receiver<Call>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// A request that reached it, and the way back.
pub(crate) struct Call {
    pub(crate) head: String,
    pub(crate) body: String,
    stream: TcpStream,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    pub(crate) fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (sender, calls) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let sender = sender.clone();
                thread::spawn(move || {
                    let mut reader = stream.try_clone().expect("a descriptor");
                    while let Some((head, body)) = request(&mut reader) {
                        let stream = stream.try_clone().expect("a descriptor");
                        if sender.send(Call { head, body, stream }).is_err() {
                            return;
                        }
                        // one call on a connection at a time: the next one only comes after the answer
                        if !peek(&reader) {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, calls, over, thread: Some(thread) }
    }

    /// The next request that comes.
    pub(crate) fn next(&self) -> Call {
        self.calls.recv_timeout(PATIENCE).expect("a call from the gateway")
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // wakes the listener, which then ends and is closed
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Call {
    pub(crate) fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).expect("the gateway listens for its answer");
    }

    /// A success that used so many tokens.
    pub(crate) fn succeed(&mut self, used: u64) {
        let body = json!({ "choices": [], "usage": { "total_tokens": used } }).to_string();
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json";
        self.write(&format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}"));
    }

    /// An answer with a status, further headers (each line with its end) and a body.
    pub(crate) fn answer(&mut self, status: u16, head: &str, body: &str) {
        let length = body.len();
        self.write(&format!("HTTP/1.1 {status} X\r\n{head}content-length: {length}\r\n\r\n{body}"));
    }

    /// The head and the first event of a stream.
    pub(crate) fn begin_stream(&mut self) {
        self.write(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        );
        self.write("9\r\ndata: 1\n\n\r\n");
    }

    /// An event of a stream.
    pub(crate) fn event(&mut self, data: &str) {
        let event = format!("data: {data}\n\n");
        self.write(&format!("{:x}\r\n{event}\r\n", event.len()));
    }

    /// The last event of a stream.
    pub(crate) fn end_stream(&mut self) {
        self.write("e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    }

    /// Ends the connection, whatever was promised on it.
    pub(crate) fn cut(self) {
        self.stream.shutdown(Shutdown::Both).expect("it is open");
    }

    /// Waits until the gateway has closed the connection; false if it does not.
    pub(crate) fn was_closed(&mut self) -> bool {
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        match self.stream.read(&mut [0; 64]) {
            Ok(n) => n == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// Waits for more on a connection without taking it; false at its end.
fn peek(stream: &TcpStream) -> bool {
    stream.peek(&mut [0; 1]).is_ok_and(|n| n > 0)
}

/// Reads one request; `None` at the end of the connection.
fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4_096];
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_owned();
            let length =
                head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
            if body.len() >= length {
                return Some((head, body.to_owned()));
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => seen.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

fn node(value: &Value) -> Node {
    let place = Place::File { line: 1, column: 1 };
    let inner = match value {
        Value::Array(list) => units::Value::List(list.iter().map(node).collect()),
        Value::Object(map) => units::Value::Map(
            map.iter().map(|(key, v)| (Key { text: key.clone(), place: place.clone() }, node(v))).collect(),
        ),
        Value::String(text) => return Node::text(text.as_str(), place),
        other => return Node::text(other.to_string(), place),
    };
    Node { place, value: inner }
}
