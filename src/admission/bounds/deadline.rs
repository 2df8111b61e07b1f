//! The bound that follows from the caller's deadline: what can be drained before it would be too late to start.
//!
//! Q* = r · (D − s − margin), with r the drain rate, D the caller's remaining time and s the service quantile.

use std::sync::Arc;

use super::{Bound, Kind, Scene};
use crate::units::Tokens;

pub(super) const KIND: Kind = Kind {
    name: "deadline",
    about: "what can be drained before the caller's deadline less the service time and the margin",
    build: |inner| crate::admission::no_settings(KIND.name, inner).map(|()| Arc::new(Deadline) as Arc<dyn Bound>),
};

#[derive(Debug)]
pub(super) struct Deadline;

impl Bound for Deadline {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn most(&self, scene: &Scene) -> Option<Tokens> {
        Some(Tokens::new(scene.drain.whole_in(scene.slack)))
    }
}
