//! What a refusal's headers say of when to come back, besides `Retry-After`.
//!
//! Vendors have headers of their own for it, and each writes them in another way. They are read by one rule, which the
//! report repeats: `1m30s` and the like are durations; a whole number from 1,000,000,000 on is a moment in seconds since
//! 1970, from 1,000,000,000,000 on in milliseconds; a smaller number is seconds. Dates are those of RFC 3339 and of HTTP.
//! What is less than nothing says nothing, and neither does the reset of a limit that is: -1 is how it is said that there
//! is none.

use std::time::{Duration, SystemTime};

use chrono::DateTime;
use http::header::DATE;
use http::{HeaderMap, HeaderValue};

use super::reading::{KEPT, escaped};
use crate::observe::{Hint, HintSet, Says};
use crate::units::{parse_duration, span_of};

/// Characters of a header's name that are kept.
const NAME: usize = 80;

/// The most hints of one answer that are read.
const MOST: usize = 16;

/// From here on a whole number is a moment in seconds since 1970: 2001.
const MOMENTS: f64 = 1e9;
/// From here on one in milliseconds: the same year.
const MOMENTS_IN_MILLIS: f64 = 1e12;

/// The hints in these headers. Moments are held against the answer's own `Date`; against `wall`, the time since 1970, if it
/// has none.
pub(super) fn read(headers: &HeaderMap, wall: Duration) -> HintSet {
    let own = headers.get(DATE).and_then(|date| http_date(date.to_str().ok()?));
    let now = own.unwrap_or(wall);
    let hints = headers.iter().filter(|(name, _)| is_hint(name.as_str()));
    let hint = |(name, value): (&http::HeaderName, &HeaderValue)| {
        let text = String::from_utf8_lossy(value.as_bytes());
        let says = match name.as_str() {
            Hint::MILLISECONDS => number(text.trim()).map_or(Says::Unknown, |millis| wait(millis / 1e3)),
            name if is_of_no_limit(headers, name) => Says::Nothing,
            _ => says(text.trim(), now),
        };
        Hint { header: escaped(name.as_str(), NAME), says, text: escaped(&text, KEPT) }
    };
    hints.take(MOST).map(hint).collect()
}

/// Whether a header of this name tells when to come back: `x-ratelimit-reset-tokens`, `x-rate-limit-reset-tokens`,
/// `anthropic-ratelimit-requests-reset`, `ratelimit-reset` and whatever else is called so.
fn is_hint(name: &str) -> bool {
    let limit = name.contains("ratelimit") || name.contains("rate-limit");
    name == Hint::MILLISECONDS || limit && (name.contains("reset") || name.contains("after"))
}

/// Whether the limit this header resets is less than nothing or, where it is not told, what is left of it.
fn is_of_no_limit(headers: &HeaderMap, name: &str) -> bool {
    let beside = |of: &str| {
        let text = headers.get(name.replace("reset", of)).and_then(|value| value.to_str().ok());
        text.and_then(|text| number(text.trim()))
    };
    beside("limit").or_else(|| beside("remaining")).is_some_and(|number| number < 0.0)
}

fn says(text: &str, now: Duration) -> Says {
    match number(text) {
        Some(millis) if millis >= MOMENTS_IN_MILLIS && !text.contains('.') => until(millis / 1e3, now),
        Some(seconds) if seconds >= MOMENTS => until(seconds, now),
        Some(seconds) => wait(seconds),
        None => moment(text)
            .map_or_else(|| parse_duration(text).map_or(Says::Unknown, Says::Wait), |then| until(then, now)),
    }
}

/// A number in digits, which may have a sign and a fraction and no exponent.
fn number(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| plain)
}

fn wait(seconds: f64) -> Says {
    if seconds < 0.0 { Says::Nothing } else { Says::Wait(span_of(seconds)) }
}

fn until(then: f64, now: Duration) -> Says {
    match then - now.as_secs_f64() {
        seconds if seconds < 0.0 => Says::Past,
        seconds => Says::Wait(span_of(seconds)),
    }
}

/// A date, in seconds since 1970.
fn moment(text: &str) -> Option<f64> {
    let by_rfc = DateTime::parse_from_rfc3339(text).ok().map(|then| then.timestamp_millis() as f64 / 1e3);
    by_rfc.or_else(|| http_date(text).map(|then| then.as_secs_f64()))
}

fn http_date(text: &str) -> Option<Duration> {
    httpdate::parse_http_date(text.trim()).ok()?.duration_since(SystemTime::UNIX_EPOCH).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 December 2026.
    const WALL: Duration = Duration::from_secs(1_796_083_200);

    fn hints(pairs: &[(&'static str, &'static str)]) -> Vec<Hint> {
        let headers = pairs.iter().map(|(k, v)| (k.parse().unwrap(), HeaderValue::from_static(v)));
        read(&headers.collect(), WALL).as_slice().to_vec()
    }

    fn said(name: &'static str, text: &'static str) -> Says {
        hints(&[(name, text)])[0].says
    }

    fn after(millis: u64) -> Says {
        Says::Wait(Duration::from_millis(millis))
    }

    /// As in openai/openai-python#937 and openai/openai-dotnet#838: a vendor's header instead of `Retry-After`, and one of a
    /// limit that is none, whose 0 does not mean that one may come back.
    #[test]
    fn a_vendors_header_is_a_hint_and_that_of_no_limit_is_none() {
        let lone = hints(&[("x-rate-limit-reset-tokens", "55"), ("content-type", "text/plain")]);
        let expected = Hint {
            header: "x-rate-limit-reset-tokens".to_owned(),
            says: after(55_000),
            text: "55".to_owned(),
        };
        assert_eq!(lone, [expected]);
        let none = [
            ("x-ratelimit-limit-tokens", "-1"),
            ("x-ratelimit-remaining-tokens", "-1"),
            ("x-ratelimit-reset-tokens", "0"),
        ];
        assert_eq!(hints(&none)[0].says, Says::Nothing);
        assert_eq!(hints(&none).len(), 1, "a limit is no time");
        assert_eq!(hints(&none[1..])[0].says, Says::Nothing);
        let overdrawn =
            [("x-ratelimit-limit", "100"), ("x-ratelimit-remaining", "-3"), ("x-ratelimit-reset", "55")];
        assert_eq!(
            hints(&overdrawn)[0].says,
            after(55_000),
            "a counter below nothing is no word of the limit"
        );
        assert_eq!(said("x-ratelimit-reset-tokens", "-1"), Says::Nothing);
        assert_eq!(said("x-ratelimit-reset-tokens", "0"), after(0));
    }

    /// As in CortexLM/cortex-code#407, zalando/restful-api-guidelines#379 and sethvargo/go-limiter#22: durations, seconds and
    /// moments under one name.
    #[test]
    fn durations_seconds_and_moments_are_told_apart_by_one_rule() {
        let read = |text| said("x-ratelimit-reset-requests", text);
        let durations = ["1s", "1m30s", "6m0s", "17ms", "17", "1.286s", "0.5"].map(read);
        assert_eq!(durations, [1_000, 90_000, 360_000, 17, 17_000, 1_286, 500].map(after));
        assert_eq!(read("1372700873"), Says::Past, "in 2013");
        assert_eq!(read("1372700873000"), Says::Past);
        assert_eq!(["1796083230", "1796083230000"].map(read), [after(30_000), after(30_000)]);
        assert_eq!(
            read("999999999"),
            Says::Wait(Duration::from_secs(999_999_999)),
            "the last that is no moment"
        );
        assert_eq!(read("2026-12-01T00:00:07Z"), after(7_000));
        assert_eq!(read("0001-01-01T00:00:00Z"), Says::Past);
        assert_eq!(read("Tue, 01 Dec 2026 00:01:00 GMT"), after(60_000));
        let unknown = &hints(&[("ratelimit-reset", "after lunch")])[0];
        assert_eq!((unknown.says, unknown.text.as_str()), (Says::Unknown, "after lunch"));
        for text in ["", "1e3", "+5", "nan", "1_000", "12:30", "-", "."] {
            assert_eq!(read(text), Says::Unknown, "{text}");
        }
    }

    #[test]
    fn moments_are_held_against_the_answers_own_date() {
        let date = ("date", "Mon, 01 Jul 2013 17:47:43 GMT");
        assert_eq!(hints(&[date, ("x-ratelimit-reset", "1372700873")])[0].says, after(10_000));
    }

    /// As in openai/openai-python#1102.
    #[test]
    fn milliseconds_are_that_under_one_name_only() {
        let both = hints(&[("retry-after-ms", "4321"), ("retry-after", "5"), ("x-ratelimit-reset", "4321")]);
        let says: Vec<_> = both.iter().map(|hint| (hint.header.as_str(), hint.says)).collect();
        assert_eq!(says, [("retry-after-ms", after(4_321)), ("x-ratelimit-reset", after(4_321_000))]);
        assert_eq!(
            (said("retry-after-ms", "-1"), said("retry-after-ms", "soon")),
            (Says::Nothing, Says::Unknown)
        );
    }

    #[test]
    fn a_server_cannot_make_us_keep_more_than_a_few() {
        let mut headers = HeaderMap::new();
        for n in 0..200 {
            let name: http::HeaderName =
                format!("x-ratelimit-reset-{n}-{}", "x".repeat(900)).parse().unwrap();
            headers.insert(name, HeaderValue::from_bytes(&[b'9'; 5_000]).unwrap());
        }
        let hints = read(&headers, WALL);
        let hints = hints.as_slice();
        assert!(hints.len() == MOST && hints.iter().all(|hint| hint.text.chars().count() <= KEPT + 1));
        assert!(hints.iter().all(|hint| hint.header.chars().count() <= NAME + 1));
        assert!(hints.iter().all(|hint| matches!(hint.says, Says::Wait(_))));
    }
}
