//! First in, first out.

use std::sync::Arc;

use super::{Kind, Order};
use crate::admission::{Id, no_settings, queue::Lane};

pub(super) const KIND: Kind = Kind {
    name: "fifo",
    about: "first in, first out",
    build: |inner| no_settings(KIND.name, inner).map(|()| Arc::new(Fifo) as Arc<dyn Order>),
};

#[derive(Debug)]
pub(super) struct Fifo;

impl Order for Fifo {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn next(&self, lane: &Lane) -> Option<Id> {
        lane.oldest()
    }
}
