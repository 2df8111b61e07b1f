use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::arrivals::{Carry, Next, Playback};
use super::traces::Row;
use super::{ClassId, Load, Mix, stream};
use crate::units::{Moment, Tokens};

/// One caller's first request: an absolute due time and what it asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Its number, from 0 in order of due times.
    pub seq: u64,
    /// When it is to be sent.
    pub due: Moment,
    /// Whose it is: its deadline and its patience are the class's.
    pub class: ClassId,
    /// How large it and its answer are.
    pub sizes: Sizes,
}

/// The tokens of one request: the same for every attempt of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Sizes {
    /// Of its prompt.
    pub prompt: Tokens,
    /// The most its answer may have.
    pub max_output: Tokens,
    /// Those its answer has.
    pub output: Tokens,
}

impl Sizes {
    /// Tokens held for it: its prompt and the most it may answer.
    pub fn hold(self) -> Tokens {
        self.prompt + self.max_output
    }

    /// Tokens it really uses.
    pub fn used(self) -> Tokens {
        self.prompt + self.output
    }
}

/// All arrivals of a load, in order of their due times.
#[derive(Debug, Clone)]
pub struct Schedule {
    load: Arc<Load>,
    mix: Mix,
    /// Those of the phases that have their own.
    mixes: Vec<Option<Mix>>,
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
    /// Where a trace is played: how far.
    playback: Playback,
    source: Source,
}

/// What tells when the next caller comes.
#[derive(Debug, Clone, Copy)]
enum Source {
    Offsets,
    Rounds,
    Trace,
}

impl Schedule {
    /// The schedule of `load` over `mix`.
    pub fn new(load: &Load, mix: &Mix) -> Self {
        let source = match &load.arrivals {
            process if process.trace().is_some() => Source::Trace,
            process if process.rounds().is_some() => Source::Rounds,
            _ => Source::Offsets,
        };
        Self {
            arrivals: stream::of(load.seed, stream::ARRIVALS),
            classes: stream::of(load.seed, stream::CLASSES),
            mixes: load.phases.iter().map(|phase| phase.mix.as_ref().map(|own| mix.reweighed(own))).collect(),
            load: Arc::new(load.clone()),
            mix: mix.clone(),
            phase: 0,
            phase_start: Moment::ZERO,
            in_phase: 0,
            after: Duration::ZERO,
            seq: 0,
            carry: Carry::default(),
            round: Vec::new().into_iter(),
            playback: Playback::default(),
            source,
        }
    }
}

impl Schedule {
    /// The next caller of a process that has offsets.
    fn next_spaced(&mut self) -> Option<Arrival> {
        loop {
            let phase = self.load.phases.get(self.phase)?;
            let before = self.phase.checked_sub(1).map(|at| self.load.phases[at].rate);
            let next = Next { phase, before, k: self.in_phase, after: self.after };
            let offset = self.load.arrivals.offset(&next, &mut self.arrivals);
            if offset < phase.lasts {
                let class = self.draw();
                self.in_phase += 1;
                self.after = offset;
                return Some(self.arrival(self.phase_start + offset, class, None));
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
                return Some(self.arrival(self.phase_start + self.after, class, None));
            }
            let phase = load.phases.get(self.phase)?;
            // in the middle of the round
            let round = u32::try_from(self.in_phase).unwrap_or(u32::MAX);
            self.after = (rounds.every * round).saturating_add(rounds.every / 2);
            if self.after < phase.lasts {
                self.in_phase += 1;
                let own = self.mixes.get(self.phase).and_then(Option::as_ref);
                let mix = own.unwrap_or(&self.mix);
                self.round = self.carry.next(rounds, phase.rate, mix).into_iter();
            } else {
                self.next_phase();
            }
        }
    }

    /// The next caller of a trace.
    fn next_of_trace(&mut self) -> Option<Arrival> {
        let load = Arc::clone(&self.load);
        let trace = load.arrivals.trace()?;
        while trace.plays(self.phase) {
            let phase = load.phases.get(self.phase)?;
            if let Some((offset, row)) = trace.next(load.seed, &mut self.playback, self.phase, phase.lasts) {
                let class = self.draw();
                return Some(self.arrival(self.phase_start + offset, class, Some(row)));
            }
            self.playback = Playback::default();
            self.next_phase();
        }
        self.next_spaced()
    }

    /// Whose the next arrival of this phase is.
    fn draw(&mut self) -> ClassId {
        let own = self.mixes.get(self.phase).and_then(Option::as_ref);
        own.unwrap_or(&self.mix).draw(&mut self.classes)
    }

    /// The next arrival; `row` is what a trace says of it.
    fn arrival(&mut self, due: Moment, class: ClassId, row: Option<Row>) -> Arrival {
        let seq = self.seq;
        self.seq += 1;
        let row = match self.source {
            Source::Trace => row.or_else(|| self.load.arrivals.trace()?.any_row(seq)),
            Source::Offsets | Source::Rounds => None,
        };
        Arrival { seq, due, class, sizes: self.mix.class(class).sizes(self.load.seed, seq, row) }
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
        match self.source {
            Source::Offsets => self.next_spaced(),
            Source::Rounds => self.next_in_rounds(),
            Source::Trace => self.next_of_trace(),
        }
    }
}

#[cfg(test)]
mod tests;
