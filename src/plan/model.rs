use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::{Lever, Tolerance, Variant};
use crate::admission;
use crate::provider::{self, wire::DeadlineForm};
use crate::units::{Bytes, Ratio, Series, Share, Tokens};
use crate::workload::{Load, Mix, Probes};

/// What a request may be late by at any rate: at thousands a second one wake-up sends several, and an answer takes longer
/// than that anyway.
pub const LEAST_LAG: Duration = Duration::from_millis(2);

/// A plan: everything a rehearsal is a function of. Valid by construction; see [`super::parse()`].
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its name; letters, digits, `-`, `_` and `.`, since a folder is named after it.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// The offered load.
    pub load: Load,
    /// The classes of requests.
    pub requests: Mix,
    /// The provider.
    pub provider: provider::Config,
    /// What is tried.
    pub target: Target,
    /// How the event is shrunk; `None` once it has been.
    pub rehearsal: Option<Rehearsal>,
    /// The scale the rates already have: one for the whole event, the rehearsal's after [`Plan::rehearsed`].
    pub scale: Ratio,
    /// Which refused callers come back as told.
    pub probes: Probes,
    /// What answers should look like.
    pub expect: Expect,
    /// When the run itself is no good.
    pub validity: Validity,
    /// When the run is ended early.
    pub abort_when: Vec<AbortRule>,
    /// The most requests that may be open at once; beyond it they are unsent.
    pub max_outstanding: u32,
    /// Overrides of checks, by id.
    pub checks: BTreeMap<String, CheckOverride>,
    /// Named changes of the plan, for simulations.
    pub variants: Vec<Variant>,
    /// What could be done about the event; for the forecast.
    pub levers: Vec<Lever>,
    /// How much a measure may change from one build to another, by name.
    pub diff: BTreeMap<String, Tolerance>,
}

/// What is tried, and how it is called.
#[derive(Debug, Clone)]
pub struct Target {
    /// What stands behind the address.
    pub kind: TargetKind,
    /// How it is called.
    pub request: TargetRequest,
    /// How the deadline travels.
    pub deadline: DeadlineHeader,
    /// How memory is read, and what it may reach, where the plan says so.
    pub memory: Option<MemorySource>,
    /// What the target says of itself, if it does.
    pub metrics: Option<Metrics>,
}

/// The three kinds of target.
#[derive(Debug, Clone)]
pub enum TargetKind {
    /// The reference gateway as a child process.
    Embedded(Embedded),
    /// A command that is started for the run and ended with it.
    Spawn(Spawn),
    /// Something already running.
    Url {
        /// Its address, `http://host:port` or `https://…`, without a path.
        url: String,
        /// What it is believed to do.
        policy: Option<admission::Config>,
    },
}

/// The reference gateway.
#[derive(Debug, Clone)]
pub struct Embedded {
    /// What it decides by.
    pub admission: admission::Config,
    /// True if the plan itself set the budgets; otherwise they follow the provider's quota.
    pub own_budgets: bool,
}

/// A command to start.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// The URL that answers when it is ready; its port 0 stands for one that is free when the run begins.
    pub ready: String,
    /// The base URL to send requests to; by default the scheme and authority of `ready`.
    pub url: String,
    /// What its configuration is made from, if it needs one.
    pub config: Option<Template>,
    /// How long it may take until it answers.
    pub ready_within: Duration,
    /// Its environment, besides ours and what [`super::spawn::VARIABLES`] tells it.
    pub env: BTreeMap<String, String>,
    /// What it is believed to do.
    pub policy: Option<admission::Config>,
}

/// A configuration in which what is known only when the run begins stands as `${TENFOLD_…}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The file's name in the plan.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// How the target is called.
#[derive(Debug, Clone)]
pub struct TargetRequest {
    /// The path, from `/`.
    pub path: String,
    /// The model asked for.
    pub model: String,
    /// Headers added to each request; their values may be secrets and never reach a report.
    pub headers: BTreeMap<String, String>,
    /// Certificates to trust besides the system's, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Whether any certificate is taken.
    pub insecure: bool,
    /// The path of the ping, from `/`.
    pub health: String,
    /// How requests travel.
    pub transport: Transport,
}

/// How requests travel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Transport {
    /// The protocol.
    pub http: Http,
    /// What writes and reads.
    pub sender: SenderKind,
    /// Addresses of this machine that connections come from, in turn; none: the system's choice.
    pub source_addresses: Vec<IpAddr>,
    /// When the target's name is looked up.
    pub lookup: Lookup,
}

/// When the target's name is looked up. Connections that stand stay where they are; new ones take all its addresses in
/// turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// Once, before the load: its addresses are pinned.
    Once,
    /// Again at this interval.
    Every(Duration),
}

impl Default for Lookup {
    /// Every half minute.
    fn default() -> Self {
        Self::Every(Duration::from_secs(30))
    }
}

/// The protocol requests travel by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Http {
    /// HTTP/1.1: a connection for each open request.
    #[default]
    One,
    /// HTTP/2, by prior knowledge or, over TLS, by ALPN.
    Two {
        /// The most connections; `None`: as many as the open requests can need.
        connections: Option<u32>,
        /// The most requests open at once on each; the server's own limit holds besides.
        streams: u32,
    },
}

/// What writes requests and reads answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SenderKind {
    /// reqwest: what most callers of a gateway are built on.
    #[default]
    Reqwest,
    /// hyper itself, with a pool of our own: less time and memory a request.
    Hyper,
}

impl SenderKind {
    /// Their names in a plan.
    pub const ALL: [(&'static str, Self); 2] =
        [(Self::Hyper.name(), Self::Hyper), (Self::Reqwest.name(), Self::Reqwest)];

    /// Its name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hyper => "hyper",
            Self::Reqwest => "reqwest",
        }
    }
}

/// How the caller's deadline travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlineHeader {
    /// The header's name, in lower case.
    pub header: String,
    /// How it is written.
    pub form: DeadlineForm,
}

/// Where the target's memory is read, and what it is held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySource {
    /// Where.
    pub from: MemoryFrom,
    /// What it may reach.
    pub ceiling: Option<Bytes>,
}

/// A way to read memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryFrom {
    /// Of the process tenfold started.
    Own,
    /// Of a process and all below it.
    Pid(u32),
    /// Of a control group, by the folder it has in the file system.
    Cgroup(PathBuf),
    /// As the target says, or something that watches it.
    Metric(Metric),
}

/// A metric on a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// The page.
    pub page: Page,
    /// Which series on it.
    pub series: Series,
}

/// Where metrics are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    /// A path of the target itself.
    Path(String),
    /// Another address; port 0 stands for one that is free when the run begins and that a spawned target is told.
    Url(String),
}

/// What the target says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// The page it stands on.
    pub page: Page,
    /// The requests that wait in it.
    pub queue_depth: Option<Series>,
    /// Its memory, in bytes.
    pub memory: Option<Series>,
}

/// How an event is shrunk to a rehearsal.
#[derive(Debug, Clone)]
pub struct Rehearsal {
    /// Offered rates, quotas and budgets times this; deadlines and service times stay.
    pub scale: Ratio,
    /// Lengths of phases, by name; the others keep theirs.
    pub phases: BTreeMap<String, Duration>,
}

impl Rehearsal {
    /// Where a time of the whole run of `load` lies in the rehearsed one: as far into its phase, in proportion. What lies
    /// after the last phase stays so long after it.
    fn time_of(&self, time: Duration, load: &Load) -> Duration {
        let (mut whole, mut short) = (Duration::ZERO, Duration::ZERO);
        for phase in &load.phases {
            let lasts = self.phases.get(&phase.name).copied().unwrap_or(phase.lasts);
            if time < whole + phase.lasts {
                let part = (time - whole).as_secs_f64() / phase.lasts.as_secs_f64();
                return short + lasts.mul_f64(part);
            }
            (whole, short) = (whole + phase.lasts, short + lasts);
        }
        short.saturating_add(time.saturating_sub(whole))
    }
}

/// What answers should look like.
#[derive(Debug, Clone)]
pub struct Expect {
    /// Refusals.
    pub refusal: Refusal,
}

/// The designed form of a refusal.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Statuses of a refusal for scarcity.
    pub shed: Vec<u16>,
    /// Statuses of a refusal for entitlement.
    pub throttled: Vec<u16>,
    /// A refusal that comes later than this was admitted first: it is expired, unless it names another reason.
    pub fast_within: Duration,
    /// Statuses that come instead of the designed ones: refusals all the same, and not in the designed form.
    pub instead: Vec<u16>,
    /// Headers that mark a refusal, by lower-case name: the same status without them is a failure. None where every
    /// such status is a refusal.
    pub marked_by: BTreeMap<String, Wanted>,
    /// Headers it must have, by lower-case name.
    pub headers: BTreeMap<String, Wanted>,
    /// Members its JSON body must have, by JSON pointer.
    pub body: BTreeMap<String, Wanted>,
}

/// What a header or member must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Anything, but there.
    Present,
    /// Exactly this.
    Exactly(String),
}

/// When the run itself is no good.
#[derive(Debug, Clone)]
pub struct Validity {
    /// The most lag at the 99th percentile; `None` for [`Plan::lag_limit`]'s own.
    pub lag_p99: Option<Duration>,
    /// The largest share of unsent requests.
    pub unsent: Share,
    /// The largest share of requests that were seen on one side only.
    pub unjoined: Share,
    /// The least achieved over planned rate.
    pub achieved: Share,
}

/// A rule that ends a run early, to spare the target.
#[derive(Debug, Clone)]
pub struct AbortRule {
    /// Goodput below this share of what is offered …
    pub goodput_below: Share,
    /// … for this long …
    pub lasting: Duration,
    /// … but not before this much of the run has passed.
    pub after: Duration,
}

/// What a plan changes of a check.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CheckOverride {
    /// Another limit, in the unit of the check; as written.
    pub limit: Option<Limit>,
    /// True if a lack of data is all right.
    pub allow_no_data: bool,
    /// True if it is not judged at all.
    pub off: bool,
}

/// A limit as a plan writes it; the check says which form it takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// `20ms`
    Time(Duration),
    /// `90%`
    Part(Share),
    /// `64MiB`
    Size(Bytes),
    /// `3`
    Count(u64),
}

impl Plan {
    /// The same plan with the mix of its event as the usual one, for whoever asks about the event. Who comes when stays.
    pub fn as_in_event(&self) -> Cow<'_, Self> {
        if self.load.phases.iter().all(|phase| phase.mix.is_none()) {
            return Cow::Borrowed(self);
        }
        let mut plan = self.clone();
        plan.requests = self.load.mix_of_event(&self.requests);
        let usual =
            || self.requests.classes().iter().map(|class| (class.name.clone(), class.weight)).collect();
        for phase in &mut plan.load.phases {
            phase.mix.get_or_insert_with(usual);
        }
        Cow::Owned(plan)
    }

    /// The tokens a request holds at most, over all classes.
    pub fn largest_hold(&self) -> Tokens {
        self.requests.classes().iter().map(crate::workload::Class::largest_hold).max().unwrap_or_default()
    }

    /// The policy of the target: the embedded gateway's own, or what a foreign one is believed to do.
    pub fn policy(&self) -> Option<&admission::Config> {
        match &self.target.kind {
            TargetKind::Embedded(embedded) => Some(&embedded.admission),
            TargetKind::Spawn(spawn) => spawn.policy.as_ref(),
            TargetKind::Url { policy, .. } => policy.as_ref(),
        }
    }

    /// The addresses metrics are read from besides the target's own.
    pub fn pages(&self) -> impl Iterator<Item = &str> {
        let memory = self.target.memory.as_ref().and_then(|source| match &source.from {
            MemoryFrom::Metric(metric) => Some(&metric.page),
            MemoryFrom::Own | MemoryFrom::Pid(_) | MemoryFrom::Cgroup(_) => None,
        });
        let pages = self.target.metrics.as_ref().map(|metrics| &metrics.page).into_iter().chain(memory);
        pages.filter_map(|page| match page {
            Page::Url(url) => Some(url.as_str()),
            Page::Path(_) => None,
        })
    }

    /// What this plan asks for that only a simulation can do, one message each.
    pub fn only_simulated(&self) -> Vec<String> {
        let mut all = Vec::new();
        for (i, class) in self.requests.classes().iter().enumerate() {
            if class.max_tokens == Tokens::ZERO {
                all.push(format!("requests.{i}.max_tokens: a request for no answer can be simulated only"));
            }
        }
        if self.policy().is_some_and(|policy| !policy.cancel) {
            all.push("cancel: a gateway that does not notice leavers can be simulated only".to_owned());
        }
        all
    }

    /// The most lag at the 99th percentile: what the plan says, or half the shortest mean gap between two callers, but
    /// no less than [`LEAST_LAG`].
    pub fn lag_limit(&self) -> Duration {
        self.validity.lag_p99.unwrap_or_else(|| (self.load.shortest_gap() / 2).max(LEAST_LAG))
    }

    /// The plan as it is rehearsed: rates, quotas and budgets scaled, phases shortened. Without a rehearsal section it
    /// is the plan itself.
    pub fn rehearsed(&self) -> Self {
        let Some(rehearsal) = &self.rehearsal else { return self.clone() };
        let mut plan = Self { rehearsal: None, scale: rehearsal.scale, ..self.clone() };
        for fault in &mut plan.provider.faults {
            let (start, end) =
                (rehearsal.time_of(fault.at, &self.load), rehearsal.time_of(fault.end(), &self.load));
            (fault.at, fault.lasts) = (start, end.saturating_sub(start));
        }
        plan.load = plan.load.scaled(rehearsal.scale);
        for phase in &mut plan.load.phases {
            if let Some(lasts) = rehearsal.phases.get(&phase.name) {
                phase.lasts = *lasts;
            }
        }
        // a part of a trace without a row keeps the rate of the whole; the checks across parts refuse such a plan
        let _ = plan.load.follow_trace();
        plan.provider.quota = plan.provider.quota.scaled(rehearsal.scale);
        let scale = |policy: &mut admission::Config| {
            policy.budgets = policy.budgets.scaled(rehearsal.scale);
            policy.tenants.iter_mut().for_each(|tenant| *tenant = tenant.scaled(rehearsal.scale));
        };
        match &mut plan.target.kind {
            TargetKind::Embedded(embedded) => scale(&mut embedded.admission),
            TargetKind::Spawn(Spawn { policy, .. }) | TargetKind::Url { policy, .. } => {
                policy.iter_mut().for_each(scale);
            }
        }
        plan
    }
}
