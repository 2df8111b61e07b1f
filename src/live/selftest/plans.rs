//! The plan of a steady load, for measurements of ourselves.

use std::time::Duration;

use crate::live::LiveError;
use crate::plan::{self, Http, Plan, SenderKind, TargetKind};
use crate::provider::Engine;
use crate::units::Rate;

/// One class of small requests at an even rate, and a provider that refuses nobody.
const STEADY: &str = "\
tenfold: 1
name: selftest
load: { arrivals: constant, phases: [{ name: steady, rate: 1/s, for: 1s }] }
requests: [{ name: ask, prompt: { tokens: 8 }, max_tokens: 4, deadline: 60s }]
provider: { quota: { tokens_per_minute: 10_000_000_000, burst: 10s }, service: { first_token: 1ms, per_token: 0ms } }
target: { url: 'http://127.0.0.1:1' }
max_outstanding: 100_000
";

/// How requests of such a plan travel, and what answers them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) sender: SenderKind,
    pub(super) http: Http,
    pub(super) engine: Engine,
}

/// `rate` requests a second to `url` for `lasts`, sent by this `way`.
pub(super) fn steady(url: &str, rate: u32, lasts: Duration, way: Way) -> Result<Plan, LiveError> {
    let unusable = |why: String| LiveError::Request(format!("the selftest's own plan: {why}"));
    let loaded = plan::parse(STEADY, &[], &|_| None).map_err(|faults| unusable(format!("{faults:?}")))?;
    let mut plan = loaded.plan;
    let text = format!("{rate}/s");
    for phase in &mut plan.load.phases {
        phase.rate = Rate::parse(&text).map_err(unusable)?;
        phase.lasts = lasts;
    }
    (plan.target.request.transport.sender, plan.target.request.transport.http) = (way.sender, way.http);
    plan.provider.engine = way.engine;
    plan.target.kind = TargetKind::Url { url: url.to_owned(), policy: None };
    Ok(plan)
}
