use std::time::Duration;

use rand_pcg::Pcg64;

use super::{ClassId, Load, Mix, stream};
use crate::units::Moment;

/// One caller's first request: an absolute due time and what it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number, from 0 in order of due times.
    pub seq: u64,
    /// When it is to be sent.
    pub due: Moment,
    /// What it asks; sizes, deadline and patience are the class's.
    pub class: ClassId,
}

/// All arrivals of a load, in order of their due times.
#[derive(Debug, Clone)]
pub struct Schedule {
    load: Load,
    mix: Mix,
    arrivals: Pcg64,
    classes: Pcg64,
    phase: usize,
    phase_start: Moment,
    in_phase: u64,
    after: Duration,
    seq: u64,
}

impl Schedule {
    /// The schedule of `load` over `mix`.
    pub fn new(load: &Load, mix: &Mix) -> Self {
        Self {
            arrivals: stream::of(load.seed, stream::ARRIVALS),
            classes: stream::of(load.seed, stream::CLASSES),
            load: load.clone(),
            mix: mix.clone(),
            phase: 0,
            phase_start: Moment::ZERO,
            in_phase: 0,
            after: Duration::ZERO,
            seq: 0,
        }
    }
}

impl Iterator for Schedule {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let phase = self.load.phases.get(self.phase)?;
            let offset = self.load.arrivals.offset(phase, self.in_phase, self.after, &mut self.arrivals);
            if offset < phase.lasts {
                let arrival =
                    Arrival { seq: self.seq, due: self.phase_start + offset, class: self.mix.draw(&mut self.classes) };
                self.seq += 1;
                self.in_phase += 1;
                self.after = offset;
                return Some(arrival);
            }
            self.phase_start = self.phase_start + phase.lasts;
            self.phase += 1;
            self.in_phase = 0;
            self.after = Duration::ZERO;
        }
    }
}
