//! Who of the waiting is served next.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use super::queue::{Lane, Outlook};
use super::{Ask, Id};
use crate::units::{Moment, Read, Reader, Tokens};

mod adaptive_lifo;
mod edf;
mod fifo;
mod lifo;

/// Every order a plan can name, sorted.
pub const ALL: &[Kind] = &[adaptive_lifo::KIND, edf::KIND, fifo::KIND, lifo::KIND];

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

/// An order of service within a lane. It has no state; what it must remember of a lane is kept there.
pub trait Order: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;
    /// The form it has in a plan.
    fn spec(&self) -> Value {
        Value::String(self.name().to_owned())
    }
    /// Who is next; `None` only if nobody waits.
    fn next(&self, lane: &Lane) -> Option<Id>;
    /// What `ask` would find in the lane: the whole of it before itself, unless the order knows better. `ready` is the
    /// present instant plus the service time, `level` what can be spent at once.
    fn outlook(&self, lane: &Lane, ask: &Ask, ready: Moment, level: Tokens) -> Outlook {
        let _ = (ask, ready, level);
        lane.outlook()
    }
    /// Whether lanes must be able to answer questions about deadlines.
    fn by_deadline(&self) -> bool {
        false
    }
    /// Called after each change of a lane.
    fn watch(&self, lane: &mut Lane) {
        let _ = lane;
    }
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
