use std::time::Duration;

use super::{Honour, Manner, Retry};
use crate::units::{Moment, Read, Reader};

/// What a refused caller does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OnRefusal {
    /// It goes away.
    GiveUp,
    /// It tries again, by a rule or as an SDK does, also when its patience has ended.
    Retry(Retry),
}

impl OnRefusal {
    /// The longest wait after which its callers, if they come again, come when they were told to; nothing of those who
    /// heed none. Probes always do.
    pub fn heeds(&self) -> Duration {
        match self {
            Self::GiveUp => Duration::MAX,
            Self::Retry(Retry { manner: Manner::Like(sdk), .. }) => sdk.keeps,
            Self::Retry(Retry { manner: Manner::Own(rule), .. }) => match rule.honour {
                Honour::Always => Duration::MAX,
                Honour::Never => Duration::ZERO,
                Honour::UpTo(most) => most,
            },
        }
    }

    /// The longest wait its callers keep, beyond which they have to be told not to try again: that of their SDK; of
    /// callers who give up, the least of any SDK's, since nobody knows whom they stand for; of those who do as they are told
    /// whatever it is, a day, for until then they seem frozen. `None` for those who go by another rule of the plan's own: it
    /// is the plan's word what they do, and they look for no such sign.
    pub fn keeps(&self) -> Option<Duration> {
        match self {
            Self::GiveUp => Some(super::retry::kept_by_all()),
            Self::Retry(Retry { manner: Manner::Like(sdk), .. }) => Some(sdk.keeps),
            Self::Retry(Retry { manner: Manner::Own(rule), .. }) => match rule.honour {
                Honour::Always => Some(DAY),
                Honour::Never | Honour::UpTo(_) => None,
            },
        }
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// Which refused callers come back exactly as told, to see whether the answer was true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probes {
    /// One in so many refused callers is a probe; 0 for none.
    pub every: u32,
    /// How long after the announced instant a probe returns: the time an answer may take to be read.
    pub late_by: Duration,
}

impl Default for Probes {
    fn default() -> Self {
        Self { every: 12, late_by: Duration::from_millis(250) }
    }
}

impl Read for Probes {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let standard = Self::default();
        let mut map = reader.map()?;
        let every = map.or("every", standard.every);
        let late_by = map.or("late_by", standard.late_by);
        Some(Self { every: every?, late_by: late_by? })
    }
}

/// Chooses the probes among the refused: the first, and then one in every [`Probes::every`].
#[derive(Debug, Clone)]
pub struct Cohort {
    probes: Probes,
    refused: u64,
}

impl Cohort {
    /// Nobody has been refused yet.
    pub const fn new(probes: Probes) -> Self {
        Self { probes, refused: 0 }
    }

    /// A first attempt was refused at `at` and told to come back after `told`. Gives the instant its probe is due,
    /// if it is one.
    pub fn refused(&mut self, at: Moment, told: Duration) -> Option<Moment> {
        let nth = self.refused;
        self.refused += 1;
        let every = u64::from(self.probes.every);
        (every > 0 && nth.is_multiple_of(every)).then(|| at + told + self.probes.late_by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_every_so_many_returns_after_the_announced_time() {
        let mut cohort = Cohort::new(Probes { every: 3, late_by: Duration::from_millis(250) });
        let due: Vec<_> =
            (0..7).map(|i| cohort.refused(Moment::from_secs(i), Duration::from_secs(2))).collect();
        assert_eq!(due.iter().flatten().count(), 3);
        assert_eq!(due[3], Some(Moment::from_millis(5_250)));
        let mut none = Cohort::new(Probes { every: 0, ..Probes::default() });
        assert_eq!(none.refused(Moment::ZERO, Duration::ZERO), None);
    }
}
