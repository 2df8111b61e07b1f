use std::time::Duration;

use serde_json::{Value, json};

use crate::units::{Read, Reader, Share, plain_duration};

/// How calls to the provider are repeated: only where it is sure that nothing was done, and only while the caller's
/// time allows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Upstream {
    /// Calls for one request at most.
    pub attempts: u16,
    /// The rest before the first repetition; it doubles each time, less up to half of it by the request's id.
    pub backoff: Duration,
    /// The longest rest.
    pub longest: Duration,
    /// Repetitions after failures, as a part of all first calls; refusals for quota do not count, for they are
    /// announced. `None` for no limit, which no plan can ask for.
    pub budget: Option<Share>,
    /// How long the hold of a call whose end is unknown is kept.
    pub lease: Duration,
}

impl Default for Upstream {
    fn default() -> Self {
        Self {
            attempts: 5,
            backoff: Duration::from_millis(100),
            longest: Duration::from_secs(2),
            budget: Share::of_percent(20),
            lease: Duration::from_secs(60),
        }
    }
}

impl Upstream {
    /// The rest after the `tries`-th call, shortened by up to half by `draw` in `[0, 1)`.
    pub fn rest(&self, tries: u16, draw: f64) -> Duration {
        let doubled = self.backoff.saturating_mul(1 << tries.saturating_sub(1).min(20));
        doubled.min(self.longest).mul_f64(1.0 - draw / 2.0)
    }

    pub(super) fn to_json(self) -> Value {
        json!({
            "attempts": self.attempts.to_string(),
            "backoff": plain_duration(self.backoff),
            "longest": plain_duration(self.longest),
            "budget": self.budget.map_or(1.0, Share::get).to_string(),
            "lease": plain_duration(self.lease),
        })
    }
}

impl Read for Upstream {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let standard = Self::default();
        let mut map = reader.map()?;
        let attempts = map.or("attempts", standard.attempts);
        let backoff = map.or("backoff", standard.backoff);
        let longest = map.or("longest", standard.longest);
        let budget = map.reader("budget").map_or(Some(standard.budget), |r| Share::read(&r).map(Some));
        let lease = map.or("lease", standard.lease);
        let it = Self {
            attempts: attempts?,
            backoff: backoff?,
            longest: longest?,
            budget: budget?,
            lease: lease?,
        };
        if it.attempts == 0 || it.backoff.is_zero() || it.lease.is_zero() {
            map.here().fault("`attempts`, `backoff` and `lease` must be more than nothing");
            return None;
        }
        Some(it)
    }
}
