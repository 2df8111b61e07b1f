//! No bound: everyone is admitted. What overload then does is what the other policies are measured against.

use std::sync::Arc;

use super::{Bound, Excess, Kind, Scene};

pub(super) const KIND: Kind = Kind {
    name: "none",
    about: "no bound: everyone waits",
    limit: None,
    build: |inner| {
        crate::admission::no_settings(KIND.name, inner).map(|()| Arc::new(Unbounded) as Arc<dyn Bound>)
    },
};

#[derive(Debug)]
pub(super) struct Unbounded;

impl Bound for Unbounded {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn excess(&self, _scene: &Scene) -> Excess {
        Excess::default()
    }
}
