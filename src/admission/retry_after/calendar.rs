use std::collections::VecDeque;

use crate::units::{Moment, Tokens};

/// How many seconds ahead have a page: a day and a half, more than is ever announced.
const MOST_PAGES: u64 = 1 << 17;

/// How much is promised for which second.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    /// The second of the first page; what was promised for an earlier one is closed.
    first: u64,
    /// The first instant of that second.
    start: Moment,
    pages: VecDeque<Page>,
    len: usize,
    tokens: Tokens,
}

/// What is promised for one second.
#[derive(Debug, Clone, Copy, Default)]
struct Page {
    promises: u32,
    tokens: Tokens,
}

impl Calendar {
    /// How many promises are open.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The work of all of them.
    pub(super) const fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// Whether one for `time` is still open, if it was ever made and not taken out.
    pub(super) fn is_open(&self, time: Moment) -> bool {
        time >= self.start && time > Moment::ZERO
    }

    /// Writes a promise down; false if it is for a second that is over, or too far ahead.
    pub(super) fn add(&mut self, time: Moment, tokens: Tokens) -> bool {
        let ahead = second(time).saturating_sub(self.first);
        if !self.is_open(time) || ahead >= MOST_PAGES {
            return false;
        }
        let ahead = ahead as usize;
        if self.pages.len() <= ahead {
            self.pages.resize(ahead + 1, Page::default());
        }
        let page = &mut self.pages[ahead];
        page.promises += 1;
        page.tokens += tokens;
        self.len += 1;
        self.tokens += tokens;
        true
    }

    /// Takes an open promise out.
    pub(super) fn remove(&mut self, time: Moment, tokens: Tokens) {
        let ahead = second(time).saturating_sub(self.first) as usize;
        if let Some(page) = self.pages.get_mut(ahead).filter(|page| page.promises > 0) {
            page.promises -= 1;
            page.tokens = page.tokens - tokens;
            self.len -= 1;
            self.tokens = self.tokens - tokens;
        }
    }

    /// Closes what was promised for the seconds that are over at `limit`; gives how many promises that were.
    pub(super) fn close_before(&mut self, limit: Moment) -> u64 {
        if limit.nanos_since(self.start) < SECOND {
            return 0;
        }
        let mut closed = 0;
        let now = second(limit);
        while self.first < now {
            let Some(page) = self.pages.pop_front() else {
                self.first = now;
                break;
            };
            self.first += 1;
            closed += page.promises as usize;
            self.tokens = self.tokens - page.tokens;
        }
        self.start = Moment::from_secs(self.first);
        self.len -= closed;
        closed as u64
    }
}

/// A second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

const fn second(time: Moment) -> u64 {
    time.as_nanos() / SECOND
}
