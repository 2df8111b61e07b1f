use std::time::Duration;

use super::{Counts, Frame, Lags};
use crate::observe::{Depth, Gauge};
use crate::units::{Bytes, Moment, Tokens};

/// The most pings kept of one window: five come in a second, so only windows wider than ten seconds lose any.
const MOST_PINGS: usize = 64;

/// What happened in a stretch of time. What a request came to is counted in the window it was **due** in; depth, pings
/// and memory in the window they were seen in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Window {
    /// Arrivals due in it.
    pub offered: u64,
    /// What became of them.
    pub arrivals: Counts,
    /// Attempts due in it: arrivals and returns.
    pub attempts: u64,
    /// Answers within their deadline to attempts due in it, returns included.
    pub goodput: u64,
    /// Answers of any kind, refusals and errors too, to attempts due in it.
    pub answers: u64,
    /// Tokens held for those in time.
    pub goodput_tokens: Tokens,
    /// Tokens the provider took from its quota for attempts due in it.
    pub charged: Tokens,
    /// Of these, tokens for answers nobody was waiting for any more, but for those whose callers left before their
    /// deadlines while the provider worked.
    pub wasted: Tokens,
    /// First attempts written in it, whenever they were due.
    pub sent: u64,
    /// First attempts, and those of callers who came again (and copies), due in each tenth of it.
    pub tenths: [[u32; 10]; 2],
    /// How late attempts due in it were sent.
    pub lags: Lags,
    /// Answers within their deadline that ended in it.
    pub completions: u64,
    /// Shed and throttled attempts that ended in it.
    pub refusals: u64,
    /// The deepest the queue stood.
    pub depth_max: Depth,
    /// Queue depth times time: requests times nanoseconds.
    pub depth_time: u128,
    /// The same of tokens.
    pub token_time: u128,
    /// The most requests at the provider.
    pub at_provider_max: u64,
    /// The most ghosts.
    pub ghosts_max: u64,
    /// Pings that were answered, in microseconds, slowest first; the slowest 64 where there are more.
    pub pings: Vec<u32>,
    /// Pings that were not.
    pub pings_lost: u64,
    /// The most memory the target had.
    pub target_memory: Bytes,
    /// The most memory we had.
    pub own_memory: Bytes,
}

impl Window {
    /// Notes an answered ping.
    pub(super) fn ping(&mut self, took: Duration) {
        let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let place = self.pings.partition_point(|slower| *slower > micros);
        self.pings.insert(place, micros);
        self.pings.truncate(MOST_PINGS);
    }

    /// Notes what stood where, however shortly.
    fn reached(&mut self, gauge: &Gauge) {
        self.depth_max.requests = self.depth_max.requests.max(gauge.depth.requests);
        self.depth_max.tokens = self.depth_max.tokens.max(gauge.depth.tokens);
        self.at_provider_max = self.at_provider_max.max(gauge.at_provider);
        self.ghosts_max = self.ghosts_max.max(gauge.ghosts);
    }

    /// Notes how long it stood.
    fn lasted(&mut self, gauge: &Gauge, span: Duration) {
        if gauge.depth == Depth::default() {
            return;
        }
        self.depth_time = self.depth_time.saturating_add(u128::from(gauge.depth.requests) * span.as_nanos());
        let tokens = u128::from(gauge.depth.tokens.get());
        self.token_time = self.token_time.saturating_add(tokens.saturating_mul(span.as_nanos()));
    }

    fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.arrivals.add(&other.arrivals);
        self.attempts += other.attempts;
        self.goodput += other.goodput;
        self.answers += other.answers;
        self.goodput_tokens += other.goodput_tokens;
        self.charged += other.charged;
        self.wasted += other.wasted;
        self.sent += other.sent;
        for (mine, more) in self.tenths.iter_mut().flatten().zip(other.tenths.iter().flatten()) {
            *mine = mine.saturating_add(*more);
        }
        self.lags.add(&other.lags);
        self.completions += other.completions;
        self.refusals += other.refusals;
        self.depth_max.requests = self.depth_max.requests.max(other.depth_max.requests);
        self.depth_max.tokens = self.depth_max.tokens.max(other.depth_max.tokens);
        self.depth_time = self.depth_time.saturating_add(other.depth_time);
        self.token_time = self.token_time.saturating_add(other.token_time);
        self.at_provider_max = self.at_provider_max.max(other.at_provider_max);
        self.ghosts_max = self.ghosts_max.max(other.ghosts_max);
        self.pings.extend_from_slice(&other.pings);
        self.pings.sort_unstable_by(|a, b| b.cmp(a));
        self.pings.truncate(MOST_PINGS);
        self.pings_lost += other.pings_lost;
        self.target_memory = self.target_memory.max(other.target_memory);
        self.own_memory = self.own_memory.max(other.own_memory);
    }
}

/// All windows of a run, from its epoch on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Windows(Vec<Window>);

impl Windows {
    /// The windows in order of time.
    pub fn iter(&self) -> std::slice::Iter<'_, Window> {
        self.0.iter()
    }

    /// The windows that begin in `[from, to)` and lie wholly before `to`.
    pub fn within<'a>(
        &'a self,
        frame: &'a Frame,
        from: Moment,
        to: Moment,
    ) -> impl Iterator<Item = &'a Window> {
        self.0.iter().enumerate().filter_map(move |(i, window)| {
            let begins = frame.begins(i);
            (from <= begins && begins + frame.width <= to).then_some(window)
        })
    }

    /// The window `at` lies in.
    pub(super) fn at(&mut self, frame: &Frame, at: Moment) -> &mut Window {
        self.number(frame.window(at))
    }

    fn number(&mut self, index: usize) -> &mut Window {
        if self.0.len() <= index {
            self.0.resize_with(index + 1, Window::default);
        }
        &mut self.0[index]
    }

    /// Notes that what stood since `from` gave way to something else at `to`, in every window that span touches. A depth
    /// that lasts no time is still the deepest it was.
    pub(super) fn turned(
        &mut self,
        frame: &Frame,
        (before, from): (&Gauge, Moment),
        (after, to): (&Gauge, Moment),
    ) {
        let last = frame.window(to);
        let first = if from < to { frame.window(from) } else { last };
        if first == last {
            let window = self.number(last);
            if from < to {
                window.lasted(before, to.since(from));
            }
            return window.reached(after);
        }
        for index in first..=last {
            let begins = frame.begins(index);
            let ends = if index == last { to } else { begins + frame.width };
            let span = ends.min(to).since(begins.max(from));
            if !span.is_zero() {
                let window = self.number(index);
                window.reached(before);
                window.lasted(before, span);
            }
        }
        self.number(last).reached(after);
    }

    /// Adds another's windows.
    pub(super) fn add(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize_with(other.0.len(), Window::default);
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.add(theirs);
        }
    }
}

impl<'a> IntoIterator for &'a Windows {
    type Item = &'a Window;
    type IntoIter = std::slice::Iter<'a, Window>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pings_are_kept_slowest_first_and_in_bounded_number() {
        let mut window = Window::default();
        for micros in 0..200 {
            window.ping(Duration::from_micros((micros * 37) % 200));
        }
        assert_eq!(window.pings.len(), MOST_PINGS);
        assert_eq!(window.pings[0], 199);
        assert!(window.pings.is_sorted_by(|a, b| a >= b));
    }
}
