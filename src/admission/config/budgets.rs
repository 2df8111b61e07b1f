use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::units::{Rate, Ratio, Read, Reader, Tokens, Window, plain_duration};

/// What everyone together may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// Tokens to spend in the long run; `None` for no limit.
    pub tokens: Option<Rate>,
    /// Requests to forward in the long run; `None` for no limit.
    pub requests: Option<Rate>,
    /// How much of a rate may be spent at once, as a span of it, where the window is a bucket.
    pub burst: Duration,
    /// Another window than a bucket.
    pub period: Option<Window>,
    /// Calls at the provider at once; `None` for no limit.
    pub concurrent: Option<u32>,
}

impl Budgets {
    /// A bucket of `tokens` that holds `burst` of it, and no other limit.
    pub const fn of_tokens(tokens: Rate, burst: Duration) -> Self {
        Self { tokens: Some(tokens), requests: None, burst, period: None, concurrent: None }
    }

    /// So many calls at once, and no other limit.
    pub const fn of_slots(slots: u32) -> Self {
        let burst = Duration::ZERO;
        Self { tokens: None, requests: None, burst, period: None, concurrent: Some(slots) }
    }

    /// How the windows move.
    pub fn window(&self) -> Window {
        self.period.unwrap_or(Window::Bucket { burst: self.burst })
    }

    /// The most tokens that can be spent at once; none if tokens are not limited.
    pub fn burst_tokens(&self) -> Tokens {
        let span = self.window().span();
        self.tokens.map_or(Tokens::ZERO, |rate| Tokens::new(rate.whole_in(span)))
    }

    /// What they let through in the long run, in tokens, for requests that hold `hold` and take `service`: the smallest
    /// of the token rate, the request rate and the slots. `None` without any limit.
    pub fn drain(&self, hold: Tokens, service: Duration) -> Option<Rate> {
        let by_requests = self.requests.and_then(|rate| {
            Rate::new(rate.count().saturating_mul(hold.get()), Duration::from_nanos(rate.per_nanos()))
        });
        let by_slots =
            self.concurrent.and_then(|slots| Rate::new(u64::from(slots).saturating_mul(hold.get()), service));
        let rates = [self.tokens, by_requests, by_slots].into_iter().flatten();
        rates.min_by(|a, b| a.per_sec_f64().total_cmp(&b.per_sec_f64()))
    }

    /// The same budgets with their rates times `ratio`, in whole tokens and requests a minute. Slots stay: service
    /// times do.
    pub fn scaled(&self, ratio: Ratio) -> Self {
        let scaled = |rate: Option<Rate>| rate.map(|rate| rate.scaled(ratio).whole_per_minute());
        Self { tokens: scaled(self.tokens), requests: scaled(self.requests), ..*self }
    }

    pub(super) fn read_over(reader: &Reader<'_>, standard: Option<Self>) -> Option<Self> {
        let mut map = reader.map()?;
        let tokens = match map.reader("tokens_per_minute") {
            Some(reader) => rate(&reader).map(Some),
            None => Some(standard.and_then(|s| s.tokens)),
        };
        let requests = match map.reader("requests_per_minute") {
            Some(reader) => rate(&reader).map(Some),
            None => Some(standard.and_then(|s| s.requests)),
        };
        let concurrent = match map.reader("concurrent") {
            Some(reader) => u32::read(&reader).map(Some),
            None => Some(standard.and_then(|s| s.concurrent)),
        };
        let burst = map.or("burst", standard.map_or(Duration::from_millis(900), |s| s.burst));
        let period = map
            .reader("window")
            .map_or_else(|| Some(standard.and_then(|s| s.period)), |r| Window::read_as(&r, Window::KINDS));
        let budgets = Self {
            tokens: tokens?,
            requests: requests?,
            burst: burst?,
            period: period?,
            concurrent: concurrent?,
        };
        if budgets.tokens.is_none() && budgets.requests.is_none() && budgets.concurrent.is_none() {
            map.here().fault("`tokens_per_minute`, `requests_per_minute` or `concurrent` is missing");
            return None;
        }
        if budgets.concurrent == Some(0) {
            map.here().fault("`concurrent: 0` would serve nobody");
            return None;
        }
        Some(budgets)
    }

    pub(super) fn to_json(self) -> Value {
        let mut map = Map::new();
        let minute = |rate: Rate| rate.whole_in(Duration::from_secs(60)).to_string();
        map.insert("burst".into(), plain_duration(self.burst).into());
        if let Some(rate) = self.tokens {
            map.insert("tokens_per_minute".into(), minute(rate).into());
        }
        if let Some(rate) = self.requests {
            map.insert("requests_per_minute".into(), minute(rate).into());
        }
        if let Some(slots) = self.concurrent {
            map.insert("concurrent".into(), slots.to_string().into());
        }
        if let Some(window) = self.period {
            map.insert("window".into(), window_json(window));
        }
        Value::Object(map)
    }
}

fn rate(reader: &Reader<'_>) -> Option<Rate> {
    let count = Tokens::read(reader)?;
    let rate = Rate::per_minute(count.get());
    if rate.is_none() {
        reader.fault("a budget of zero would serve nobody");
    }
    rate
}

/// A window other than a bucket in the form [`Window::read_as`] reads.
pub(super) fn window_json(window: Window) -> Value {
    match window {
        Window::Bucket { .. } => json!("bucket"),
        Window::Fixed { period } => json!({ "fixed": plain_duration(period) }),
        Window::Round { period } => json!({ "round": plain_duration(period) }),
        Window::Sliding { period } => json!({ "sliding": plain_duration(period) }),
    }
}
