//! At most so many seconds of work wait, whatever the callers' deadlines: a latency objective.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Bound, Excess, Kind, Scene};
use crate::units::{Read, Tokens, plain_duration};

pub(super) const KIND: Kind = Kind {
    name: "seconds",
    about: "at most so much time of work waits: { seconds: 400ms }",
    limit: Some("400ms"),
    build: |inner| {
        let limit = inner.map_or(Some(Duration::from_secs(2)), Duration::read);
        limit.map(|limit| Arc::new(Limit(limit)) as Arc<dyn Bound>)
    },
};

#[derive(Debug)]
struct Limit(Duration);

impl Bound for Limit {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn spec(&self) -> Value {
        json!({ "seconds": plain_duration(self.0) })
    }

    fn excess(&self, scene: &Scene) -> Excess {
        // what the drain delivers in that time, and what is there already
        let work = Tokens::new((scene.drain * self.0.as_secs_f64() * scene.part + 1e-6) as u64);
        Excess::of_tokens(scene.wanted - scene.level - work)
    }
}
