//! The two processes of a measurement: a plain server on one core, a sender on the other.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::{Value, json};
use tenfold::live::selftest::{Manner, Plain, Spacing, drive};
use tenfold::live::{Clock, run_before_others};
use tenfold::plan;

use crate::{Outcome, floor};

/// When memory is looked at: the load begins 0.3 s after its start, and 9.5 s of it are open then.
const BEFORE_ANSWERS: Duration = Duration::from_millis(9_800);

/// The core of every sender; the server has the other one.
pub(crate) const SENDER: usize = 0;
const SERVER: usize = 1;

/// Keeps this process on one core, where there are two.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // a machine of one core, or a stricter set: the figures then say so by themselves
    let _ = sched_setaffinity(None, &set);
}

/// A millisecond figure.
pub(crate) fn millis(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// The part of this program that `args` ask for.
pub(crate) fn play(role: &str, args: &[String]) -> Outcome<()> {
    match role {
        "part-server" => serve(args),
        "part-tenfold" => tenfold(args),
        "part-floor" => {
            run_before_others();
            raise_descriptors();
            say(&floor::send(&args[0], args[1].parse()?, args[2].parse()?)?)
        }
        other => Err(format!("no part `{other}`").into()),
    }
}

fn say(value: &Value) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    Ok(out.flush()?)
}

/// A plain server: says its URL, then for each rate it is asked for how evenly requests have come since.
fn serve(args: &[String]) -> Outcome<()> {
    pin(SERVER);
    raise_descriptors();
    let delay = Duration::from_millis(args[0].parse()?);
    let freeze: u64 = args[1].parse()?;
    let freeze = (freeze > 0).then(|| (Duration::from_secs(5), Duration::from_millis(freeze)));
    let server =
        Plain::start(Clock::start(), Manner { delay, freeze, streams: args[2].parse()?, forgets: false })?;
    say(&json!(server.url()))?;
    for line in std::io::stdin().lock().lines() {
        let rate: f64 = line?.trim().parse()?;
        let arrivals = server.take_arrivals();
        let spacing = Spacing::of(&arrivals, rate);
        say(&json!({
            "count": arrivals.len(),
            "connections": server.connections(),
            "p50": spacing.map(|s| millis(s.p50)),
            "p99": spacing.map(|s| millis(s.p99)),
            "worst": spacing.map(|s| millis(s.worst)),
            "rate": spacing.map(|s| s.rate),
        }))?;
    }
    Ok(())
}

/// The plan of a steady load.
fn steady(url: &str, rate: &str, secs: &str, request: &str) -> String {
    format!(
        "tenfold: 1\nname: generator\n\
         load: {{ arrivals: constant, phases: [{{ name: steady, rate: {rate}/s, for: {secs}s }}] }}\n\
         requests: [{{ name: ask, prompt: {{ tokens: 8 }}, max_tokens: 4, deadline: 60s }}]\n\
         provider: {{ quota: {{ tokens_per_minute: 10_000_000_000, burst: 10s }}, service: {{ first_token: 1ms, per_token: 0ms }} }}\n\
         target: {{ url: '{url}', request: {{ {request} }} }}\nmax_outstanding: 100_000\n"
    )
}

/// tenfold's callers: URL, rate, seconds, keys of `target.request`.
fn tenfold(args: &[String]) -> Outcome<()> {
    pin(SENDER);
    raise_descriptors();
    let [url, rate, secs, request] = args else { return Err("four arguments are wanted".into()) };
    let text = steady(url, rate, secs, request);
    let loaded = plan::parse(&text, &[], &|_| None).map_err(|faults| format!("{faults:?}"))?;
    let before = resident("VmRSS");
    // just before the first answer of a server that answers after ten seconds
    let looking = std::thread::spawn(|| {
        std::thread::sleep(BEFORE_ANSWERS);
        resident("VmRSS")
    });
    let driven = drive(&loaded.plan.rehearsed(), url)?;
    // a shorter load is not waited for
    let held =
        if looking.is_finished() { looking.join().map_err(|_| "the look at memory panicked")? } else { None };
    let measures = &driven.measures;
    let lag = |q| measures.lag.quantile(q).map(millis);
    let latency =
        |q| measures.latencies.from_due(tenfold::observe::Outcome::Completed).quantile(q).map(millis);
    let failures: Vec<String> =
        measures.failures.iter().map(|(why, often)| format!("{why}: {}", often.count)).collect();
    say(&json!({
        "cpu": driven.cpu.as_secs_f64(),
        "offered": measures.offered,
        "completed": measures.arrivals.get(tenfold::observe::Outcome::Completed),
        "unsent": measures.arrivals.get(tenfold::observe::Outcome::Unsent),
        "failed": measures.arrivals.get(tenfold::observe::Outcome::Failed),
        "achieved": measures.achieved(),
        "lag_p50": lag(0.5), "lag_p99": lag(0.99),
        "p50": latency(0.5), "p90": latency(0.9), "p99": latency(0.99),
        "before_kb": before, "held_kb": held, "peak_kb": resident("VmHWM"),
        "failures": failures,
    }))
}

/// A figure of our memory in kB.
fn resident(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // the limit stays as it is: a measurement that needs more says so
    let _ = setrlimit(Resource::Nofile, limit);
}

/// A child process of this program that plays a part.
fn part(args: &[&str]) -> Outcome<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(args).stdout(Stdio::piped());
    Ok(command)
}

/// A plain server in a process of its own, which ends with this.
pub(crate) struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) url: String,
}

impl Server {
    /// One that answers after `delay`, and freezes for `freeze` once, five seconds after its first request.
    pub(crate) fn start(delay: Duration, freeze: Duration, streams: u32) -> Outcome<Self> {
        let (delay, freeze) = (delay.as_millis().to_string(), freeze.as_millis().to_string());
        let mut child =
            part(&["part-server", &delay, &freeze, &streams.to_string()])?.stdin(Stdio::piped()).spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut server = Self { child, out, url: String::new() };
        server.url = server.line()?.as_str().ok_or("no URL")?.to_owned();
        Ok(server)
    }

    fn line(&mut self) -> Outcome<Value> {
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// How evenly requests have come at `rate` since this was last asked.
    pub(crate) fn seen(&mut self, rate: u64) -> Outcome<Value> {
        writeln!(self.child.stdin.as_mut().ok_or("no stdin")?, "{rate}")?;
        self.line()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // it may have ended by itself
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a part that ends by itself says.
pub(crate) fn said(args: &[&str]) -> Outcome<Value> {
    let output = part(args)?.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.trim())
        .map_err(|_| format!("{args:?}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
