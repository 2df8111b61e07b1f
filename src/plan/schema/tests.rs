use std::collections::BTreeSet;

use super::*;
use crate::plan::{parse_with, yaml};
use crate::units::{self, Fault, Key, Node, Place};

/// A plan with every optional part; `{target}` is where the kinds of target differ.
const FULL: &str = "
tenfold: 1
name: full
about: everything
load: { seed: 1, arrivals: {arrivals}, late: { drop_after: 5ms }, phases: [{ name: a, rate: 1/s, for: 1s, event: true, mix: { ask: 1 } }] }
requests:
  - { name: ask, weight: 1, tenant: t, tier: 1, prompt: { tokens: {size}, bytes: 60B }, max_tokens: 8, output: { tokens: 8 },
      stream: false, deadline: 9s, patience: 9s,
      on_refusal: { retry: {retry} } }
provider:
  listen: 127.0.0.1:0
  advertise: http://127.0.0.1:1
  engine: stream
  api: openai
  count: words
  quota: {quota}
  service: { first_token: 1ms, per_token: 1ms, law: {law}, strain: { above: 9, each: 1% } }
  slots: { count: 1, queue: 1 }
  faults: [{ at: 1s, for: 1s, capacity: 3/4 }, { at: 1s, for: 1s, cuts: 1% }, { at: 1s, for: 1s, garbage: 1% },
    { at: 1s, for: 1s, errors: { status: 429, share: 1%, retry_after: 1s } }, { at: 1s, for: 1s, resets: 1% },
    { at: 1s, for: 1s, latency: { times: 2, plus: 1s } }, { at: 1s, for: 1s, stalls: 1% }]
target:
  request: { path: /x, model: m, headers: { a: b }, ca_file: /x, insecure: true, health: /h, http: 2,
    connections: 3, streams: 9, sender: hyper, source_addresses: [127.0.0.1], lookup: once }
  deadline: { header: x-d, form: remaining_s }
  memory: { {memory}, ceiling: 1MB }
  metrics: { url: /m, queue_depth: a, memory: b }
  policy: { slots: 2, bound: none, order: fifo, when_full: evict_oldest, recheck: true, codel: { target: 1ms, interval: 1s },
            service: { start: 1s, quantile: p99 }, margin: 1s,
            budgets: { tokens_per_minute: 60k, requests_per_minute: 60, concurrent: 9, burst: 1s, window: { fixed: 1m } },
            tenants: [{ name: t, weight: 1, tokens_per_minute: 60k, usual: 1/s, ceiling: 1.2, burst: 1s, window: bucket, counts: passed }],
            share: { drr: { quantum: 9 } }, tiers: { strict: true, evict: false }, duplicates: tell, cancel: true,
            keep: { number: 9, bytes: 1MB, age: 1m },
            upstream: { attempts: 2, backoff: 1ms, longest: 1s, budget: 10%, lease: 1m }, retry_after: { constant: 1s }, replicas: 3, give_up_above: 1m }
  {target}
rehearsal: { scale: 1/2, phases: { a: 1s }, probes: { every: 1, late_by: 1ms } }
expect: { refusal: { shed: [503], throttled: [429], fast_within: 1ms, instead: [408], marked_by: { x-c: present }, headers: { a: b }, body: { /a: b } } }
validity: { lag_p99: auto, unsent: 1%, unjoined: 1%, achieved: 99% }
abort_when: [{ goodput_below: 1%, for: 1s, after: 1s }]
max_outstanding: 9
checks: { shedding.fast: { limit: 1ms, allow_no_data: true, off: false } }
variants: [{ name: other, set: { load.seed: 2 } }]
levers: [{ name: a, answer_from_cache: 1% }, { name: b, defer: 1% }, { name: c, more_quota: +1/2 },
         { name: d, shed_tier: 2 }, { name: e, shrink_tokens: 9 }]
diff: { goodput: 2%, drain: off }
";

const TARGETS: &[&str] = &[
    "embedded: { bound: { requests: 9 }, order: { adaptive_lifo: { high: 9, low: 8 } }, when_full: refuse_newest,
       recheck: true, codel: { target: 1ms, interval: 1s }, service: { start: 1s, quantile: p99 }, margin: 1s,
       budgets: { tokens_per_minute: 60k, requests_per_minute: 60, concurrent: 9, burst: 1s, window: bucket },
       tenants: [{ name: t, weight: 1, tokens_per_minute: 60k, requests: 1/s, burst: 1s, window: { sliding: 1m }, counts: admitted }],
       share: wrr, tiers: { strict: true, evict: false }, duplicates: attach, cancel: true, keep: { number: 9, bytes: 1MB, age: 1m },
       upstream: { attempts: 2, backoff: 1ms, longest: 1s, budget: 10%, lease: 1m },
       retry_after: { appointment: { reserve: 0.2, returning: { start: 0.1, learn: true } } }, replicas: 2, give_up_above: 30s,
       faults: [no_recheck, { early_shedding: 1% }, { slow_refusal: 1s }, { leak_per_request: 1kB }, { crash: 9 }] }",
    "spawn: { command: [x], ready: 'http://127.0.0.1:1/h', url: 'http://127.0.0.1:1', config: c, ready_within: 9s, env: { A: b } }",
    "url: http://127.0.0.1:1",
];

/// Every arrival process that has settings.
const ARRIVALS: &[&str] = &[
    "{ ramp: { start: 0/s } }",
    "{ gamma: { cv: 2 } }",
    "{ on_off: { on: 1s, off: 1s, lengths: random } }",
    "{ oscillating: { every: 1s, factors: [1] } }",
    "{ rounds: { every: 1s, factors: { ask: [1] } } }",
    "{ trace: { file: f, format: csv, columns: { time: a, prompt: b, output: c }, clock: seconds, from: 0s, to: 1m,
       speed: 1, rate: 1, zero_tokens: drop } }",
];

/// Every way to read memory.
const MEMORIES: &[&str] = &["pid: 1", "cgroup: /x", "metric: { url: 'http://127.0.0.1:1/m', name: a }"];

/// Both manners of trying again.
const RETRIES: &[&str] = &[
    "{ attempts: 2, backoff: 1s, longest: 1s, jitter: 10%, honour: true, on_timeout: true, budget: 20% }",
    "{ like: openai-python, attempts: 2, budget: 20% }",
];

/// Every kind of window.
const QUOTAS: &[&str] = &[
    "{ tokens_per_minute: 60k, requests_per_minute: 60, burst: 1s, window: bucket, sub_windows: [1s], charge: reservation, accounts: [a] }",
    "{ tokens_per_minute: 60k, requests_per_minute: 60, window: { fixed: 1m }, sub_windows: [1s], charge: actual, accounts: [a] }",
    "{ tokens_per_minute: 60k, requests_per_minute: 60, window: { sliding: 1m }, sub_windows: [1s], charge: actual, accounts: [a] }",
];

/// How service times may spread.
const LAWS: &[&str] = &["fixed", "exponential", "{ lognormal: { cv: 0.5 } }"];

/// Every form of a size.
const SIZES: &[&str] = &[
    "8",
    "{ fixed: 8 }",
    "{ uniform: { from: 8, to: 9 } }",
    "{ lognormal: { median: 8, sigma: 0.1, least: 8, most: 9 } }",
    "{ mixture: [{ weight: 1, size: 8 }] }",
    "{ empirical: { values: [8], weights: [1] } }",
    "{ empirical: [8] }",
];

/// A full plan of the parts with these numbers; a trace has its own rate.
fn full(target: usize, arrivals: usize, size: usize) -> String {
    let arrivals = ARRIVALS[arrivals % ARRIVALS.len()];
    let text = FULL
        .replace("{target}", TARGETS[target % TARGETS.len()])
        .replace("{arrivals}", arrivals)
        .replace("{memory}", MEMORIES[size % MEMORIES.len()])
        .replace("{retry}", RETRIES[size % RETRIES.len()])
        .replace("{quota}", QUOTAS[size % QUOTAS.len()])
        .replace("{law}", LAWS[size % LAWS.len()])
        .replace("{size}", SIZES[size % SIZES.len()]);
    if arrivals.contains("trace") { text.replace("name: a, rate: 1/s,", "name: a,") } else { text }
}

fn parsed(text: &str) -> Vec<Fault> {
    let trace = |_: &str| Ok(Box::new(&b"a,b,c\n0,8,8\n"[..]) as Box<dyn std::io::BufRead>);
    parse_with(text, None, &[], &|_| None, &trace).err().unwrap_or_default()
}

/// Maps whose keys are names.
const FREE: &[&str] = &[
    "load.arrivals.rounds.factors",
    "load.phases.0.mix",
    "variants.0.set",
    "target.request.headers",
    "target.spawn.env",
    "rehearsal.phases",
    "expect.refusal.headers",
    "expect.refusal.marked_by",
    "expect.refusal.body",
];

const PLACE: Place = Place::File { line: 1, column: 1 };

fn faults(tree: &Node) -> Vec<Fault> {
    parsed(&json_text(tree))
}

/// The tree as JSON text, which is YAML.
fn json_text(tree: &Node) -> String {
    crate::plan::Source { tree: tree.clone() }.to_json().to_string()
}

/// Every path of the tree with the node there; ids of checks keep their dots.
fn paths(node: &Node, at: &[String], out: &mut Vec<(Vec<String>, Node)>) {
    out.push((at.to_vec(), node.clone()));
    let mut under = |step: String, node: &Node| paths(node, &[at, &[step]].concat(), out);
    match &node.value {
        units::Value::Map(entries) => entries.iter().for_each(|(key, node)| under(key.text.clone(), node)),
        units::Value::List(items) => {
            items.iter().enumerate().for_each(|(i, node)| under(i.to_string(), node))
        }
        units::Value::Null | units::Value::Text { .. } => {}
    }
}

fn at<'n>(node: &'n mut Node, path: &[String]) -> &'n mut Node {
    path.iter().fold(node, |node, step| match &mut node.value {
        units::Value::Map(entries) => &mut entries.iter_mut().find(|(key, _)| key.text == *step).unwrap().1,
        units::Value::List(items) => &mut items[step.parse::<usize>().unwrap()],
        other => panic!("{step} in {}", other.kind()),
    })
}

/// The names the readers know at `path`: what they list when they meet one they do not.
fn known(tree: &Node, path: &[String], choice: bool) -> Option<BTreeSet<String>> {
    let mut tree = tree.clone();
    let node = at(&mut tree, path);
    match &mut node.value {
        units::Value::Map(entries) if !choice => {
            entries.push((Key { text: "zzzz".into(), place: PLACE }, Node::text("1", PLACE)));
        }
        _ => *node = Node::text("zzzz", PLACE),
    }
    let said =
        faults(&tree).into_iter().find(|f| f.message.contains("`zzzz`") && f.message.contains("known: "))?;
    let (_, names) = said.message.rsplit_once("known: ").unwrap();
    Some(names.trim_end_matches(')').split(", ").map(str::to_owned).collect())
}

/// The parts of the schema that may describe what stands at `path`.
fn described<'s>(schema: &'s Value, part: &'s Value, path: &[String]) -> Vec<&'s Value> {
    // a size may hold others
    let part = match part["$ref"].as_str() {
        Some("#/$defs/sizes") => &schema["$defs"]["sizes"],
        _ => part,
    };
    let branches: Vec<&Value> = match part["anyOf"].as_array() {
        Some(branches) => branches.iter().collect(),
        None => vec![part],
    };
    let Some((step, rest)) = path.split_first() else { return branches };
    let under = |branch: &'s Value| {
        let named = branch["properties"].get(step);
        named
            .or_else(|| branch.get("items"))
            .or_else(|| branch.get("additionalProperties").filter(|a| a.is_object()))
    };
    branches.into_iter().filter_map(under).flat_map(|part| described(schema, part, rest)).collect()
}

fn keys(parts: &[&Value]) -> BTreeSet<String> {
    parts.iter().filter_map(|part| part["properties"].as_object()).flat_map(|p| p.keys().cloned()).collect()
}

fn words(parts: &[&Value]) -> BTreeSet<String> {
    let lists = parts.iter().filter_map(|part| part["enum"].as_array()).flatten();
    lists.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn the_schema_has_exactly_the_keys_the_readers_know() {
    let schema = plan();
    let mut seen = 0;
    for part in 0..TARGETS.len().max(ARRIVALS.len()).max(SIZES.len()) {
        let text = full(part, part, part);
        let tree = yaml::read(&text).unwrap();
        assert_eq!(parsed(&text), [], "the full plan is a plan: {text}");
        let mut all = Vec::new();
        paths(&tree, &[], &mut all);
        for (path, node) in all {
            let joined = path.join(".");
            let parts = described(&schema, &schema, &path);
            assert!(!parts.is_empty(), "`{joined}` is not in the schema");
            if FREE.contains(&joined.as_str()) {
                continue;
            }
            let choice = !words(&parts).is_empty();
            let Some(mut known) = known(&tree, &path, choice) else {
                let map = matches!(node.value, units::Value::Map(_));
                assert!(!map && !choice, "`{joined}` takes any key");
                continue;
            };
            seen += 1;
            if joined == "target.policy" {
                // it is read there to be refused
                known.remove("faults");
            }
            if choice {
                assert_eq!(words(&parts), known, "at `{joined}`");
                continue;
            }
            assert_eq!(keys(&parts), known, "at `{joined}`");
            let units::Value::Map(entries) = &node.value else { panic!("`{joined}` is no map") };
            let here: BTreeSet<String> = entries.iter().map(|(key, _)| key.text.clone()).collect();
            let either = |key: &str| {
                let of_tenant =
                    joined.contains(".tenants.") && ["requests", "usual", "ceiling"].contains(&key);
                let of_trace = ARRIVALS[part % ARRIVALS.len()].contains("trace") && key == "rate";
                ["embedded", "spawn", "url"].contains(&key)
                    || of_trace
                    || (joined == "provider.quota" && key == "burst")
                    || joined.starts_with("provider.faults.")
                    || joined.starts_with("target.embedded.faults.")
                    || joined.ends_with(".retry")
                    || ["checks", "target.memory"].contains(&joined.as_str())
                    || joined.starts_with("levers.")
                    || joined == "diff"
                    || of_tenant
            };
            let absent: Vec<_> = known.iter().filter(|key| !here.contains(*key) && !either(key)).collect();
            assert!(absent.is_empty(), "the full plan lacks {absent:?} at `{joined}`");
        }
    }
    assert!(seen > 60, "only {seen} places were asked");
}

#[test]
fn every_key_of_the_plans_is_in_the_schema() {
    let schema = plan();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    let entries = [folder.clone(), folder.join("real")].map(|folder| std::fs::read_dir(folder).unwrap());
    let files = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut count = 0;
    for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "yaml")) {
        let mut all = Vec::new();
        paths(&yaml::read(&std::fs::read_to_string(&path).unwrap()).unwrap(), &[], &mut all);
        // what a variant sets is described where it is set
        for (step, _) in all.into_iter().filter(|(step, _)| step.len() <= 4 || step[2] != "set") {
            let found = described(&schema, &schema, &step);
            assert!(!found.is_empty(), "{}: `{}` is not in the schema", path.display(), step.join("."));
        }
        count += 1;
    }
    assert!(count >= 9);
}

#[test]
fn every_reference_leads_somewhere() {
    let schema = plan();
    let text = schema.to_string();
    let names: BTreeSet<&str> =
        text.split("\"#/$defs/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(names.len() >= 6);
    for name in names {
        assert!(schema["$defs"][name].is_object(), "{name}");
    }
}
