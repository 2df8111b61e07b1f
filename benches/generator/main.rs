//! The generator beside its peers: how evenly it sends, what it costs, what memory an open request takes.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::error::Error;
use std::time::Duration;

mod floor;
mod parts;

use parts::{Server, said};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some((role, rest)) = args.split_first().filter(|(role, _)| role.starts_with("part-")) {
        return parts::play(role, rest);
    }
    let secs = std::env::var("SECS").unwrap_or("5".into());
    let request = std::env::var("REQ").unwrap_or("health: /healthz".into());
    let load = std::env::var("LOAD").unwrap_or_default();
    let rates = std::env::var("RATES").unwrap_or("100 1000 5000 10000 20000".into());
    for rate in rates.split(' ').map(|r| r.parse::<u64>()) {
        let rate = rate?;
        let mut server = Server::start(Duration::ZERO, Duration::ZERO, 1000)?;
        for part in ["part-floor", "part-tenfold"] {
            let mut v = vec![part, &server.url];
            let r = rate.to_string();
            v.extend([r.as_str(), &secs]);
            if part == "part-tenfold" { v.extend([request.as_str(), load.as_str()]); }
            let out = match said(&v) { Ok(o) => o, Err(e) => { println!("{part} {rate} {e}"); continue } };
            let seen = server.seen(rate)?;
            let cpu = out["cpu"].as_f64().unwrap_or(0.0) / out["offered"].as_f64().unwrap_or(1.0) * 1000.0;
            println!("{rate:>6} {part:>13} D p50 {:.3} p99 {:.3} worst {:.1} cpu {cpu:.4} rate {:.1} conns {} lag {} {} lat {} {} unsent {} failed {} {}", seen["p50"].as_f64().unwrap_or(-1.), seen["p99"].as_f64().unwrap_or(-1.), seen["worst"].as_f64().unwrap_or(-1.), seen["rate"].as_f64().unwrap_or(-1.), seen["connections"], out["lag_p50"], out["lag_p99"], out["p50"], out["p99"], out["unsent"], out["failed"], out["failures"]);
        }
    }
    Ok(())
}
