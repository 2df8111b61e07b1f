//! Raw refusals, kept to be looked at.

use http::HeaderMap;
use serde::Serialize;

use super::reading::escaped;
use crate::observe::Attempt;
use crate::units::Moment;

/// The most that are kept.
const MOST: usize = 20;
/// Characters of a body that are kept.
const BODY: usize = 1_000;
/// Characters of a header's value that are kept.
const VALUE: usize = 200;
/// Headers whose values are never shown.
const SECRET: [&str; 4] = ["authorization", "cookie", "proxy-authorization", "set-cookie"];
/// What stands in place of a secret.
const MASK: &str = "(masked)";

/// A refusal as it came: escaped, secrets masked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// The arrival's number.
    pub seq: u64,
    /// 0 for its first attempt.
    pub attempt: u16,
    /// When it was read, in milliseconds since the load began.
    pub at_ms: u64,
    /// The status.
    pub status: u16,
    /// The headers, in their order.
    pub headers: Vec<(String, String)>,
    /// The first kilobyte of the body.
    pub body: String,
}

/// Collects [`Evidence`] up to its limit.
#[derive(Debug)]
pub(super) struct Locker {
    kept: Vec<Evidence>,
    secrets: Vec<String>,
    start: Moment,
}

impl Locker {
    /// An empty one. `secrets` are texts that are masked wherever they turn up; times are counted from `start`.
    pub(super) fn new(secrets: impl IntoIterator<Item = String>, start: Moment) -> Self {
        Self { kept: Vec::new(), secrets: secrets.into_iter().filter(|s| s.len() >= 4).collect(), start }
    }

    /// Keeps a refusal if there is room.
    pub(super) fn keep(
        &mut self,
        attempt: Attempt,
        at: Moment,
        status: u16,
        headers: &HeaderMap,
        body: &[u8],
    ) {
        if self.kept.len() >= MOST {
            return;
        }
        let headers = headers.iter().take(64).map(|(name, value)| {
            let secret = SECRET.contains(&name.as_str());
            let value = String::from_utf8_lossy(value.as_bytes());
            let value = if secret { MASK.to_owned() } else { escaped(&self.masked(&value), VALUE) };
            (name.as_str().to_owned(), value)
        });
        let body = String::from_utf8_lossy(&body[..body.len().min(4 * BODY)]);
        let evidence = Evidence {
            seq: attempt.seq,
            attempt: attempt.nth,
            at_ms: u64::try_from(at.since(self.start).as_millis()).unwrap_or(u64::MAX),
            status,
            headers: headers.collect(),
            body: escaped(&self.masked(&body), BODY),
        };
        self.kept.push(evidence);
    }

    /// All that was kept; nothing is left.
    pub(super) fn take(&mut self) -> Vec<Evidence> {
        std::mem::take(&mut self.kept)
    }

    fn masked(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, MASK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_are_kept_and_no_secret_and_no_control_character_is_in_them() {
        let mut locker = Locker::new(["Bearer s3cret-token".to_owned()], Moment::from_secs(2));
        let headers: HeaderMap =
            [("set-cookie", "sid=1"), ("x-echo", "got Bearer s3cret-token"), ("x-a", "b")]
                .into_iter()
                .map(|(k, v)| (k.parse().unwrap(), v.parse().unwrap()))
                .collect();
        let body = format!("\u{1b}[31m Bearer s3cret-token {}", "x".repeat(5_000));
        for seq in 0..30 {
            locker.keep(Attempt { seq, nth: 0 }, Moment::from_millis(2_500), 503, &headers, body.as_bytes());
        }
        let kept = locker.take();
        assert_eq!(kept.len(), MOST);
        assert_eq!(kept[0].at_ms, 500);
        let text = serde_json::to_string(&kept).unwrap();
        assert!(!text.contains("s3cret") && !text.contains("sid=1") && !text.contains("\\u001b"), "{text}");
        assert!(kept[0].body.chars().count() <= BODY + 10, "an escape is several characters");
        assert_eq!(kept[0].headers[2], ("x-a".to_owned(), "b".to_owned()));
    }
}
