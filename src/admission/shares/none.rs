//! All tenants in one line.

use std::sync::Arc;

use super::{Kind, Share};
use crate::admission::{Ask, no_settings};

pub(super) const KIND: Kind = Kind {
    name: "none",
    about: "all tenants in one line",
    build: |inner| no_settings(KIND.name, inner).map(|()| Arc::new(Together) as Arc<dyn Share>),
};

#[derive(Debug)]
pub(super) struct Together;

impl Share for Together {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn separate(&self) -> bool {
        false
    }

    fn cost(&self, _ask: &Ask) -> u64 {
        1
    }

    fn quantum(&self) -> u64 {
        1
    }
}
