//! Independent callers: exponential gaps with mean `1 / rate`, drawn by inversion.
//!
//! The gap that crosses the end of a phase is dropped and drawn anew at the next phase's rate, which is exact
//! because the exponential has no memory.

use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Kind, Next, Process, no_settings};
use crate::workload::stream;

pub(super) const KIND: Kind = Kind {
    name: "poisson",
    about: "independent callers; exponential gaps with mean 1 / rate",
    build: |inner| no_settings("poisson", inner).map(|()| Arc::new(Poisson) as Arc<dyn Process>),
};

#[derive(Debug)]
struct Poisson;

impl Process for Poisson {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn offset(&self, next: &Next<'_>, stream: &mut Pcg64) -> Duration {
        // 1 - u lies in (0, 1], so the logarithm is finite and at most 36.8 mean gaps long
        let gap = -(1.0 - stream::unit(stream)).ln() / next.phase.rate.per_sec_f64();
        next.after.saturating_add(Duration::try_from_secs_f64(gap).unwrap_or(Duration::MAX))
    }
}
