//! Earliest deadline first. An urgent newcomer goes before those who can wait, but never so that one of them would be
//! late: the room before everyone behind it is part of its bound.

use std::sync::Arc;

use super::{Kind, Order};
use crate::admission::{
    Ask, Id, no_settings,
    queue::{Lane, Outlook},
};
use crate::units::{Moment, Tokens};

pub(super) const KIND: Kind = Kind {
    name: "edf",
    about: "earliest deadline first; nobody admitted is pushed over its deadline",
    build: |inner| no_settings(KIND.name, inner).map(|()| Arc::new(Edf) as Arc<dyn Order>),
};

#[derive(Debug)]
struct Edf;

impl Order for Edf {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn next(&self, lane: &Lane) -> Option<Id> {
        lane.most_urgent()
    }

    fn outlook(&self, lane: &Lane, ask: &Ask, ready: Moment, level: Tokens) -> Outlook {
        lane.outlook_by_deadline(ask, ready, level)
    }

    fn by_deadline(&self) -> bool {
        true
    }
}
