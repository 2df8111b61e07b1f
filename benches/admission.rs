//! What one admission decision costs with many waiting, for each order, and what one that waits takes of memory.
//!
//! `cargo bench --bench admission`. A step is one arrival that waits and one forwarding that its tokens pay for, so the
//! queue keeps its length: two decisions.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput};
use tenfold::admission::{Admission, Ask, Budgets, Config, Effect, Event, Id, TenantId, orders};
use tenfold::units::{Bytes, Faults, Key, Moment, Node, Place, Rate, Reader, Tokens, Value};

/// A policy that lets everyone wait, with the order named and everything else as a plan has it.
fn policy(order: &str) -> Config {
    let place = || Place::File { line: 1, column: 1 };
    let key = |text: &str| Key { text: text.into(), place: place() };
    let text = |text: &str| Node::text(text, place());
    let map = |entries| Node { place: place(), value: Value::Map(entries) };
    let node = map(vec![
        (key("bound"), text("none")),
        (key("order"), text(order)),
        (key("service"), map(vec![(key("start"), text("1s"))])),
    ]);
    let faults = Faults::default();
    let budgets = Budgets::of_tokens(Rate::per_second(1_000_000).expect("a rate"), Duration::from_millis(10));
    let mut reader = Reader::root(&node, &faults).map().expect("a map");
    Config::read(&mut reader, Some(budgets)).expect("a policy without faults")
}

/// A machine with `waiting` requests, and the clock and numbers to go on with.
struct Bench {
    machine: Admission,
    now: Moment,
    next: u64,
    effects: Vec<Effect>,
}

impl Bench {
    fn new(order: &str, waiting: u64) -> Self {
        let machine = Admission::new(&policy(order), Moment::ZERO);
        let mut bench = Self { machine, now: Moment::ZERO, next: 0, effects: Vec::new() };
        while bench.machine.gauge().waiting < waiting {
            bench.arrive();
        }
        bench
    }

    fn arrive(&mut self) {
        let id = Id(self.next);
        self.next += 1;
        // deadlines far out and out of order
        let patience = Duration::from_secs(1_000_000 + self.next.wrapping_mul(2_654_435_761) % 100_000);
        let ask = Ask {
            id,
            caller: id.0,
            prompt: Tokens::new(800),
            max_output: Tokens::new(400),
            bytes: Bytes::new(6_000),
            deadline: self.now + patience,
            tenant: TenantId(0),
            tier: 1,
            operation: None,
        };
        self.machine.handle(self.now, Event::Arrive(ask), &mut self.effects);
    }

    /// The time one request's tokens take, an arrival, and the end of whatever was forwarded.
    fn step(&mut self) {
        self.now = self.now + Duration::from_micros(1_200);
        self.arrive();
        while let Some(effect) = self.effects.pop() {
            if let Effect::Forward { id, .. } = effect {
                self.machine.handle(
                    self.now,
                    Event::Settled { id, used: None, answer: None },
                    &mut self.effects,
                );
            }
        }
    }
}

fn decisions(criterion: &mut Criterion) {
    for kind in orders::ALL {
        let mut group = criterion.benchmark_group(format!("decision/{}", kind.name));
        // an arrival and an end
        group.throughput(Throughput::Elements(2));
        for waiting in [100, 10_000, 1_000_000] {
            // made when it is first asked for: a filter on the command line spares the others
            let mut made = None;
            group.bench_function(BenchmarkId::from_parameter(waiting), |b| {
                let bench = made.get_or_insert_with(|| Bench::new(kind.name, waiting));
                b.iter(|| bench.step());
            });
        }
    }
}

/// Resident memory of this process, in bytes.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

/// The memory of a million that wait, each order in a process of its own: what one frees another uses again.
fn memory() {
    let itself = std::env::current_exe().expect("this program has a path");
    for kind in orders::ALL {
        let child = std::process::Command::new(&itself).env(ORDER, kind.name).status();
        if !child.is_ok_and(|status| status.success()) {
            println!("memory/{}: could not be measured", kind.name);
        }
    }
}

/// Names the order to a child that measures its memory.
const ORDER: &str = "TENFOLD_BENCH_ORDER";

fn memory_of(order: &str) {
    const WAITING: u64 = 1_000_000;
    let Some(before) = resident() else { return println!("memory: /proc cannot be read here") };
    let bench = Bench::new(order, WAITING);
    let after = resident().unwrap_or(before);
    let each = after.saturating_sub(before) / WAITING;
    println!("memory/{order}: {each} bytes each, {} waiting, without bodies", bench.machine.gauge().waiting);
}

fn main() {
    if let Ok(order) = std::env::var(ORDER) {
        return memory_of(&order);
    }
    memory();
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30)
        .configure_from_args();
    decisions(&mut criterion);
    criterion.final_summary();
}
