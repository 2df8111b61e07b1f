//! How much may wait: bounds on the queue.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::units::{Rate, Read, Reader, Tokens};

mod deadline;
mod none;

/// Every bound a plan can name, sorted.
pub const ALL: &[Kind] = &[deadline::KIND, none::KIND];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Builds it from what stands under its name.
    pub build: fn(Option<&Reader<'_>>) -> Option<Arc<dyn Bound>>,
}

/// What a bound may look at when a request arrives.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// What the queue drains at.
    pub drain: Rate,
    /// What remains of the caller's time, less the service time and the margin.
    pub slack: Duration,
}

/// A bound on what may wait. It has no state.
pub trait Bound: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;
    /// The form it has in a plan.
    fn spec(&self) -> Value {
        Value::String(self.name().to_owned())
    }
    /// The most tokens that may wait ahead of and with the request; `None` for no bound.
    fn most(&self, scene: &Scene) -> Option<Tokens>;
}

/// The bound where a plan names none.
pub(super) fn standard() -> Arc<dyn Bound> {
    Arc::new(deadline::Deadline)
}

impl Read for Arc<dyn Bound> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("bound", &names)?;
        (ALL.iter().find(|kind| kind.name == name)?.build)(inner.as_ref())
    }
}
