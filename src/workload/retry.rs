use std::time::Duration;

use super::OnRefusal;
use crate::units::{Read, Reader, Share};

/// The most attempts of one caller.
const MOST_ATTEMPTS: u16 = 100;

/// How a caller tries again when it was refused, or when its patience has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Retry {
    /// Attempts in all, the first one included.
    pub attempts: u16,
    /// The wait before the second attempt; it doubles each time.
    pub backoff: Duration,
    /// The longest such wait.
    pub longest: Duration,
    /// A wait is shortened by up to this share of it, by the caller's number.
    pub jitter: Share,
    /// What it does with a `Retry-After`.
    pub honour: Honour,
    /// Whether it tries again when its patience has ended.
    pub on_timeout: bool,
    /// Retries as a share of first attempts, over all callers of the class; `None` for no limit.
    pub budget: Option<Share>,
}

/// What a caller does with a `Retry-After`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Honour {
    /// It waits exactly as told.
    Always,
    /// It does not look at it.
    Never,
    /// It waits as told up to this; told to wait longer it does not come back.
    UpTo(Duration),
}

impl Retry {
    /// How long to wait after attempt `nth` (0 is the first), told to come back after `told` if a refusal said so.
    /// `draw` is in `[0, 1)`. `None` if it does not try again.
    pub fn wait(&self, nth: u16, told: Option<Duration>, draw: f64) -> Option<Duration> {
        if nth.saturating_add(1) >= self.attempts {
            return None;
        }
        match (self.honour, told) {
            (Honour::Always, Some(told)) => return Some(told),
            (Honour::UpTo(most), Some(told)) => return (told <= most).then_some(told),
            (Honour::Never, _) | (_, None) => {}
        }
        let doubled = self.backoff.saturating_mul(1 << nth.min(20)).min(self.longest);
        Some(doubled.mul_f64(1.0 - self.jitter.get() * draw))
    }
}

/// The retries the callers of a class may still make together.
#[derive(Debug, Clone, Copy)]
pub struct Allowance {
    share: Option<f64>,
    left: f64,
}

impl Allowance {
    /// The most that is saved up.
    const MOST: f64 = 1_000.0;

    /// What callers who react like this start with: nothing.
    pub fn of(reaction: &OnRefusal) -> Self {
        let share = match reaction {
            OnRefusal::Retry(rule) => rule.budget.map(Share::get),
            OnRefusal::GiveUp => None,
        };
        Self { share, left: 0.0 }
    }

    /// A caller arrived.
    pub fn earn(&mut self) {
        self.left = (self.left + self.share.unwrap_or(0.0)).min(Self::MOST);
    }

    /// Whether one more retry may be made; if so it is.
    pub fn spend(&mut self) -> bool {
        if self.share.is_none() {
            return true;
        }
        let enough = self.left >= 1.0;
        if enough {
            self.left -= 1.0;
        }
        enough
    }
}

impl Read for OnRefusal {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        match reader.one_of("reaction to a refusal", &["give_up", "retry"])? {
            ("retry", Some(inner)) => Retry::read(&inner).map(Self::Retry),
            ("retry", None) => {
                reader.fault("`retry` needs its rule: write `retry: { attempts: 3, backoff: 500ms }`");
                None
            }
            ("give_up", Some(inner)) => {
                inner.fault("`give_up` has no settings");
                None
            }
            _ => Some(Self::GiveUp),
        }
    }
}

impl Read for Retry {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let attempts: Option<u16> = map.need("attempts");
        let backoff = map.or("backoff", Duration::from_millis(500));
        let longest = map.or("longest", Duration::from_secs(8));
        let jitter = map.or("jitter", Share::new(0.0)?);
        let honour = map.or("honour", Honour::Always);
        let on_timeout = map.or("on_timeout", true);
        let budget = match map.reader("budget") {
            Some(reader) => Share::read(&reader).map(Some),
            None => Some(None),
        };
        let attempts = attempts?;
        if attempts == 0 || attempts > MOST_ATTEMPTS {
            map.here().fault(format!("`attempts` counts the first one too: 1 to {MOST_ATTEMPTS}"));
            return None;
        }
        Some(Self {
            attempts,
            backoff: backoff?,
            longest: longest?,
            jitter: jitter?,
            honour: honour?,
            on_timeout: on_timeout?,
            budget: budget?,
        })
    }
}

impl Read for Honour {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        reader.parse("what is done with a Retry-After", |text| match text {
            "true" => Ok(Self::Always),
            "false" => Ok(Self::Never),
            text => crate::units::parse_duration(text)
                .map(Self::UpTo)
                .map_err(|_| format!("`{text}` is neither true, false nor the longest wait, such as 120s")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(honour: Honour) -> Retry {
        Retry {
            attempts: 4,
            backoff: Duration::from_millis(500),
            longest: Duration::from_millis(1_500),
            jitter: Share::new(0.25).unwrap(),
            honour,
            on_timeout: true,
            budget: Share::new(0.5),
        }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_shrink_by_the_draw() {
        let rule = rule(Honour::Never);
        let ms = |nth, draw| rule.wait(nth, Some(Duration::from_secs(9)), draw).map(|span| span.as_millis());
        assert_eq!((ms(0, 0.0), ms(1, 0.0), ms(2, 0.0)), (Some(500), Some(1_000), Some(1_500)));
        assert_eq!(ms(0, 0.5), Some(437));
        assert_eq!(ms(3, 0.0), None, "four attempts in all");
    }

    #[test]
    fn a_retry_after_is_honoured_as_far_as_the_rule_says() {
        let told = |honour, secs| rule(honour).wait(0, Some(Duration::from_secs(secs)), 0.0);
        assert_eq!(told(Honour::Always, 900), Some(Duration::from_secs(900)));
        assert_eq!(told(Honour::UpTo(Duration::from_secs(120)), 120), Some(Duration::from_secs(120)));
        assert_eq!(told(Honour::UpTo(Duration::from_secs(120)), 121), None);
        assert_eq!(told(Honour::Never, 900), Some(Duration::from_millis(500)));
    }

    #[test]
    fn a_budget_of_a_half_allows_a_retry_for_every_second_caller() {
        let mut allowance = Allowance::of(&OnRefusal::Retry(rule(Honour::Never)));
        let made = (0..100).filter(|_| {
            allowance.earn();
            allowance.spend()
        });
        assert_eq!(made.count(), 50);
        let mut without = Allowance::of(&OnRefusal::GiveUp);
        assert!(without.spend(), "no limit where no budget is named");
    }
}
