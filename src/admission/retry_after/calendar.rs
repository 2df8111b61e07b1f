use std::collections::{BTreeSet, VecDeque};

use crate::units::Moment;

/// How many seconds ahead have a page: a day and a half, more than is ever announced.
const MOST_PAGES: u64 = 1 << 17;

/// Callers by the instants they were told, a page for every second.
///
/// Nobody asks for their order before it is their turn: a page is put in order when it comes to the front.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    /// The second of the first page.
    first: u64,
    pages: VecDeque<Page>,
    /// Beyond the pages.
    later: BTreeSet<(Moment, u64)>,
    len: usize,
    /// Nobody was told to come before this.
    soonest: Moment,
}

#[derive(Debug, Default)]
struct Page {
    entries: VecDeque<(Moment, u64)>,
    in_order: bool,
}

impl Calendar {
    /// How many are written down.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Writes down that `caller` was told `time`, which is not before the limit of the last [`Self::pop_before`].
    pub(super) fn add(&mut self, time: Moment, caller: u64) {
        self.len += 1;
        self.soonest = self.soonest.min(time);
        let ahead = second(time).saturating_sub(self.first);
        if ahead >= MOST_PAGES {
            self.later.insert((time, caller));
            return;
        }
        let ahead = ahead as usize;
        if self.pages.len() <= ahead {
            self.pages.resize_with(ahead + 1, Page::default);
        }
        let Page { entries, in_order } = &mut self.pages[ahead];
        if *in_order {
            let place = entries.partition_point(|entry| *entry < (time, caller));
            entries.insert(place, (time, caller));
        } else {
            entries.push_back((time, caller));
        }
    }

    /// Takes out the soonest, if it is before `limit`.
    pub(super) fn pop_before(&mut self, limit: Moment) -> Option<(Moment, u64)> {
        if limit <= self.soonest {
            return None;
        }
        if self.len == 0 {
            self.pages.clear();
            self.first = second(limit);
            self.soonest = limit;
            return None;
        }
        while self.first <= second(limit)
            && let Some(Page { entries, in_order }) = self.pages.front_mut()
        {
            if !std::mem::replace(in_order, true) {
                entries.make_contiguous().sort_unstable();
            }
            match entries.front().copied() {
                Some(soonest) => {
                    let due = soonest.0 < limit;
                    self.soonest = soonest.0;
                    if due {
                        entries.pop_front();
                        self.len -= 1;
                    }
                    return due.then_some(soonest);
                }
                None if self.first == second(limit) => break,
                None => {
                    self.pages.pop_front();
                    self.first += 1;
                }
            }
        }
        match self.later.first().copied().filter(|(time, _)| *time < limit) {
            Some(soonest) => {
                self.later.remove(&soonest);
                self.len -= 1;
                Some(soonest)
            }
            None => {
                self.soonest = limit;
                None
            }
        }
    }

    /// Takes out one of the latest second.
    pub(super) fn pop_latest(&mut self) -> Option<(Moment, u64)> {
        let mut latest = self.later.pop_last();
        while latest.is_none()
            && let Some(page) = self.pages.back_mut()
        {
            latest = page.entries.pop_back();
            if latest.is_none() {
                self.pages.pop_back();
            }
        }
        self.len -= usize::from(latest.is_some());
        latest
    }

    /// Strikes out all for whom `keep` is false.
    pub(super) fn retain(&mut self, keep: impl Fn(Moment, u64) -> bool) {
        self.later.retain(|(time, caller)| keep(*time, *caller));
        for page in &mut self.pages {
            page.entries.retain(|(time, caller)| keep(*time, *caller));
        }
        self.len = self.later.len() + self.pages.iter().map(|page| page.entries.len()).sum::<usize>();
    }
}

const fn second(time: Moment) -> u64 {
    time.as_nanos() / 1_000_000_000
}
