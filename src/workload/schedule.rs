use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::arrivals::Carry;
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
    load: Arc<Load>,
    mix: Mix,
    arrivals: Pcg64,
    classes: Pcg64,
    phase: usize,
    phase_start: Moment,
    in_phase: u64,
    after: Duration,
    seq: u64,
    /// Where callers come in rounds: what is carried over, and who is still to come in this one.
    carry: Carry,
    round: std::vec::IntoIter<ClassId>,
}

impl Schedule {
    /// The schedule of `load` over `mix`.
    pub fn new(load: &Load, mix: &Mix) -> Self {
        Self {
            arrivals: stream::of(load.seed, stream::ARRIVALS),
            classes: stream::of(load.seed, stream::CLASSES),
            load: Arc::new(load.clone()),
            mix: mix.clone(),
            phase: 0,
            phase_start: Moment::ZERO,
            in_phase: 0,
            after: Duration::ZERO,
            seq: 0,
            carry: Carry::default(),
            round: Vec::new().into_iter(),
        }
    }
}

impl Schedule {
    /// The next caller of a process that has offsets.
    fn next_spaced(&mut self) -> Option<Arrival> {
        loop {
            let phase = self.load.phases.get(self.phase)?;
            let before = self.phase.checked_sub(1).map(|at| self.load.phases[at].rate);
            let stream = &mut self.arrivals;
            let offset = self.load.arrivals.offset(phase, before, self.in_phase, self.after, stream);
            if offset < phase.lasts {
                let class = self.mix.draw(&mut self.classes);
                self.in_phase += 1;
                self.after = offset;
                return Some(self.arrival(self.phase_start + offset, class));
            }
            self.next_phase();
        }
    }

    /// The next caller of a process of rounds.
    fn next_in_rounds(&mut self) -> Option<Arrival> {
        let load = Arc::clone(&self.load);
        let rounds = load.arrivals.rounds()?;
        loop {
            if let Some(class) = self.round.next() {
                return Some(self.arrival(self.phase_start + self.after, class));
            }
            let phase = load.phases.get(self.phase)?;
            // in the middle of the round
            let round = u32::try_from(self.in_phase).unwrap_or(u32::MAX);
            self.after = (rounds.every * round).saturating_add(rounds.every / 2);
            if self.after < phase.lasts {
                self.in_phase += 1;
                self.round = self.carry.next(rounds, phase.rate, &self.mix).into_iter();
            } else {
                self.next_phase();
            }
        }
    }

    const fn arrival(&mut self, due: Moment, class: ClassId) -> Arrival {
        let seq = self.seq;
        self.seq += 1;
        Arrival { seq, due, class }
    }

    fn next_phase(&mut self) {
        let lasts = self.load.phases.get(self.phase).map_or(Duration::ZERO, |phase| phase.lasts);
        self.phase_start = self.phase_start + lasts;
        self.phase += 1;
        self.in_phase = 0;
        self.after = Duration::ZERO;
    }
}

impl Iterator for Schedule {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        if self.load.arrivals.rounds().is_some() { self.next_in_rounds() } else { self.next_spaced() }
    }
}

#[cfg(test)]
mod tests;
