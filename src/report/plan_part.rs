use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{TracePart, unusual};
use crate::admission::Config;
use crate::plan::{CheckOverride, Limit, Plan, TargetKind, Tolerance};
use crate::units::plain_duration;
use crate::workload::Late;

/// What of a plan tells two runs apart. Headers and environments stay out: they may hold secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlanPart {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// What random numbers are drawn from.
    pub seed: u64,
    /// How the event is scaled: `1`, `1/2`.
    pub scale: String,
    /// The arrival process.
    pub arrivals: String,
    /// The trace it plays; left out where it plays none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TracePart>,
    /// The phases as they were run.
    pub phases: Vec<PhasePart>,
    /// The classes of requests.
    pub requests: Vec<RequestPart>,
    /// The provider as it was run.
    pub provider: ProviderPart,
    /// What was tried.
    pub target: TargetPart,
    /// One in so many refused callers is a probe; 0 for none.
    pub probes_every: u32,
    /// How long after the announced instant a probe returns.
    pub probes_late_by_s: f64,
    /// Later than this a request was not sent; `null` if it was sent however late.
    #[serde(default)]
    pub drop_after_s: Option<f64>,
    /// What else of the load, the requests, the provider and what is expected is not as usual, by the path of its key.
    #[serde(default)]
    pub unusual: BTreeMap<String, String>,
    /// How refusals were told.
    #[serde(default)]
    pub refusal: RefusalPart,
    /// What the plan changes of checks, by id.
    #[serde(default)]
    pub checks: BTreeMap<String, CheckSetting>,
    /// How much a measure may change from build to build, by name.
    #[serde(default)]
    pub diff: BTreeMap<String, TolerancePart>,
}

/// How refusals were told.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RefusalPart {
    /// Statuses of a refusal for scarcity.
    pub shed: Vec<u16>,
    /// Statuses of a refusal for entitlement.
    pub throttled: Vec<u16>,
    /// A refusal that came later than this was admitted first.
    pub fast_within_s: f64,
}

/// What a plan changes of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CheckSetting {
    /// Another limit, as the plan writes it.
    pub limit: Option<String>,
    /// True if a lack of data is all right.
    pub allow_no_data: bool,
    /// True if it is not judged.
    pub off: bool,
}

/// How much a measure may change; neither where it is not judged.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TolerancePart {
    /// This part of the old value.
    pub share: Option<f64>,
    /// This much, in the unit of the measure.
    pub amount: Option<f64>,
}

/// A phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhasePart {
    /// Its name.
    pub name: String,
    /// Callers a minute.
    pub rate_per_min: f64,
    /// How long.
    pub lasts_s: f64,
    /// Whether it is part of the event.
    pub event: bool,
}

/// A class of requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestPart {
    /// Its name.
    pub name: String,
    /// Its part of all arrivals, relative to the others.
    pub weight: u32,
    /// On whose behalf.
    pub tenant: String,
    /// 0 is the most important.
    pub tier: u8,
    /// Tokens of the prompt; the mean where they differ.
    pub prompt_tokens: u64,
    /// Its bytes; of one of mean length.
    pub prompt_bytes: u64,
    /// The most tokens of an answer.
    pub max_tokens: u64,
    /// Those it has; the mean where they differ.
    pub output_tokens: u64,
    /// How long an answer is of use.
    pub deadline_s: f64,
    /// How long the caller waits.
    pub patience_s: f64,
}

/// The provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderPart {
    /// Its quota.
    pub tokens_per_min: f64,
    /// How much of it may be used at once.
    pub burst_s: f64,
    /// Until the first token.
    pub first_token_s: f64,
    /// For each token.
    pub per_token_s: f64,
}

/// What was tried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetPart {
    /// `embedded`, `spawn` or `url`.
    pub kind: String,
    /// What it decides by, or is believed to.
    pub policy: Option<Value>,
    /// What was made wrong with it on purpose, each with its amount; left out where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

impl PlanPart {
    /// Of the plan as it was run.
    pub(super) fn of(plan: &Plan) -> Self {
        let phases = plan.load.phases.iter().map(|phase| PhasePart {
            name: phase.name.clone(),
            rate_per_min: phase.rate.per_min_f64(),
            lasts_s: phase.lasts.as_secs_f64(),
            event: phase.event,
        });
        let requests = plan.requests.classes().iter().map(|class| RequestPart {
            name: class.name.clone(),
            weight: class.weight,
            tenant: class.tenant.clone(),
            tier: class.tier,
            prompt_tokens: class.prompt.mean().round() as u64,
            prompt_bytes: class.bytes.get(),
            max_tokens: class.max_tokens.get(),
            output_tokens: class.output.mean().round() as u64,
            deadline_s: class.deadline.as_secs_f64(),
            patience_s: class.patience.as_secs_f64(),
        });
        let kind = match plan.target.kind {
            TargetKind::Embedded(_) => "embedded",
            TargetKind::Spawn(_) => "spawn",
            TargetKind::Url { .. } => "url",
        };
        Self {
            name: plan.name.clone(),
            about: plan.about.clone(),
            seed: plan.load.seed,
            scale: plan.scale.to_string(),
            arrivals: plan.load.arrivals.name().to_owned(),
            trace: TracePart::of(plan),
            phases: phases.collect(),
            requests: requests.collect(),
            provider: ProviderPart {
                tokens_per_min: plan.provider.quota.tokens.per_min_f64(),
                burst_s: plan.provider.quota.burst().as_secs_f64(),
                first_token_s: plan.provider.service.first_token.as_secs_f64(),
                per_token_s: plan.provider.service.per_token.as_secs_f64(),
            },
            target: TargetPart {
                kind: kind.to_owned(),
                policy: plan.policy().map(Config::to_json),
                faults: plan.policy().map(faults_of).unwrap_or_default(),
            },
            probes_every: plan.probes.every,
            probes_late_by_s: plan.probes.late_by.as_secs_f64(),
            drop_after_s: match plan.load.late {
                Late::Send => None,
                Late::DropAfter(span) => Some(span.as_secs_f64()),
            },
            unusual: unusual::keys(plan),
            refusal: RefusalPart {
                shed: plan.expect.refusal.shed.clone(),
                throttled: plan.expect.refusal.throttled.clone(),
                fast_within_s: plan.expect.refusal.fast_within.as_secs_f64(),
            },
            checks: plan.checks.iter().map(|(id, change)| (id.clone(), CheckSetting::of(change))).collect(),
            diff: plan.diff.iter().map(|(name, most)| (name.clone(), TolerancePart::of(*most))).collect(),
        }
    }
}

fn faults_of(policy: &Config) -> Vec<String> {
    policy.faults.iter().map(ToString::to_string).collect()
}

impl CheckSetting {
    fn of(change: &CheckOverride) -> Self {
        let limit = change.limit.map(|limit| match limit {
            Limit::Time(span) => plain_duration(span),
            Limit::Part(share) => share.to_string().replace(' ', ""),
            Limit::Size(bytes) => format!("{}B", bytes.get()),
            Limit::Count(count) => count.to_string(),
        });
        Self { limit, allow_no_data: change.allow_no_data, off: change.off }
    }
}

impl TolerancePart {
    fn of(tolerance: Tolerance) -> Self {
        match tolerance {
            Tolerance::Share(share) => Self { share: Some(share), amount: None },
            Tolerance::Amount(amount) => Self { share: None, amount: Some(amount) },
            Tolerance::Off => Self::default(),
        }
    }

    /// What it says, as a plan has it.
    pub(super) fn get(self) -> Tolerance {
        match (self.share, self.amount) {
            (Some(share), _) => Tolerance::Share(share),
            (None, Some(amount)) => Tolerance::Amount(amount),
            (None, None) => Tolerance::Off,
        }
    }
}
