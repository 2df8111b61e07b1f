//! The bound that follows from the caller's deadline: what can be drained before it would be too late to start.
//!
//! A request waits if what is ahead and itself fit into A(t, D − s − margin), the supply function of the quota (for a
//! bucket its level and r · Δ), with D the caller's remaining time and s the service quantile. A fresh caller may use
//! only its part of what will be supplied; the level counts whole.

use std::sync::Arc;

use super::{Bound, Excess, Kind, Scene, part_of};
use crate::units::Tokens;

pub(super) const KIND: Kind = Kind {
    name: "deadline",
    about: "what can be drained before the caller's deadline less the service time and the margin",
    limit: None,
    build: |inner| {
        crate::admission::no_settings(KIND.name, inner).map(|()| Arc::new(Deadline) as Arc<dyn Bound>)
    },
};

#[derive(Debug)]
pub(super) struct Deadline;

impl Bound for Deadline {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn excess(&self, scene: &Scene) -> Excess {
        let to_come = (scene.supply - scene.level).get();
        let room = scene.level + Tokens::new(part_of(to_come, scene.part));
        let over = scene.wanted - room;
        // with no time left to start nothing fits, however much is there
        let hopeless = Tokens::new(u64::from(scene.slack.is_zero()));
        Excess::of_tokens(over.max(hopeless))
    }
}
