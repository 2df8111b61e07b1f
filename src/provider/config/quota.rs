use std::time::Duration;

use crate::units::{Rate, Ratio, Read, Reader, Tokens, Window};

/// What a request is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// Its prompt when it comes, and the answer when it ends. So more can be used than the quota: what is over is missing
    /// afterwards.
    Actual,
    /// Prompt and `max_tokens`, when it comes.
    Reservation,
}

/// The quota of an account: tokens, and requests where they are limited too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quota {
    /// Tokens that may be used in the long run.
    pub tokens: Rate,
    /// Requests that may be made in the long run; `None` for no limit.
    pub requests: Option<Rate>,
    /// How the window moves.
    pub window: Window,
    /// Shorter spans in each of which no more than their own part of the rate may be used.
    pub sub_windows: Vec<Duration>,
    /// What is charged.
    pub charge: Charge,
    /// The keys of accounts that have this quota each; without any, all callers share one account.
    pub accounts: Vec<String>,
}

/// The kinds of window a provider has.
const KINDS: &[&str] = &["bucket", "fixed", "sliding"];

/// The most shorter spans.
const MOST_SUB_WINDOWS: usize = 4;

/// The most accounts.
const MOST_ACCOUNTS: usize = 1_000;

impl Quota {
    /// A bucket of `tokens` that holds `burst` of it, charged by reservation.
    pub const fn of_tokens(tokens: Rate, burst: Duration) -> Self {
        Self {
            tokens,
            requests: None,
            window: Window::Bucket { burst },
            sub_windows: Vec::new(),
            charge: Charge::Reservation,
            accounts: Vec::new(),
        }
    }

    /// How much of the rates may be used at once, as a span of them.
    pub fn burst(&self) -> Duration {
        self.sub_windows.iter().copied().chain([self.window.span()]).min().unwrap_or_default()
    }

    /// The burst in tokens.
    pub fn burst_tokens(&self) -> Tokens {
        Tokens::new(self.tokens.whole_in(self.burst()))
    }

    /// The same quota with its rates times `ratio`, in whole tokens and requests a minute; the burst, a span of them,
    /// shrinks alike.
    pub fn scaled(&self, ratio: Ratio) -> Self {
        let scaled = |rate: Rate| rate.scaled(ratio).whole_per_minute();
        Self { tokens: scaled(self.tokens), requests: self.requests.map(scaled), ..self.clone() }
    }

    /// Every window of it, the longest first.
    pub(in crate::provider) fn windows(&self) -> Vec<Window> {
        let shorter = |period: &Duration| match self.window {
            Window::Sliding { .. } => Window::Sliding { period: *period },
            Window::Bucket { .. } | Window::Fixed { .. } | Window::Round { .. } => {
                Window::Fixed { period: *period }
            }
        };
        [self.window].into_iter().chain(self.sub_windows.iter().map(shorter)).collect()
    }

    /// In words, where it is not a bucket of tokens that is charged by reservation.
    pub fn unusual(&self) -> Option<String> {
        let Self { requests, window, sub_windows, charge, accounts, .. } = self;
        let shown = crate::units::plain_duration;
        let mut words = Vec::new();
        match window {
            Window::Bucket { .. } => {}
            Window::Fixed { period } => words.push(format!("fixed windows of {}", shown(*period))),
            Window::Round { period } => words.push(format!("rounds of {}", shown(*period))),
            Window::Sliding { period } => words.push(format!("a sliding window of {}", shown(*period))),
        }
        words.extend(sub_windows.iter().map(|span| format!("a window of {} too", shown(*span))));
        words.extend(requests.map(|rate| format!("{} requests a minute", rate.per_min_f64())));
        if *charge == Charge::Actual {
            words.push("charged by actual use".to_owned());
        }
        if !accounts.is_empty() {
            words.push(format!("{} accounts", accounts.len()));
        }
        (!words.is_empty()).then(|| words.join(", "))
    }
}

impl Read for Quota {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let tokens = map.need::<Tokens>("tokens_per_minute");
        let requests = match map.reader("requests_per_minute") {
            Some(reader) => rate(&reader, "requests_per_minute").map(Some),
            None => Some(None),
        };
        let burst = map.reader("burst").map(|reader| Duration::read(&reader));
        let window = map.reader("window").map_or(Some(None), |reader| Window::read_as(&reader, KINDS));
        let sub_windows = map.or("sub_windows", Vec::<Duration>::new());
        let charge = map.or("charge", Charge::Reservation);
        let accounts = map.or("accounts", Vec::<String>::new());
        let Some(tokens) = Rate::per_minute(tokens?.get()) else {
            map.here().fault("`tokens_per_minute` is zero or out of range: nothing could ever be served");
            return None;
        };
        let window = match (window?, burst) {
            (None, None) => Window::Bucket { burst: Duration::from_secs(1) },
            (None, Some(burst)) => Window::Bucket { burst: burst? },
            (Some(window), None) => window,
            (Some(_), Some(_)) => {
                map.here().fault("only a bucket has a `burst`: of another window the whole period's amount may be used at once");
                return None;
            }
        };
        let mut sub_windows = sub_windows?;
        sub_windows.sort_unstable_by(|a, b| b.cmp(a));
        let longest = match window {
            Window::Bucket { .. } => Duration::MAX,
            other => other.span(),
        };
        if sub_windows.len() > MOST_SUB_WINDOWS
            || sub_windows.iter().any(|span| span.is_zero() || *span >= longest)
        {
            let most = format!(
                "`sub_windows` are up to {MOST_SUB_WINDOWS} spans, each longer than nothing and shorter than the window"
            );
            map.here().fault(most);
            return None;
        }
        let accounts = accounts?;
        if accounts.len() > MOST_ACCOUNTS || accounts.iter().any(String::is_empty) {
            map.here().fault(format!("`accounts` are up to {MOST_ACCOUNTS} keys, none of them empty"));
            return None;
        }
        Some(Self { tokens, requests: requests?, window, sub_windows, charge: charge?, accounts })
    }
}

fn rate(reader: &Reader<'_>, key: &str) -> Option<Rate> {
    let rate = Rate::per_minute(u64::from(u32::read(reader)?));
    if rate.is_none() {
        reader.fault(format!("`{key}` is zero: nothing could ever be served"));
    }
    rate
}
