use std::time::Duration;

use super::Frame;
use crate::observe::{Outcome, Record, RetryAfter};
use crate::units::{Moment, Tokens};

/// How far ahead returns are counted one window from another; those told to come later are counted in one number.
const AHEAD: Duration = Duration::from_secs(3_600);

/// Whether callers were let in, over a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Door {
    /// The least hold that was refused for scarcity, if any was: at once, or after it had waited in vain.
    pub refused: Option<Tokens>,
    /// How many were let in, and not dropped.
    pub let_in: u64,
}

impl Door {
    fn count(&mut self, record: &Record) {
        match record.outcome {
            Outcome::Shed | Outcome::Expired => {
                self.refused = Some(self.refused.map_or(record.hold, |least| least.min(record.hold)));
            }
            Outcome::Completed | Outcome::Late | Outcome::Abandoned => self.let_in += 1,
            // what is refused for entitlement, and what fails, says nothing of room
            Outcome::Throttled | Outcome::Failed | Outcome::Unsent | Outcome::Unfinished => {}
        }
    }

    fn add(&mut self, other: &Self) {
        self.refused = self.refused.into_iter().chain(other.refused).min();
        self.let_in += other.let_in;
    }

    /// Whether somebody with this hold would have been let in; `None` if nobody came who could tell.
    pub fn is_open(&self, hold: Tokens) -> Option<bool> {
        match self.refused {
            Some(least) if least <= hold => Some(false),
            _ if self.let_in > 0 => Some(true),
            _ => None,
        }
    }
}

/// What callers met and were told in one window of time (a second, unless the run is very long).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wait {
    /// First attempts due in it.
    pub fresh: u64,
    /// Of these, those answered in time.
    pub fresh_kept: u64,
    /// Probes due back in it.
    pub probes: u64,
    /// Callers who came again in it, probes and others who heed what they are told.
    pub came: u64,
    /// Refusals for scarcity in it that announced a time.
    pub told: u64,
    /// Their holds.
    pub told_tokens: Tokens,
    /// Callers who were told to come back in it.
    pub due_back: u64,
    /// The holds of those of them who give up: but for the probes, who are one in so many of these.
    pub asked_back: Tokens,
    /// The holds of those of them who do come by a rule of their own, and then.
    pub coming_back: Tokens,
    /// Whether probes were let in when they came back.
    pub probed: Door,
    /// Whether fresh callers were, by class; empty if none came.
    doors: Vec<Door>,
}

impl Wait {
    /// Whether fresh callers of the class with this number were let in.
    pub fn door(&self, class: usize) -> Door {
        self.doors.get(class).copied().unwrap_or_default()
    }

    fn add(&mut self, other: &Self) {
        self.fresh += other.fresh;
        self.fresh_kept += other.fresh_kept;
        self.probes += other.probes;
        self.came += other.came;
        self.told += other.told;
        self.told_tokens += other.told_tokens;
        self.due_back += other.due_back;
        self.asked_back += other.asked_back;
        self.coming_back += other.coming_back;
        self.probed.add(&other.probed);
        if self.doors.len() < other.doors.len() {
            self.doors.resize(other.doors.len(), Door::default());
        }
        self.doors.iter_mut().zip(&other.doors).for_each(|(mine, theirs)| mine.add(theirs));
    }
}

/// What refused callers were told over time, where that brings them, and what callers met there. A few words a window,
/// and nothing a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Waits {
    windows: Vec<Wait>,
    /// Callers who were told to come back more than an hour later, or after all windows.
    pub later: u64,
}

impl Waits {
    /// The windows in order of time; those after the run's end hold only who was told to come back then.
    pub fn as_slice(&self) -> &[Wait] {
        &self.windows
    }

    /// Takes in an attempt.
    pub(super) fn record(&mut self, record: &Record, frame: &Frame) {
        let fresh = record.attempt.nth == 0;
        let due = self.at(frame, record.due);
        if fresh {
            due.fresh += 1;
            due.fresh_kept += u64::from(record.outcome == Outcome::Completed);
        } else {
            due.came += u64::from(frame.heeds(record.class, Duration::from_nanos(1)));
            due.probes += u64::from(record.probe);
        }
        if let Some(sent) = record.sent {
            let class = usize::from(record.class.0);
            let there = self.at(frame, sent);
            if record.probe {
                there.probed.count(record);
            } else if fresh && class < frame.classes() {
                if there.doors.is_empty() {
                    there.doors.resize(frame.classes(), Door::default());
                }
                there.doors[class].count(record);
            }
        }
        if let Some(told) = record.retry_after.as_ref().and_then(RetryAfter::wait)
            && matches!(record.outcome, Outcome::Shed | Outcome::Expired)
        {
            self.told(record, frame, told);
        }
    }

    /// Takes in what a refusal for scarcity announced. What entitlement announces follows from the tenant's own limit.
    fn told(&mut self, record: &Record, frame: &Frame, told: Duration) {
        let here = self.at(frame, record.ended);
        here.told += 1;
        here.told_tokens += record.hold;
        let back = record.ended + told;
        if told > AHEAD || frame.window(back) == Frame::LAST_WINDOW {
            self.later += 1;
            return;
        }
        let there = self.at(frame, back);
        there.due_back += 1;
        if record.again {
            if frame.heeds(record.class, told) {
                there.coming_back += record.hold;
            }
        } else if record.attempt.nth == 0 && record.outcome == Outcome::Shed && frame.gives_up(record.class) {
            there.asked_back += record.hold;
        }
    }

    fn at(&mut self, frame: &Frame, at: Moment) -> &mut Wait {
        let index = frame.window(at);
        if self.windows.len() <= index {
            self.windows.resize_with(index + 1, Wait::default);
        }
        &mut self.windows[index]
    }

    /// The most refusals for scarcity in a window, and the most callers told to come back in one.
    pub fn busiest(&self) -> (u64, u64) {
        let most = |of: fn(&Wait) -> u64| self.windows.iter().map(of).max().unwrap_or(0);
        (most(|wait| wait.told), most(|wait| wait.due_back))
    }

    /// The share of fresh callers that were answered in time in the windows of the event in which probes came back, each
    /// window counted as often as probes came; `None` if none did.
    pub fn fresh_share(&self, frame: &Frame) -> Option<f64> {
        let event = frame.event?;
        let (first, last) = (frame.window(event.start), frame.window(event.end));
        let inside = self.windows.iter().take(last).skip(first);
        let (mut kept, mut probes) = (0.0, 0u64);
        for wait in inside.filter(|wait| wait.probes > 0 && wait.fresh > 0) {
            kept += wait.probes as f64 * wait.fresh_kept as f64 / wait.fresh as f64;
            probes += wait.probes;
        }
        (probes > 0).then(|| kept / probes as f64)
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        if self.windows.len() < other.windows.len() {
            self.windows.resize_with(other.windows.len(), Wait::default);
        }
        self.windows.iter_mut().zip(&other.windows).for_each(|(mine, theirs)| mine.add(theirs));
        self.later += other.later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{record, smoke};

    #[test]
    fn refused_callers_are_counted_where_they_are_told_to_come_back() {
        let frame = Frame::of(&smoke().plan());
        let mut waits = Waits::default();
        for seq in 0..10 {
            waits.record(&record(seq, 4_000 + seq, 1, Outcome::Shed), &frame);
        }
        let mut far = record(11, 4_500, 1, Outcome::Shed);
        far.retry_after = Some(RetryAfter::After(Duration::from_secs(3_601)));
        waits.record(&far, &frame);
        waits.record(&record(12, 4_600, 1, Outcome::Throttled), &frame);
        let (here, there) = (&waits.windows[4], &waits.windows[11]);
        assert_eq!((here.told, here.told_tokens, here.fresh), (11, Tokens::new(13_200), 12));
        assert_eq!((there.due_back, there.asked_back), (10, Tokens::new(12_000)));
        assert_eq!((waits.later, waits.windows.len()), (1, 12), "nothing is kept for the one told an hour");
    }

    #[test]
    fn a_door_is_open_to_who_is_smaller_than_all_it_was_closed_to() {
        let frame = Frame::of(&smoke().plan());
        let mut waits = Waits::default();
        waits.record(&record(0, 1_000, 1, Outcome::Shed), &frame);
        let door = waits.windows[1].door(0);
        assert_eq!(door.is_open(Tokens::new(1_200)), Some(false));
        assert_eq!(door.is_open(Tokens::new(1_199)), None, "nobody so small came");
        waits.record(&record(1, 1_100, 900, Outcome::Completed), &frame);
        let door = waits.windows[1].door(0);
        assert_eq!(
            (door.is_open(Tokens::new(1_199)), door.is_open(Tokens::new(1_200))),
            (Some(true), Some(false))
        );
        assert_eq!(waits.windows[1].door(7), Door::default());
    }

    #[test]
    fn fresh_callers_are_looked_at_where_probes_came_back() {
        let frame = Frame::of(&smoke().plan());
        let mut waits = Waits::default();
        // a good second without probes, then one with two probes in which one of four fresh callers was served
        (0..4).for_each(|seq| waits.record(&record(seq, 5_000, 50, Outcome::Completed), &frame));
        for seq in 4..8 {
            let outcome = if seq == 4 { Outcome::Completed } else { Outcome::Shed };
            waits.record(&record(seq, 7_000, 50, outcome), &frame);
        }
        assert_eq!(waits.fresh_share(&frame), None);
        for seq in 20..22 {
            let mut probe = record(seq, 7_500, 50, Outcome::Completed);
            (probe.attempt.nth, probe.probe) = (1, true);
            waits.record(&probe, &frame);
        }
        assert_eq!(waits.fresh_share(&frame), Some(0.25));
    }
}
