//! What a refused caller is told: when to come back.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::units::{Read, Reader, Share, Tokens};

mod appointment;
mod calendar;
mod constant;
mod drain;
mod none;
pub(super) mod promises;
mod room;

/// Every strategy a plan can name, sorted.
pub const ALL: &[Kind] = &[appointment::KIND, constant::KIND, drain::KIND, none::KIND, room::KIND];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Builds it from what stands under its name.
    pub build: fn(Option<&Reader<'_>>) -> Option<Arc<dyn Strategy>>,
}

/// What a strategy may look at when a request is refused.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// What the queue drains at, in tokens a second.
    pub drain: f64,
    /// Tokens waiting.
    pub waiting: Tokens,
    /// Until the refused request would have been admitted if nobody else came, in seconds.
    pub until_room: f64,
    /// Tokens of the refused callers that were told a time and have not come back yet, this one included.
    pub promised: Tokens,
    /// The share of refused callers that come back, as learned so far (θ).
    pub returning: f64,
    /// A number in `[0, 1)` drawn from the request's id.
    pub draw: f64,
}

/// How much of the bound is kept for callers who come back as told, and what is believed of how many do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reserve {
    /// The part of the bound a fresh caller may not use.
    pub share: Share,
    /// θ before anyone was refused.
    pub start: Share,
    /// Whether θ is learned from those who come back.
    pub learn: bool,
}

/// A way to tell refused callers when to come back. It has no state of its own; the promises are kept by the machine.
pub trait Strategy: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;
    /// The form it has in a plan.
    fn spec(&self) -> Value {
        Value::String(self.name().to_owned())
    }
    /// What it keeps for those who return; `None` if it keeps no promises.
    fn reserve(&self) -> Option<Reserve> {
        None
    }
    /// The whole seconds to announce, at least one; `None` for no header.
    fn announce(&self, scene: &Scene) -> Option<Duration>;
}

/// The strategy where a plan names none.
pub(super) fn standard() -> Arc<dyn Strategy> {
    Arc::new(appointment::Appointment::default())
}

impl Read for Arc<dyn Strategy> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("Retry-After strategy", &names)?;
        (ALL.iter().find(|kind| kind.name == name)?.build)(inner.as_ref())
    }
}

/// The longest time that is announced, for what will never be: a year.
const LONGEST: u64 = 365 * 86_400;

/// `span` in whole seconds, rounded up, at least one.
pub(super) fn whole_seconds(span: Duration) -> Duration {
    let up = span.as_secs().min(LONGEST) + u64::from(span.subsec_nanos() > 0);
    Duration::from_secs(up.clamp(1, LONGEST))
}
