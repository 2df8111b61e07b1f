use std::time::Duration;

use crate::units::{Read, Reader};

/// How far callers' clocks are off: what they write as an instant, a deadline, is off as much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Skew {
    /// They are right.
    #[default]
    None,
    /// They show a later time.
    Ahead(Duration),
    /// They show an earlier time.
    Behind(Duration),
}

/// The farthest a clock is off.
const FARTHEST: Duration = Duration::from_secs(86_400);

impl Skew {
    /// What such a clock shows at `instant`, both counted from one epoch.
    pub fn shown(self, instant: Duration) -> Duration {
        match self {
            Self::None => instant,
            Self::Ahead(by) => instant.saturating_add(by),
            Self::Behind(by) => instant.saturating_sub(by),
        }
    }
}

impl Read for Skew {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (ahead, behind) = (map.get::<Duration>("ahead"), map.get::<Duration>("behind"));
        let by = ahead.or(behind).unwrap_or_default();
        if by > FARTHEST {
            map.here().fault("a clock is off by a day at most");
            return None;
        }
        match (ahead, behind) {
            (Some(by), None) => Some(Self::Ahead(by)),
            (None, Some(by)) => Some(Self::Behind(by)),
            _ => {
                map.here().fault("a clock is `ahead` or `behind`: write `{ ahead: 30s }`");
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_what_it_is_off_by_and_no_time_before_its_epoch() {
        let (minute, half) = (Duration::from_secs(60), Duration::from_secs(30));
        assert_eq!(Skew::None.shown(minute), minute);
        assert_eq!(Skew::Ahead(half).shown(minute), Duration::from_secs(90));
        assert_eq!(Skew::Behind(half).shown(minute), half);
        assert_eq!(Skew::Behind(minute).shown(half), Duration::ZERO);
    }
}
