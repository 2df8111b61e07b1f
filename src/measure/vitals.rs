use std::time::Duration;

use super::{Frame, Hist, Said, Windows};
use crate::units::{Bytes, Moment};

/// The most clock steps that are kept.
const MOST_STEPS: usize = 20;

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
    /// What the target says of itself: a page of metrics.
    Said {
        /// When.
        at: Moment,
        /// Requests that wait in it; `None` if it does not say.
        queue_depth: Option<u64>,
        /// Its memory; `None` if it does not say.
        memory: Option<Bytes>,
    },
    /// A ping of the target's health URL.
    Ping {
        /// When it was sent.
        at: Moment,
        /// How long the answer took; `None` if there was none.
        took: Option<Duration>,
    },
    /// A ping could not be sent, for want of descriptors or memory here: nothing is known of the target then.
    NoPing {
        /// When.
        at: Moment,
    },
    /// The target's process ended.
    TargetEnded {
        /// When.
        at: Moment,
        /// How: `exit status: 1`.
        how: String,
    },
    /// The generator stands still: our fault.
    GeneratorStuck {
        /// When that was known.
        at: Moment,
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

/// Memory over the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Memory {
    /// How many samples.
    pub samples: u64,
    /// The most before the first request was due; `None` if there was no sample.
    pub baseline: Option<Bytes>,
    /// The last sample, and when it was taken.
    pub last: Option<(Moment, Bytes)>,
    /// The most of the whole run.
    pub peak: Bytes,
}

impl Memory {
    fn sample(&mut self, at: Moment, bytes: Bytes, loaded: bool) {
        self.samples += 1;
        if !loaded {
            self.baseline = self.baseline.max(Some(bytes));
        }
        self.last = self.last.max(Some((at, bytes)));
        self.peak = self.peak.max(bytes);
    }

    fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.baseline = self.baseline.max(other.baseline);
        self.last = self.last.max(other.last);
        self.peak = self.peak.max(other.peak);
    }
}

/// How the target answered its ping.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pings {
    /// Microseconds an answer took.
    pub took: Hist,
    /// Pings without an answer.
    pub lost: u64,
    /// How many of the latest pings in a row had none.
    pub lost_in_a_row: u64,
    /// When the latest one was sent.
    pub last: Option<Moment>,
    answered: Option<Moment>,
    /// The longest time from one answered ping to the next, or to the end of pings.
    pub longest_silence: Duration,
}

impl Pings {
    /// How many were sent.
    pub fn sent(&self) -> u64 {
        self.took.count() + self.lost
    }

    /// None could be sent at `at`: no silence of the target has lasted until then.
    fn none(&mut self, at: Moment) {
        self.answered = self.answered.max(Some(at));
    }

    fn ping(&mut self, at: Moment, took: Option<Duration>) {
        let since = self.answered.or(self.last).unwrap_or(at);
        self.longest_silence = self.longest_silence.max(at.since(since));
        self.last = self.last.max(Some(at));
        if let Some(took) = took {
            self.took.record(took);
            self.lost_in_a_row = 0;
            self.answered = self.answered.max(Some(at));
        } else {
            self.lost += 1;
            self.lost_in_a_row += 1;
            // a target that never answered is silent from its first ping on
            self.answered = self.answered.or(Some(at));
        }
    }

    fn add(&mut self, other: &Self) {
        self.took.add(&other.took);
        self.lost += other.lost;
        self.lost_in_a_row = match self.last.cmp(&other.last) {
            std::cmp::Ordering::Less => other.lost_in_a_row,
            std::cmp::Ordering::Equal => self.lost_in_a_row.max(other.lost_in_a_row),
            std::cmp::Ordering::Greater => self.lost_in_a_row,
        };
        self.last = self.last.max(other.last);
        self.answered = self.answered.max(other.answered);
        self.longest_silence = self.longest_silence.max(other.longest_silence);
    }
}

/// Everything seen besides requests.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Vitals {
    /// Of the target's health URL.
    pub pings: Pings,
    /// The target's memory.
    pub target: Memory,
    /// Our own memory.
    pub own: Memory,
    /// What the target says of itself.
    pub said: Said,
    /// When and how the target's process ended, if it did.
    pub target_ended: Option<(Moment, String)>,
    /// When the provider shell fell silent, if it did.
    pub provider_silent: Option<Moment>,
    /// When it was known that the generator stood still, if it did.
    pub generator_stuck: Option<Moment>,
    /// When the wall clock was set, and by how many seconds; the first twenty.
    pub clock_steps: Vec<(Moment, f64)>,
}

impl Vitals {
    /// Takes in a vital sign. `loaded` says that a request was due before it, `depth` how many stand in the target as
    /// seen from outside.
    pub(super) fn see(
        &mut self,
        vital: Vital,
        loaded: bool,
        depth: u64,
        frame: &Frame,
        windows: &mut Windows,
    ) {
        match vital {
            Vital::TargetMemory { at, bytes } => {
                self.target.sample(at, bytes, loaded);
                let window = windows.at(frame, at);
                window.target_memory = window.target_memory.max(bytes);
            }
            Vital::OwnMemory { at, bytes } => {
                self.own.sample(at, bytes, loaded);
                let window = windows.at(frame, at);
                window.own_memory = window.own_memory.max(bytes);
            }
            Vital::Said { queue_depth, memory, at: _ } => {
                let seen = self.target.last.map(|(_, bytes)| bytes);
                self.said.page((queue_depth, memory), depth, seen);
            }
            Vital::Ping { at, took } => {
                self.pings.ping(at, took);
                match took {
                    Some(took) => windows.at(frame, at).ping(took),
                    None => windows.at(frame, at).pings_lost += 1,
                }
            }
            Vital::NoPing { at } => self.pings.none(at),
            Vital::TargetEnded { at, how } => earliest(&mut self.target_ended, (at, how)),
            Vital::ProviderSilent { at } => earliest(&mut self.provider_silent, at),
            Vital::GeneratorStuck { at } => earliest(&mut self.generator_stuck, at),
            Vital::ClockStep { at, seconds } => {
                self.clock_steps.push((at, seconds));
                self.tidy_steps();
            }
        }
    }

    fn tidy_steps(&mut self) {
        self.clock_steps.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
        self.clock_steps.truncate(MOST_STEPS);
    }

    /// Adds another's vital signs.
    pub(super) fn add(&mut self, other: &Self) {
        self.pings.add(&other.pings);
        self.target.add(&other.target);
        self.own.add(&other.own);
        self.said.add(&other.said);
        other.target_ended.iter().for_each(|ended| earliest(&mut self.target_ended, ended.clone()));
        other.provider_silent.iter().for_each(|at| earliest(&mut self.provider_silent, *at));
        other.generator_stuck.iter().for_each(|at| earliest(&mut self.generator_stuck, *at));
        self.clock_steps.extend_from_slice(&other.clock_steps);
        self.tidy_steps();
    }
}

fn earliest<T: Ord>(kept: &mut Option<T>, seen: T) {
    if kept.as_ref().is_none_or(|kept| seen < *kept) {
        *kept = Some(seen);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_runs_from_the_last_answer_to_the_last_ping() {
        let mut pings = Pings::default();
        for tick in 0..50u64 {
            let answered = tick < 20;
            pings.ping(Moment::from_millis(tick * 200), answered.then_some(Duration::from_micros(600)));
        }
        assert_eq!((pings.sent(), pings.lost, pings.lost_in_a_row), (50, 30, 30));
        assert_eq!(pings.longest_silence, Duration::from_secs(6));
        let mut deaf = Pings::default();
        (0..10).for_each(|tick| deaf.ping(Moment::from_secs(tick), None));
        assert_eq!(deaf.longest_silence, Duration::from_secs(9));
    }
}
