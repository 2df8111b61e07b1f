//! A plan for tests of the layers after this one: the smoke plan's numbers, made by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{
    DeadlineForm, DeadlineHeader, Embedded, Expect, Plan, Target, TargetKind, TargetRequest, Validity,
};
use crate::admission;
use crate::provider;
use crate::units::{Faults, Key, Node, Place, Rate, Ratio, Read, Reader, Share, Value};
use crate::workload::{Late, Load, Mix, Phase, Probes};

/// 480/min for 2 s, 4,800/min for 12 s (the event), 480/min for 8 s; 1,200,000 tokens a minute, hold 1,200, deadline
/// and patience 4.5 s, service 1 s, margin 500 ms, appointments.
pub(crate) fn plan() -> Plan {
    let quota = provider::Quota::of_tokens(Rate::per_minute(1_200_000).unwrap(), Duration::from_secs(1));
    Plan {
        name: "smoke".into(),
        about: String::new(),
        load: load(),
        requests: mix(&[]),
        provider: provider::Config {
            listen: "127.0.0.1:0".into(),
            advertise: None,
            engine: provider::Engine::Wiremock,
            api: &provider::wire::openai::OpenAi,
            count: provider::Count::Words,
            quota: quota.clone(),
            service: provider::Service::fixed(Duration::from_millis(200), Duration::from_millis(2)),
            slots: None,
            faults: Vec::new(),
        },
        target: Target {
            kind: TargetKind::Embedded(Embedded { admission: policy(&[], &quota), own_budgets: false }),
            request: TargetRequest {
                path: "/v1/chat/completions".into(),
                model: "rehearsal".into(),
                headers: BTreeMap::new(),
                ca_file: None,
                insecure: false,
                health: "/healthz".into(),
                transport: crate::plan::Transport::default(),
            },
            deadline: DeadlineHeader {
                header: "x-request-timeout-ms".into(),
                form: DeadlineForm::RemainingMs,
            },
            memory: None,
            metrics: None,
        },
        rehearsal: None,
        scale: Ratio::ONE,
        probes: Probes::default(),
        expect: Expect::default(),
        validity: Validity {
            lag_p99: None,
            unsent: Share::new(0.001).unwrap(),
            unjoined: Share::new(0.01).unwrap(),
            achieved: Share::new(0.995).unwrap(),
        },
        abort_when: Vec::new(),
        max_outstanding: 20_000,
        checks: BTreeMap::new(),
        variants: Vec::new(),
        levers: Vec::new(),
        diff: BTreeMap::new(),
    }
}

fn load() -> Load {
    let phase = |name: &str, rate: &str, secs, event| Phase {
        name: name.into(),
        rate: Rate::parse(rate).unwrap(),
        lasts: Duration::from_secs(secs),
        event,
        mix: None,
    };
    let phases = vec![
        phase("before", "480/min", 2, false),
        phase("promotion", "4800/min", 12, true),
        phase("after", "480/min", 8, false),
    ];
    Load { seed: 7, arrivals: read(&text("constant")), late: Late::Send, phases }
}

/// The smoke plan's policy with some keys replaced.
pub(crate) fn policy(changes: &[(&str, Node)], quota: &provider::Quota) -> admission::Config {
    let mut node = map(&[("service", map(&[("start", text("1s"))])), ("margin", text("500ms"))]);
    if let Value::Map(entries) = &mut node.value {
        entries.retain(|(key, _)| !changes.iter().any(|(name, _)| *name == key.text));
        entries.extend(changes.iter().map(|(name, node)| (key(name), node.clone())));
    }
    let budgets = admission::Budgets::of_tokens(quota.tokens, quota.burst() - Duration::from_millis(100));
    let faults = Faults::default();
    let config = {
        let mut map = Reader::root(&node, &faults).map().unwrap();
        admission::Config::read(&mut map, Some(budgets))
    };
    let faults = faults.into_sorted();
    config.unwrap_or_else(|| panic!("{faults:?}"))
}

/// One class with hold 1,200 and some keys replaced.
pub(crate) fn mix(changes: &[(&str, &str)]) -> Mix {
    mix_with(changes, &[])
}

/// The same, and some keys that are no plain scalars.
pub(crate) fn mix_with(changes: &[(&str, &str)], more: &[(&str, Node)]) -> Mix {
    let mut class = vec![("name", "ask"), ("max_tokens", "400"), ("deadline", "4500ms")];
    class.retain(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
    class.extend(changes);
    let mut entries: Vec<(&str, Node)> = class.into_iter().map(|(name, value)| (name, text(value))).collect();
    entries.push(("prompt", map(&[("tokens", text("800")), ("bytes", text("6kB"))])));
    entries.extend_from_slice(more);
    let node = Node { place: place(), value: Value::List(vec![map(&entries)]) };
    read(&node)
}

/// A plain scalar.
pub(crate) fn text(text: &str) -> Node {
    Node::text(text, place())
}

/// A map.
pub(crate) fn map(entries: &[(&str, Node)]) -> Node {
    let entries = entries.iter().map(|(name, node)| (key(name), node.clone())).collect();
    Node { place: place(), value: Value::Map(entries) }
}

/// Reads a value that is known to be good.
pub(crate) fn read<T: Read>(node: &Node) -> T {
    let faults = Faults::default();
    let value = T::read(&Reader::root(node, &faults));
    let faults = faults.into_sorted();
    value.unwrap_or_else(|| panic!("{faults:?}"))
}

const fn place() -> Place {
    Place::File { line: 1, column: 1 }
}

fn key(name: &str) -> Key {
    Key { text: name.into(), place: place() }
}
