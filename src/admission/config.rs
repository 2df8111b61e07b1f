use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{bounds::Bound, orders::Order, retry_after::Strategy};
use crate::units::{MapReader, Rate, Ratio, Read, Reader, Share, Tokens, plain_duration};

/// What a gateway's admission is told: the policy part of `target.embedded` and of `serve gateway`.
#[derive(Debug, Clone)]
pub struct Config {
    /// How much may wait.
    pub bound: Arc<dyn Bound>,
    /// Who is served next.
    pub order: Arc<dyn Order>,
    /// Whether a request is tested again, without the margin, before it is forwarded; and dropped if it would be late.
    pub recheck: bool,
    /// What an answer is believed to take.
    pub service: Estimate,
    /// What is kept in reserve of a caller's time when it is admitted.
    pub margin: Duration,
    /// What may be spent.
    pub budgets: Budgets,
    /// What a refused caller is told.
    pub retry_after: Arc<dyn Strategy>,
}

/// The service time the gateway starts from, and the quantile of what it has seen that it then goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Before anything was seen.
    pub start: Duration,
    /// Which quantile.
    pub quantile: Share,
}

/// The token budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// Tokens to spend in the long run.
    pub tokens: Rate,
    /// How much of the rate may be spent at once, as a span of it.
    pub burst: Duration,
}

impl Budgets {
    /// The burst in tokens.
    pub fn burst_tokens(&self) -> Tokens {
        Tokens::new(self.tokens.whole_in(self.burst))
    }

    /// The same budgets with their rate times `ratio`, in whole tokens a minute.
    pub fn scaled(&self, ratio: Ratio) -> Self {
        Self { tokens: self.tokens.scaled(ratio).whole_per_minute(), ..*self }
    }
}

impl Config {
    /// Reads the policy keys of `map`. `standard` stands in where the plan names no budgets.
    pub fn read(map: &mut MapReader<'_>, standard: Option<Budgets>) -> Option<Self> {
        let bound = map.or::<Arc<dyn Bound>>("bound", super::bounds::standard());
        let order = map.or::<Arc<dyn Order>>("order", super::orders::standard());
        let recheck = map.or("recheck", true);
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
        let retry_after = map.or::<Arc<dyn Strategy>>("retry_after", super::retry_after::standard());
        Some(Self {
            bound: bound?,
            order: order?,
            recheck: recheck?,
            service: service?,
            margin: margin?,
            budgets: budgets?,
            retry_after: retry_after?,
        })
    }

    /// The policy in the form [`Self::read`] reads: keys of a map.
    pub fn to_json(&self) -> Value {
        json!({
            "bound": self.bound.spec(),
            "order": self.order.name(),
            "recheck": self.recheck.to_string(),
            "service": { "start": plain_duration(self.service.start), "quantile": self.service.quantile.get().to_string() },
            "margin": plain_duration(self.margin),
            "budgets": {
                "tokens_per_minute": self.budgets.tokens.whole_in(Duration::from_secs(60)).to_string(),
                "burst": plain_duration(self.budgets.burst),
            },
            "retry_after": self.retry_after.spec(),
        })
    }
}

impl Budgets {
    fn read_over(reader: &Reader<'_>, standard: Option<Self>) -> Option<Self> {
        let mut map = reader.map()?;
        let tokens = match map.reader("tokens_per_minute") {
            Some(reader) => Tokens::read(&reader).and_then(|tokens| {
                let rate = Rate::per_minute(tokens.get());
                if rate.is_none() {
                    reader.fault("a budget of zero would serve nobody");
                }
                rate
            }),
            None if standard.is_some() => standard.map(|s| s.tokens),
            None => {
                map.here().fault("`tokens_per_minute` is missing");
                None
            }
        };
        let burst = map.or("burst", standard.map_or(Duration::from_millis(900), |s| s.burst));
        Some(Self { tokens: tokens?, burst: burst? })
    }
}

impl Read for Estimate {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let start = map.need("start");
        let quantile = map.reader("quantile").map_or_else(|| Share::new(0.99), |r| r.parse("a quantile", quantile));
        Some(Self { start: start?, quantile: quantile? })
    }
}

/// Reads `p99`, `p99.9` or a share.
fn quantile(text: &str) -> Result<Share, String> {
    let share = text.strip_prefix('p').map_or_else(|| Share::parse(text), |rest| Share::parse(&format!("{rest}%")));
    share.ok().filter(|s| s.get() > 0.0).ok_or_else(|| format!("`{text}` is no quantile (write p99 or 0.99)"))
}
