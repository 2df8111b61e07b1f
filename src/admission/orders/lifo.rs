//! Last in, first out: the newest caller is the one most surely still there.
//!
//! The bound counts the whole stack, so the buried do not vanish from it; they expire by timer, not only when they
//! come up.

use std::sync::Arc;

use super::{Kind, Order};
use crate::admission::{Id, no_settings, queue::Lane};

pub(super) const KIND: Kind = Kind {
    name: "lifo",
    about: "last in, first out; the buried expire by timer",
    build: |inner| no_settings(KIND.name, inner).map(|()| Arc::new(Lifo) as Arc<dyn Order>),
};

#[derive(Debug)]
struct Lifo;

impl Order for Lifo {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn next(&self, lane: &Lane) -> Option<Id> {
        lane.newest()
    }
}
