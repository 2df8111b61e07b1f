//! At most so many bytes of bodies wait: a bound on tokens alone does not bound memory.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Bound, Excess, Kind, Scene, part_of};
use crate::admission::replicas::share_of;
use crate::units::{Bytes, Read};

pub(super) const KIND: Kind = Kind {
    name: "bytes",
    about: "at most so many bytes of bodies wait: { bytes: 64MiB }",
    limit: Some("64MiB"),
    build: |inner| {
        let limit = inner.map_or(Some(Bytes::new(1 << 20)), Bytes::read);
        limit.map(|limit| Arc::new(Limit(limit)) as Arc<dyn Bound>)
    },
};

#[derive(Debug)]
struct Limit(Bytes);

impl Bound for Limit {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn spec(&self) -> Value {
        json!({ "bytes": format!("{}B", self.0.get()) })
    }

    fn split(&self, parts: u64, which: u64) -> Option<Arc<dyn Bound>> {
        Some(Arc::new(Self(Bytes::new(share_of(self.0.get(), parts, which)))))
    }

    fn excess(&self, scene: &Scene) -> Excess {
        let over = scene.bytes - Bytes::new(part_of(self.0.get(), scene.part));
        Excess { bytes: over, ..Excess::default() }
    }
}
