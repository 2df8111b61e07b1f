//! The same number for everyone, whatever the state.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Kind, Scene, Strategy, whole_seconds};
use crate::units::{Read, plain_duration};

pub(super) const KIND: Kind = Kind {
    name: "constant",
    about: "the same number for everyone: { constant: 30s }",
    build: |inner| {
        let Some(reader) = inner else { return Some(Arc::new(Constant(Duration::from_secs(1))) as Arc<dyn Strategy>) };
        Duration::read(reader).map(|span| Arc::new(Constant(span)) as Arc<dyn Strategy>)
    },
};

#[derive(Debug)]
struct Constant(Duration);

impl Strategy for Constant {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn spec(&self) -> Value {
        json!({ "constant": plain_duration(self.0) })
    }

    fn announce(&self, _scene: &Scene) -> Option<Duration> {
        Some(whole_seconds(self.0))
    }
}
