//! How fast virtual time passes: events a second with and without measuring, and what an hour takes of memory.
//!
//! `cargo bench --bench simulate`. An event is a step of the simulation: an arrival, an answer's end, a caller who
//! leaves or returns, a wake-up of the gateway.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "a bench measures with the clock of the machine")]

use std::time::Instant;

use tenfold::measure::Fold;
use tenfold::plan::{self, Plan};
use tenfold::simulate;

fn flash(changes: &[&str]) -> Plan {
    let text = include_str!("../plans/flash-promotion.yaml");
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    plan::parse(text, &changes, &|_| None).expect("a plan without faults").plan
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
        let start = Instant::now();
        simulate::run(&plan, &policy, &mut |_| sightings += 1);
        let bare = start.elapsed();
        let start = Instant::now();
        let mut fold = Fold::new(&plan);
        let ended = simulate::run(&plan, &policy, &mut |sighting| fold.see(sighting));
        let measures = fold.finish(ended.at);
        let whole = start.elapsed();
        println!("{name}: {} offered, {sightings} sightings, {bare:?} bare, {whole:?} measured", measures.offered);
    }
}
