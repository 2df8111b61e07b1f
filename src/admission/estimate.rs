use std::collections::VecDeque;
use std::time::Duration;

use super::config::Estimate;
use crate::units::Tokens;

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
    sum: Duration,
    mean: Duration,
}

impl ServiceTime {
    pub(crate) fn new(estimate: &Estimate) -> Self {
        let rank = (estimate.quantile.get() * WINDOW as f64).ceil() as usize;
        Self {
            rank: rank.clamp(1, WINDOW) - 1,
            ring: vec![estimate.start; WINDOW],
            sorted: vec![estimate.start; WINDOW],
            next: 0,
            sum: estimate.start * WINDOW as u32,
            mean: estimate.start,
        }
    }

    /// Notes that an answer took `span`.
    pub(crate) fn saw(&mut self, span: Duration) {
        let old = std::mem::replace(&mut self.ring[self.next], span);
        self.sum = (self.sum + span).saturating_sub(old);
        self.next = (self.next + 1) % WINDOW;
        if old == span {
            return;
        }
        self.mean = self.sum / WINDOW as u32;
        // both searches find a place: `old` is in the window, and any place is right for a new value
        let place = self.sorted.binary_search(&old).unwrap_or_else(|at| at.min(WINDOW - 1));
        self.sorted.remove(place);
        let place = self.sorted.binary_search(&span).unwrap_or_else(|at| at);
        self.sorted.insert(place, span);
    }

    /// The mean.
    pub(crate) const fn mean(&self) -> Duration {
        self.mean
    }

    /// The quantile.
    pub(crate) fn get(&self) -> Duration {
        self.sorted[self.rank]
    }
}

/// How much is held for each token that is used: the mean hold over the mean use of the latest answers, at least 1.
///
/// Where unused tokens are given back, a queue counted in holds drains this much faster than the quota fills.
#[derive(Debug)]
pub(crate) struct HoldFactor {
    ring: VecDeque<(u64, u64)>,
    held: u64,
    used: u64,
    factor: f64,
}

impl Default for HoldFactor {
    fn default() -> Self {
        Self { ring: VecDeque::new(), held: 0, used: 0, factor: 1.0 }
    }
}

impl HoldFactor {
    /// Notes what was held for an answer and what it used.
    pub(crate) fn saw(&mut self, hold: Tokens, used: Tokens) {
        if self.ring.len() == WINDOW
            && let Some((hold, used)) = self.ring.pop_front()
        {
            self.held -= hold;
            self.used -= used;
        }
        // far above any answer, and 200 of them stay far below what a u64 holds
        let (hold, used) = (hold.get().min(1 << 40), used.get().min(1 << 40));
        self.ring.push_back((hold, used));
        self.held += hold;
        self.used += used;
        let spared = self.used < self.held;
        self.factor = if spared { (self.held as f64 / self.used.max(1) as f64).min(100.0) } else { 1.0 };
    }

    /// The factor; exactly 1 while nothing is given back, at most 100.
    pub(crate) const fn get(&self) -> f64 {
        self.factor
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
