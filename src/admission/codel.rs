use std::time::Duration;

use crate::units::{Moment, Read, Reader};

/// Settings of the controlled-delay rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Codel {
    /// The wait that is aimed at.
    pub target: Duration,
    /// How often it is judged.
    pub interval: Duration,
}

impl Read for Codel {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (target, interval) = (map.need::<Duration>("target"), map.need::<Duration>("interval"));
        let it = Self { target: target?, interval: interval? };
        if it.target.is_zero() || it.interval <= it.target {
            map.here().fault("`target` must be more than nothing and less than `interval`");
            return None;
        }
        Some(it)
    }
}

/// Controlled delay in its queue form (the variant of folly's `Codel`): a queue whose shortest wait over an interval
/// stayed above the target is overloaded, and what waited more than twice the target is dropped when its turn comes.
/// The first of an interval is never dropped.
#[derive(Debug)]
pub(crate) struct Delay {
    rule: Codel,
    shortest: Duration,
    ends: Moment,
    overloaded: bool,
}

impl Delay {
    pub(crate) const fn new(rule: Codel, now: Moment) -> Self {
        Self { rule, shortest: Duration::ZERO, ends: now, overloaded: false }
    }

    /// Whether to drop what comes up at `now` after `waited`.
    pub(crate) fn drops(&mut self, now: Moment, waited: Duration) -> bool {
        if now > self.ends {
            self.overloaded = self.shortest > self.rule.target;
            self.ends = now + self.rule.interval;
            self.shortest = waited;
            return false;
        }
        self.shortest = self.shortest.min(waited);
        self.overloaded && waited > self.rule.target * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_drops_only_after_a_whole_interval_above_the_target() {
        let rule = Codel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
        let mut delay = Delay::new(rule, Moment::ZERO);
        let mut ask = |at, waited| delay.drops(Moment::from_millis(at), Duration::from_millis(waited));
        assert!(!ask(1, 50), "the first of an interval");
        assert!(!ask(50, 50), "not known to be overloaded yet");
        assert!(!ask(102, 50), "the first of the next");
        assert!(ask(103, 11), "the shortest wait was 50 ms: overloaded");
        assert!(!ask(104, 10), "no more than twice the target");
        assert!(!ask(150, 3), "a short wait");
        assert!(!ask(203, 50), "the first again");
        assert!(!ask(204, 50), "the shortest was 3 ms: recovered");
    }
}
