use serde::{Deserialize, Serialize};

use super::Forecast;
use super::levers::{self, Goal, Needed, Pulled};
use crate::plan::Plan;

/// The version of the form `predict --format json` has.
pub const SCHEMA: &str = "tenfold.forecast/1";

/// All that arithmetic says of a plan: the whole event, its rehearsal, and what could be done about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// [`SCHEMA`].
    pub schema: String,
    /// The plan's name.
    pub plan: String,
    /// How the rehearsal is scaled: `1`, `1/2`.
    pub scale: String,
    /// The event as written.
    pub event: Forecast,
    /// What a rehearsal shall show; the same where the plan shrinks nothing.
    pub rehearsal: Forecast,
    /// The plan's levers, each on what the ones before it left.
    pub levers: Vec<Pulled>,
    /// What a goal takes of a lever; empty without a goal.
    pub until: Vec<Needed>,
}

impl Prediction {
    /// Of `plan` as it is written, not yet shrunk; `until` a goal and the lever to reach it by, if one is named.
    ///
    /// # Errors
    ///
    /// The lever's name is neither one of the plan's nor a kind.
    pub fn of(plan: &Plan, until: Option<(&Goal, Option<&str>)>) -> Result<Self, String> {
        let small = plan.rehearsed();
        let until = match until {
            Some((goal, lever)) => levers::needed(plan, goal, lever)?,
            None => Vec::new(),
        };
        Ok(Self {
            schema: SCHEMA.to_owned(),
            plan: plan.name.clone(),
            scale: small.scale.to_string(),
            event: Forecast::of(plan),
            rehearsal: Forecast::of(&small),
            levers: levers::pulled(plan),
            until,
        })
    }
}
