//! `--set path=value`: a change to the tree of a plan before anything is read from it.
//!
//! A path goes by keys, and in lists by index or by the `name` of an item: `requests.0.deadline`,
//! `load.phases.promotion.rate`. The value is YAML. Maps on the way that are missing are made. Where a plan offers one
//! of several things, setting one replaces the others.

use super::checks::CHECKS;
use super::yaml;
use crate::units::{Faults, Key, Node, Place, Value, nearest};

/// Paths whose value is one of several things, each a name or a map of one name; `*` is any one step.
const ONE_OF: &[&str] = &[
    "load.arrivals",
    "load.late",
    "requests.*.on_refusal",
    "target.*.bound",
    "target.*.budgets.window",
    "target.*.duplicates",
    "target.*.order",
    "target.*.retry_after",
    "target.*.share",
    "target.*.tenants.*.window",
    "target.*.when_full",
];

/// Keys of a map that exclude one another.
const EITHER: &[(&str, &[&str])] = &[("target", &["embedded", "spawn", "url"])];

/// The most keys of one path.
const DEEPEST: usize = 20;

/// Applies every override in order; what cannot be applied is reported and left out.
pub(super) fn apply(tree: &mut Node, overrides: &[String], faults: &Faults) {
    for text in overrides {
        let Some((path, value)) = text.split_once('=').filter(|(path, _)| !path.trim().is_empty()) else {
            let place = Place::Override(format!("--set {text}"));
            faults.add(place, "", "an override is written path=value, such as requests.0.deadline=20s");
            continue;
        };
        let path = path.trim();
        let place = Place::Override(shown(path, value));
        match yaml::read_value(value) {
            Ok(node) => set(tree, path, node, &place, faults),
            Err(fault) => faults.add(place, path, format!("the value cannot be read: {}", fault.message)),
        }
    }
}

/// Sets what `path` leads to, as written at `place`.
pub(super) fn set(tree: &mut Node, path: &str, mut node: Node, place: &Place, faults: &Faults) {
    relocate(&mut node, place);
    Setter { place, faults, steps: 0 }.set(tree, path, "", node);
}

/// The override as messages show it: values of headers and of the environment may be secrets, and so may what stands
/// before the host of a URL, or in its query.
fn shown(path: &str, value: &str) -> String {
    let secret = path.contains("headers") || path.contains("env") || value.contains(['@', '?']);
    let short: String = value.chars().take(60).collect();
    format!("--set {path}={}", if secret { "…" } else { &short })
}

fn relocate(node: &mut Node, place: &Place) {
    node.place = place.clone();
    match &mut node.value {
        Value::Null | Value::Text { .. } => {}
        Value::List(items) => items.iter_mut().for_each(|item| relocate(item, place)),
        Value::Map(entries) => {
            for (key, node) in entries {
                key.place = place.clone();
                relocate(node, place);
            }
        }
    }
}

struct Setter<'s> {
    place: &'s Place,
    faults: &'s Faults,
    steps: usize,
}

impl Setter<'_> {
    /// Sets what `rest` leads to, seen from `node`, which stands at `at`.
    fn set(&mut self, node: &mut Node, rest: &str, at: &str, value: Node) {
        self.steps += 1;
        if self.steps > DEEPEST {
            return self.fault(at, format!("a path has at most {DEEPEST} steps"));
        }
        if ONE_OF.iter().any(|pattern| matches(pattern, at)) {
            self.choose(node, first(rest));
        }
        if node.value == Value::Null {
            *node = self.empty_map();
        }
        match &mut node.value {
            Value::Map(entries) => {
                let (key, rest) = step(entries, rest, at);
                if let Some((_, names)) =
                    EITHER.iter().find(|(path, names)| *path == at && names.contains(&key))
                {
                    entries.retain(|(k, _)| k.text == key || !names.contains(&k.text.as_str()));
                }
                let index = entries.iter().position(|(k, _)| k.text == key).unwrap_or_else(|| {
                    let place = self.place.clone();
                    let node = Node { place: place.clone(), value: Value::Null };
                    entries.push((Key { text: key.to_owned(), place }, node));
                    entries.len() - 1
                });
                self.descend(&mut entries[index].1, rest, &join(at, key), value);
            }
            Value::List(items) => match item(items, rest) {
                Ok((index, step, rest)) => self.descend(&mut items[index], rest, &join(at, step), value),
                Err(message) => self.fault(&join(at, first(rest)), message),
            },
            Value::Text { .. } | Value::Null => {
                self.fault(at, format!("a single value stands here: it has no key `{}`", first(rest)));
            }
        }
    }

    fn descend(&mut self, node: &mut Node, rest: Option<&str>, at: &str, value: Node) {
        match rest {
            None => *node = value,
            Some(rest) => self.set(node, rest, at, value),
        }
    }

    /// Makes the one-of at `node` the thing called `name`, keeping its settings if it is that already.
    fn choose(&self, node: &mut Node, name: &str) {
        if !matches!(&node.value, Value::Map(entries) if entries.len() == 1 && entries[0].0.text == name) {
            *node = self.empty_map();
        }
    }

    fn empty_map(&self) -> Node {
        Node { place: self.place.clone(), value: Value::Map(Vec::new()) }
    }

    fn fault(&self, path: &str, message: String) {
        self.faults.add(self.place.clone(), path, message);
    }
}

/// The key of a map that `rest` begins with, and what follows it: the longest that fits, since keys (and the ids of
/// checks) may have dots in them.
fn step<'r>(entries: &[(Key, Node)], rest: &'r str, at: &str) -> (&'r str, Option<&'r str>) {
    let checks = CHECKS.iter().map(|check| check.id).filter(|_| at == "checks");
    let known = entries.iter().map(|(key, _)| key.text.as_str()).chain(checks);
    longest(known, rest).unwrap_or_else(|| if at == "checks" { split_id(rest) } else { split(rest) })
}

/// The longest of `names` that `rest` begins with as a whole step, and what follows it.
fn longest<'r, 'n>(
    names: impl Iterator<Item = &'n str>,
    rest: &'r str,
) -> Option<(&'r str, Option<&'r str>)> {
    let fits =
        |name: &&str| rest.strip_prefix(*name).is_some_and(|tail| tail.is_empty() || tail.starts_with('.'));
    let end = names.filter(fits).map(str::len).max()?;
    Some((&rest[..end], rest.get(end + 1..)))
}

fn split(rest: &str) -> (&str, Option<&str>) {
    rest.split_once('.').map_or((rest, None), |(first, rest)| (first, Some(rest)))
}

/// Like [`split`], after the second word: every id of a check has one dot.
fn split_id(rest: &str) -> (&str, Option<&str>) {
    match rest.match_indices('.').nth(1) {
        Some((at, _)) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    }
}

fn first(rest: &str) -> &str {
    split(rest).0
}

fn join(at: &str, step: &str) -> String {
    if at.is_empty() { step.to_owned() } else { format!("{at}.{step}") }
}

fn matches(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('.'), path.split('.'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(want), Some(got)) if want == "*" || want == got => {}
            _ => return false,
        }
    }
}

/// The item of a list that `rest` begins with, by its `name` or by index: which, the step, and what follows.
fn item<'r>(items: &[Node], rest: &'r str) -> Result<(usize, &'r str, Option<&'r str>), String> {
    let name = |node: &Node| match node.get("name").map(|name| &name.value) {
        Some(Value::Text { text, .. }) => Some(text.clone()),
        _ => None,
    };
    let names: Vec<String> = items.iter().filter_map(name).collect();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    if let Some((step, rest)) = longest(known.iter().copied(), rest) {
        let index = items.iter().position(|node| name(node).as_deref() == Some(step));
        return Ok((index.unwrap_or_default(), step, rest));
    }
    let (step, rest) = split(rest);
    if let Some(index) = step.parse::<usize>().ok().filter(|index| *index < items.len()) {
        return Ok((index, step, rest));
    }
    let guess = nearest(step, &known).map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
    let range = match items.len() {
        0 => "it is empty".to_owned(),
        1 => "it has one: 0".to_owned(),
        n => format!("it has 0 to {}", n - 1),
    };
    let known = if known.is_empty() { String::new() } else { format!(", or {}", known.join(", ")) };
    Err(format!("the list has no item `{step}` ({guess}{range}{known})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "load:\n  arrivals: constant\n  phases:\n    - { name: a, rate: 1/s }\n    - { name: b.c, rate: 2/s }\n\
        requests:\n  - { name: ask }\ntarget:\n  embedded:\n    retry_after: { appointment: { reserve: 0.25 } }\n";

    fn set(overrides: &[&str]) -> (String, Vec<String>) {
        let mut tree = yaml::read(PLAN).unwrap();
        let faults = Faults::default();
        apply(&mut tree, &overrides.iter().map(|o| (*o).to_owned()).collect::<Vec<_>>(), &faults);
        let faults =
            faults.into_sorted().into_iter().map(|f| format!("{}: {}: {}", f.place, f.path, f.message));
        (flow(&tree), faults.collect())
    }

    /// The tree in YAML's flow style.
    fn flow(node: &Node) -> String {
        let joined = |parts: Vec<String>| parts.join(", ");
        match &node.value {
            Value::Null => "~".into(),
            Value::Text { text, .. } => text.clone(),
            Value::List(items) => format!("[{}]", joined(items.iter().map(flow).collect())),
            Value::Map(entries) => {
                format!(
                    "{{{}}}",
                    joined(entries.iter().map(|(k, v)| format!("{}: {}", k.text, flow(v))).collect())
                )
            }
        }
    }

    fn check(overrides: &[&str], expected: &str) {
        let (tree, faults) = set(overrides);
        assert!(faults.is_empty(), "{faults:?}");
        assert!(tree.contains(expected), "{overrides:?}: no `{expected}` in {tree}");
    }

    #[test]
    fn paths_go_by_keys_indices_and_names_and_make_missing_maps() {
        check(&["requests.0.deadline=20s"], "{name: ask, deadline: 20s}");
        check(&["requests.ask.deadline=20s"], "{name: ask, deadline: 20s}");
        check(&["load.phases.b.c.rate=9/s"], "{name: b.c, rate: 9/s}");
        check(&["rehearsal.probes.every=5"], "rehearsal: {probes: {every: 5}}");
        check(&["target.embedded.bound=none"], "bound: none");
        check(&["load.arrivals={gamma: {cv: 2}}"], "arrivals: {gamma: {cv: 2}}");
        check(&["load.seed=1", "load.seed=2"], "seed: 2");
    }

    #[test]
    fn ids_with_dots_are_one_key() {
        check(&["checks.shedding.fast.limit=20ms"], "checks: {shedding.fast: {limit: 20ms}}");
        check(
            &["checks.shedding.fast.limit=20ms", "checks.shedding.fast.off=true"],
            "{limit: 20ms, off: true}",
        );
    }

    #[test]
    fn setting_one_of_several_replaces_the_others() {
        check(&["target.embedded.retry_after.constant=1s"], "retry_after: {constant: 1s}");
        check(&["target.embedded.retry_after=room"], "retry_after: room");
        check(
            &["target.embedded.retry_after=room", "target.embedded.retry_after.constant=1s"],
            "{constant: 1s}",
        );
        check(&["target.embedded.retry_after.appointment.reserve=0.5"], "{appointment: {reserve: 0.5}}");
        check(&["load.late=send", "load.late.drop_after=5ms"], "late: {drop_after: 5ms}");
        check(&["target.url=http://127.0.0.1:1"], "target: {url: http://127.0.0.1:1}");
    }

    #[test]
    fn what_cannot_be_set_is_said() {
        let cases = [
            ("seed", "path=value"),
            ("=5", "path=value"),
            ("requests.1.deadline=1s", "requests.1: the list has no item `1` (it has one: 0, or ask)"),
            ("requests.aks.deadline=1s", "did you mean `ask`?"),
            ("load.phases.0.name.x=1", "load.phases.0.name: a single value stands here: it has no key `x`"),
            ("load.seed=[1", "the value cannot be read"),
        ];
        for (text, expected) in cases {
            let (_, faults) = set(&[text]);
            assert!(faults.len() == 1 && faults[0].contains(expected), "{text}: {faults:?}");
            assert!(faults[0].starts_with(&format!("--set {text}")), "{faults:?}");
        }
        let (_, faults) = set(&[&format!("{}=1", "a.".repeat(50))]);
        assert!(faults[0].contains("at most 20 steps"), "{faults:?}");
        for text in [
            "load.phases.9.headers.k=s3cret",
            "load.phases.9.url=http://u:s3cret@h",
            "load.phases.9.url=http://h/?k=s3cret",
        ] {
            let (_, faults) = set(&[text]);
            assert!(faults.len() == 1 && !faults[0].contains("s3cret"), "{faults:?}");
        }
    }
}
