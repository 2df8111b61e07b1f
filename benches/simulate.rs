//! How fast virtual time passes: events a second with policy code, with and without measuring, the flash promotion
//! until its queue is empty, and what an hour at a high rate takes of memory.
//!
//! `cargo bench --bench simulate`. An event is a step of the simulation: an arrival, an answer's end, a caller who
//! leaves or returns, a wake-up of the gateway. Times are processor times of this process: what others do on the
//! machine does not count. `-- --grid` adds a grid of a thousand variants, `-- --minutes 60` an hour at 100,000 arrivals a
//! second (minutes), `-- --only lifo` leaves out every line whose name has no `lifo` in it, `-- --bare` the measuring.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::time::Duration;

use tenfold::plan::{self, Plan};
use tenfold::simulate;

const FLASH: &str = include_str!("../plans/flash-promotion.yaml");

/// The flash promotion as written, with some keys changed.
fn flash(changes: &[&str]) -> Plan {
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    // what the rehearsal shortens may not be there
    let whole = FLASH.split("\nrehearsal:").next().unwrap_or(FLASH);
    plan::parse(whole, &changes, &|_| None).expect("a plan without faults").plan
}

/// Processor time of this process so far.
fn spent() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
}

/// Memory of this process, in MB: now, and the most it had.
fn memory() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.split_whitespace().next().and_then(|kilobytes| kilobytes.parse::<u64>().ok()).unwrap_or_default()
            / 1_000
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// The value of an option of the command line.
fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|arg| arg != name).nth(1)
}

/// Whether the command line has this word.
fn flag(name: &str) -> bool {
    std::env::args().any(|arg| arg == name)
}

/// Whether the line `name` is asked for.
fn wanted(name: &str) -> bool {
    option("--only").is_none_or(|only| name.contains(&only))
}

/// A sample is as many runs as this takes: processor time is counted in ticks of up to 10 ms.
const SAMPLE: Duration = Duration::from_millis(500);

/// The processor time of one `run`, the best of five samples, and how many events it had.
fn best(run: &mut dyn FnMut() -> u64) -> (Duration, u64) {
    let sample = |_| {
        let (start, mut runs) = (spent(), 0);
        loop {
            let events = run();
            runs += 1;
            let took = spent() - start;
            if took >= SAMPLE {
                return (took / runs, events);
            }
        }
    };
    (0..5).map(sample).min().expect("five samples")
}

/// Runs `plan` and says how fast.
fn speed(name: &str, plan: &Plan) {
    if !wanted(name) {
        return;
    }
    let policy = plan.policy().expect("the plan has a policy");
    let (bare, events) = best(&mut || simulate::run(plan, policy, &mut |_| ()).events);
    if flag("--bare") {
        return println!("{name:28} {events:8} events: {:6.1} ms", bare.as_secs_f64() * 1e3);
    }
    let (measured, _) = best(&mut || simulate::measure(plan, policy).1.events);
    let rate = |span: Duration| events as f64 / span.as_secs_f64() / 1e6;
    println!(
        "{name:28} {events:8} events: {:6.1} ms, {:4.1} M/s; measured {:6.1} ms, {:4.1} M/s",
        bare.as_secs_f64() * 1e3,
        rate(bare),
        measured.as_secs_f64() * 1e3,
        rate(measured)
    );
}

/// The whole story of the flash promotion without a bound, until its queue is empty.
fn until_drained(name: &str) {
    if !wanted(name) {
        return;
    }
    // callers who wait for ever, so that the queue holds all of them
    let plan = flash(&[
        "target.embedded.bound=none",
        "target.embedded.recheck=false",
        "requests.0.patience=24h",
        "load.phases=[{ name: promotion, rate: 2000/min, for: 40m, event: true }, { name: after, rate: 200/min, for: 1m }]",
    ]);
    let policy = plan.policy().expect("the plan has a policy");
    let plan = simulate::until_drained(&plan, policy).expect("it drains");
    println!("until drained: {} min after the event", (plan.load.end().as_secs_f64() / 60.0 - 40.0).round());
    speed(name, &plan);
}

/// A minute at 100,000 arrivals a second, and then so many.
fn long(minutes: u64) {
    for minutes in [1, minutes] {
        let plan = flash(&[
            "provider.quota.tokens_per_minute=1200M",
            "target.embedded.budgets.tokens_per_minute=1200M",
            &format!("load.phases=[{{ name: all, rate: 100000/s, for: {minutes}m, event: true }}]"),
        ]);
        let policy = plan.policy().expect("the plan has a policy");
        let start = spent();
        let (measures, ended) = simulate::measure(&plan, policy);
        println!(
            "{minutes} min at 100,000/s: {} arrivals, {} events, {:.0} s; {} MB now, {} MB at most",
            measures.offered,
            ended.events,
            (spent() - start).as_secs_f64(),
            memory().0,
            memory().1
        );
    }
}

/// A thousand variants of the flash promotion, each parsed, simulated, measured and summed up.
fn grid() {
    let start = spent();
    let mut completed = 0.0;
    for variant in 0..1_000 {
        let plan = flash(&[
            &format!("requests.0.deadline={}ms", 15_000 + 500 * (variant % 40)),
            &format!("target.embedded.margin={}ms", 20 * (variant / 40)),
        ]);
        let policy = plan.policy().expect("the plan has a policy");
        let summary = simulate::Summary::of(&simulate::measure(&plan, policy).0);
        let column =
            simulate::COLUMNS.iter().position(|column| column.name == "completed").expect("a column");
        completed += summary.0[column].unwrap_or_default();
    }
    let mean = completed / 1_000.0;
    println!("1,000 variants: {:.1} s, {mean:.0} completed on average", (spent() - start).as_secs_f64());
}

fn main() {
    speed("flash, bounded", &flash(&[]));
    let with = |name, changes: &[&str]| speed(name, &flash(changes));
    with("flash, room", &["target.embedded.retry_after=room"]);
    with(
        "flash, 20 requests",
        &["target.embedded.bound={ requests: 20 }", "target.embedded.retry_after=none"],
    );
    with("flash, lifo", &["target.embedded.order=lifo"]);
    with("flash, adaptive lifo", &["target.embedded.order={ adaptive_lifo: { high: 80, low: 60 } }"]);
    with("flash, no bound, recheck", &["target.embedded.bound=none"]);
    with("flash, retries", &["requests.0.on_refusal={ retry: { attempts: 3, backoff: 500ms } }"]);
    with("quiet day", &["load.phases=[{ name: day, rate: 400/min, for: 6h }]"]);
    until_drained("flash, until drained");
    if std::env::args().any(|arg| arg == "--grid") {
        grid();
    }
    if let Some(minutes) = option("--minutes").and_then(|text| text.parse().ok()) {
        long(minutes);
    }
}
