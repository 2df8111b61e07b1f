//! At most so many tokens wait.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Bound, Excess, Kind, Scene, part_of};
use crate::admission::replicas::share_of;
use crate::units::{Read, Tokens};

pub(super) const KIND: Kind = Kind {
    name: "tokens",
    about: "at most so many tokens wait: { tokens: 200k }",
    limit: Some("200k"),
    build: |inner| {
        let limit = inner.map_or(Some(Tokens::new(100_000)), Tokens::read);
        limit.map(|limit| Arc::new(Limit(limit)) as Arc<dyn Bound>)
    },
};

#[derive(Debug)]
struct Limit(Tokens);

impl Bound for Limit {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn spec(&self) -> Value {
        json!({ "tokens": self.0.to_string() })
    }

    fn split(&self, parts: u64, which: u64) -> Option<Arc<dyn Bound>> {
        Some(Arc::new(Self(Tokens::new(share_of(self.0.get(), parts, which)))))
    }

    fn excess(&self, scene: &Scene) -> Excess {
        Excess::of_tokens(scene.tokens - Tokens::new(part_of(self.0.get(), scene.part)))
    }
}
