//! How much may wait: bounds on the queue.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::units::{Bytes, Read, Reader, Tokens, Value as Node};

mod bytes;
mod deadline;
mod none;
mod requests;
mod seconds;
pub(super) mod smallest;
mod tokens;

/// Every bound a plan can name, sorted. A list of them is the smallest of them.
pub const ALL: &[Kind] = &[bytes::KIND, deadline::KIND, none::KIND, requests::KIND, seconds::KIND, tokens::KIND];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// An example of its limit, if it has one.
    pub limit: Option<&'static str>,
    /// Builds it from what stands under its name: for the property tests, without a limit it takes one of its own.
    pub build: fn(Option<&Reader<'_>>) -> Option<Arc<dyn Bound>>,
}

/// What a bound may look at when a request arrives.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// What the queue drains at, in tokens of holds a second.
    pub drain: f64,
    /// What remains of the caller's time, less the service time and the margin.
    pub slack: Duration,
    /// Tokens that can be spent at once.
    pub level: Tokens,
    /// Tokens that can be forwarded until the slack ends, the level included.
    pub supply: Tokens,
    /// Tokens to be forwarded before and with the request, as its lane sees them.
    pub wanted: Tokens,
    /// Requests that would wait, this one included.
    pub requests: u64,
    /// Tokens that would wait, this one included.
    pub tokens: Tokens,
    /// Bytes of bodies that would wait, this one included.
    pub bytes: Bytes,
    /// The part of the bound this request may use: less than 1 for a fresh caller where some is kept for those who
    /// return.
    pub part: f64,
}

/// By how much a request exceeds a bound. It fits if all are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Excess {
    /// In tokens.
    pub tokens: Tokens,
    /// In requests.
    pub requests: u64,
    /// In bytes.
    pub bytes: Bytes,
}

impl Excess {
    /// Whether there is none.
    pub fn fits(&self) -> bool {
        *self == Self::default()
    }

    /// An excess of tokens alone.
    pub fn of_tokens(tokens: Tokens) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// The larger of both in every measure.
    pub fn or(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            requests: self.requests.max(other.requests),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// A bound on what may wait. It has no state.
pub trait Bound: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;
    /// The form it has in a plan.
    fn spec(&self) -> Value {
        Value::String(self.name().to_owned())
    }
    /// By how much the request of `scene` exceeds the bound.
    fn excess(&self, scene: &Scene) -> Excess;
}

/// `part` of `whole`, rounded down.
fn part_of(whole: u64, part: f64) -> u64 {
    // exact where nothing is kept, whatever the size
    if part >= 1.0 { whole } else { (whole as f64 * part) as u64 }
}

/// The bound where a plan names none.
pub(super) fn standard() -> Arc<dyn Bound> {
    Arc::new(deadline::Deadline)
}

impl Read for Arc<dyn Bound> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        if let Node::List(_) = reader.node().value {
            return smallest::read(reader);
        }
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("bound", &names)?;
        let kind = ALL.iter().find(|kind| kind.name == name)?;
        if inner.is_none() && kind.limit.is_some() {
            let example = kind.limit.unwrap_or_default();
            reader.fault(format!("`{name}` needs its limit: write `{{ {name}: {example} }}`"));
            return None;
        }
        (kind.build)(inner.as_ref())
    }
}
