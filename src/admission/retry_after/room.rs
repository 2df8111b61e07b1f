//! The time until one slot opens. In sustained overload that is always a moment, and somebody else takes it.

use std::sync::Arc;
use std::time::Duration;

use super::{Kind, Scene, Strategy, whole_seconds};
use crate::units::span_of;

pub(super) const KIND: Kind = Kind {
    name: "room",
    about: "the time until the refused request would have fitted, if nobody else came",
    build: |inner| {
        crate::admission::no_settings(KIND.name, inner).map(|()| Arc::new(Room) as Arc<dyn Strategy>)
    },
};

#[derive(Debug)]
struct Room;

impl Strategy for Room {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn announce(&self, scene: &Scene) -> Option<Duration> {
        Some(whole_seconds(span_of(scene.until_room)))
    }
}
