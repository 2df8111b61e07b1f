//! How refusals are told, and what else a shell tells the others: both evaluators ask here.

use std::time::Duration;

use super::{Amount, Kind, hits, part};
use crate::admission::retry_after::whole_seconds;
use crate::admission::{Config, Id};
use crate::units::{Moment, Share};

pub(super) const CONSTANT_RETRY_AFTER: Kind = Kind {
    name: "constant_retry_after",
    about: "everyone is told the same time, whatever the state (1s)",
    usual: Amount::Time(Duration::from_secs(1)),
    live_only: false,
    bend: |bent, amount| bent.telling.put(|telling| telling.constant = Some(amount.time())),
};

pub(super) const SHORT_RETRY_AFTER: Kind = Kind {
    name: "short_retry_after",
    about: "the announced time is shorter than the true one, at least a second (5s)",
    usual: Amount::Time(Duration::from_secs(5)),
    live_only: false,
    bend: |bent, amount| bent.telling.put(|telling| telling.shorter = amount.time()),
};

pub(super) const MISSING_RETRY_AFTER: Kind = Kind {
    name: "missing_retry_after",
    about: "a part of the refusals say no time (100%)",
    usual: Amount::Part(part(100)),
    live_only: false,
    bend: |bent, amount| bent.telling.put(|telling| telling.missing = Some(amount.part())),
};

pub(super) const MALFORMED_RETRY_AFTER: Kind = Kind {
    name: "malformed_retry_after",
    about: "a part of the refusals say a time that nobody can read (100%)",
    usual: Amount::Part(part(100)),
    live_only: false,
    bend: |bent, amount| bent.telling.put(|telling| telling.malformed = Some(amount.part())),
};

pub(super) const SYNCHRONIZED_RETRY_AFTER: Kind = Kind {
    name: "synchronized_retry_after",
    about: "everyone is told to come back at the next multiple of a time (30s)",
    usual: Amount::Time(Duration::from_secs(30)),
    live_only: false,
    bend: |bent, amount| bent.telling.put(|telling| telling.multiple = Some(amount.time())),
};

pub(super) const UNMARKED_LONG_WAITS: Kind = Kind {
    name: "unmarked_long_waits",
    about: "a time that no client will wait carries no sign not to retry",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.telling.put(|telling| telling.unmarked = true),
};

pub(super) const MIXED_REFUSALS: Kind = Kind {
    name: "mixed_refusals",
    about: "429 is said for scarcity, and 503 for a tenant over its limit",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.telling.put(|telling| telling.mixed = true),
};

pub(super) const WRONG_ERROR_SHAPE: Kind = Kind {
    name: "wrong_error_shape",
    about: "a refusal is a line of text and no problem document",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.telling.put(|telling| telling.shapeless = true),
};

pub(super) const DEADLINE_RESET: Kind = Kind {
    name: "deadline_reset",
    about: "the provider is told the whole deadline anew, and not what is left of it",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.telling.put(|telling| telling.fresh_deadline = true),
};

pub(super) const COSTLY_REFUSAL: Kind = Kind {
    name: "costly_refusal",
    about: "a part of the refused requests are sent to the provider all the same (100%)",
    usual: Amount::Part(part(100)),
    live_only: false,
    bend: |bent, amount| bent.telling.put(|telling| telling.costly = Some(amount.part())),
};

/// What is told wrong. It has no state: whom a share hits is drawn from the request's id.
#[derive(Debug, Clone, Copy)]
pub struct Telling {
    /// See [`Config::give_up_above`].
    give_up_above: Duration,
    /// Whether anything is: nearly always nothing is, and nothing else is looked at.
    any: bool,
    constant: Option<Duration>,
    shorter: Duration,
    multiple: Option<Duration>,
    missing: Option<Share>,
    malformed: Option<Share>,
    unmarked: bool,
    mixed: bool,
    shapeless: bool,
    fresh_deadline: bool,
    costly: Option<Share>,
}

/// What a refused caller is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// When to come back.
    pub wait: Wait,
    /// Whether scarcity and entitlement are told by each other's status.
    pub mixed: bool,
    /// Whether the body is a line of text, and no problem document.
    pub shapeless: bool,
    /// Whether to try again at all (`x-should-retry`), where that is said.
    pub should_retry: Option<bool>,
    /// Whether the request is sent to the provider all the same, if it was refused when it came.
    pub costly: bool,
}

/// When a refused caller is told to come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Nothing is said.
    Nothing,
    /// After this time.
    After(Duration),
    /// At a time that nobody can read: [`Wait::NONSENSE`].
    Nonsense,
}

impl Wait {
    /// What a header says that says nothing: what a template says whose value was never filled in.
    pub const NONSENSE: &str = "${retry_after}";

    /// The time, if one is said.
    pub const fn span(self) -> Option<Duration> {
        match self {
            Self::After(span) => Some(span),
            Self::Nothing | Self::Nonsense => None,
        }
    }
}

impl Told {
    /// What a healthy gateway says.
    pub const fn plainly(wait: Option<Duration>) -> Self {
        let wait = match wait {
            Some(span) => Wait::After(span),
            None => Wait::Nothing,
        };
        Self { wait, should_retry: None, mixed: false, shapeless: false, costly: false }
    }
}

impl Telling {
    /// Nothing is told wrong by this policy.
    pub(super) const fn of(policy: &Config) -> Self {
        Self {
            give_up_above: policy.give_up_above,
            any: false,
            constant: None,
            shorter: Duration::ZERO,
            multiple: None,
            missing: None,
            malformed: None,
            unmarked: false,
            mixed: false,
            shapeless: false,
            fresh_deadline: false,
            costly: None,
        }
    }

    /// Whether a caller who is told to wait so long shall try again, where there is a need to say so: a wait that nobody
    /// keeps is marked with `false`. A caller's deadline says nothing about that, since SDKs count their time-outs anew
    /// with each attempt.
    fn sign(&self, told: Option<Duration>) -> Option<bool> {
        told.filter(|told| *told > self.give_up_above).map(|_| false)
    }

    fn put(&mut self, change: impl FnOnce(&mut Self)) {
        self.any = true;
        change(self);
    }

    /// What the caller of `id`, refused at `now`, is told where the machine says `wait`.
    pub fn refusal(&self, id: Id, now: Moment, wait: Option<Duration>) -> Told {
        if !self.any {
            return Told { should_retry: self.sign(wait), ..Told::plainly(wait) };
        }
        let wait = self.constant.or_else(|| wait.map(|wait| self.bent_time(now, wait)));
        let wait = match wait {
            None => Wait::Nothing,
            Some(_) if hits(self.missing, id, 201) => Wait::Nothing,
            Some(_) if hits(self.malformed, id, 202) => Wait::Nonsense,
            Some(wait) => Wait::After(wait),
        };
        Told {
            wait,
            should_retry: self.sign(wait.span()).filter(|_| !self.unmarked),
            mixed: self.mixed,
            shapeless: self.shapeless,
            costly: hits(self.costly, id, 203),
        }
    }

    fn bent_time(&self, now: Moment, wait: Duration) -> Duration {
        let wait = wait.saturating_sub(self.shorter);
        let Some(multiple) = self.multiple else { return whole_seconds(wait) };
        let (now, every) = (u128::from(now.as_nanos()), multiple.as_nanos());
        let rest = u64::try_from(every - now % every).unwrap_or(u64::MAX);
        whole_seconds(Duration::from_nanos(rest))
    }

    /// The time the provider is told, of what is left of the `whole`.
    pub const fn deadline(&self, left: Duration, whole: Duration) -> Duration {
        if self.fresh_deadline { whole } else { left }
    }
}
