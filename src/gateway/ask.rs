//! What a request asks for, read from its head and body.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::config::Deadline;
use super::refusal::Refusal;
use crate::admission::{Tenant, TenantId};
use crate::provider::wire::{Api, caller_of, headers as names};
use crate::units::Tokens;

/// The most tokens a request may name: beyond it is a slip of the pen, and sums stay far from overflow.
const MOST_TOKENS: Tokens = Tokens::new(1_000_000_000);

/// The longest idempotency key.
const LONGEST_KEY: usize = 255;

/// The tenants of a configuration by their names.
#[derive(Debug)]
pub(crate) struct Tenants(BTreeMap<String, TenantId>);

impl Tenants {
    pub(crate) fn new(tenants: &[Tenant]) -> Self {
        Self((0..).map(TenantId).zip(tenants).map(|(id, tenant)| (tenant.name.clone(), id)).collect())
    }

    /// On whose behalf a request comes. Where no tenants are configured, nobody is asked.
    pub(super) fn of(&self, headers: &HeaderMap) -> Result<TenantId, Refusal> {
        if self.0.is_empty() {
            return Ok(TenantId::default());
        }
        let Some(value) = only(headers, names::TENANT)? else {
            return Err(fault(
                names::TENANT,
                "it is missing: it names the tenant on whose behalf the request comes",
            ));
        };
        let known = value.to_str().ok().and_then(|name| self.0.get(name));
        known
            .copied()
            .ok_or_else(|| fault(names::TENANT, &format!("`{}` is no tenant of this gateway", shown(value))))
    }
}

/// How important a request is.
pub(super) fn tier(headers: &HeaderMap) -> Result<u8, Refusal> {
    let Some(value) = only(headers, names::TIER)? else { return Ok(names::STANDARD_TIER) };
    let digits = |text: &&str| text.bytes().all(|b| b.is_ascii_digit());
    let tier = value.to_str().ok().filter(digits).and_then(|text| text.parse().ok());
    tier.ok_or_else(|| fault(names::TIER, &format!("`{}` is no whole number from 0 to 255", shown(value))))
}

/// The idempotency key of a request, if it has one.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<&HeaderValue>, Refusal> {
    let Some(value) = only(headers, names::IDEMPOTENCY_KEY)? else { return Ok(None) };
    let tidy = (1..=LONGEST_KEY).contains(&value.len()) && value.as_bytes().iter().all(u8::is_ascii_graphic);
    let wanted = format!("it has 1 to {LONGEST_KEY} visible ASCII characters");
    if tidy { Ok(Some(value)) } else { Err(fault(names::IDEMPOTENCY_KEY, &wanted)) }
}

/// How long the caller will wait, by the deadline header or by default; `unix` is the present instant since 1970.
pub(super) fn remaining(
    headers: &HeaderMap,
    deadline: &Deadline,
    unix: Duration,
) -> Result<Duration, Refusal> {
    let name = deadline.header.as_str();
    let Some(value) = only(headers, name)? else { return Ok(deadline.default) };
    let text = value.to_str().unwrap_or("\u{fffd}");
    let remaining = deadline.form.read(text, unix).map_err(|why| fault(name, &why))?;
    Ok(remaining.min(deadline.longest))
}

/// Who is calling: the same number for every attempt of one caller; `None` if the request has no id.
pub(super) fn caller(headers: &HeaderMap) -> Option<u64> {
    let id = headers.get(names::REQUEST_ID)?.to_str().ok().filter(|id| !id.is_empty())?;
    Some(fnv(caller_of(id).as_bytes()))
}

/// A header that may stand there once: two of them could be read differently by the next party.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut all = headers.get_all(name).iter();
    match (all.next(), all.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(fault(name, "it stands there more than once")),
    }
}

fn fault(header: &str, why: &str) -> Refusal {
    Refusal::Malformed { param: None, message: format!("header `{header}`: {why}") }
}

fn shown(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).chars().take(40).collect::<String>().escape_debug().to_string()
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}

/// Tokens of the prompt, and the most of the answer, of a request in the form of `api`.
pub(super) fn tokens(api: &dyn Api, body: &[u8]) -> Result<(Tokens, Tokens), Refusal> {
    let bad = |param, message: String| Err(Refusal::Malformed { param, message });
    let asked = match api.read(body) {
        Ok(asked) => asked,
        Err(why) => return bad(None, format!("the body is no {} request: {why}", api.name())),
    };
    let field = asked.max_output_field;
    let Some(most) = asked.max_output else {
        return bad(Some(field), format!("`{field}` is missing: without it no tokens can be reserved"));
    };
    if most == Tokens::ZERO || most > MOST_TOKENS {
        return bad(Some(field), format!("`{field}` is {most}: it must lie between 1 and {MOST_TOKENS}"));
    }
    Ok((asked.prompt, most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::wire::openai::OpenAi;

    fn fault(body: &str) -> (Option<&'static str>, String) {
        match tokens(&OpenAi, body.as_bytes()) {
            Err(Refusal::Malformed { param, message }) => (param, message),
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn the_hold_is_the_prompt_and_the_most_of_the_answer() {
        let body =
            |max: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":"a b c"}}],{max}}}"#);
        let read = |max| tokens(&OpenAi, body(max).as_bytes());
        assert_eq!(read(r#""max_tokens":5"#), Ok((Tokens::new(3), Tokens::new(5))));
        assert_eq!(read(r#""max_tokens":5,"max_completion_tokens":7"#), Ok((Tokens::new(3), Tokens::new(7))));
        assert_eq!(read(r#""max_tokens":5,"n":1,"tools":[{"x":{}}]"#), Ok((Tokens::new(3), Tokens::new(5))));
    }

    #[test]
    fn a_fault_names_its_field() {
        let with = |max: &str| format!(r#"{{"messages":[],{max}}}"#);
        assert_eq!(fault(&with(r#""x":1"#)).0, Some("max_completion_tokens"));
        assert_eq!(fault(&with(r#""max_tokens":0"#)).0, Some("max_tokens"));
        assert_eq!(fault(&with(r#""max_completion_tokens":1000000001"#)).0, Some("max_completion_tokens"));
        for max in
            [r#""max_tokens":-1"#, r#""max_tokens":1.5"#, r#""max_tokens":"many""#, r#""max_tokens":1e400"#]
        {
            let (_, message) = fault(&with(max));
            assert!(message.contains("max_tokens") || message.contains("out of range"), "{message}");
        }
        for body in ["", "{", "[]", "null", "\u{0}", "{\"max_tokens\":5"] {
            assert!(fault(body).1.contains("no openai request"), "{body}");
        }
        let deep = format!("{}{}", r#"{"messages":"#, "[".repeat(100_000));
        assert!(fault(&deep).1.contains("no openai request"));
    }

    #[test]
    fn attempts_of_one_caller_are_one_caller() {
        let of = |id: &str| {
            caller(&HeaderMap::from_iter([(
                http::HeaderName::from_static(names::REQUEST_ID),
                id.parse().unwrap(),
            )]))
        };
        assert_eq!(of("tenfold-9f3c2a11-412-o400"), of("tenfold-9f3c2a11-412-o400-r1"));
        assert_ne!(of("tenfold-9f3c2a11-412-o400"), of("tenfold-9f3c2a11-413-o400"));
        assert_eq!((of(""), caller(&HeaderMap::new())), (None, None));
    }

    fn map(entries: &[(&'static str, &[u8])]) -> HeaderMap {
        let entry = |(name, value): &(&'static str, &[u8])| {
            (http::HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap())
        };
        entries.iter().map(entry).collect()
    }

    fn why<T: std::fmt::Debug>(result: Result<T, Refusal>) -> String {
        match result {
            Err(Refusal::Malformed { message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_unknown_tenant_is_told_so_where_tenants_are_configured() {
        let tenant = |name: &str| Tenant {
            name: name.into(),
            weight: 1,
            tokens: None,
            requests: None,
            window: crate::units::Window::Bucket { burst: Duration::from_secs(1) },
            counts: crate::admission::Counts::Admitted,
        };
        let tenants = Tenants::new(&[tenant("retail"), tenant("batch")]);
        assert_eq!(tenants.of(&map(&[("x-tenant", b"batch")])), Ok(TenantId(1)));
        for headers in [map(&[]), map(&[("x-tenant", b"Batch")]), map(&[("x-tenant", b"\xff\xfe")])] {
            assert!(why(tenants.of(&headers)).contains("`x-tenant`"));
        }
        let mut twice = map(&[("x-tenant", b"batch")]);
        twice.append("x-tenant", "retail".parse().unwrap());
        assert!(why(tenants.of(&twice)).contains("more than once"));
        assert_eq!(Tenants::new(&[]).of(&map(&[("x-tenant", b"anything")])), Ok(TenantId(0)));
    }

    #[test]
    fn tiers_and_keys_are_read_within_bounds() {
        assert_eq!((tier(&map(&[])), tier(&map(&[("x-tier", b"0")]))), (Ok(1), Ok(0)));
        for bad in ["", "-1", "+1", "256", "1.5", "high", "99999999999999999999"] {
            assert!(why(tier(&map(&[("x-tier", bad.as_bytes())]))).contains("`x-tier`"), "{bad}");
        }
        assert_eq!(key(&map(&[])), Ok(None));
        let longest = [b'k'; LONGEST_KEY];
        assert!(key(&map(&[("idempotency-key", &longest)])).is_ok_and(|key| key.is_some()));
        for bad in [&b""[..], b"a b", b"\xe9", &[b'k'; LONGEST_KEY + 1]] {
            assert!(why(key(&map(&[("idempotency-key", bad)]))).contains("`idempotency-key`"), "{bad:?}");
        }
    }

    #[test]
    fn a_deadline_is_clamped_and_never_in_the_past() {
        let unix = Duration::from_secs(1_790_000_000);
        let deadline =
            Deadline { form: crate::provider::wire::DeadlineForm::AbsoluteMs, ..Deadline::standard() };
        let read =
            |text: &str| remaining(&map(&[("x-request-timeout-ms", text.as_bytes())]), &deadline, unix);
        assert_eq!(read("1790000004500"), Ok(Duration::from_millis(4_500)));
        assert_eq!(read("1790086400000"), Ok(Deadline::LONGEST), "a clock that is a day ahead");
        assert!(why(read("1789999999000")).contains("`x-request-timeout-ms`"));
        assert_eq!(remaining(&map(&[]), &deadline, unix), Ok(deadline.default));
    }
}
