//! What is held against a run: one check a file, each with its limit, its sentence and its evidence.
//!
//! A check looks at a [`Scene`] and gives a [`Finding`]. One that applies and has no samples says so
//! ([`Verdict::NoData`]); it never passes. The run itself is judged first ([`Validity`]): where the fault is ours, no
//! check is shown as passed.
//!
//! To add a check: one file, and two lines here (`mod x;` and an entry of [`ALL`]).

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use crate::forecast::Forecast;
use crate::measure::Measures;
use crate::plan::{CheckOverride, Limit, Plan};
use crate::simulate::Agreement;
use crate::units::{Bytes, show_duration};
use crate::workload::{Class, OnRefusal};

mod accounting;
mod backlog_drain;
mod deadline_propagated;
mod duplicates_single_call;
mod fairness_tokens;
mod finding;
mod goodput_floor;
mod kendall;
mod limits_separate;
mod memory_ceiling;
mod memory_plateau;
mod on_the_way;
mod predicted;
mod quiet;
mod quota_respected;
mod recovery_complete;
mod retries_bounded;
mod retry_after_calibrated;
mod retry_after_follows_state;
mod retry_after_honoured;
mod retry_after_no_echo;
mod retry_after_parseable;
mod retry_after_present;
mod retry_after_usable;
mod shedding_boundary;
mod shedding_fast;
mod shedding_free;
mod shedding_onset;
mod shedding_shape;
mod target_alive;
mod tiers_order;
mod validity;
mod verdict;
mod waste_none;
pub mod words;

pub use finding::{Draft, Finding, Verdict};
pub use validity::Validity;
pub use verdict::{Judgement, RunVerdict};

/// Every check, in the order reports show them: accounting, shedding, Retry-After, memory, drain, goodput, quiet.
pub const ALL: &[Kind] = &[
    accounting::KIND,
    target_alive::KIND,
    shedding_onset::KIND,
    shedding_boundary::KIND,
    shedding_fast::KIND,
    shedding_free::KIND,
    shedding_shape::KIND,
    retry_after_present::KIND,
    retry_after_parseable::KIND,
    retry_after_follows_state::KIND,
    retry_after_calibrated::KIND,
    retry_after_honoured::KIND,
    retry_after_no_echo::KIND,
    retry_after_usable::KIND,
    memory_ceiling::KIND,
    memory_plateau::KIND,
    backlog_drain::KIND,
    recovery_complete::KIND,
    goodput_floor::KIND,
    waste_none::KIND,
    quota_respected::KIND,
    deadline_propagated::KIND,
    retries_bounded::KIND,
    duplicates_single_call::KIND,
    limits_separate::KIND,
    fairness_tokens::KIND,
    tiers_order::KIND,
    quiet::KIND,
];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its id, stable.
    pub id: &'static str,
    /// One line for `tenfold list`: it holds when …
    pub about: &'static str,
    /// The limit it is held to, which a plan may change.
    pub limit: Standard,
    /// The unit of what is measured and expected.
    pub unit: &'static str,
    judge: fn(&Scene<'_>) -> Finding,
}

/// The limit of a check where the plan names none, and so the form a plan's limit has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standard {
    /// It has none: it holds or it does not.
    Nothing,
    /// A time.
    Time(Duration),
    /// A share.
    Part(f64),
    /// A size that the forecast gives.
    Size,
    /// A size.
    SizeOf(Bytes),
}

/// The limit as a plan would write it.
impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("none"),
            Self::Time(span) => f.write_str(&show_duration(*span)),
            Self::Part(part) => f.write_str(&words::percent(*part)),
            Self::Size => f.write_str("the forecast's"),
            Self::SizeOf(bytes) => write!(f, "{bytes}"),
        }
    }
}

/// What a check may look at.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The plan as it was run.
    pub plan: &'a Plan,
    /// The forecast for that plan.
    pub forecast: &'a Forecast,
    /// What the run came to.
    pub measures: &'a Measures,
    /// How the run's verdicts agree with those of the declared policy, if they were compared.
    pub agreement: Option<&'a Agreement>,
    /// True of a run with sockets, false of one in virtual time.
    pub live: bool,
    /// What the plan changes of this check.
    setting: Option<&'a CheckOverride>,
}

impl<'a> Scene<'a> {
    /// A run with sockets.
    pub const fn live(plan: &'a Plan, forecast: &'a Forecast, measures: &'a Measures) -> Self {
        Self { plan, forecast, measures, agreement: None, live: true, setting: None }
    }

    /// A run in virtual time.
    pub const fn simulated(plan: &'a Plan, forecast: &'a Forecast, measures: &'a Measures) -> Self {
        Self { live: false, ..Self::live(plan, forecast, measures) }
    }

    /// The same, and its verdicts were held against the declared policy's.
    #[must_use]
    pub const fn beside(self, agreement: Option<&'a Agreement>) -> Self {
        Self { agreement, ..self }
    }
}

impl Kind {
    /// Judges this check, unless the plan turned it off.
    pub fn judge(&self, scene: &Scene<'_>) -> Finding {
        let setting = scene.plan.checks.get(self.id);
        if setting.is_some_and(|setting| setting.off) {
            return self.draft("it is turned off").not_applicable("the plan turns it off");
        }
        let mut finding = (self.judge)(&Scene { setting, ..*scene });
        finding.tolerated = setting.is_some_and(|s| s.allow_no_data) && finding.verdict == Verdict::NoData;
        finding
    }

    fn draft(&self, promised: impl Into<String>) -> Draft {
        Draft { check: self.id, unit: self.unit, promised: promised.into() }
    }
}

impl Scene<'_> {
    fn limit(&self) -> Option<Limit> {
        self.setting.and_then(|setting| setting.limit)
    }

    /// The limit as a time.
    fn time(&self, kind: &Kind) -> Duration {
        match (self.limit(), kind.limit) {
            (Some(Limit::Time(span)), _) | (_, Standard::Time(span)) => span,
            _ => Duration::ZERO,
        }
    }

    /// The limit as a share.
    fn part(&self, kind: &Kind) -> f64 {
        match (self.limit(), kind.limit) {
            (Some(Limit::Part(share)), _) => share.get(),
            (_, Standard::Part(share)) => share,
            _ => 0.0,
        }
    }

    /// The limit as a size: the plan's, or the check's own.
    fn size_of(&self, kind: &Kind) -> Bytes {
        match (self.limit(), kind.limit) {
            (Some(Limit::Size(bytes)), _) | (_, Standard::SizeOf(bytes)) => bytes,
            _ => Bytes::new(0),
        }
    }

    /// The limit as a size, if the plan names one.
    fn size(&self) -> Option<Bytes> {
        match self.limit() {
            Some(Limit::Size(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The draft, where waits were announced to a crowd; if not, what is to be said instead.
    fn told_a_crowd(&self, draft: Draft) -> Result<Draft, Box<Finding>> {
        let refusals = &self.measures.refusals;
        if refusals.refused == 0 {
            return Err(Box::new(self.nobody_refused(draft)));
        }
        if refusals.announced.count() == 0 {
            return Err(Box::new(draft.not_applicable("no refusal announced a time to wait")));
        }
        match self.no_crowd() {
            Some(why) => Err(Box::new(draft.not_applicable(why))),
            None => Ok(draft),
        }
    }

    /// Why a crowd of refused callers cannot be judged: too few of them were forecast.
    fn no_crowd(&self) -> Option<String> {
        /// Fewer say nothing about how they are spread.
        const LEAST: f64 = 20.0;
        let forecast = self.forecast;
        let refused = forecast.shed_share * forecast.basis.offered * forecast.basis.lasts.as_secs_f64();
        (refused < LEAST)
            .then(|| format!("{} refusals were forecast: too few to judge", words::number(refused)))
    }

    /// Whether no caller of the plan comes back as told: all of them give up, or try again whatever they are told.
    fn nobody_heeds(&self) -> bool {
        let heeds = |class: &Class| match class.on_refusal {
            OnRefusal::GiveUp => self.plan.probes.every > 0,
            OnRefusal::Retry(_) => !class.on_refusal.heeds().is_zero(),
        };
        !self.plan.requests.classes().iter().any(|class| class.weight > 0 && heeds(class))
    }

    /// What is to be said where nobody was refused: nothing to judge on a quiet day, missing data in an overload.
    fn nobody_refused(&self, draft: Draft) -> Finding {
        if self.forecast.overload() {
            draft.no_data("nobody was refused, though more was offered than can be served")
        } else {
            draft.not_applicable("nobody was refused, and no overload was forecast")
        }
    }
}

/// The check with this id.
pub fn find(id: &str) -> Option<&'static Kind> {
    ALL.iter().find(|kind| kind.id == id)
}

/// What is wrong with a plan's `checks` section: ids that are not known, limits of another form. One message each.
pub fn faults(checks: &BTreeMap<String, CheckOverride>) -> Vec<String> {
    let known: Vec<_> = ALL.iter().map(|kind| kind.id).collect();
    checks
        .iter()
        .filter_map(|(id, setting)| {
            let Some(kind) = find(id) else {
                return Some(match crate::units::nearest(id, &known) {
                    Some(near) => format!("checks.{id}: no such check; did you mean `{near}`?"),
                    None => format!("checks.{id}: no such check; known: {}", known.join(", ")),
                });
            };
            let wanted = match (setting.limit?, kind.limit) {
                (Limit::Time(_), Standard::Time(_)) | (Limit::Part(_), Standard::Part(_)) => return None,
                (Limit::Size(_), Standard::Size | Standard::SizeOf(_)) => return None,
                (_, Standard::Nothing) => "it has no limit: leave `limit` out",
                (_, Standard::Time(_)) => "its limit is a time, such as 20ms",
                (_, Standard::Part(_)) => "its limit is a share, such as 90%",
                (_, Standard::Size | Standard::SizeOf(_)) => "its limit is a size, such as 64MiB",
            };
            Some(format!("checks.{id}.limit: {wanted}"))
        })
        .collect()
}

#[cfg(test)]
mod tests;
