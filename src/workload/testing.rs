//! Nodes by hand, for the tests of this layer.

use crate::units::{Faults, Key, Node, Place, Read, Reader, Value};

const PLACE: Place = Place::File { line: 1, column: 1 };

pub(super) fn map(entries: Vec<(&str, Node)>) -> Node {
    let key = |name: &str| Key { text: name.into(), place: PLACE };
    Node {
        place: PLACE,
        value: Value::Map(entries.into_iter().map(|(name, node)| (key(name), node)).collect()),
    }
}

pub(super) fn text(text: &str) -> Node {
    Node::text(text, PLACE)
}

pub(super) fn list(items: Vec<Node>) -> Node {
    Node { place: PLACE, value: Value::List(items) }
}

pub(super) fn read<T: Read>(node: &Node) -> T {
    let faults = Faults::default();
    let value = T::read(&Reader::root(node, &faults));
    let faults = faults.into_sorted();
    value.unwrap_or_else(|| panic!("{faults:?}"))
}
