use std::time::Duration;

use super::config::Estimate;

/// How many of the latest service times are kept.
const WINDOW: usize = 200;

/// A quantile of the latest service times, by nearest rank.
///
/// Before anything was seen the window is full of the starting value, so that a single slow answer does not move it;
/// with p99, the third slowest of the last 200 does.
#[derive(Debug, Clone)]
pub(crate) struct ServiceTime {
    rank: usize,
    ring: Vec<Duration>,
    sorted: Vec<Duration>,
    next: usize,
}

impl ServiceTime {
    pub(crate) fn new(estimate: &Estimate) -> Self {
        let rank = (estimate.quantile.get() * WINDOW as f64).ceil() as usize;
        Self {
            rank: rank.clamp(1, WINDOW) - 1,
            ring: vec![estimate.start; WINDOW],
            sorted: vec![estimate.start; WINDOW],
            next: 0,
        }
    }

    /// Notes that an answer took `span`.
    pub(crate) fn saw(&mut self, span: Duration) {
        let old = std::mem::replace(&mut self.ring[self.next], span);
        self.next = (self.next + 1) % WINDOW;
        // both searches find a place: `old` is in the window, and any place is right for a new value
        let place = self.sorted.binary_search(&old).unwrap_or_else(|at| at.min(WINDOW - 1));
        self.sorted.remove(place);
        let place = self.sorted.binary_search(&span).unwrap_or_else(|at| at);
        self.sorted.insert(place, span);
    }

    /// The quantile.
    pub(crate) fn get(&self) -> Duration {
        self.sorted[self.rank]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Share;

    #[test]
    fn one_hiccup_does_not_move_it_and_a_step_does() {
        let start = Duration::from_secs(3);
        let mut service = ServiceTime::new(&Estimate { start, quantile: Share::new(0.99).unwrap() });
        service.saw(Duration::from_secs(9));
        service.saw(Duration::from_secs(9));
        assert_eq!(service.get(), start);
        service.saw(Duration::from_secs(12));
        assert_eq!(service.get(), Duration::from_secs(9));
        for _ in 0..WINDOW {
            service.saw(Duration::from_secs(1));
        }
        assert_eq!(service.get(), Duration::from_secs(1));
    }
}
