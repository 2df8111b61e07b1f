use std::collections::VecDeque;

use crate::units::{Moment, Tokens};

/// How long a page is, in nanoseconds, as a power of two: a bit over a quarter of a second.
const PAGE: u32 = 28;

/// How many pages there are at most: a day and a half, more than is ever announced.
const MOST_PAGES: u64 = 1 << 19;

/// How much is promised for when, to the page.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    /// The number of the first page; what was promised for an earlier one is closed.
    first: u64,
    /// The first instant of that page.
    start: Moment,
    pages: VecDeque<Page>,
    len: usize,
    tokens: Tokens,
}

/// What is promised for the time of one page.
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

    /// Writes a promise down; false if it is for a page that is over, or too far ahead.
    pub(super) fn add(&mut self, time: Moment, tokens: Tokens) -> bool {
        let ahead = page(time).saturating_sub(self.first);
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
        let ahead = page(time).saturating_sub(self.first) as usize;
        if let Some(page) = self.pages.get_mut(ahead).filter(|page| page.promises > 0) {
            page.promises -= 1;
            page.tokens = page.tokens - tokens;
            self.len -= 1;
            self.tokens = self.tokens - tokens;
        }
    }

    /// Closes the pages that are over at `limit`; gives how many promises that closes.
    pub(super) fn close_before(&mut self, limit: Moment) -> u64 {
        if limit.nanos_since(self.start) < 1 << PAGE {
            return 0;
        }
        let mut closed = 0;
        let now = page(limit);
        while self.first < now {
            let Some(page) = self.pages.pop_front() else {
                self.first = now;
                break;
            };
            self.first += 1;
            closed += page.promises as usize;
            self.tokens = self.tokens - page.tokens;
        }
        self.start = Moment::from_nanos(self.first << PAGE);
        self.len -= closed;
        closed as u64
    }
}

/// The number of the page `time` lies in.
pub(super) const fn page(time: Moment) -> u64 {
    time.as_nanos() >> PAGE
}
