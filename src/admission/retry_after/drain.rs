//! The time the whole queue takes to drain: `waiting / r`.

use std::sync::Arc;
use std::time::Duration;

use super::{Kind, Scene, Strategy, whole_seconds};
use crate::units::span_of;

pub(super) const KIND: Kind = Kind {
    name: "drain",
    about: "the time the whole queue takes to drain",
    build: |inner| {
        crate::admission::no_settings(KIND.name, inner).map(|()| Arc::new(Drain) as Arc<dyn Strategy>)
    },
};

#[derive(Debug)]
struct Drain;

impl Strategy for Drain {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn announce(&self, scene: &Scene) -> Option<Duration> {
        Some(whole_seconds(span_of(scene.waiting.get() as f64 / scene.drain)))
    }
}
