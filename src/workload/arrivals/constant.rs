//! Evenly spaced arrivals: the `k`-th is due `k / rate` after the phase's start, exactly.

use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Kind, Process, no_settings};
use crate::units::Rate;
use crate::workload::Phase;

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

    fn offset(
        &self,
        phase: &Phase,
        _before: Option<Rate>,
        k: u64,
        _after: Duration,
        _stream: &mut Pcg64,
    ) -> Duration {
        phase.rate.time_for(k)
    }

    fn dispersion(&self, _rate: Rate) -> f64 {
        0.0
    }
}
