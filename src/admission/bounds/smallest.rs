//! The smallest of several bounds: a latency objective is often tighter than the deadline.

use std::sync::Arc;

use serde_json::Value;

use super::{Bound, Excess, Scene};
use crate::units::Reader;

#[derive(Debug)]
struct Smallest(Vec<Arc<dyn Bound>>);

impl Bound for Smallest {
    fn name(&self) -> &'static str {
        "the smallest of several"
    }

    fn spec(&self) -> Value {
        self.0.iter().map(|bound| bound.spec()).collect()
    }

    fn split(&self, parts: u64, which: u64) -> Option<Arc<dyn Bound>> {
        let part = |bound: &Arc<dyn Bound>| bound.split(parts, which).unwrap_or_else(|| Arc::clone(bound));
        Some(Arc::new(Self(self.0.iter().map(part).collect())))
    }

    fn excess(&self, scene: &Scene) -> Excess {
        self.0.iter().map(|bound| bound.excess(scene)).fold(Excess::default(), Excess::or)
    }
}

/// Reads a list of bounds.
pub(in crate::admission) fn read(reader: &Reader<'_>) -> Option<Arc<dyn Bound>> {
    let bounds: Vec<Arc<dyn Bound>> = crate::units::Read::read(reader)?;
    if bounds.is_empty() {
        reader.fault("an empty list bounds nothing: write `none`, or name a bound");
        return None;
    }
    Some(Arc::new(Smallest(bounds)))
}
