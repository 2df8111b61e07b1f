use std::time::Duration;

use super::Signs;
use crate::units::{MapReader, Read, Reader, Share};

/// A rule of a plan's own: tries again when refused, or when patience has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The wait before the second attempt; it doubles each time.
    pub backoff: Duration,
    /// The longest such wait.
    pub longest: Duration,
    /// A wait of its own is shortened by up to this share of it, one it was told is lengthened, by the caller's number:
    /// whoever is told to wait never comes early.
    pub jitter: Share,
    /// What it does with a `Retry-After`.
    pub honour: Honour,
    /// Whether it tries again when its patience has ended.
    pub on_timeout: bool,
}

/// What a caller does with a `Retry-After`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Honour {
    /// It waits as told.
    Always,
    /// It does not look at it.
    Never,
    /// It waits as told up to this; told to wait longer it does not come back.
    UpTo(Duration),
}

impl Rule {
    /// How long to wait after attempt `nth`, which ended with `signs`.
    pub(super) fn wait(&self, nth: u16, signs: &Signs, draw: f64) -> Option<Duration> {
        if !(signs.refused || signs.timed_out && self.on_timeout) {
            return None;
        }
        let jitter = self.jitter.get() * draw;
        match (self.honour, signs.told) {
            (Honour::UpTo(most), Some(told)) if told > most => return None,
            (Honour::Always | Honour::UpTo(_), Some(told)) => return Some(longer(told, jitter)),
            (Honour::Never, _) | (_, None) => {}
        }
        let doubled = self.backoff.saturating_mul(1 << nth.min(20)).min(self.longest);
        Some(doubled.mul_f64(1.0 - jitter))
    }
}

/// `span` and `share` of it more.
fn longer(span: Duration, share: f64) -> Duration {
    Duration::try_from_secs_f64(span.as_secs_f64() * share).map_or(span, |more| span.saturating_add(more))
}

/// The keys of a rule.
pub(super) fn read(map: &mut MapReader<'_>) -> Option<Rule> {
    let backoff = map.or("backoff", Duration::from_millis(500));
    let longest = map.or("longest", Duration::from_secs(8));
    let jitter = map.or("jitter", Share::new(0.0)?);
    let honour = map.or("honour", Honour::Always);
    let on_timeout = map.or("on_timeout", true);
    Some(Rule {
        backoff: backoff?,
        longest: longest?,
        jitter: jitter?,
        honour: honour?,
        on_timeout: on_timeout?,
    })
}

/// Reports keys of a rule beside `like`: the SDK has its own.
pub(super) fn none_of_its_keys(map: &mut MapReader<'_>) {
    for key in ["backoff", "longest", "jitter", "honour", "on_timeout"] {
        if let Some(reader) = map.reader(key) {
            reader.fault(format!("the SDK named by `like` has its own: leave `{key}` out"));
        }
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
