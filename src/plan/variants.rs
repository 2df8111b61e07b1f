use super::overrides;
use crate::units::{Faults, Node, Place, Read, Reader};

/// A plan with some keys changed, under a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Its name, unique in the plan.
    pub name: String,
    /// Paths and what is set there, in order.
    pub set: Vec<(String, Node)>,
}

impl Variant {
    /// Changes the tree of a plan; what cannot be changed is reported.
    pub(super) fn apply(&self, tree: &mut Node, faults: &Faults) {
        for (path, node) in &self.set {
            let place = Place::Override(format!("variant `{}`", self.name));
            overrides::set(tree, path, node.clone(), &place, faults);
        }
    }
}

impl Read for Variant {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let name: Option<String> = map.need("name");
        let set = map.reader("set").and_then(|reader| reader.map().map(|mut map| map.rest()));
        let set = set.unwrap_or_default().into_iter().map(|(path, inner)| (path, inner.node().clone()));
        Some(Self { name: name?, set: set.collect() })
    }
}

/// Reads the list `variants`; names are unique.
pub(super) fn read(reader: &Reader<'_>) -> Option<Vec<Variant>> {
    let all: Vec<Variant> = Vec::read(reader)?;
    let twice = all.iter().enumerate().find(|(i, v)| all[..*i].iter().any(|w| w.name == v.name));
    if let Some((_, variant)) = twice {
        reader.fault(format!("two variants are named `{}`: give each its own name", variant.name));
        return None;
    }
    Some(all)
}
