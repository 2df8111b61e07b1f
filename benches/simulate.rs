//! How fast virtual time passes: events a second with and without measuring, and what an hour takes of memory.
//!
//! `cargo bench --bench simulate`. An event is a step of the simulation: an arrival, an answer's end, a caller who
//! leaves or returns, a wake-up of the gateway.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::time::Duration;

use tenfold::plan::{self, Plan};
use tenfold::simulate;

fn flash(changes: &[&str]) -> Plan {
    let text = include_str!("../plans/flash-promotion.yaml");
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    plan::parse(text, &changes, &|_| None).expect("a plan without faults").plan
}

/// Processor time of this process so far: what others do on the machine does not count.
fn spent() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or_default())
}

fn main() {
    for (name, changes) in [
        ("bounded", &[][..]),
        ("unbounded", &["target.embedded.bound=none"]),
        ("lifo", &["target.embedded.order=lifo"]),
    ] {
        let plan = flash(changes);
        let policy = plan.policy().expect("the plan has a policy").clone();
        let mut sightings = 0u64;
        let start = spent();
        let ended = simulate::run(&plan, &policy, &mut |_| sightings += 1);
        let bare = spent() - start;
        let start = spent();
        let (measures, _) = simulate::measure(&plan, &policy);
        let whole = spent() - start;
        let rate = |span: Duration| ended.events as f64 / span.as_secs_f64() / 1e6;
        println!(
            "{name}: {} offered, {} events, {sightings} sightings, {bare:?} bare {:.1} M/s, {whole:?} measured {:.1} M/s",
            measures.offered,
            ended.events,
            rate(bare),
            rate(whole)
        );
    }
}
