//! Sizes that were seen, each as often as it stands in the list; or with weights.

use std::sync::Arc;

use super::{Kind, Law, tokens};
use crate::units::{Read, Reader, Value};

/// The longest list: for more there are traces.
const MOST_VALUES: usize = 10_000;

pub(super) const KIND: Kind = Kind {
    name: "empirical",
    about: "sizes that were seen: [120, 340, 340, 560], or { values: [...], weights: [...] }",
    build: |inner| Empirical::read(inner).map(|law| Arc::new(law) as Arc<dyn Law>),
};

/// Sizes in order, each with the share of all that are not larger.
#[derive(Debug)]
struct Empirical(Vec<(f64, u64)>);

impl Read for Empirical {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let (values, weights) = match &reader.node().value {
            Value::List(_) => (values(reader)?, None),
            _ => {
                let mut map = reader.map()?;
                let sizes = match map.reader("values") {
                    Some(reader) => values(&reader),
                    None => {
                        map.here().fault("`values` is missing");
                        None
                    }
                };
                let weights = match map.reader("weights") {
                    Some(reader) => Some(Vec::<u32>::read(&reader)?),
                    None => None,
                };
                (sizes?, weights)
            }
        };
        let weights = weights.unwrap_or_else(|| vec![1; values.len()]);
        let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        if values.is_empty() || values.len() > MOST_VALUES || values.len() != weights.len() || total == 0 {
            reader.fault(format!(
                "1 to {MOST_VALUES} values belong here, each with its weight if any has one, and one above 0"
            ));
            return None;
        }
        let mut pairs: Vec<(u64, u32)> = values.into_iter().zip(weights).collect();
        pairs.sort_unstable();
        let mut sum = 0;
        let ranked = pairs.into_iter().filter(|(_, weight)| *weight > 0).map(|(value, weight)| {
            sum += u64::from(weight);
            (sum as f64 / total as f64, value)
        });
        Some(Self(ranked.collect()))
    }
}

fn values(reader: &Reader<'_>) -> Option<Vec<u64>> {
    let all: Vec<_> = reader.list()?.iter().map(tokens).collect();
    all.into_iter().collect()
}

impl Law for Empirical {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn at(&self, u: f64) -> u64 {
        let at = self.0.partition_point(|(share, _)| *share <= u);
        self.0.get(at).or_else(|| self.0.last()).map_or(0, |(_, value)| *value)
    }

    fn parts(&self) -> Option<Vec<(f64, u64)>> {
        let mut before = 0.0;
        let part = |(share, value): &(f64, u64)| {
            let part = share - before;
            before = *share;
            (part, *value)
        };
        Some(self.0.iter().map(part).collect())
    }
}
