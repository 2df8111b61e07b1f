//! Weighted round robin: requests by weight, whatever their sizes. 2:1:1 gives 50, 25 and 25 % of dispatches.

use std::sync::Arc;

use super::{Kind, Share};
use crate::admission::{Ask, no_settings};

pub(super) const KIND: Kind = Kind {
    name: "wrr",
    about: "weighted round robin: requests by weight",
    build: |inner| no_settings(KIND.name, inner).map(|()| Arc::new(Requests) as Arc<dyn Share>),
};

#[derive(Debug)]
struct Requests;

impl Share for Requests {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn cost(&self, _ask: &Ask) -> u64 {
        1
    }

    fn quantum(&self) -> u64 {
        1
    }
}
