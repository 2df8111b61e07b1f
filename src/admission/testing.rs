//! Help for the tests of this layer: policies from their text form.

use super::{Ask, Id, TenantId};
use crate::units::{Bytes, Faults, Moment, Node, Place, Read, Reader, Tokens, Value};

/// Reads a value from a text in the flow form of YAML: `{ requests: 10 }`, `[deadline, none]`, `fifo`.
pub(crate) fn read<T: Read>(text: &str) -> T {
    let node = node(text);
    let faults = Faults::default();
    let value = T::read(&Reader::root(&node, &faults));
    let faults = faults.into_sorted();
    value.unwrap_or_else(|| panic!("{text}: {faults:?}"))
}

/// The tree of such a text.
pub(crate) fn node(text: &str) -> Node {
    let place = Place::File { line: 1, column: 1 };
    let text = text.trim();
    let inner = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    if let Some(list) = inner('[', ']') {
        return Node { place, value: Value::List(parts(list).into_iter().map(node).collect()) };
    }
    let Some(map) = inner('{', '}') else { return Node::text(text, place) };
    let entries = parts(map).into_iter().map(|entry| {
        let (key, value) = entry.split_once(':').expect("a key and a value");
        (crate::units::Key { text: key.trim().into(), place: place.clone() }, node(value))
    });
    Node { value: Value::Map(entries.collect()), place }
}

/// Splits at the commas that stand in no inner list or map.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

/// A policy that names its own budgets.
pub(crate) fn config(text: &str) -> super::Config {
    let node = node(text);
    let faults = Faults::default();
    let config = Reader::root(&node, &faults).map().and_then(|mut map| super::Config::read(&mut map, None));
    let faults = faults.into_sorted();
    config.unwrap_or_else(|| panic!("{text}: {faults:?}"))
}

/// A request of 100 tokens that has five seconds.
pub(crate) fn ask(ms: u64, id: u64) -> Ask {
    Ask {
        id: Id(id),
        caller: id,
        prompt: Tokens::new(50),
        max_output: Tokens::new(50),
        bytes: Bytes::new(100),
        deadline: Moment::from_millis(ms + 5_000),
        tenant: TenantId(0),
        tier: 1,
        operation: None,
    }
}
