//! What only an HTTP shell does wrong: the names and amounts. The machine knows nothing of it.

use std::time::Duration;

use super::{Amount, Kind};
use crate::units::Bytes;

pub(super) const SLOW_REFUSAL: Kind = Kind {
    name: "slow_refusal",
    about: "a refusal takes a time to be written (50ms); live only",
    usual: Amount::Time(Duration::from_millis(50)),
    live_only: true,
    bend: |_, _| {},
};

pub(super) const LEAK_PER_REQUEST: Kind = Kind {
    name: "leak_per_request",
    about: "so many bytes stay behind with each request (1kB); live only",
    usual: Amount::Size(Bytes::new(1_000)),
    live_only: true,
    bend: |_, _| {},
};

pub(super) const CRASH: Kind = Kind {
    name: "crash",
    about: "the process ends at the request of this number (500); live only",
    usual: Amount::Count(500),
    live_only: true,
    bend: |_, _| {},
};
