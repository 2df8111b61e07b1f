//! Always the same number.

use std::sync::Arc;

use super::{Kind, Law, tokens};

pub(super) const KIND: Kind = Kind {
    name: "fixed",
    about: "always the same: 800, or { fixed: 800 }",
    build: |inner| tokens(inner).map(law),
};

#[derive(Debug)]
struct Fixed(u64);

pub(super) fn law(tokens: u64) -> Arc<dyn Law> {
    Arc::new(Fixed(tokens))
}

impl Law for Fixed {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn at(&self, _: f64) -> u64 {
        self.0
    }

    fn parts(&self) -> Option<Vec<(f64, u64)>> {
        Some(vec![(1.0, self.0)])
    }
}
