//! No header at all.

use std::sync::Arc;
use std::time::Duration;

use super::{Kind, Scene, Strategy};

pub(super) const KIND: Kind = Kind {
    name: "none",
    about: "no header at all",
    build: |inner| crate::admission::no_settings(KIND.name, inner).map(|()| Arc::new(Silent) as Arc<dyn Strategy>),
};

#[derive(Debug)]
struct Silent;

impl Strategy for Silent {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn announce(&self, _scene: &Scene) -> Option<Duration> {
        None
    }
}
