//! What can be wrong with a gateway on purpose: realistic bugs, so that every check can be shown to see its own.
//!
//! A fault bends what a healthy machine is made from ([`Bent`]): its policy, what reaches it ([`Habits`]), or how its
//! refusals are told ([`Telling`]). The policy a plan declares stays what it is: forecasts, replays and checks compare
//! with that one. Which requests a share of them hits is drawn from their ids, so that a run can be repeated.
//!
//! What only an HTTP shell can do wrong stands here by name and is done there.
//!
//! To add one: a constant in a file of this folder that says what it bends, and its entry in [`ALL`].

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::Config;
use crate::units::{Bytes, Read, Reader, Share, plain_duration};

mod bounds;
mod habits;
mod rules;
mod shell;
mod telling;

pub use habits::Habits;
pub use telling::{Telling, Told, Wait};

/// Every fault a plan can name, sorted.
pub const ALL: &[Kind] = &[
    habits::ABANDONED_WORK,
    telling::CONSTANT_RETRY_AFTER,
    telling::COSTLY_REFUSAL,
    shell::CRASH,
    telling::DEADLINE_RESET,
    habits::DUPLICATE_CALLS,
    habits::EARLY_RELEASE,
    bounds::EARLY_SHEDDING,
    rules::GREEDY_TENANT,
    bounds::LATE_SHEDDING,
    shell::LEAK_PER_REQUEST,
    habits::LEAKED_HOLDS,
    telling::MALFORMED_RETRY_AFTER,
    telling::MISSING_RETRY_AFTER,
    telling::MIXED_REFUSALS,
    rules::NO_RECHECK,
    rules::PER_REPLICA_QUOTAS,
    telling::SHORT_RETRY_AFTER,
    shell::SLOW_REFUSAL,
    telling::SYNCHRONIZED_RETRY_AFTER,
    habits::TIER_INVERSION,
    bounds::UNBOUNDED_QUEUE,
    rules::UNLIMITED_RETRIES,
    telling::UNMARKED_LONG_WAITS,
    telling::WRONG_ERROR_SHAPE,
];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`; it names the usual amount.
    pub about: &'static str,
    /// How much of it there is where a plan does not say, and with that what an amount is.
    pub usual: Amount,
    /// Whether only an HTTP shell does it: virtual time does not show it.
    pub live_only: bool,
    bend: fn(&mut Bent, Amount),
}

/// How much of a fault there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// It is there or not.
    Whole,
    /// A part of what it concerns; more than nothing.
    Part(Share),
    /// A time; more than nothing.
    Time(Duration),
    /// A size; more than nothing.
    Size(Bytes),
    /// So many; at least one.
    Count(u64),
}

/// A fault a gateway has.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// What kind.
    pub kind: &'static Kind,
    /// How much.
    pub amount: Amount,
}

/// The faults of a gateway, each kind at most once; usually none.
#[derive(Debug, Clone, Default)]
pub struct List(Vec<Fault>);

/// What a machine is made from once its faults have bent it.
#[derive(Debug, Clone)]
pub struct Bent {
    /// The policy it really has.
    pub policy: Config,
    /// What it does with events.
    pub habits: Habits,
    /// How its refusals are told.
    pub telling: Telling,
    /// Whether each replica believes that it has all the budgets.
    pub whole_quotas: bool,
}

impl List {
    /// True if nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.0.iter()
    }

    /// How much there is of the fault of that name; `None` if there is none.
    pub fn amount(&self, name: &str) -> Option<Amount> {
        self.0.iter().find(|fault| fault.kind.name == name).map(|fault| fault.amount)
    }

    /// The list in the form [`Read::read`] reads.
    pub fn to_json(&self) -> Value {
        let one = |fault: &Fault| match fault.amount {
            Amount::Whole => json!(fault.kind.name),
            amount => json!({ fault.kind.name: amount.to_string() }),
        };
        self.0.iter().map(one).collect()
    }
}

impl Config {
    /// The policy without its faults: what is declared, and what forecasts and replays go by.
    pub fn declared(&self) -> Self {
        Self { faults: List::default(), ..self.clone() }
    }

    /// Whether nobody is served whose caller has left: it is noticed, and no fault serves them all the same.
    pub fn forgets_leavers(&self) -> bool {
        self.cancel && self.faults.amount(habits::ABANDONED_WORK.name).is_none()
    }

    /// What a machine of this configuration is made from.
    pub fn bent(&self) -> Bent {
        let mut bent = Bent {
            policy: self.declared(),
            habits: Habits::default(),
            telling: Telling::of(self),
            whole_quotas: false,
        };
        for Fault { kind, amount } in self.faults.iter() {
            (kind.bend)(&mut bent, *amount);
        }
        bent
    }
}

impl Amount {
    /// The part it is; all where it is no part.
    fn part(self) -> Share {
        match self {
            Self::Part(part) => part,
            Self::Whole | Self::Time(_) | Self::Size(_) | Self::Count(_) => ALL_OF_THEM,
        }
    }

    /// The time it is; none where it is no time.
    pub const fn time(self) -> Duration {
        match self {
            Self::Time(span) => span,
            Self::Whole | Self::Part(_) | Self::Size(_) | Self::Count(_) => Duration::ZERO,
        }
    }

    /// Reads an amount of the form of `self`.
    fn read_like(self, reader: &Reader<'_>) -> Option<Self> {
        let amount = match self {
            Self::Whole => {
                reader.fault("this fault is there or not: write its name alone");
                return None;
            }
            Self::Part(_) => Self::Part(Share::read(reader)?),
            Self::Time(_) => Self::Time(Duration::read(reader)?),
            Self::Size(_) => Self::Size(Bytes::read(reader)?),
            Self::Count(_) => Self::Count(u64::read(reader)?),
        };
        let nothing = match amount {
            Self::Whole => false,
            Self::Part(part) => part.get() <= 0.0,
            Self::Time(span) => span.is_zero(),
            Self::Size(size) => size == Bytes::ZERO,
            Self::Count(count) => count == 0,
        };
        if nothing {
            reader.fault(format!("a fault of nothing changes nothing: leave it out, or write {self}"));
            return None;
        }
        Some(amount)
    }
}

/// As a plan writes it.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => f.write_str("whole"),
            // a float is written so that it is read back as itself
            Self::Part(part) if (part.get() * 100.0).fract() == 0.0 => write!(f, "{}%", part.get() * 100.0),
            Self::Part(part) => write!(f, "{}", part.get()),
            Self::Time(span) if span.subsec_nanos() == 0 => write!(f, "{}s", span.as_secs()),
            Self::Time(span) => f.write_str(&plain_duration(*span)),
            Self::Size(size) if size.get().is_multiple_of(1_000) => write!(f, "{}kB", size.get() / 1_000),
            Self::Size(size) => write!(f, "{}B", size.get()),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.amount {
            Amount::Whole => f.write_str(self.kind.name),
            amount => write!(f, "{} ({amount})", self.kind.name),
        }
    }
}

impl Read for Fault {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("fault", &names)?;
        let kind = ALL.iter().find(|kind| kind.name == name)?;
        let amount = inner.map_or(Some(kind.usual), |inner| kind.usual.read_like(&inner))?;
        Some(Self { kind, amount })
    }
}

impl Read for List {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut faults: Vec<Fault> = Vec::new();
        let mut whole = true;
        for item in reader.list()? {
            let Some(fault) = Fault::read(&item) else {
                whole = false;
                continue;
            };
            if faults.iter().any(|other| other.kind.name == fault.kind.name) {
                item.fault(format!("`{}` stands here twice", fault.kind.name));
                whole = false;
            }
            faults.push(fault);
        }
        whole.then_some(Self(faults))
    }
}

const ALL_OF_THEM: Share = part(100);

/// So many hundredths.
const fn part(percent: u32) -> Share {
    match Share::of_percent(percent) {
        Some(share) => share,
        None => unreachable!(),
    }
}

/// Whether a share of requests hits the one whose number is `id`; `salt` keeps two faults apart.
fn hits(share: Option<Share>, id: super::Id, salt: u64) -> bool {
    share.is_some_and(|share| share.get() >= 1.0 || super::draw(id.0, salt) < share.get())
}

#[cfg(test)]
mod tests;
