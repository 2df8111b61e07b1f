//! YAML to a [`Plan`], valid by construction.
//!
//! A plan is read in two stages: a tree of nodes with their places, to which `${…}` and `--set` are applied; then
//! typed readers, which collect every fault instead of stopping at the first. Each of the layers above reads its own
//! part; what concerns several of them is checked here.

mod across;
pub mod address;
pub mod callers;
mod checks;
mod diff;
pub mod environment;
mod expect;
mod facts;
pub mod levers;
mod model;
mod overrides;
mod parse;
mod rehearsal;
pub mod schema;
mod source;
pub mod spawn;
mod target;
#[cfg(test)]
pub(crate) mod testing;
mod traced;
mod transport;
mod variants;
pub mod yaml;

pub use crate::provider::wire::DeadlineForm;
pub use checks::{CHECKS, Known};
pub use diff::{Amounts, MEASURES, MOST_JUDGED, Measured, Tolerance, is_judged};
pub use levers::{Lever, Pull};
pub use model::{
    AbortRule, CheckOverride, DeadlineHeader, Embedded, Expect, Http, LEAST_LAG, Limit, Lookup, MemoryFrom,
    MemorySource, Metric, Metrics, Page, Plan, Refusal, Rehearsal, SenderKind, Spawn, Target, TargetKind,
    TargetRequest, Template, Transport, Validity, Wanted,
};
pub use parse::{DEFAULT_OUTSTANDING, Loaded, parse, parse_variant, parse_with};
pub use source::Source;
pub use traced::Files;
pub use variants::Variant;
