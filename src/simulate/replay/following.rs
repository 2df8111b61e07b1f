use std::sync::{Arc, Mutex, PoisonError};

use super::{Agreement, Replay};
use crate::admission;
use crate::measure::Closed;
use crate::observe::{Outcome, Record};
use crate::plan::Plan;

/// A replay that is shown what ends in a run, wherever that is seen; all copies are one.
#[derive(Debug, Clone)]
pub struct Following(Arc<Mutex<Option<Replay>>>);

impl Following {
    /// Follows a run of `plan` with `policy`, from its epoch on.
    pub fn new(plan: &Plan, policy: &admission::Config) -> Self {
        Self(Arc::new(Mutex::new(Some(Replay::new(plan, policy)))))
    }

    /// Follows a run of `plan` with the policy its gateway declares, its faults left out; `None` where it declares none, or
    /// where several replicas decide, each by what it has seen itself.
    pub fn of(plan: &Plan) -> Option<Self> {
        let policy = plan.policy().filter(|policy| policy.replicas <= 1)?;
        Some(Self::new(plan, &policy.declared()))
    }

    /// Is shown something that has ended. After [`Self::finish`] it makes no difference.
    pub fn see(&self, closed: Closed<'_>) {
        if let Closed::Request(record) = closed
            && is_own(record)
            && let Some(replay) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            replay.see(record);
        }
    }

    /// The run is over. A second time there is nothing left.
    pub fn finish(&self) -> Agreement {
        let replay = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        replay.map(Replay::finish).unwrap_or_default()
    }
}

/// Whether an attempt was decided about by itself. The replay knows nothing of keys: a copy that got the answer of its
/// original took no place, and one whose original had been refused was work like any other.
const fn is_own(record: &Record) -> bool {
    !record.attempt.is_copy()
        || record.at_provider.is_some()
        || matches!(record.outcome, Outcome::Shed | Outcome::Throttled)
}
