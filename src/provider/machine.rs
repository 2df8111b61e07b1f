use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::account::Account;
use super::config::times;
use super::slots::Places;
use super::{Charge, Config, Fault, What};
use crate::units::{Moment, Ratio, Share, Tokens};

/// A request as the provider sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Tokens of the prompt, as counted.
    pub prompt: Tokens,
    /// The most the answer may have.
    pub max_output: Tokens,
    /// What the answer will have; more than `max_output` is cut to it.
    pub output: Tokens,
    /// Whose quota it uses.
    pub account: AccountId,
}

/// The number of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountId(u16);

/// The provider's rate-limit state after a call, as its headers tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens a minute.
    pub per_minute: Tokens,
    /// Tokens that could be used at once, now.
    pub remaining: Tokens,
    /// Until the whole burst is there again.
    pub reset: Duration,
    /// The same of requests, where they are limited too.
    pub requests: Option<RequestLimits>,
}

/// The provider's limit of requests after a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Requests a minute.
    pub per_minute: u64,
    /// Requests that could be made at once, now.
    pub remaining: u64,
    /// Until all of them could again.
    pub reset: Duration,
}

/// What the provider decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It generates an answer.
    Served(Work),
    /// The quota is spent.
    Refused {
        /// Until this call would fit.
        retry_after: Duration,
        /// What it asked for.
        wanted: Tokens,
        /// Whether a fault of the plan has made the quota smaller than it is said to be.
        cut: bool,
    },
    /// It asks for more than the quota can ever grant at once.
    TooLarge {
        /// What it asked for.
        wanted: Tokens,
        /// The most that can be granted.
        most: Tokens,
    },
    /// It fails at once, as a fault of the plan says. It costs nothing.
    Failed(Failing),
    /// It generates an answer that goes wrong, as a fault of the plan says.
    Spoilt(Work, Spoilt),
}

impl Answer {
    /// For how long the provider works on the call, and what it charges; `None` if it took no work.
    pub fn taken(&self) -> Option<(Duration, Tokens)> {
        match self {
            Self::Spoilt(work, Spoilt::Cut { after }) => Some((*after, work.charged)),
            Self::Served(work) | Self::Spoilt(work, _) => Some((work.takes, work.charged)),
            Self::Failed(_) | Self::Refused { .. } | Self::TooLarge { .. } => None,
        }
    }

    /// Whether it is what it is because of a fault of the plan.
    pub const fn is_faulty(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Spoilt(..) | Self::Refused { cut: true, .. })
    }
}

/// An answer that is generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Tokens taken from the quota.
    pub charged: Tokens,
    /// Tokens of the answer.
    pub output: Tokens,
    /// Until the whole answer is there.
    pub takes: Duration,
    /// From one of its tokens to the next.
    pub gap: Duration,
}

/// How a call fails before anything is done for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failing {
    /// With an error.
    Error {
        /// Its status.
        status: u16,
        /// What its `Retry-After` says; `None` for no header.
        retry_after: Option<Duration>,
    },
    /// Its connection is reset.
    Reset,
}

/// What becomes of an answer that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spoilt {
    /// The connection ends in the middle of it.
    Cut {
        /// Until then.
        after: Duration,
    },
    /// All of it comes, and is none of its API.
    Garbage,
    /// It never comes, and the connection never ends.
    Stall,
}

/// The provider: quotas, a service time, places to work in, and what is wrong with it for a while.
#[derive(Debug, Clone)]
pub struct Provider {
    config: Config,
    /// By number.
    accounts: Vec<Account>,
    places: Option<Places>,
    /// When the answers end that are worked on, where that makes a difference.
    busy: BinaryHeap<Reverse<Moment>>,
    /// When the run begins, from which the times of faults count.
    began: Moment,
    /// Whether a fault has made the quota smaller than usual.
    cut: bool,
    /// Times that are still to come at which the quota changes, the latest first, each with its part from then on.
    steps: Vec<(Duration, Ratio)>,
    /// What else is wrong, by its beginning.
    faults: Vec<Fault>,
    calls: u64,
}

impl Provider {
    /// A provider whose quotas are full at `now`.
    pub fn new(config: &Config, now: Moment) -> Self {
        let accounts = config.quota.accounts.len().max(1);
        let apart = |fault: &&Fault| !matches!(fault.what, What::Capacity(_));
        Self {
            accounts: vec![Account::new(&config.quota, now); accounts],
            places: config.slots.map(Places::new),
            busy: BinaryHeap::new(),
            began: now,
            cut: false,
            steps: steps(&config.faults),
            faults: config.faults.iter().filter(apart).copied().collect(),
            calls: 0,
            config: config.clone(),
        }
    }

    /// The run begins at `at`, and not when this was made: the times of faults count from then.
    pub const fn begin(&mut self, at: Moment) {
        self.began = at;
    }

    /// The account that a call with `key` uses; `None` if nobody has that key.
    pub fn account_of(&self, key: Option<&str>) -> Option<AccountId> {
        let keys = &self.config.quota.accounts;
        if keys.is_empty() {
            return Some(AccountId::default());
        }
        let place = keys.iter().position(|known| Some(known.as_str()) == key)?;
        u16::try_from(place).ok().map(AccountId)
    }

    /// Decides about a call at `now`. A refusal takes nothing from the quota. Where service times spread, this one is
    /// drawn by the call's number.
    pub fn call(&mut self, now: Moment, call: Call) -> Answer {
        self.calls += 1;
        self.call_drawn(now, call, unit(self.calls))
    }

    /// Like [`Self::call`], with the number in `[0, 1)` that the service time, and whatever goes wrong, is drawn by.
    pub fn call_drawn(&mut self, now: Moment, call: Call, draw: f64) -> Answer {
        while let Some((after, part)) = self.steps.last().copied()
            && let at = self.began + after
            && at <= now
        {
            self.accounts.iter_mut().for_each(|account| account.retune(at, &self.config.quota, part));
            self.cut = part.as_f64() < 1.0;
            self.steps.pop();
        }
        let number = self.number(call.account);
        self.accounts[number].advance(now);
        if let Some(failing) = self.hit(now, draw, failing) {
            return Answer::Failed(failing);
        }
        let account = &self.accounts[number];
        let wanted = match self.config.quota.charge {
            Charge::Reservation => call.prompt + call.max_output,
            // one token of the answer at least
            Charge::Actual => call.prompt + Tokens::new(1),
        };
        let Some(retry_after) = account.time_until(wanted) else {
            return Answer::TooLarge { wanted, most: account.most() };
        };
        let full = self.places.as_mut().and_then(|places| places.full_until(now));
        let free = full.map_or(Duration::ZERO, |free| free.since(now));
        if full.is_some() || !retry_after.is_zero() {
            return Answer::Refused { retry_after: retry_after.max(free), wanted, cut: self.cut };
        }
        let output = call.output.min(call.max_output);
        let (made, gap) = self.made(now, output, draw);
        let takes = self.places.as_mut().map_or(made, |places| places.take(now, made).since(now));
        if self.config.service.strain.is_some() {
            self.busy.push(Reverse(now + takes));
        }
        let account = &mut self.accounts[number];
        let charged = match self.config.quota.charge {
            Charge::Reservation => {
                account.take(wanted);
                wanted
            }
            Charge::Actual => {
                account.take(call.prompt);
                account.owe(now + takes, output);
                call.prompt + output
            }
        };
        let work = Work { charged, output, takes, gap };
        let spoilt = self.hit(now, draw, |what| match what {
            What::Cuts(share) => Some((share, Spoilt::Cut { after: takes - made / 2 })),
            What::Garbage(share) => Some((share, Spoilt::Garbage)),
            What::Stalls(share) => Some((share, Spoilt::Stall)),
            _ => None,
        });
        spoilt.map_or(Answer::Served(work), |how| Answer::Spoilt(work, how))
    }

    /// What is left of the quota of an account as of the last call on it.
    pub fn limits(&self, account: AccountId) -> Limits {
        self.accounts[self.number(account)].limits(&self.config.quota)
    }

    /// The place of an account; an id of another provider's is taken as the last.
    fn number(&self, account: AccountId) -> usize {
        usize::from(account.0).min(self.accounts.len() - 1)
    }

    /// How long it takes to make an answer that is begun now, and the time from one token to the next.
    fn made(&mut self, now: Moment, output: Tokens, draw: f64) -> (Duration, Duration) {
        let mut takes = self.config.service.drawn(output, draw);
        for fault in self.faults.iter().filter(|fault| fault.is_on(self.began, now)) {
            if let What::Latency { times: factor, plus } = fault.what {
                takes = times(takes, factor.as_f64()).saturating_add(plus);
            }
        }
        if let Some(strain) = self.config.service.strain {
            while self.busy.peek().is_some_and(|Reverse(end)| *end <= now) {
                self.busy.pop();
            }
            takes = times(takes, strain.times(self.busy.len()));
        }
        (takes, self.config.service.gap(output, takes))
    }

    /// The first of the faults of a kind that hits a call at `now`: each draws anew.
    fn hit<T>(&self, now: Moment, draw: f64, of: impl Fn(What) -> Option<(Share, T)>) -> Option<T> {
        let on = self.faults.iter().enumerate().filter(|(_, fault)| fault.is_on(self.began, now));
        let drawn = |i: usize| unit(draw.to_bits().wrapping_add(i as u64));
        let mut hits = on.filter_map(|(i, fault)| of(fault.what).filter(|(share, _)| drawn(i) < share.get()));
        hits.next().map(|(_, how)| how)
    }
}

/// What a fault does to a call before anything is done for it, and to which part of the calls.
const fn failing(what: What) -> Option<(Share, Failing)> {
    match what {
        What::Errors { status, share, retry_after } => Some((share, Failing::Error { status, retry_after })),
        What::Resets(share) => Some((share, Failing::Reset)),
        _ => None,
    }
}

/// Every time at which the quota changes, the latest first, with its part of the usual one from then on.
fn steps(faults: &[Fault]) -> Vec<(Duration, Ratio)> {
    let mut steps: Vec<(Duration, Ratio)> = Vec::new();
    for fault in faults {
        let What::Capacity(part) = fault.what else { continue };
        let (start, end) = (fault.at, fault.end());
        // one that begins where another ends: the part is the second's
        steps.retain(|(at, _)| *at != start);
        steps.extend([(start, part), (end, Ratio::ONE)]);
    }
    steps.reverse();
    steps
}

/// A number in `[0, 1)` for each `n` (the finaliser of SplitMix64).
fn unit(n: u64) -> f64 {
    let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests;
