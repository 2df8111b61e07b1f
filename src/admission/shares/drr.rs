//! Deficit round robin: tokens by weight, whatever the sizes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Kind, Share};
use crate::admission::Ask;
use crate::units::{Reader, Tokens};

pub(super) const KIND: Kind = Kind {
    name: "drr",
    about: "deficit round robin: tokens by weight; { drr: { quantum: 1200 } }",
    build: |inner| read(inner).map(|it| Arc::new(it) as Arc<dyn Share>),
};

/// The quantum where a plan names none: about one request, so that a round is short.
const QUANTUM: Tokens = Tokens::new(1_000);

#[derive(Debug)]
struct Deficit(Tokens);

impl Share for Deficit {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn spec(&self) -> Value {
        json!({ "drr": { "quantum": self.0.to_string() } })
    }

    fn cost(&self, ask: &Ask) -> u64 {
        ask.hold().get()
    }

    fn quantum(&self) -> u64 {
        self.0.get()
    }
}

fn read(inner: Option<&Reader<'_>>) -> Option<Deficit> {
    let Some(reader) = inner else { return Some(Deficit(QUANTUM)) };
    let mut map = reader.map()?;
    let quantum = map.or("quantum", QUANTUM)?;
    if quantum == Tokens::ZERO {
        map.here().fault("a quantum of zero would serve nobody");
        return None;
    }
    Some(Deficit(quantum))
}
