use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

mod budgets;
mod tenants;
mod upstream;

pub use budgets::Budgets;
pub use tenants::{Counts, Tenant};
pub use upstream::Upstream;

use super::codel::Codel;
use super::desk::Kept;
use super::faults::List;
use super::{bounds::Bound, orders::Order, retry_after::Strategy, shares::Share};
use crate::units::{Bytes, MapReader, Read, Reader, Share as Part, plain_duration};

/// What a gateway's admission is told: the policy part of `target.embedded` and of `serve gateway`.
#[derive(Debug, Clone)]
pub struct Config {
    /// How much may wait.
    pub bound: Arc<dyn Bound>,
    /// Who is served next within a lane.
    pub order: Arc<dyn Order>,
    /// Who gives way when the bound is reached.
    pub when_full: WhenFull,
    /// Whether a request is tested again, without the margin, before it is forwarded; and dropped if it would be late.
    pub recheck: bool,
    /// A rule that drops by how long requests waited, besides the recheck.
    pub codel: Option<Codel>,
    /// What an answer is believed to take.
    pub service: Estimate,
    /// What is kept in reserve of a caller's time when it is admitted.
    pub margin: Duration,
    /// What may be spent.
    pub budgets: Budgets,
    /// Those on whose behalf requests come; empty if nobody asks.
    pub tenants: Vec<Tenant>,
    /// How tenants share what is served.
    pub share: Arc<dyn Share>,
    /// How tiers are served.
    pub tiers: Tiers,
    /// What happens to a request whose operation already runs.
    pub duplicates: Duplicates,
    /// Whether a caller who leaves is taken out of the queue, and its call ended; if not it is served all the same.
    pub cancel: bool,
    /// What is kept of operations that have ended.
    pub keep: Kept,
    /// How calls to the provider are repeated.
    pub upstream: Upstream,
    /// What a refused caller is told.
    pub retry_after: Arc<dyn Strategy>,
    /// The longest wait a caller is believed to keep: one that is told to wait longer is told not to come again as well.
    pub give_up_above: Duration,
    /// How many machines stand behind one address, each with its part of budgets, slots and bounds; 1 to 64.
    pub replicas: u16,
    /// What is wrong with it on purpose. Nothing but what runs looks at it: what is declared is the rest.
    pub faults: List,
}

/// The most machines behind one address.
const MOST_REPLICAS: u16 = 64;

/// Who gives way when the bound is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// The newcomer is refused at once.
    RefuseNewest,
    /// The oldest of its lane is dropped.
    EvictOldest,
}

/// How tiers are served; 0 is the most important.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tiers {
    /// Whether a more important tier is served first; otherwise all tiers are one.
    pub strict: bool,
    /// Whether those of a less important tier give way to a newcomer that would be refused.
    pub evict: bool,
}

/// What happens to a request whose operation already runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// It waits for the answer of the running one.
    Attach,
    /// It is told that the operation runs.
    Tell,
}

/// The service time the gateway starts from, and the quantile of what it has seen that it then goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Before anything was seen.
    pub start: Duration,
    /// Which quantile.
    pub quantile: Part,
}

impl Config {
    /// What is believed of callers unless a policy says otherwise: 60 s, the least of what official SDKs keep. Told to
    /// wait longer some of them come early instead, unless they are told not to come at all.
    pub const GIVE_UP_ABOVE: Duration = Duration::from_secs(60);

    /// Reads the policy keys of `map`. `standard` stands in where the plan names no budgets.
    pub fn read(map: &mut MapReader<'_>, standard: Option<Budgets>) -> Option<Self> {
        let bound = map.or::<Arc<dyn Bound>>("bound", super::bounds::standard());
        let order = map.or::<Arc<dyn Order>>("order", super::orders::standard());
        let when_full = map.or("when_full", WhenFull::RefuseNewest);
        let recheck = map.or("recheck", true);
        let codel = map.reader("codel").map_or(Some(None), |r| Codel::read(&r).map(Some));
        let service = map.need("service");
        let margin = map.or("margin", Duration::from_millis(500));
        let budgets = match (map.reader("budgets"), standard) {
            (Some(reader), _) => Budgets::read_over(&reader, standard),
            (None, Some(budgets)) => Some(budgets),
            (None, None) => {
                map.here().fault("`budgets` is missing: how many tokens a minute may be spent?");
                None
            }
        };
        let tenants = map.or("tenants", Vec::new());
        let share = map.or::<Arc<dyn Share>>("share", super::shares::standard());
        let tiers = map.or("tiers", Tiers { strict: true, evict: true });
        let duplicates = map.or("duplicates", Duplicates::Attach);
        let cancel = map.or("cancel", true);
        let keep = map.or("keep", Kept::default());
        let upstream = map.or("upstream", Upstream::default());
        let retry_after = map.or::<Arc<dyn Strategy>>("retry_after", super::retry_after::standard());
        let give_up_above = map.or("give_up_above", Self::GIVE_UP_ABOVE);
        let replicas = map.or("replicas", 1u16);
        let faults = map.or("faults", List::default());
        let config = Self {
            bound: bound?,
            order: order?,
            when_full: when_full?,
            recheck: recheck?,
            codel: codel?,
            service: service?,
            margin: margin?,
            budgets: budgets?,
            tenants: tenants?,
            share: share?,
            tiers: tiers?,
            duplicates: duplicates?,
            cancel: cancel?,
            keep: keep?,
            upstream: upstream?,
            retry_after: retry_after?,
            give_up_above: give_up_above?,
            replicas: replicas?,
            faults: faults?,
        };
        config.check(map.here()).then_some(config)
    }

    /// What must hold across the keys.
    fn check(&self, here: &Reader<'_>) -> bool {
        let twice = self
            .tenants
            .iter()
            .enumerate()
            .find(|(i, t)| self.tenants[..*i].iter().any(|u| u.name == t.name));
        if let Some((_, tenant)) = twice {
            here.fault(format!("two tenants are named `{}`: give each its own name", tenant.name));
        }
        if self.tenants.len() > 10_000 {
            here.fault("more than 10,000 tenants");
        }
        twice.is_none() && self.tenants.len() <= 10_000 && self.check_replicas(here)
    }

    fn check_replicas(&self, here: &Reader<'_>) -> bool {
        let count = self.replicas;
        let slots = self.budgets.concurrent.unwrap_or(u32::MAX);
        let why = if !(1..=MOST_REPLICAS).contains(&count) {
            format!("`replicas: {count}`: from 1 to {MOST_REPLICAS} may stand behind one address")
        } else if u32::from(count) > slots {
            format!("`replicas: {count}` share {slots} slots: each needs one")
        } else if count == 1 && self.faults.amount("per_replica_quotas").is_some() {
            "`per_replica_quotas` is no fault of a single machine: write `replicas: 2` or more".to_owned()
        } else {
            return true;
        };
        here.fault(why);
        false
    }

    /// The policy in the form [`Self::read`] reads: keys of a map.
    pub fn to_json(&self) -> Value {
        let mut json = json!({
            "bound": self.bound.spec(),
            "order": self.order.spec(),
            "when_full": match self.when_full {
                WhenFull::RefuseNewest => "refuse_newest",
                WhenFull::EvictOldest => "evict_oldest",
            },
            "recheck": self.recheck.to_string(),
            "service": { "start": plain_duration(self.service.start), "quantile": self.service.quantile.get().to_string() },
            "margin": plain_duration(self.margin),
            "budgets": self.budgets.to_json(),
            "tenants": self.tenants.iter().map(Tenant::to_json).collect::<Vec<_>>(),
            "share": self.share.spec(),
            "tiers": { "strict": self.tiers.strict.to_string(), "evict": self.tiers.evict.to_string() },
            "duplicates": match self.duplicates {
                Duplicates::Attach => "attach",
                Duplicates::Tell => "tell",
            },
            "cancel": self.cancel.to_string(),
            "keep": {
                "number": self.keep.number.to_string(),
                "bytes": format!("{}B", self.keep.bytes.get()),
                "age": plain_duration(self.keep.age),
            },
            "upstream": self.upstream.to_json(),
            "retry_after": self.retry_after.spec(),
            "give_up_above": plain_duration(self.give_up_above),
        });
        if let Some(codel) = self.codel {
            json["codel"] =
                json!({ "target": plain_duration(codel.target), "interval": plain_duration(codel.interval) });
        }
        if self.replicas != 1 {
            json["replicas"] = json!(self.replicas.to_string());
        }
        if !self.faults.is_empty() {
            json["faults"] = self.faults.to_json();
        }
        json
    }
}

impl Read for WhenFull {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        match reader.one_of("rule for a full queue", &["evict_oldest", "refuse_newest"])?.0 {
            "evict_oldest" => Some(Self::EvictOldest),
            _ => Some(Self::RefuseNewest),
        }
    }
}

impl Read for Tiers {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (strict, evict) = (map.or("strict", true), map.or("evict", true));
        Some(Self { strict: strict?, evict: evict? })
    }
}

impl Read for Duplicates {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        match reader.one_of("rule for duplicates", &["attach", "tell"])?.0 {
            "tell" => Some(Self::Tell),
            _ => Some(Self::Attach),
        }
    }
}

impl Read for Kept {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let standard = Self::default();
        let mut map = reader.map()?;
        let (number, bytes) = (map.or("number", standard.number), map.or::<Bytes>("bytes", standard.bytes));
        let age = map.or("age", standard.age);
        Some(Self { number: number?, bytes: bytes?, age: age? })
    }
}

impl Read for Estimate {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let start = map.need("start");
        let quantile =
            map.reader("quantile").map_or_else(|| Part::new(0.99), |r| r.parse("a quantile", quantile));
        Some(Self { start: start?, quantile: quantile? })
    }
}

/// Reads `p99`, `p99.9` or a share.
fn quantile(text: &str) -> Result<Part, String> {
    let share =
        text.strip_prefix('p').map_or_else(|| Part::parse(text), |rest| Part::parse(&format!("{rest}%")));
    share.ok().filter(|s| s.get() > 0.0).ok_or_else(|| format!("`{text}` is no quantile (write p99 or 0.99)"))
}
