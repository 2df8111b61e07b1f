use super::{Examples, Frame, Trouble};
use crate::observe::{Outcome, Record};

/// Probes that came back and those that were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Came back as told.
    pub returned: u64,
    /// Of these, not refused again and completed in time.
    pub kept: u64,
}

impl Tally {
    fn count(&mut self, kept: bool) {
        self.returned += 1;
        self.kept += u64::from(kept);
    }

    fn add(&mut self, other: Self) {
        self.returned += other.returned;
        self.kept += other.kept;
    }

    /// The lower end of the 95 % interval of the kept share by Wilson's score, which holds for small numbers and for
    /// shares near one; `None` without a probe.
    pub fn at_least(&self) -> Option<f64> {
        self.interval().map(|(least, _)| least)
    }

    /// The upper end of that interval.
    pub fn at_most(&self) -> Option<f64> {
        self.interval().map(|(_, most)| most)
    }

    fn interval(&self) -> Option<(f64, f64)> {
        /// The 97.5 % quantile of the normal distribution.
        const Z: f64 = 1.959_964;
        (self.returned > 0).then(|| {
            let n = self.returned as f64;
            let share = self.kept as f64 / n;
            let spread = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
            let end = |spread: f64| (share + Z * Z / (2.0 * n) + spread) / (1.0 + Z * Z / n);
            (end(-spread).max(0.0), end(spread).min(1.0))
        })
    }
}

/// What became of the refused callers that came back exactly as told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Returns {
    /// Those that were due back while the event was on.
    pub inside: Tally,
    /// Those that were due back after it (or on a day without one).
    pub after: Tally,
    /// Those that say nothing: never sent, gone before their deadline, or still open when the run ended.
    pub censored: u64,
}

impl Returns {
    /// Takes in an attempt, if it is a probe.
    pub(super) fn record(&mut self, record: &Record, frame: &Frame, examples: &mut Examples) {
        if !record.probe {
            return;
        }
        let left = record.outcome == Outcome::Abandoned && frame.is_impatient(record.class);
        if left || matches!(record.outcome, Outcome::Unsent | Outcome::Unfinished) {
            self.censored += 1;
            return;
        }
        let kept = record.outcome == Outcome::Completed;
        let inside = frame.event.is_some_and(|event| event.contains(record.due));
        if inside { &mut self.inside } else { &mut self.after }.count(kept);
        if !kept {
            examples.note(Trouble::Unkept, record.attempt.seq);
        }
    }

    /// Adds another's returns.
    pub(super) fn add(&mut self, other: &Self) {
        self.inside.add(other.inside);
        self.after.add(other.after);
        self.censored += other.censored;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are Wilson's formula worked by hand: n/(n + z²) where all were kept.
    #[test]
    fn twenty_of_twenty_say_at_least_84_percent() {
        let at_least = |kept, returned| Tally { returned, kept }.at_least();
        let close =
            |got: Option<f64>, want: f64| assert!((got.unwrap() - want).abs() < 5e-4, "{got:?} {want}");
        close(at_least(20, 20), 0.8389);
        close(at_least(65, 65), 0.9442);
        let at_most = |kept, returned| Tally { returned, kept }.at_most();
        close(at_most(0, 20), 0.1611);
        close(at_most(36, 39), 0.9735);
        close(at_least(49, 54), 0.8007);
        close(at_least(2, 40), 0.0138);
        close(at_least(0, 40), 0.0);
        assert_eq!(at_least(0, 0), None);
    }
}
