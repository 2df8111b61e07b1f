use super::{Depth, Record, Sighting};
use crate::plan::Plan;
use crate::units::Moment;

/// What stands where, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauge {
    /// In the gateway: sent, not yet at the provider, not yet ended.
    pub depth: Depth,
    /// At the provider, their callers still waiting.
    pub at_provider: u64,
    /// At the provider, their callers gone.
    pub ghosts: u64,
    /// Sent and not ended for their callers.
    pub outstanding: u64,
}

/// Joins both sides of every request by its id.
#[derive(Debug)]
pub struct Joiner {
    gauge: Gauge,
}

impl Joiner {
    /// Nothing seen yet of a run of `plan`, whose classes and expected refusals tell what an answer means.
    pub fn new(plan: &Plan) -> Self {
        let _ = plan;
        Self { gauge: Gauge::default() }
    }

    /// Takes in a sighting and appends the records of the requests that have now ended on both sides. They come in
    /// order of time.
    pub fn see(&mut self, sighting: &Sighting, ended: &mut Vec<Record>) {
        let _ = (sighting, ended);
    }

    /// What stands where after the last sighting.
    pub const fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// Sightings at the provider of requests that were never sent, or that ended too long ago to be known.
    pub const fn strays(&self) -> u64 {
        0
    }

    /// Ends the run at `end`: what is open is unfinished.
    pub fn finish(self, end: Moment, ended: &mut Vec<Record>) {
        let _ = (end, ended);
    }
}
