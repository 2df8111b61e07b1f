//! The wall clock: stamps for reports, and a watch on its steps. No span is ever measured with it.

use std::time::{Duration, SystemTime};

use crate::units::Moment;

/// A step smaller than this is a clock being disciplined, not set.
const STEP: f64 = 1.0;

/// Notices when the wall clock is set while the run goes on.
#[derive(Debug)]
pub(super) struct Steps {
    now: Moment,
    wall: SystemTime,
}

impl Steps {
    /// The wall clock said `wall` at `now`.
    pub(super) const fn new(now: Moment, wall: SystemTime) -> Self {
        Self { now, wall }
    }

    /// The wall clock says `wall` at `now`. Gives the step in seconds if it was set since the last look; each
    /// step is
    /// told once.
    pub(super) fn look(&mut self, now: Moment, wall: SystemTime) -> Option<f64> {
        let walked = match wall.duration_since(self.wall) {
            Ok(span) => span.as_secs_f64(),
            Err(back) => -back.duration().as_secs_f64(),
        };
        let step = walked - now.since(self.now).as_secs_f64();
        (self.now, self.wall) = (now, wall);
        (step.abs() > STEP).then_some(step)
    }
}

/// An instant in UTC, to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    year: i64,
    month: u64,
    day: u64,
    second: u64,
}

impl Stamp {
    /// The stamp of `wall`; before 1970 it is 1970.
    pub(super) fn of(wall: SystemTime) -> Self {
        let secs = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        // days to a civil date in the proleptic Gregorian calendar, by eras of 400 years that begin on 1 March
        let days = secs / 86_400 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = i64::try_from(year_of_era + era * 400).unwrap_or(i64::MAX) + i64::from(month <= 2);
        Self { year, month, day: of_year - (153 * shifted + 2) / 5 + 1, second: secs % 86_400 }
    }

    const fn clock(self) -> (u64, u64, u64) {
        (self.second / 3_600, self.second / 60 % 60, self.second % 60)
    }

    /// As RFC 3339 writes it: `2026-11-30T07:15:02Z`.
    pub(super) fn rfc3339(self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", self.year, self.month, self.day)
    }

    /// The name of a run that began then: `20261130-071502`.
    pub(super) fn run_id(self) -> String {
        let (hour, minute, second) = self.clock();
        format!("{:04}{:02}{:02}-{hour:02}{minute:02}{second:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in conbench/conbench#528: the wall clock is set back an hour in mid-run. One warning; no span is
    /// measured with it, so none is wrong.
    #[test]
    fn a_step_of_the_wall_clock_is_told_once_and_by_its_size() {
        let wall = |secs| SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + secs);
        let mut steps = Steps::new(Moment::ZERO, wall(0));
        let told: Vec<_> = (1..60u64)
            .filter_map(|s| {
                let set_back = if s >= 30 { 3_600 } else { 0 };
                let step = steps.look(Moment::from_secs(s), wall(s) - Duration::from_secs(set_back))?;
                Some((s, step.round()))
            })
            .collect();
        assert_eq!(told, [(30, -3_600.0)]);
        let mut steps = Steps::new(Moment::ZERO, wall(0));
        assert_eq!(steps.look(Moment::from_millis(1_400), wall(1)), None, "a disciplined clock is no step");
        assert_eq!(steps.look(Moment::from_secs(2), wall(62)).map(f64::round), Some(60.0));
    }

    #[test]
    fn stamps_are_written_in_utc() {
        let stamp = |secs| Stamp::of(SystemTime::UNIX_EPOCH + Duration::from_secs(secs));
        assert_eq!(stamp(0).rfc3339(), "1970-01-01T00:00:00Z");
        assert_eq!(stamp(951_782_399).rfc3339(), "2000-02-28T23:59:59Z");
        assert_eq!(stamp(951_782_400).rfc3339(), "2000-02-29T00:00:00Z");
        assert_eq!(stamp(784_111_777).rfc3339(), "1994-11-06T08:49:37Z");
        assert_eq!(stamp(4_107_542_399).rfc3339(), "2100-02-28T23:59:59Z");
        assert_eq!(stamp(4_107_542_400).run_id(), "21000301-000000");
        assert_eq!(Stamp::of(SystemTime::UNIX_EPOCH - Duration::from_secs(9)), stamp(0));
    }
}
