//! Evenly spaced arrivals: the `k`-th is due `k / rate` after the phase's start, exactly.

use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Kind, Next, Process, no_settings};
use crate::units::Rate;

pub(super) const KIND: Kind = Kind {
    name: "constant",
    about: "evenly spaced; the k-th arrival of a phase is due k / rate after its start",
    build: |inner| no_settings("constant", inner).map(|()| Arc::new(Constant) as Arc<dyn Process>),
};

#[derive(Debug)]
struct Constant;

impl Process for Constant {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn offset(&self, next: &Next<'_>, _: &mut Pcg64) -> Duration {
        next.phase.rate.time_for(next.k)
    }

    fn dispersion(&self, _rate: Rate) -> f64 {
        0.0
    }
}
