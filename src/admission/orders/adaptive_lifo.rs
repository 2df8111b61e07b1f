//! First in, first out while the lane is short; last in, first out from a high mark on until it is back at a low one.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Kind, Order};
use crate::admission::{Id, queue::Lane};
use crate::units::Reader;

pub(super) const KIND: Kind = Kind {
    name: "adaptive_lifo",
    about: "fifo until `high` wait, then lifo until `low` do; { adaptive_lifo: { high: 80, low: 60 } }",
    build: |inner| read(inner).map(|it| Arc::new(it) as Arc<dyn Order>),
};

#[derive(Debug)]
struct Adaptive {
    high: u64,
    low: u64,
}

impl Order for Adaptive {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn spec(&self) -> Value {
        json!({ "adaptive_lifo": { "high": self.high.to_string(), "low": self.low.to_string() } })
    }

    fn next(&self, lane: &Lane) -> Option<Id> {
        if lane.stacked() { lane.newest() } else { lane.oldest() }
    }

    fn watch(&self, lane: &mut Lane) {
        let len = lane.len() as u64;
        if len >= self.high {
            lane.stack(true);
        } else if len <= self.low {
            lane.stack(false);
        }
    }
}

fn read(inner: Option<&Reader<'_>>) -> Option<Adaptive> {
    let standard = Adaptive { high: 80, low: 60 };
    let Some(reader) = inner else { return Some(standard) };
    let mut map = reader.map()?;
    let (high, low) = (map.or("high", standard.high), map.or("low", standard.low));
    let it = Adaptive { high: high?, low: low? };
    if it.low >= it.high {
        map.here().fault(format!("`low` ({}) must be less than `high` ({})", it.low, it.high));
        return None;
    }
    Some(it)
}
