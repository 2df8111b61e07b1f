//! What an answer says: from raw bytes, all of them a stranger's, to an [`Answer`].

use std::borrow::Cow;
use std::time::Duration;

use http::HeaderMap;
use http::header::{CONTENT_TYPE, DATE, RETRY_AFTER};
use serde_json::Value;

use crate::observe::{Answer, Fraction, HintSet, Reason, RetryAfter};
use crate::plan::{Refusal, Wanted};
use crate::provider::wire::{Api, headers as names};

/// Characters of a foreign text that are kept.
pub(super) const KEPT: usize = 40;

/// Reads an answer of `api`. `expect` says which statuses are refusals and what form they shall have.
pub(super) fn answer(
    api: &dyn Api,
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    expect: &Refusal,
) -> Answer {
    let success = status == 200;
    let json = if success { None } else { serde_json::from_slice::<Value>(body).ok() };
    let instead = expect.instead.contains(&status);
    let refusal = expect.means_refusal(status);
    Answer {
        status,
        retry_after: retry_after(headers),
        hints: HintSet::NONE,
        should_retry: should_retry(headers),
        reason: json.as_ref().and_then(reason),
        usable: success && api.has_text(body),
        marked: !refusal || marked(headers, expect),
        shape: match refusal {
            _ if instead => Err(format!("status {status}, not {}", designed(expect))),
            true => shape(headers, json.as_ref(), expect),
            false => Ok(()),
        },
        streamed: None,
    }
}

/// The `reason` a problem details body names for itself.
fn reason(body: &Value) -> Option<Reason> {
    match body.get("reason")?.as_str()? {
        "shed" => Some(Reason::Shed),
        "throttled" => Some(Reason::Throttled),
        "expired" => Some(Reason::Expired),
        "never_fits" => Some(Reason::NeverFits),
        _ => None,
    }
}

/// The `Retry-After` header (RFC 9110, section 10.2.3): whole seconds, or a date, which is read against the answer's
/// own `Date` so that no clock of ours comes into it. A fraction of a second is told apart from what cannot be read.
fn retry_after(headers: &HeaderMap) -> Option<RetryAfter> {
    let mut all = headers.get_all(RETRY_AFTER).iter();
    let value = all.next()?;
    let text = String::from_utf8_lossy(value.as_bytes());
    let sent = escaped(&text, KEPT);
    if all.next().is_some() {
        return Some(RetryAfter::Unreadable(format!("{sent} and another")));
    }
    let text = text.trim();
    Some(if let Some(secs) = digits(text) {
        RetryAfter::After(Duration::from_secs(secs))
    } else if let Some(span) = fraction(text) {
        RetryAfter::Fraction(Box::new(Fraction { wait: span, text: sent }))
    } else {
        date(text, headers).map_or(RetryAfter::Unreadable(sent), RetryAfter::After)
    })
}

/// At most nine digits, and nothing else.
fn digits(text: &str) -> Option<u64> {
    let only = (1..=9).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| only)
}

/// Digits, a point, and digits; to the nanosecond, rounded up.
fn fraction(text: &str) -> Option<Duration> {
    let (whole, part) = text.split_once('.')?;
    if !(1..=KEPT).contains(&part.len()) || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (nanos, rest) = part.split_at(part.len().min(9));
    let nanos: u64 = format!("{nanos:0<9}").parse().ok()?;
    let more = u64::from(rest.bytes().any(|digit| digit != b'0'));
    Some(Duration::from_secs(digits(whole)?) + Duration::from_nanos(nanos + more))
}

/// A date less the answer's own; nothing is left of one that has passed.
fn date(text: &str, headers: &HeaderMap) -> Option<Duration> {
    let date = |text: &str| httpdate::parse_http_date(text.trim()).ok();
    let (then, now) = (date(text)?, date(headers.get(DATE)?.to_str().ok()?)?);
    Some(then.duration_since(now).unwrap_or_default())
}

/// The `x-should-retry` header, as SDKs read it: `true` or `false`, and nothing else.
fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get(names::SHOULD_RETRY)?.to_str().ok()?.trim() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// The statuses a refusal should have.
fn designed(expect: &Refusal) -> String {
    let all: Vec<_> = expect.shed.iter().chain(&expect.throttled).map(u16::to_string).collect();
    all.join(" or ")
}

/// Whether an answer carries every header that marks a refusal.
fn marked(headers: &HeaderMap, expect: &Refusal) -> bool {
    expect.marked_by.iter().all(|(name, wanted)| {
        let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        differs(name, value.as_deref().map(str::trim), wanted, |want, is| want == is).is_ok()
    })
}

/// The first thing in which a refusal differs from the designed form.
fn shape(headers: &HeaderMap, body: Option<&Value>, expect: &Refusal) -> Result<(), String> {
    for (name, wanted) in &expect.headers {
        let value = headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
        // parameters such as a charset are no part of the type
        let plain = value.as_deref().map(|value| match value.split_once(';') {
            Some((kind, _)) if name == CONTENT_TYPE.as_str() => kind.trim(),
            _ => value.trim(),
        });
        let same = |want: &str, is: &str| {
            if name == CONTENT_TYPE.as_str() { want.eq_ignore_ascii_case(is) } else { want == is }
        };
        differs(&format!("header `{name}`"), plain, wanted, same)?;
    }
    if expect.body.is_empty() {
        return Ok(());
    }
    let body = body.ok_or_else(|| "the body is no JSON".to_owned())?;
    for (pointer, wanted) in &expect.body {
        let member = body.pointer(pointer).filter(|member| !member.is_null());
        let text = member.map(|m| m.as_str().map_or_else(|| Cow::Owned(m.to_string()), Cow::Borrowed));
        differs(&format!("member `{pointer}`"), text.as_deref(), wanted, |want, is| want == is)?;
    }
    Ok(())
}

fn differs(
    what: &str,
    is: Option<&str>,
    wanted: &Wanted,
    same: impl Fn(&str, &str) -> bool,
) -> Result<(), String> {
    match (is, wanted) {
        (None, _) => Err(format!("{what} is missing")),
        (Some(is), Wanted::Exactly(want)) if !same(want, is) => {
            Err(format!("{what} is `{}`, not `{want}`", escaped(is, KEPT)))
        }
        (Some(_), _) => Ok(()),
    }
}

/// At most `most` characters of `text`, control characters escaped: fit for a terminal.
pub(super) fn escaped(text: &str, most: usize) -> String {
    let mut out = String::new();
    for c in text.chars().take(most) {
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    if text.chars().nth(most).is_some() {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::provider::wire::openai::OpenAi;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(k, v)| (k.parse().unwrap(), http::HeaderValue::from_static(v))).collect()
    }

    fn told(pairs: &[(&'static str, &'static str)]) -> Option<RetryAfter> {
        retry_after(&headers(pairs))
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_less_the_answers_own() {
        let after = |secs| Some(RetryAfter::After(Duration::from_secs(secs)));
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("retry-after", "7")]), after(7));
        assert_eq!(told(&[("retry-after", " 0 ")]), after(0));
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(told(&[date, ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), after(30));
        assert_eq!(
            told(&[date, ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]),
            after(0),
            "the past is now"
        );
        assert!(matches!(
            told(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]),
            Some(RetryAfter::Unreadable(_))
        ));
        assert!(matches!(
            told(&[("retry-after", "1"), ("retry-after", "9")]),
            Some(RetryAfter::Unreadable(_))
        ));
    }

    /// As in urllib3/urllib3#2861, SpaceTradersAPI/api-docs#24, teng-lin/notebooklm-py#1276 and x402-foundation/x402#2614:
    /// some clients fail on a fraction of a second. It is a class of its own, read as what it says.
    #[test]
    fn a_fraction_of_a_second_is_read_and_told_apart() {
        for (text, millis) in
            [("0.503", 503), ("1.5", 1_500), (" 2.5 ", 2_500), ("0.0", 0), ("7.000000001", 7_000)]
        {
            let Some(RetryAfter::Fraction(fraction)) = told(&[("retry-after", text)]) else {
                panic!("{text} has a fraction")
            };
            assert_eq!((fraction.wait.as_millis(), fraction.text.as_str()), (millis, text));
        }
        assert_eq!(told(&[("retry-after", "7.000000001")]).unwrap().wait().unwrap().subsec_nanos(), 1);
        let nanos = |text| told(&[("retry-after", text)]).unwrap().wait().unwrap().subsec_nanos();
        assert_eq!(
            nanos("0.5034029483795166"),
            503_402_949,
            "as many digits as a float has, and never rounded down"
        );
        assert_eq!((nanos("1.5000000000"), nanos("1.9999999999")), (500_000_000, 0));
        for text in ["1.", ".5", "1.5.2", "1e3.5", "-1.5"] {
            assert!(matches!(told(&[("retry-after", text)]), Some(RetryAfter::Unreadable(_))), "{text}");
        }
        // bytes that are no text, of which the ninth lies within a character
        let mut foreign = HeaderMap::new();
        foreign.insert("retry-after", http::HeaderValue::from_bytes(b"1.a\xff\xff\xff\xff").unwrap());
        assert!(matches!(retry_after(&foreign), Some(RetryAfter::Unreadable(_))));
    }

    /// As in NousResearch/hermes-agent#84762, tavily-ai/tavily-python#166 and bug-ops/zeph#6496: what a float parser takes is
    /// no wait, and neither nothing nor the longest; it is kept as it was sent.
    #[test]
    fn what_is_no_wait_is_kept_as_it_was_sent() {
        for bad in ["-5", "-1.5", "nan", "inf", "1e10000", "+5", "1e3", "", "soon", "99999999999"] {
            assert_eq!(told(&[("retry-after", bad)]), Some(RetryAfter::Unreadable(bad.to_owned())));
        }
    }

    #[test]
    fn whether_to_try_again_is_true_or_false_and_nothing_else() {
        let read = |text| should_retry(&headers(&[("x-should-retry", text)]));
        assert_eq!(
            ["true", " false ", "yes", "False", ""].map(read),
            [Some(true), Some(false), None, None, None]
        );
    }

    #[test]
    fn a_refusal_is_held_against_the_designed_form() {
        let present = |name: &str| (name.to_owned(), Wanted::Present);
        let expect = Refusal {
            instead: Vec::new(),
            marked_by: BTreeMap::new(),
            shed: vec![503],
            throttled: vec![429],
            fast_within: Duration::from_millis(100),
            headers: BTreeMap::from([(
                "content-type".to_owned(),
                Wanted::Exactly("application/problem+json".to_owned()),
            )]),
            body: BTreeMap::from([
                present("/type"),
                ("/status".to_owned(), Wanted::Exactly("503".to_owned())),
            ]),
        };
        let problem =
            headers(&[("content-type", "Application/Problem+JSON; charset=utf-8"), ("retry-after", "4")]);
        let body = br#"{"type":"about:blank","status":503,"reason":"shed"}"#;
        let good = answer(&OpenAi, 503, &problem, body, &expect);
        assert_eq!((good.shape, good.reason, good.usable), (Ok(()), Some(Reason::Shed), false));

        let plain = headers(&[("content-type", "text/plain")]);
        let shape = |headers: &HeaderMap, body: &[u8]| {
            answer(&OpenAi, 503, headers, body, &expect).shape.unwrap_err()
        };
        assert_eq!(
            shape(&plain, body),
            "header `content-type` is `text/plain`, not `application/problem+json`"
        );
        assert_eq!(shape(&HeaderMap::new(), body), "header `content-type` is missing");
        assert_eq!(shape(&problem, b"no"), "the body is no JSON");
        assert_eq!(shape(&problem, br#"{"type":null}"#), "member `/status` is missing");
        assert_eq!(answer(&OpenAi, 500, &plain, b"no", &expect).shape, Ok(()), "no refusal, no form");
    }

    #[test]
    fn foreign_text_cannot_move_the_cursor() {
        assert_eq!(escaped("a\u{1b}[2Jb\r\n", 40), "a\\u{1b}[2Jb\\r\\n");
        assert_eq!(escaped("abcdef", 3), "abc…");
    }
}
