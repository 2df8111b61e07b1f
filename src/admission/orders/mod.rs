//! Who of the waiting is served next.

use std::fmt::Debug;
use std::sync::Arc;

use super::Id;
use super::queue::Queue;
use crate::units::{Read, Reader};

mod fifo;
mod lifo;

/// Every order a plan can name, sorted.
pub const ALL: &[Kind] = &[fifo::KIND, lifo::KIND];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Builds it from what stands under its name.
    pub build: fn(Option<&Reader<'_>>) -> Option<Arc<dyn Order>>,
}

/// An order of service. It has no state.
pub trait Order: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;
    /// Who is next; `None` only if nobody waits.
    fn next(&self, queue: &Queue) -> Option<Id>;
}

/// The order where a plan names none.
pub(super) fn standard() -> Arc<dyn Order> {
    Arc::new(fifo::Fifo)
}

impl Read for Arc<dyn Order> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("order", &names)?;
        (ALL.iter().find(|kind| kind.name == name)?.build)(inner.as_ref())
    }
}
