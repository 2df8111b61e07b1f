//! How tenants share what is served: whose lane is next.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::Value;

use super::Ask;
use crate::units::{Read, Reader};

mod drr;
mod none;
mod wrr;

/// Every way to share a plan can name, sorted.
pub const ALL: &[Kind] = &[drr::KIND, none::KIND, wrr::KIND];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Builds it from what stands under its name.
    pub build: fn(Option<&Reader<'_>>) -> Option<Arc<dyn Share>>,
}

/// A way to share. It has no state; the deficits are kept by the queue.
pub trait Share: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;
    /// The form it has in a plan.
    fn spec(&self) -> Value {
        Value::String(self.name().to_owned())
    }
    /// Whether each tenant has a lane of its own.
    fn separate(&self) -> bool {
        true
    }
    /// What serving `ask` costs its tenant.
    fn cost(&self, ask: &Ask) -> u64;
    /// What a visit gives a tenant of weight 1.
    fn quantum(&self) -> u64;
}

/// The way where a plan names none.
pub(super) fn standard() -> Arc<dyn Share> {
    Arc::new(none::Together)
}

impl Read for Arc<dyn Share> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("way to share", &names)?;
        (ALL.iter().find(|kind| kind.name == name)?.build)(inner.as_ref())
    }
}
