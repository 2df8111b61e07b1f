//! Every whole number of a range as often as any other.

use std::sync::Arc;

use super::{Kind, Law, tokens};
use crate::units::{Read, Reader};

pub(super) const KIND: Kind = Kind {
    name: "uniform",
    about: "every number of a range alike, both ends included: { from: 100, to: 900 }",
    build: |inner| Uniform::read(inner).map(|law| Arc::new(law) as Arc<dyn Law>),
};

#[derive(Debug)]
struct Uniform {
    from: u64,
    to: u64,
}

impl Read for Uniform {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let mut end = |key| match map.reader(key) {
            Some(reader) => tokens(&reader),
            None => {
                map.here().fault(format!("`{key}` is missing"));
                None
            }
        };
        let (from, to) = (end("from"), end("to"));
        let (from, to) = (from?, to?);
        if from > to {
            reader.fault(format!("`from` of {from} is above `to` of {to}"));
            return None;
        }
        Some(Self { from, to })
    }
}

impl Law for Uniform {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn at(&self, u: f64) -> u64 {
        let wide = (self.to - self.from + 1) as f64;
        (self.from + (u * wide) as u64).min(self.to)
    }
}
