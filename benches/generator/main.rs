//! The generator beside its peers: how evenly it sends, what that costs, and what an open request takes of memory.
//!
//! `cargo bench --bench generator` prints everything in about five minutes; `-- --only table` (or `memory`, `freeze`)
//! prints a part, `--rates 1000,5000`, `--seconds 4` and `--repeat 3` change it. Every sender is a process of its own on
//! the first core, a plain server one on the second, and all of them run before what else the machine does, as far as
//! that is permitted (it says which; a service that takes its core for 5 ms once a second is a D of 2 ms). Peers that are
//! not installed are skipped, and it is said so.
//!
//! D is the p99 deviation of the cumulative count from `rate × t` as the server saw it; the origin of `t` is where half of
//! the requests came before their instant and half after it, so that a constant transit time is no deviation.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::error::Error;
use std::time::Duration;

use serde_json::Value;

mod floor;
mod parts;
mod peers;

use parts::{Server, said};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// What is measured, and for how long.
struct Asked {
    only: Option<String>,
    rates: Vec<u64>,
    seconds: u64,
    repeat: usize,
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some((role, rest)) = args.split_first().filter(|(role, _)| role.starts_with("part-")) {
        return parts::play(role, rest);
    }
    let asked = read(&args)?;
    let wanted = |part: &str| asked.only.as_deref().is_none_or(|only| only == part);
    // what is started from here inherits the core
    parts::pin(parts::SENDER);
    if wanted("table") {
        table(&asked)?;
    }
    if wanted("memory") {
        memory()?;
    }
    if wanted("freeze") {
        freeze()?;
    }
    Ok(())
}

fn read(args: &[String]) -> Outcome<Asked> {
    let mut asked =
        Asked { only: None, rates: vec![100, 1_000, 5_000, 10_000, 20_000], seconds: 10, repeat: 3 };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value"));
        match arg.as_str() {
            "--only" => asked.only = Some(value()?.clone()),
            "--rates" => asked.rates = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--seconds" => asked.seconds = value()?.parse()?,
            "--repeat" => asked.repeat = value()?.parse()?,
            // cargo says so itself
            "--bench" => {}
            other => return Err(format!("unknown: {other}").into()),
        }
    }
    Ok(asked)
}

/// A sender of the table, and the keys of `target.request` if it is tenfold.
const OURS: [(&str, &str); 3] =
    [("bare socket", ""), ("tenfold, reqwest", "sender: reqwest"), ("tenfold, hyper", "sender: hyper")];

/// What a sender came to at one rate.
struct Row {
    d: f64,
    cpu: f64,
    rate: f64,
    more: String,
}

fn table(asked: &Asked) -> Outcome<()> {
    let scheduling = tenfold::live::scheduling_permitted()?;
    println!(
        "{} s a point, {} of each, the one with the median D; D in ms, its span, CPU in s per 1,000 requests, both also as \
         ratios to the bare socket beside them; scheduling: {scheduling}",
        asked.seconds, asked.repeat
    );
    println!(
        "{:>9}  {:<17} {:>8} {:>7} {:>11} {:>8} {:>7} {:>9}",
        "offered/s", "sender", "D", "ratio", "span", "CPU", "ratio", "rate/s"
    );
    let (there, absent) = peers::installed();
    for rate in &asked.rates {
        // the first is the bare socket
        let mut floor = None;
        for (name, request) in OURS {
            row(asked, (*rate, name), &mut floor, |server| ours(server, *rate, asked.seconds, request))?;
        }
        for peer in &there {
            row(asked, (*rate, peer.name), &mut floor, |server| peer.send(server, *rate, asked.seconds))?;
        }
    }
    if !absent.is_empty() {
        println!("not installed, and so not measured: {}", absent.join(", "));
    }
    Ok(())
}

/// Measures and prints a row. `floor` is D and CPU of the first at its rate.
fn row(
    asked: &Asked,
    (rate, name): (u64, &str),
    floor: &mut Option<(f64, f64)>,
    send: impl Fn(&mut Server) -> Outcome<Row>,
) -> Outcome<()> {
    let mut rows = Vec::new();
    for _ in 0..asked.repeat {
        let mut server = Server::start(Duration::ZERO, Duration::ZERO, 1_000)?;
        match send(&mut server) {
            Ok(row) => rows.push(row),
            Err(error) => println!("{rate:>9}  {name:<17} fails: {error}"),
        }
    }
    rows.sort_by(|a, b| a.d.total_cmp(&b.d));
    let span = rows.first().zip(rows.last()).map(|(least, most)| (least.d, most.d));
    if let Some((Row { d, cpu, rate: reached, more }, (least, most))) = rows.get(rows.len() / 2).zip(span) {
        let span = format!("{least:.2}-{most:.2}");
        let (least_d, least_cpu) = *floor.get_or_insert((*d, *cpu));
        println!(
            "{rate:>9}  {name:<17} {d:>8.3} {:>7.2} {span:>11} {cpu:>8.4} {:>7.2} {reached:>9.1}  {more}",
            d / least_d,
            cpu / least_cpu
        );
    }
    Ok(())
}

/// One of our own senders; the bare socket where no keys are given.
fn ours(server: &mut Server, rate: u64, secs: u64, request: &str) -> Outcome<Row> {
    let (url, rate_text, secs) = (server.url.clone(), rate.to_string(), secs.to_string());
    let out = match request {
        "" => said(&["part-floor", &url, &rate_text, &secs])?,
        request => said(&["part-tenfold", &url, &rate_text, &secs, request])?,
    };
    let more = match out.get("lag_p99").and_then(Value::as_f64) {
        Some(lag) => format!("lag p99 {lag:.2} ms, unsent {}, failed {}", out["unsent"], out["failed"]),
        None => String::new(),
    };
    seen(server, rate, number(&out, "cpu")? / number(&out, "offered")? * 1e3, more)
}

/// What the server saw of a sender that used `cpu` seconds for 1,000 requests.
fn seen(server: &mut Server, rate: u64, cpu: f64, more: String) -> Outcome<Row> {
    let seen = server.seen(rate)?;
    let more =
        format!("{more}{}{} connections", if more.is_empty() { "" } else { ", " }, seen["connections"]);
    Ok(Row { d: number(&seen, "p99")?, cpu, rate: number(&seen, "rate")?, more })
}

pub(crate) fn number(value: &Value, key: &str) -> Outcome<f64> {
    value[key].as_f64().ok_or_else(|| format!("no {key} in {value}").into())
}

/// What is held open, how, and what it may take a request: keys, rate, seconds, kB.
const HELD: [(&str, u64, u64, f64); 5] = [
    ("sender: reqwest", 1_000, 20, 25.0),
    ("sender: hyper", 1_000, 20, 25.0),
    ("sender: reqwest, http: 2", 1_000, 20, 8.0),
    ("sender: hyper, http: 2", 1_000, 20, 8.0),
    ("sender: hyper, http: 2", 3_000, 10, 8.0),
];

/// A server that answers after ten seconds.
fn memory() -> Outcome<()> {
    println!("\nanswers after 10 s: resident memory of each open request, and whether the rate was kept");
    for (keys, rate, secs, goal) in HELD {
        let mut server = Server::start(Duration::from_secs(10), Duration::ZERO, 100)?;
        let url = server.url.clone();
        let out = match said(&["part-tenfold", &url, &rate.to_string(), &secs.to_string(), keys]) {
            Ok(out) => out,
            Err(error) => {
                println!("  {keys:<26} {rate:>5}/s fails: {error}");
                continue;
            }
        };
        let seen = server.seen(rate)?;
        let open = (rate * secs.min(10)) as f64;
        let before = number(&out, "before_kb")?;
        let held = (number(&out, "held_kb")? - before) / (rate as f64 * 9.5);
        let peak = (number(&out, "peak_kb")? - before) / open;
        println!(
            "  {keys:<26} {rate:>5}/s {open:>6} open: {held:>5.1} kB each before the first answer, {peak:>5.1} at the peak, \
             answers and what is remembered of them included (goal {goal}), rate {:+.3} %, count off by {:.2} ms at most in 99 \
             of 100, {} of {} completed, {} unsent, {} failed, {} connections, lag p99 {:.2} ms",
            (number(&seen, "rate")? / rate as f64 - 1.0) * 100.0,
            number(&seen, "p99")?,
            out["completed"],
            out["offered"],
            out["unsent"],
            out["failed"],
            seen["connections"],
            number(&out, "lag_p99")?,
        );
    }
    Ok(())
}

/// A server that freezes for five seconds, five seconds into a load of fifteen.
fn freeze() -> Outcome<()> {
    let server = Server::start(Duration::ZERO, Duration::from_secs(5), 100)?;
    let url = server.url.clone();
    let out = said(&["part-tenfold", &url, "500", "15", "sender: reqwest"])?;
    println!("\na target that freezes for 5 s: 500/s for 15 s");
    println!(
        "  {} of {} sent, {} unsent; from their due times p50 {:.1} ms, p90 {:.0} ms, p99 {:.0} ms",
        out["completed"],
        out["offered"],
        out["unsent"],
        number(&out, "p50")?,
        number(&out, "p90")?,
        number(&out, "p99")?
    );
    Ok(())
}
