//! One of several distributions by weight: short questions and long documents, say.

use std::sync::Arc;

use super::{Kind, Law, law};
use crate::units::{Read, Reader};

pub(super) const KIND: Kind = Kind {
    name: "mixture",
    about: "one of several by weight: [{ weight: 3, size: 200 }, { weight: 1, size: { uniform: ... } }]",
    build: |inner| Mixture::read(inner).map(|law| Arc::new(law) as Arc<dyn Law>),
};

/// The most parts.
const MOST_PARTS: usize = 100;

/// The parts with their shares, which add to 1.
#[derive(Debug)]
struct Mixture(Vec<(f64, Arc<dyn Law>)>);

struct Part {
    weight: u32,
    law: Arc<dyn Law>,
}

impl Read for Part {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let weight = map.or("weight", 1u32);
        let law = match map.reader("size") {
            Some(reader) => law(&reader),
            None => {
                map.here().fault("`size` is missing");
                None
            }
        };
        Some(Self { weight: weight?, law: law? })
    }
}

impl Read for Mixture {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let parts: Vec<Part> = Vec::read(reader)?;
        let total: u64 = parts.iter().map(|part| u64::from(part.weight)).sum();
        if total == 0 || parts.len() > MOST_PARTS {
            reader.fault(format!("a mixture has 1 to {MOST_PARTS} parts, and one with a weight above 0"));
            return None;
        }
        if parts.iter().any(|part| part.law.is_traced()) {
            reader.fault("the sizes of a trace stand alone: write `tokens: trace`");
            return None;
        }
        let share = |part: Part| (f64::from(part.weight) / total as f64, part.law);
        Some(Self(parts.into_iter().filter(|part| part.weight > 0).map(share).collect()))
    }
}

impl Law for Mixture {
    fn name(&self) -> &'static str {
        KIND.name
    }

    /// One number chooses the part, and where it lies within that part's stretch the size.
    fn at(&self, u: f64) -> u64 {
        let mut left = u;
        for (share, law) in &self.0 {
            if left < *share {
                return law.at(left / share);
            }
            left -= share;
        }
        // rounding may leave nothing of the last stretch
        self.0.last().map_or(0, |(_, law)| law.at(1.0 - f64::EPSILON))
    }

    fn parts(&self) -> Option<Vec<(f64, u64)>> {
        let mut all = Vec::new();
        for (share, law) in &self.0 {
            all.extend(law.parts()?.into_iter().map(|(part, size)| (part * share, size)));
        }
        Some(all)
    }
}
