//! At most so many requests wait.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Bound, Excess, Kind, Scene, part_of};
use crate::admission::replicas::share_of;
use crate::units::Read;

pub(super) const KIND: Kind = Kind {
    name: "requests",
    about: "at most so many requests wait: { requests: 480 }",
    limit: Some("480"),
    build: |inner| {
        let limit = inner.map_or(Some(100), u64::read);
        limit.map(|limit| Arc::new(Limit(limit)) as Arc<dyn Bound>)
    },
};

#[derive(Debug)]
struct Limit(u64);

impl Bound for Limit {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn spec(&self) -> Value {
        json!({ "requests": self.0.to_string() })
    }

    fn is_whole(&self) -> bool {
        true
    }

    fn split(&self, parts: u64, which: u64) -> Option<Arc<dyn Bound>> {
        Some(Arc::new(Self(share_of(self.0, parts, which))))
    }

    fn excess(&self, scene: &Scene) -> Excess {
        let over = scene.requests.saturating_sub(part_of(self.0, scene.part));
        Excess { requests: over, ..Excess::default() }
    }
}
