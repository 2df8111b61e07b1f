//! What a run comes to: windows, histograms and totals, folded from records as they end.
//!
//! [`Fold`] is the one entry: both evaluators hand it sightings in order of time (and live runs hand it [`Vital`]s);
//! it joins them and forgets each request as it ends, so memory stays flat. [`Measures`] is a commutative monoid:
//! two halves of a run add to the whole.

use std::time::Duration;

use crate::observe::{Joiner, Record, Sighting};
use crate::plan::Plan;
use crate::units::{Bytes, Moment};

/// What is seen of the target and of ourselves besides requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Vital {
    /// Memory of the target, all its processes together.
    TargetMemory {
        /// When.
        at: Moment,
        /// Anonymous memory.
        bytes: Bytes,
    },
    /// Our own memory.
    OwnMemory {
        /// When.
        at: Moment,
        /// Anonymous memory.
        bytes: Bytes,
    },
    /// A ping of the target's health URL.
    Ping {
        /// When it was sent.
        at: Moment,
        /// How long the answer took; `None` if there was none.
        took: Option<Duration>,
    },
    /// The target's process ended.
    TargetEnded {
        /// When.
        at: Moment,
        /// How: `exit status: 1`.
        how: String,
    },
    /// The provider shell no longer answers: our fault.
    ProviderSilent {
        /// When.
        at: Moment,
    },
    /// The wall clock was set while the run went on.
    ClockStep {
        /// When.
        at: Moment,
        /// By how many seconds.
        seconds: f64,
    },
}

/// Placeholder
#[derive(Debug)]
pub struct Measures;

/// Joins and measures a run as it goes.
#[derive(Debug)]
pub struct Fold {
    joiner: Joiner,
    measures: Measures,
    ended: Vec<Record>,
}

impl Fold {
    /// Nothing seen yet of a run of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let _ = plan;
        todo!()
    }

    /// Takes in a sighting. They come in order of time.
    pub fn see(&mut self, sighting: Sighting) {
        let _ = sighting;
    }

    /// Takes in a vital sign.
    pub fn vital(&mut self, vital: Vital) {
        let _ = vital;
    }

    /// Ends the run at `end`: what is open is unfinished.
    pub fn finish(self, end: Moment) -> Measures {
        let _ = end;
        self.measures
    }
}
