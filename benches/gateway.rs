//! What the reference gateway does at its limits: the memory of many that wait, and how many it refuses while it serves
//! at capacity.
//!
//! `cargo bench --bench gateway`. The gateway is a process of its own; its processor time and its anonymous memory are
//! read from `/proc`, so that the figures are its own on a machine that is busy with other things. About twenty seconds.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod served;

use std::cell::Cell;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use tenfold::live::Clock;
use tenfold::provider::Limits;
use tenfold::provider::wire::openai::{self, OpenAi};
use tenfold::provider::wire::{Api as _, Made};
use tenfold::units::{Moment, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use self::served::{Outcome, Served};

/// Requests that wait at once.
const WAITING: usize = 15_000;
/// Answers a second that the budget pays for.
const CAPACITY: f64 = 500.0;
/// Callers a second, besides those who are served.
const OVER: f64 = 10_500.0;
/// Connections the callers have.
const CONNECTIONS: usize = 2_500;
/// Tokens of a prompt, and of an answer.
const TOKENS: (u64, u64) = (800, 400);
/// Bytes of a prompt.
const BYTES: u64 = 6_000;
/// How long a measurement takes, after as long a time to warm up as its queue needs to fill.
const LASTS: Duration = Duration::from_secs(5);
/// How long anything else may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(config: &str) -> Outcome<Served> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
    command.args(["serve", "gateway", "--config", "-"]);
    Served::start(command, config)
}

/// A number of the `/metrics` of the gateway at `address`.
async fn read(address: &str, name: &str) -> Outcome<u64> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n").await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    let line = page.lines().find_map(|l| l.strip_prefix("tenfold_gateway_")?.strip_prefix(name));
    Ok(line.ok_or("no such number")?.trim().parse()?)
}

/// The next message on a connection: its head and the size of its body, which is read and let go.
async fn message(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<String> {
    let head = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = buffer.split_off(end + 4);
            break String::from_utf8(std::mem::replace(buffer, rest)).ok()?;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let length =
        head.lines().find_map(|l| l.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let length: usize = length?;
    while buffer.len() < length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    buffer.drain(..length);
    Some(head)
}

/// A provider that answers each request after five milliseconds.
async fn provider(listener: TcpListener) {
    let (prompt, output) = (Tokens::new(TOKENS.0), Tokens::new(TOKENS.1));
    let limits = Limits { per_minute: output, remaining: output, reset: Duration::ZERO, requests: None };
    let made = Made { id: "x", model: "m", prompt, output, limits: &limits, unix: Duration::ZERO };
    let body = OpenAi.answer(&made);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length:";
    let answer: Rc<str> = format!("{head} {}\r\n\r\n{body}", body.len()).into();
    while let Ok((mut stream, _)) = listener.accept().await {
        let answer = Rc::clone(&answer);
        spawn_local(async move {
            let mut buffer = Vec::new();
            while message(&mut stream, &mut buffer).await.is_some() {
                sleep(Duration::from_millis(5)).await;
                if stream.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

/// A request whose caller waits so long.
fn request(deadline: Duration) -> Rc<str> {
    let body = OpenAi.request("m", &openai::prompt(TOKENS.0, BYTES), Tokens::new(TOKENS.1), "u", false);
    let (path, ms, length) = (openai::PATH, deadline.as_millis(), body.len());
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: g\r\nx-request-timeout-ms: {ms}\r\ncontent-length: {length}");
    format!("{head}\r\n\r\n{body}").into()
}

fn config(provider: &str, bound: &str, tokens_per_second: f64, burst: &str) -> String {
    let minute = (tokens_per_second * 60.0) as u64;
    format!(
        "{{provider: 'http://{provider}', bound: {bound}, service: {{start: 50ms}}, margin: 200ms, \
         budgets: {{tokens_per_minute: {minute}, burst: {burst}}}}}"
    )
}

/// Lets many wait, and looks at what they take.
async fn memory(provider: &str) -> Outcome<()> {
    // 1,200 tokens in twenty minutes: the first goes, all others wait
    let gateway = start(&config(provider, "none", 1.0, "1200s"))?;
    let request = request(Duration::from_secs(590));
    read(&gateway.address, "queue_requests").await?;
    let before = gateway.memory()?;
    let mut open = Vec::with_capacity(WAITING + 1);
    for _ in 0..=WAITING {
        let mut stream = TcpStream::connect(&gateway.address).await?;
        stream.write_all(request.as_bytes()).await?;
        open.push(stream);
    }
    let filled = async {
        while read(&gateway.address, "queue_requests").await.unwrap_or(0) < WAITING as u64 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, filled).await.map_err(|_| "the queue did not fill")?;
    let grown = gateway.memory()? - before;
    println!("memory: {WAITING} waiting requests with bodies of {} bytes", request.len());
    println!("  before the load       {:>9.1} MB", before as f64 / 1e6);
    println!("  growth                {:>9.1} MB", grown as f64 / 1e6);
    println!("  for each that waits   {:>9.0} bytes", grown as f64 / WAITING as f64);
    println!("  cpu for each arrival  {:>9.1} us", gateway.cpu()? / WAITING as f64 * 1e6);
    Ok(())
}

/// What callers saw.
#[derive(Default)]
struct Seen {
    answered: Cell<u64>,
    late: Cell<u64>,
    refused: Cell<u64>,
    other: Cell<u64>,
}

/// One connection that sends a request for each permit it gets.
async fn caller(
    address: Rc<str>,
    text: Rc<str>,
    due: Rc<Semaphore>,
    seen: Rc<Seen>,
    clock: Clock,
    patience: Duration,
) {
    let Ok(mut stream) = TcpStream::connect(&*address).await else { return };
    // without it a request is only slower
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::new();
    while let Ok(permit) = due.acquire().await {
        permit.forget();
        let sent = clock.now();
        let came = match stream.write_all(text.as_bytes()).await {
            Ok(()) => message(&mut stream, &mut buffer).await,
            Err(_) => None,
        };
        let count = match came.as_deref().and_then(|head| head.get(9..12)) {
            Some("200") if clock.now().since(sent) <= patience => &seen.answered,
            Some("200") => &seen.late,
            Some("503") => &seen.refused,
            _ => &seen.other,
        };
        count.set(count.get() + 1);
        if came.is_none() {
            return;
        }
    }
}

/// Sends `rate` requests a second (as many as it can without one) and looks at what becomes of them.
async fn overload(provider: &str, rate: Option<f64>) -> Outcome<()> {
    let per_second = CAPACITY * (TOKENS.0 + TOKENS.1) as f64;
    let gateway = start(&config(provider, "deadline", per_second, "100ms"))?;
    let patience = Duration::from_secs(2);
    let (text, clock) = (request(patience), Clock::start());
    let (due, seen) = (Rc::new(Semaphore::new(0)), Rc::new(Seen::default()));
    let address: Rc<str> = gateway.address.as_str().into();
    for _ in 0..CONNECTIONS {
        let (address, text) = (Rc::clone(&address), Rc::clone(&text));
        spawn_local(caller(address, text, Rc::clone(&due), Rc::clone(&seen), clock, patience));
    }
    let begun = clock.now();
    let mut sent = 0;
    let mut pace = async |until: Moment| {
        while clock.now() < until {
            match rate {
                Some(rate) => {
                    let wanted = (clock.now().since(begun).as_secs_f64() * rate) as usize;
                    due.add_permits(wanted - sent);
                    sent = wanted;
                }
                None => due.add_permits(CONNECTIONS.saturating_sub(due.available_permits())),
            }
            sleep(Duration::from_millis(1)).await;
        }
    };
    pace(begun + patience + patience).await;
    let figures = || -> Outcome<[f64; 5]> {
        let counts = [&seen.answered, &seen.late, &seen.refused, &seen.other].map(|count| count.get() as f64);
        Ok([clock.now().as_nanos() as f64 / 1e9, gateway.cpu()?, counts[0], counts[1] + counts[3], counts[2]])
    };
    let (start, from) = (clock.now(), figures()?);
    pace(start + LASTS).await;
    let to = figures()?;
    let [secs, cpu, answered, bad, refused] = std::array::from_fn(|i| to[i] - from[i]);
    let waiting = read(&gateway.address, "queue_requests").await?;
    println!(
        "overload: {}",
        rate.map_or_else(|| "as fast as the callers can".into(), |r| format!("{r:.0} requests a second"))
    );
    println!("  refused               {:>9.0} /s", refused / secs);
    println!("  refused per core      {:>9.0} /s", refused / cpu);
    println!("  gateway's processor   {:>9.0} %", cpu / secs * 100.0);
    println!("  goodput               {:>9.1} % of {CAPACITY:.0} /s", answered / secs / CAPACITY * 100.0);
    println!("  late or failed        {:>9.1} /s", bad / secs);
    println!("  waiting at the end    {waiting:>9}");
    println!("  callers without a connection to send on: {}", due.available_permits());
    Ok(())
}

fn main() -> Outcome<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default())?;
    // the provider has a thread of its own, so that the callers' haste does not slow it down
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?.to_string();
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
        let served = runtime.map(|runtime| {
            runtime.block_on(async {
                if let Ok(listener) = TcpListener::from_std(listener) {
                    provider(listener).await;
                }
            });
        });
        served.expect("the provider has a runtime");
    });
    runtime.block_on(async {
        memory(&address).await?;
        overload(&address, Some(OVER + CAPACITY)).await?;
        overload(&address, None).await
    })
}
