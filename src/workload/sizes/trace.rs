//! What the trace says of each arrival (`load.arrivals.trace`).

use std::sync::Arc;

use super::{Kind, Law};
use crate::units::Value;

pub(super) const KIND: Kind = Kind {
    name: "trace",
    about: "what the trace says of each arrival (load.arrivals.trace): trace",
    build: |inner| match &inner.node().value {
        Value::Text { .. } => Some(Arc::new(Trace) as Arc<dyn Law>),
        _ => {
            inner.fault("`trace` has no settings: write `tokens: trace`");
            None
        }
    },
};

#[derive(Debug)]
struct Trace;

impl Law for Trace {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn at(&self, _: f64) -> u64 {
        0
    }

    fn is_traced(&self) -> bool {
        true
    }
}
