//! Callers who try again: what an answer's headers tell them, and when their next attempt is due.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};

use super::pacer::Departure;
use crate::observe::{Answer, Attempt, Hint, RetryAfter};
use crate::plan::Plan;
use crate::units::Moment;
use crate::workload::{Allowance, Class, ClassId, Mix, OnRefusal, Signs, stream};

/// Decides who comes back, as the simulation does: the same draws, the same budgets.
#[derive(Debug)]
pub(super) struct Comebacks {
    seed: u64,
    /// Whether callers of any class try again.
    any: bool,
    /// When the last phase is over: whoever would come back then, or later, is not waited for.
    end: Moment,
    /// How many retries each class has left.
    allowances: Mutex<Vec<Allowance>>,
}

/// What a caller does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comeback {
    /// It goes away.
    None,
    /// It would, but later than a run waits.
    TooLate,
    /// It tries again.
    Due(Departure),
}

impl Comebacks {
    /// Of the callers of `plan`, whose load begins at `start`.
    pub(super) fn new(plan: &Plan, start: Moment) -> Self {
        let classes = plan.requests.classes();
        Self {
            seed: plan.load.seed,
            any: classes.iter().any(|class| class.on_refusal != OnRefusal::GiveUp),
            end: start + plan.load.end().since(Moment::ZERO),
            allowances: Mutex::new(classes.iter().map(|class| Allowance::of(&class.on_refusal)).collect()),
        }
    }

    /// A first attempt was due.
    pub(super) fn earn(&self, class: ClassId) {
        if self.any {
            self.with(class, Allowance::earn);
        }
    }

    /// What the caller of `departure`, whose attempt ended at `at` with `signs`, does next.
    pub(super) fn next(&self, departure: Departure, mix: &Mix, signs: &Signs, at: Moment) -> Comeback {
        let OnRefusal::Retry(retry) = &mix.class(departure.class).on_refusal else { return Comeback::None };
        let Attempt { seq, nth } = departure.attempt;
        let draw = stream::draw(self.seed, stream::RETRIES, seq, u64::from(nth));
        let Some(wait) = retry.wait(nth, signs, draw) else { return Comeback::None };
        let due = at + wait;
        if due >= self.end {
            return Comeback::TooLate;
        }
        if !self.with(departure.class, Allowance::spend) {
            return Comeback::None;
        }
        let attempt = Attempt { seq, nth: nth + 1 };
        Comeback::Due(Departure { due, attempt, probe: false, ..departure })
    }

    fn with<T: Default>(&self, class: ClassId, act: impl FnOnce(&mut Allowance) -> T) -> T {
        let mut all = self.allowances.lock().unwrap_or_else(PoisonError::into_inner);
        all.get_mut(usize::from(class.0)).map(act).unwrap_or_default()
    }
}

/// The name of the header in which SDKs count their retries.
const RETRY_COUNT: &str = "x-stainless-retry-count";

/// The value of that header for callers who do as an SDK does.
fn retry_count(attempt: Attempt) -> u16 {
    // a copy is what was sent before, once more
    if attempt.is_copy() { 0 } else { attempt.nth }
}

/// Adds what an SDK says of itself: how often it has tried, and how long it waits for an answer. Nothing for callers who do
/// as no SDK does.
pub(super) fn introduce(class: &Class, attempt: Attempt, headers: &mut HeaderMap) {
    let OnRefusal::Retry(retry) = &class.on_refusal else { return };
    let Some(sdk) = retry.sdk() else { return };
    headers.insert(RETRY_COUNT, retry_count(attempt).into());
    let patience = class.patience;
    let seconds = if sdk.whole_seconds { patience.as_secs() as f64 } else { patience.as_secs_f64() };
    for name in sdk.timeout_headers {
        if let Ok(value) = HeaderValue::try_from(seconds.to_string()) {
            headers.insert(*name, value);
        }
    }
}

/// What an answer tells its caller about trying again. `refused` is whether the plan takes it for a refusal.
pub(super) fn signs(answer: &Answer, headers: &Told, refused: bool) -> Signs {
    let told = answer.retry_after.as_ref().and_then(RetryAfter::wait);
    Signs {
        status: Some(answer.status),
        refused,
        timed_out: false,
        told,
        hint: headers.hint,
        loose: headers.loose,
        should_retry: answer.should_retry,
    }
}

/// What SDKs read in the headers of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Told {
    /// `retry-after-ms`, else `retry-after` as seconds that may have a fraction, else as a date.
    hint: Option<Duration>,
    /// The same by who takes a text for the number it begins with: `5s` for 5.
    loose: Option<Duration>,
}

impl Told {
    /// Of these headers. Headers that tell when a limit is reset are none of them.
    ///
    /// A date is held against the answer's own; against `wall`, the time since 1970, if it has none.
    pub(super) fn read(headers: &HeaderMap, wall: Duration) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let coarse = text(RETRY_AFTER.as_str());
        let read = |number: fn(&str, f64) -> Option<Read>, fine: Option<Read>| {
            // a number that is no wait ends the search: it was read
            fine.or_else(|| number(coarse?, 1.0)).unwrap_or_else(|| date(coarse?, headers, wall))
        };
        let fine = |number: fn(&str, f64) -> Option<Read>| {
            text(Hint::MILLISECONDS).and_then(|text| number(text, 1e-3))
        };
        let loosely: fn(&str, f64) -> Option<Read> = |text, unit| number(beginning(text), unit);
        // where there is another header, nothing in milliseconds counts for none
        let other = |read: &Read| coarse.is_none() || *read != Some(Duration::ZERO);
        Self { hint: read(number, fine(number)), loose: read(loosely, fine(loosely).filter(other)) }
    }
}

/// The longest beginning of `text` that is a number in digits, with a sign, a fraction and an exponent: what JavaScript's
/// `parseFloat` reads.
fn beginning(text: &str) -> &str {
    let digits = |from: usize| text[from..].bytes().take_while(u8::is_ascii_digit).count();
    let signed = |from: usize| from + usize::from(text[from..].starts_with(['+', '-']));
    let start = signed(0);
    let whole = digits(start);
    let mut end = start + whole;
    let part = if text[end..].starts_with('.') { digits(end + 1) } else { 0 };
    if whole + part == 0 {
        return if text[start..].starts_with("Infinity") { &text[..start + 8] } else { "" };
    }
    end += if part > 0 { part + 1 } else { 0 };
    if text[end..].starts_with(['e', 'E']) {
        let exponent = signed(end + 1);
        let power = digits(exponent);
        end = if power > 0 { exponent + power } else { end };
    }
    &text[..end]
}

/// What a number comes to: a wait, or none.
type Read = Option<Duration>;

/// A number of units, as a float parser reads it: one below nothing, or none at all, is no wait, and one too large is the
/// longest. `None` of what is not read.
fn number(text: &str, unit: f64) -> Option<Read> {
    let seconds = text.parse::<f64>().ok()? * unit;
    Some((seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
}

fn date(text: &str, headers: &HeaderMap, wall: Duration) -> Option<Duration> {
    let then = httpdate::parse_http_date(text).ok()?;
    let own = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    then.duration_since(own.unwrap_or(SystemTime::UNIX_EPOCH + wall)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(pairs: &[(&'static str, &'static str)]) -> Told {
        let headers = pairs.iter().map(|(k, v)| (k.parse().unwrap(), HeaderValue::from_static(v)));
        Told::read(&headers.collect(), Duration::from_secs(784_111_777))
    }

    fn hint(pairs: &[(&'static str, &'static str)]) -> Option<u128> {
        told(pairs).hint.map(|hint| hint.as_millis())
    }

    /// As in openai/openai-python#1102: of two headers with different precision clients take the finer.
    #[test]
    fn the_header_in_milliseconds_comes_first() {
        assert_eq!(hint(&[("retry-after-ms", "4321"), ("retry-after", "5")]), Some(4_321));
        assert_eq!(hint(&[("retry-after-ms", "4321")]), Some(4_321));
        assert_eq!(hint(&[("retry-after-ms", "4321"), ("retry-after", "60")]), Some(4_321));
        assert_eq!(hint(&[("retry-after-ms", "soon"), ("retry-after", "5")]), Some(5_000));
        assert_eq!(
            hint(&[("retry-after-ms", "-1"), ("retry-after", "5")]),
            None,
            "it was read, and is no wait"
        );
        // openai-node takes nothing in milliseconds for no such header
        let nothing = told(&[("retry-after-ms", "0"), ("retry-after", "5")]);
        assert_eq!((nothing.hint, nothing.loose), (Some(Duration::ZERO), Some(Duration::from_secs(5))));
        assert_eq!(told(&[("retry-after-ms", "0")]).loose, Some(Duration::ZERO));
    }

    /// As in urllib3/urllib3#2861: a fraction of a second is read as one.
    #[test]
    fn fractions_of_a_second_are_kept() {
        let all = ["0.503", "1.5", " 2.5 ", "0.0"].map(|text| hint(&[("retry-after", text)]));
        assert_eq!(all, [Some(503), Some(1_500), Some(2_500), Some(0)]);
    }

    /// As in bug-ops/zeph#6496: what a float parser takes and a duration cannot hold is no panic.
    #[test]
    fn no_value_is_a_panic() {
        for text in ["-5", "-1.5", "nan", "", "soon", "-inf"] {
            assert_eq!(hint(&[("retry-after", text)]), None, "{text}");
        }
        for text in ["inf", "1e10000", "1e300"] {
            assert_eq!(told(&[("retry-after", text)]).hint, Some(Duration::MAX), "{text}");
        }
    }

    /// `parseFloat`, which openai-node reads with, takes what a number is followed by for no part of it.
    #[test]
    fn a_number_may_be_followed_by_anything_for_who_reads_loosely() {
        let loose = |text| told(&[("retry-after", text)]).loose.map(|wait| wait.as_millis());
        let both = ["5s", "5 seconds", "1.5.2", "2.s", "1e1x", "1e", "+3", ".5"].map(loose);
        let secs = [5_000, 5_000, 1_500, 2_000, 10_000, 1_000, 3_000, 500];
        assert_eq!(both, secs.map(Some));
        assert_eq!(told(&[("retry-after", "Infinity")]).loose, Some(Duration::MAX));
        assert_eq!(["soon", "", "-5s", "s5", "e5", "-", "."].map(loose), [None; 7]);
        assert_eq!(told(&[("retry-after", "5s")]).hint, None);
        assert_eq!(
            told(&[("retry-after-ms", "700ms"), ("retry-after", "2")]).loose,
            Some(Duration::from_millis(700))
        );
    }

    /// As in bug-ops/zeph#6496: `+5` and `1e3` are numbers to an SDK, though no `Retry-After`.
    #[test]
    fn an_sdk_takes_what_its_float_parser_takes() {
        assert_eq!(["+5", "1e3"].map(|text| hint(&[("retry-after", text)])), [Some(5_000), Some(1_000_000)]);
    }

    #[test]
    fn an_sdk_says_how_often_it_has_tried_and_how_long_it_waits() {
        let said_by = |deadline: &str, on_refusal: &str, nth| {
            let mix = crate::live::testing::mix_with(deadline, on_refusal);
            let mut headers = HeaderMap::new();
            introduce(mix.class(ClassId(0)), Attempt { seq: 7, nth }, &mut headers);
            let text = |(name, value): (&http::HeaderName, &HeaderValue)| {
                format!("{name}: {}", value.to_str().unwrap())
            };
            let mut all: Vec<_> = headers.iter().map(text).collect();
            all.sort();
            all
        };
        let said = |on_refusal: &str, nth| said_by("25s", on_refusal, nth);
        assert!(said("give_up", 0).is_empty() && said("{retry: {attempts: 3}}", 1).is_empty(), "no SDK");
        let count = "x-stainless-retry-count: 2";
        let (read, whole) = ("x-stainless-read-timeout: 25", "x-stainless-timeout: 25");
        assert_eq!(said("{retry: {like: openai-python}}", 2), [read, count]);
        assert_eq!(said("{retry: {like: anthropic-python}}", 2), [read, count, whole]);
        assert_eq!(said("{retry: {like: openai-node}}", 2), [count, whole]);
        assert_eq!(said_by("500ms", "{retry: {like: openai-python}}", 0)[0], "x-stainless-read-timeout: 0.5");
        assert_eq!(said_by("1500ms", "{retry: {like: openai-node}}", 0)[1], "x-stainless-timeout: 1");
        let copy = said("{retry: {like: openai-node}}", Attempt::COPY);
        assert_eq!(copy[0], "x-stainless-retry-count: 0", "a copy is the first attempt once more");
    }

    #[test]
    fn a_date_is_held_against_the_answers_own() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(hint(&[date, ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), Some(30_000));
        assert_eq!(hint(&[date, ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), None, "it has passed");
        // SDKs go by their own clock: here it is the same second
        assert_eq!(hint(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), Some(30_000));
    }

    /// As in openai/openai-python#937, openai/openai-dotnet#838 and CortexLM/cortex-code#407: headers that tell when a
    /// limit is reset, in whatever form, are no time to come back; -1 and 0 in them say nothing.
    #[test]
    fn reset_headers_are_no_retry_after() {
        for reset in ["55", "-1", "0", "1s", "1m30s", "6m0s", "17ms", "1372700873"] {
            for name in
                ["x-rate-limit-reset-tokens", "x-ratelimit-reset-tokens", "x-ratelimit-reset-requests"]
            {
                assert_eq!(told(&[(name, reset)]), Told::default(), "{name}: {reset}");
            }
        }
    }
}
