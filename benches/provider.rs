//! What the provider does at its limits, by either engine: requests a second, many delayed answers, many streams.
//!
//! `cargo bench --bench provider`. The provider is a process of its own; its processor time and its anonymous memory are
//! read from `/proc`, so that the figures are its own on a machine that is busy with other things. It works on one
//! thread: a second of its processor time is what one core gives. About half a minute.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod served;

use std::cell::Cell;
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tenfold::live::Clock;
use tenfold::provider::wire::Api as _;
use tenfold::provider::wire::openai::{self, OpenAi};
use tenfold::units::Tokens;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use self::served::{Outcome, Served};

/// Requests a second, and for how long.
const RATE: (u64, Duration) = (5_000, Duration::from_secs(5));
/// Connections they share.
const CONNECTIONS: u64 = 100;
/// Delayed answers at once, and by how much they are delayed.
const DELAYED: (u64, &str) = (10_000, "6s");
/// Streams at once, tokens of each, and from one token to the next.
const STREAMS: (u64, u64, &str) = (2_000, 250, "20ms");
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(engine: &str, first_token: &str, per_token: &str) -> Outcome<Served> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenfold"));
    command.args(["serve", "provider", concat!(env!("CARGO_MANIFEST_DIR"), "/plans/streams.yaml")]);
    for (key, value) in [
        ("requests.chat.stream", "false"),
        ("provider.engine", engine),
        ("provider.service.first_token", first_token),
        ("provider.service.per_token", per_token),
        ("provider.quota.tokens_per_minute", "100_000_000_000"),
    ] {
        command.args(["--set", &format!("{key}={value}")]);
    }
    Served::start(command, "")
}

fn request(tokens: u64, stream: bool) -> Rc<str> {
    let body = OpenAi.request("m", &openai::prompt(100, 900), Tokens::new(tokens), "u", stream);
    let head = "HTTP/1.1\r\nhost: p\r\ncontent-type: application/json\r\nx-request-id: a\r\ncontent-length:";
    format!("POST {} {head} {}\r\n\r\n{body}", openai::PATH, body.len()).into()
}

/// Sends a request and reads its whole answer.
async fn exchange(stream: &mut TcpStream, request: &str, buffer: &mut Vec<u8>) -> Outcome<()> {
    stream.write_all(request.as_bytes()).await?;
    buffer.clear();
    // an answer of few words ends with its first closing brace at the end of what has come
    while !(buffer.ends_with(b"}") && buffer.windows(4).any(|four| four == b"\r\n\r\n")) {
        if stream.read_buf(buffer).await? == 0 {
            return Err("the connection ended".into());
        }
    }
    if buffer.starts_with(b"HTTP/1.1 200") { Ok(()) } else { Err("no success".into()) }
}

/// So many requests a second, each in its time, whatever becomes of the others.
async fn rate(engine: &str) -> Outcome<()> {
    let provider = start(engine, "5ms", "0ms")?;
    let clock = Clock::start();
    let (done, wrong) = (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
    let (request, each) = (request(4, false), RATE.1.as_secs() * RATE.0 / CONNECTIONS);
    let start = clock.now() + Duration::from_millis(200);
    let mut tasks = Vec::new();
    for n in 0..CONNECTIONS {
        let mut stream = TcpStream::connect(&provider.address).await?;
        stream.set_nodelay(true)?;
        let (request, done, wrong) = (Rc::clone(&request), Rc::clone(&done), Rc::clone(&wrong));
        tasks.push(spawn_local(async move {
            let mut buffer = Vec::new();
            for i in 0..each {
                let due = start + Duration::from_secs_f64((i * CONNECTIONS + n) as f64 / RATE.0 as f64);
                tokio::time::sleep_until(clock.tokio_instant(due)).await;
                let count =
                    if exchange(&mut stream, &request, &mut buffer).await.is_ok() { &done } else { &wrong };
                count.set(count.get() + 1);
            }
        }));
    }
    let before = provider.cpu()?;
    for task in tasks {
        timeout(PATIENCE, task).await??;
    }
    let (took, cpu) = (clock.now().since(start).as_secs_f64(), provider.cpu()? - before);
    let each = cpu / done.get() as f64;
    println!(
        "{engine}: {:.0} requests/s answered for {took:.1} s, {} wrong; {:.0} µs of processor time each: {:.0}/s on one core; \
         {:.1} MB after it",
        done.get() as f64 / took,
        wrong.get(),
        each * 1e6,
        1.0 / each,
        provider.memory()? as f64 / 1e6,
    );
    Ok(())
}

/// Many answers that are all on their way at once, three times over.
async fn delayed(engine: &str) -> Outcome<()> {
    let provider = start(engine, DELAYED.1, "0ms")?;
    let (request, clock) = (request(4, false), Clock::start());
    let idle = provider.memory()?;
    let mut streams = Vec::new();
    for _ in 0..DELAYED.0 {
        streams.push(TcpStream::connect(&provider.address).await?);
    }
    let connected = provider.memory()?;
    let mut peaks = Vec::new();
    for _ in 0..3 {
        let (begun, mut tasks) = (clock.now(), Vec::new());
        for mut stream in streams.drain(..) {
            let request = Rc::clone(&request);
            tasks.push(spawn_local(async move {
                let answered = exchange(&mut stream, &request, &mut Vec::new()).await.is_ok();
                (answered, stream)
            }));
        }
        sleep(Duration::from_secs(5)).await;
        let early = tasks.iter().filter(|task| task.is_finished()).count();
        peaks.push((provider.memory()? as f64 - idle as f64) / 1e6);
        let mut answered = 0;
        for task in tasks {
            let (well, stream) = timeout(PATIENCE, task).await??;
            answered += u64::from(well);
            streams.push(stream);
        }
        let took = clock.now().since(begun).as_secs_f64();
        println!("{engine}: {answered} delayed answers after {took:.1} s, {early} of them before 5 s");
    }
    println!(
        "{engine}: memory {:.1} MB for {} connections, with their requests under way {:.1}, {:.1} and {:.1} MB",
        (connected as f64 - idle as f64) / 1e6,
        DELAYED.0,
        peaks[0],
        peaks[1],
        peaks[2],
    );
    Ok(())
}

/// Many streams at once.
async fn streams() -> Outcome<()> {
    let (count, tokens, gap) = STREAMS;
    let provider = start("stream", "1s", gap)?;
    let (request, clock, idle) = (request(tokens, true), Clock::start(), provider.memory()?);
    let (events, reads, ends) =
        (Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)), Rc::new(Cell::new(0u64)));
    let mut tasks = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(&provider.address).await?;
        stream.set_nodelay(true)?;
        let (request, events, reads, ends) =
            (Rc::clone(&request), Rc::clone(&events), Rc::clone(&reads), Rc::clone(&ends));
        tasks.push(spawn_local(async move {
            stream.write_all(request.as_bytes()).await?;
            let (mut buffer, mut last) = ([0; 4 << 10], 0);
            loop {
                let read = stream.read(&mut buffer).await?;
                let piece = &buffer[..read];
                // an event ends with an empty line, and nothing else is one
                for byte in piece {
                    events.set(events.get() + u64::from((last, *byte) == (b'\n', b'\n')));
                    last = *byte;
                }
                reads.set(reads.get() + 1);
                if read == 0 || piece.ends_with(b"0\r\n\r\n") {
                    ends.set(ends.get() + u64::from(read > 0));
                    return Ok::<_, std::io::Error>(());
                }
            }
        }));
    }
    // all of them speak by then, and none has ended
    sleep(Duration::from_secs(2)).await;
    let (at, cpu, before, read) = (clock.now(), provider.cpu()?, events.get(), reads.get());
    sleep(Duration::from_secs(3)).await;
    let took = clock.now().since(at).as_secs_f64();
    let per_second = |n: u64| n as f64 / took;
    let (cpu, memory) = (provider.cpu()? - cpu, provider.memory()? as f64 - idle as f64);
    let rate = per_second(events.get() - before);
    println!(
        "stream: {rate:.0} events/s in {count} streams, {:.0} reads/s; {:.2} of a core; {:.1} MB, {:.1} kB a stream",
        per_second(reads.get() - read),
        cpu / took,
        memory / 1e6,
        memory / 1e3 / count as f64,
    );
    for task in tasks {
        timeout(PATIENCE, task).await???;
    }
    println!(
        "stream: {} of {count} ended in order, {:.1} s after the first began",
        ends.get(),
        clock.now().as_secs_f64()
    );
    Ok(())
}

fn main() -> Outcome<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        for engine in ["wiremock", "stream"] {
            rate(engine).await?;
            delayed(engine).await?;
        }
        streams().await
    })
}
