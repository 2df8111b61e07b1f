//! How callers try again: by a rule of the plan's own, or as an SDK does.
//!
//! To add an SDK: one file here, two lines below.

use std::fmt;
use std::time::Duration;

use super::OnRefusal;
use crate::units::{Read, Reader, Share};

mod anthropic_python;
mod openai_node;
mod openai_python;
mod rule;

pub use rule::{Honour, Rule};

/// Every SDK whose retries a plan can name, sorted.
pub const ALL: &[Sdk] = &[anthropic_python::SDK, openai_node::SDK, openai_python::SDK];

/// The most attempts of one caller.
const MOST_ATTEMPTS: u16 = 100;

/// What a caller knows of an attempt that brought it no answer of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Signs {
    /// The HTTP status; none if there was no answer: its patience had ended, or the connection broke.
    pub status: Option<u16>,
    /// Whether the answer was a refusal, as the plan tells them.
    pub refused: bool,
    /// Whether it was its patience that ended.
    pub timed_out: bool,
    /// A `Retry-After` in whole seconds, with a fraction of one (no standard, but plain), or a date.
    pub told: Option<Duration>,
    /// What SDKs of Python read: `retry-after-ms`, else seconds that may have a fraction, else a date.
    pub hint: Option<Duration>,
    /// The same by who takes a text for the number it begins with.
    pub loose: Option<Duration>,
    /// `x-should-retry`, if it is there.
    pub should_retry: Option<bool>,
}

/// What a caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It goes away.
    GiveUp,
    /// It tries again after a wait of its own.
    Backoff,
    /// It tries again after exactly this.
    Wait(Duration),
}

/// An entry of [`ALL`]: what an SDK does when a call fails.
pub struct Sdk {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// The longest wait it keeps: told to wait longer it gives up, or comes early.
    pub keeps: Duration,
    /// The headers in which it says how long it waits for an answer, in seconds.
    pub timeout_headers: &'static [&'static str],
    /// Whether it leaves fractions of a second out there.
    pub whole_seconds: bool,
    /// What it does after an attempt, as long as it has attempts left.
    pub next: fn(&Signs) -> Next,
}

impl fmt::Debug for Sdk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Sdk {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The longest wait that every SDK keeps.
pub fn kept_by_all() -> Duration {
    ALL.iter().map(|sdk| sdk.keeps).min().unwrap_or(Duration::MAX)
}

/// Attempts of an SDK in all, if nobody says otherwise: it retries twice.
const SDK_ATTEMPTS: u16 = 3;

/// Statuses all of them try again after: time-outs, conflicts, limits, and whatever is the server's fault.
const fn is_transient(status: Option<u16>) -> bool {
    match status {
        // no answer: the connection broke, or the time was up
        None => true,
        Some(status) => matches!(status, 408 | 409 | 429) || status >= 500,
    }
}

/// Their common backoff: half a second, doubled each time up to eight, and up to a quarter of it less.
fn sdk_backoff(nth: u16, draw: f64) -> Duration {
    let doubled = 0.5 * f64::from(1u32 << nth.min(20));
    Duration::from_secs_f64(doubled.min(8.0) * (1.0 - 0.25 * draw))
}

/// How callers of a class try again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// Attempts in all, the first one included.
    pub attempts: u16,
    /// How they decide.
    pub manner: Manner,
    /// Retries as a share of first attempts, over all callers of the class; `None` for no limit.
    pub budget: Option<Share>,
}

/// How a caller decides whether, and when, to try again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Manner {
    /// By a rule of the plan's own.
    Own(Rule),
    /// As an SDK does.
    Like(&'static Sdk),
}

impl Retry {
    /// How long to wait after attempt `nth` (0 is the first), which ended with `signs`. `draw` is in `[0, 1)`. `None` if
    /// the caller does not try again.
    pub fn wait(&self, nth: u16, signs: &Signs, draw: f64) -> Option<Duration> {
        if nth.saturating_add(1) >= self.attempts {
            return None;
        }
        match self.manner {
            Manner::Own(rule) => rule.wait(nth, signs, draw),
            Manner::Like(sdk) => match (sdk.next)(signs) {
                Next::GiveUp => None,
                Next::Backoff => Some(sdk_backoff(nth, draw)),
                Next::Wait(told) => Some(told),
            },
        }
    }

    /// The SDK it does as.
    pub const fn sdk(&self) -> Option<&'static Sdk> {
        match self.manner {
            Manner::Own(_) => None,
            Manner::Like(sdk) => Some(sdk),
        }
    }
}

/// The retries the callers of a class may still make together.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    share: Option<f64>,
    left: f64,
}

impl Allowance {
    /// The most that is saved up.
    const MOST: f64 = 1_000.0;

    /// What callers who react like this start with: nothing.
    pub fn of(reaction: &OnRefusal) -> Self {
        let share = match reaction {
            OnRefusal::Retry(retry) => retry.budget.map(Share::get),
            OnRefusal::GiveUp => None,
        };
        Self { share, left: 0.0 }
    }

    /// A caller arrived.
    pub fn earn(&mut self) {
        self.left = (self.left + self.share.unwrap_or(0.0)).min(Self::MOST);
    }

    /// Whether one more retry may be made; if so it is.
    pub fn spend(&mut self) -> bool {
        if self.share.is_none() {
            return true;
        }
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

impl Read for OnRefusal {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        match reader.one_of("reaction to a refusal", &["give_up", "retry"])? {
            ("retry", Some(inner)) => Retry::read(&inner).map(Self::Retry),
            ("retry", None) => {
                reader.fault(
                    "`retry` needs its rule: write `retry: { like: openai-python }` or \
                     `retry: { attempts: 3, backoff: 500ms }`",
                );
                None
            }
            ("give_up", Some(inner)) => {
                inner.fault("`give_up` has no settings");
                None
            }
            _ => Some(Self::GiveUp),
        }
    }
}

impl Read for Retry {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let sdk = map.reader("like");
        let given = map.reader("attempts");
        let attempts = match (&given, &sdk) {
            (Some(reader), _) => u16::read(reader),
            (None, Some(_)) => Some(SDK_ATTEMPTS),
            (None, None) => {
                map.here().fault("`attempts` is missing: how many in all? (or `like`: as which SDK?)");
                None
            }
        };
        let budget = match map.reader("budget") {
            Some(reader) => Share::read(&reader).map(Some),
            None => Some(None),
        };
        let manner = match sdk {
            Some(reader) => {
                rule::none_of_its_keys(&mut map);
                like(&reader).map(Manner::Like)
            }
            None => rule::read(&mut map).map(Manner::Own),
        };
        let attempts = attempts?;
        if attempts == 0 || attempts > MOST_ATTEMPTS {
            map.here().fault(format!("`attempts` counts the first one too: 1 to {MOST_ATTEMPTS}"));
            return None;
        }
        Some(Self { attempts, manner: manner?, budget: budget? })
    }
}

fn like(reader: &Reader<'_>) -> Option<&'static Sdk> {
    let names: Vec<_> = ALL.iter().map(|sdk| sdk.name).collect();
    let (name, inner) = reader.one_of("SDK", &names)?;
    if let Some(inner) = inner {
        inner.fault(format!("`{name}` has no settings: write `like: {name}`"));
        return None;
    }
    ALL.iter().find(|sdk| sdk.name == name)
}

#[cfg(test)]
mod tests;
