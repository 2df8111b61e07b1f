use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::{Limits, Quota, RequestLimits};
use crate::units::{Meter, Moment, Rate, Ratio, Tokens, Window};

/// What one account has used of its quota, in every window.
#[derive(Debug, Clone)]
pub(super) struct Account {
    tokens: Vec<Meter>,
    requests: Vec<Meter>,
    /// Tokens that are charged when an answer ends, by that instant.
    owed: BinaryHeap<Reverse<(Moment, Tokens)>>,
}

impl Account {
    /// One that has used nothing yet at `now`.
    pub(super) fn new(quota: &Quota, now: Moment) -> Self {
        let meters = |rate: Rate, least_one: bool| {
            let window = move |window: Window| if least_one { window.holding_one(rate) } else { window };
            quota.windows().into_iter().map(move |it| Meter::new(rate, window(it), now)).collect()
        };
        Self {
            tokens: meters(quota.tokens, false),
            requests: quota.requests.map_or_else(Vec::new, |rate| meters(rate, true)),
            owed: BinaryHeap::new(),
        }
    }

    /// Lets time pass up to `now`; answers that end until then are charged at their ends.
    pub(super) fn advance(&mut self, now: Moment) {
        while let Some(Reverse((at, tokens))) =
            self.owed.peek().copied().filter(|Reverse((at, _))| *at <= now)
        {
            self.owed.pop();
            for meter in &mut self.tokens {
                meter.advance(at);
                meter.charge(tokens);
            }
        }
        self.tokens.iter_mut().chain(&mut self.requests).for_each(|meter| meter.advance(now));
    }

    /// The most tokens one call can be granted, ever.
    pub(super) fn most(&self) -> Tokens {
        self.tokens.iter().map(Meter::size).min().unwrap_or_default()
    }

    /// How long until a call for `wanted` tokens fits; `None` if it never will.
    pub(super) fn time_until(&self, wanted: Tokens) -> Option<Duration> {
        let tokens = self.tokens.iter().map(|meter| meter.time_until(wanted));
        let requests = self.requests.iter().map(|meter| meter.time_until(Tokens::new(1)));
        tokens.chain(requests).try_fold(Duration::ZERO, |longest, wait| Some(longest.max(wait?)))
    }

    /// Charges a call that fits.
    pub(super) fn take(&mut self, tokens: Tokens) {
        self.tokens.iter_mut().for_each(|meter| meter.charge(tokens));
        self.requests.iter_mut().for_each(|meter| meter.charge(Tokens::new(1)));
    }

    /// Charges `tokens` more at `at`.
    pub(super) fn owe(&mut self, at: Moment, tokens: Tokens) {
        self.owed.push(Reverse((at, tokens)));
    }

    /// What is left of `quota`, which this is an account of.
    pub(super) fn limits(&self, quota: &Quota) -> Limits {
        let least =
            |meters: &[Meter], of: fn(&Meter) -> Tokens| meters.iter().map(of).min().unwrap_or_default();
        let minute = Duration::from_secs(60);
        let reset = |meters: &[Meter]| {
            let whole = least(meters, Meter::size);
            let longest = meters.iter().filter_map(|meter| meter.time_until(whole)).max();
            longest.unwrap_or_default()
        };
        Limits {
            per_minute: Tokens::new(quota.tokens.whole_in(minute)),
            remaining: least(&self.tokens, Meter::tokens),
            reset: reset(&self.tokens),
            requests: quota.requests.map(|rate| RequestLimits {
                per_minute: rate.whole_in(minute),
                remaining: least(&self.requests, Meter::tokens).get(),
                reset: reset(&self.requests),
            }),
        }
    }

    /// The quota is `part` of what it usually is, from `at` on.
    pub(super) fn retune(&mut self, at: Moment, quota: &Quota, part: Ratio) {
        self.advance(at);
        self.tokens.iter_mut().for_each(|meter| meter.retune(quota.tokens.scaled(part)));
        if let Some(rate) = quota.requests {
            self.requests.iter_mut().for_each(|meter| meter.retune(rate.scaled(part)));
        }
    }
}
