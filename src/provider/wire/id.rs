use std::fmt;

use crate::units::Tokens;

/// The id that travels with a request through the gateway to the provider and joins what both sides saw.
///
/// Its text form goes into `x-request-id` and the API's own user field: `tenfold-9f3c2a11-412-o400`, a later attempt
/// of the same caller with `-r1`, `-r2` behind it, a copy of the first with `-d1`. The same facts fit into a W3C
/// `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestId {
    /// The run, so that a straggler of an earlier one is not taken for ours.
    pub run: u32,
    /// The arrival's number.
    pub seq: u64,
    /// 0 for the first attempt.
    pub attempt: u16,
    /// The tokens the provider shall answer with.
    pub output: Tokens,
}

/// Version byte of the trace id: changes when its layout does.
const LAYOUT: u64 = 0x7F;

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tenfold-{:08x}-{}-o{}", self.run, self.seq, self.output)?;
        if self.attempt >= Self::COPY {
            write!(f, "-d{}", self.attempt - Self::COPY + 1)?;
        } else if self.attempt > 0 {
            write!(f, "-r{}", self.attempt)?;
        }
        Ok(())
    }
}

impl RequestId {
    /// Attempts from this number on are copies of the first.
    pub const COPY: u16 = 128;

    /// Reads the text form; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("tenfold-")?.split('-');
        let run = parts.next().filter(|hex| hex.len() == 8)?;
        let run = u32::from_str_radix(run, 16).ok()?;
        let seq = parts.next()?.parse().ok()?;
        let output = parts.next()?.strip_prefix('o')?.parse().ok()?;
        let attempt = parts.next().map_or(Some(0), attempt)?;
        parts.next().is_none().then_some(Self { run, seq, attempt, output: Tokens::new(output) })
    }

    /// The `traceparent` header: the trace id holds a layout byte, the run, the number, the output and the attempt.
    /// `None` if one of them is too large for its place (2^40 arrivals, 2^24 tokens, 255 attempts).
    pub fn traceparent(&self) -> Option<String> {
        let fits = self.seq < 1 << 40 && self.output.get() < 1 << 24 && self.attempt < 256;
        let high = (LAYOUT << 56) | (u64::from(self.run) << 24) | (self.seq >> 16);
        let low =
            (self.seq & 0xFFFF) << 48 | self.output.get() << 24 | u64::from(self.attempt) << 16 | 0x7F1D;
        let parent =
            (u64::from(self.run) << 32 | (self.seq & 0xFFFF_FFFF)) ^ u64::from(self.attempt) << 24 | 1 << 63;
        fits.then(|| format!("00-{high:016x}{low:016x}-{parent:016x}-01"))
    }

    /// Reads a `traceparent` that [`Self::traceparent`] made, whatever parent id a gateway put into it since.
    pub fn parse_traceparent(text: &str) -> Option<Self> {
        let trace = text.split('-').nth(1).filter(|id| id.len() == 32 && id.is_ascii())?;
        let high = u64::from_str_radix(&trace[..16], 16).ok()?;
        let low = u64::from_str_radix(&trace[16..], 16).ok()?;
        let ours = high >> 56 == LAYOUT && low & 0xFFFF == 0x7F1D;
        ours.then(|| Self {
            run: u32::try_from((high >> 24) & 0xFFFF_FFFF).unwrap_or(0),
            seq: (high & 0xFF_FFFF) << 16 | low >> 48,
            output: Tokens::new((low >> 24) & 0xFF_FFFF),
            attempt: u16::try_from((low >> 16) & 0xFF).unwrap_or(0),
        })
    }
}

/// The number of an attempt, as it stands at the end of an id.
fn attempt(part: &str) -> Option<u16> {
    match (part.strip_prefix('r'), part.strip_prefix('d')) {
        (Some(number), _) => number.parse().ok().filter(|nth| *nth < RequestId::COPY),
        (_, Some(number)) => number.parse::<u16>().ok()?.checked_sub(1)?.checked_add(RequestId::COPY),
        (None, None) => None,
    }
}

/// Who is calling, from a request id: the id without the attempt at its end, so that a caller who returns
/// is known again. Works for ids of any form.
pub fn caller_of(request_id: &str) -> &str {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match request_id.rsplit_once('-') {
        Some((caller, end)) if end.strip_prefix(['r', 'd']).is_some_and(number) => caller,
        _ => request_id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_carry_everything() {
        let id = RequestId { run: 0x9f3c_2a11, seq: 412, attempt: 0, output: Tokens::new(400) };
        assert_eq!(id.to_string(), "tenfold-9f3c2a11-412-o400");
        for id in [
            id,
            RequestId { attempt: 2, ..id },
            RequestId { attempt: RequestId::COPY, ..id },
            RequestId { seq: (1 << 40) - 1, ..id },
        ] {
            assert_eq!(RequestId::parse(&id.to_string()), Some(id));
            assert_eq!(RequestId::parse_traceparent(&id.traceparent().unwrap()), Some(id));
            assert_eq!(id.traceparent().unwrap().len(), 55);
        }
        assert_eq!(RequestId { seq: 1 << 40, ..id }.traceparent(), None);
    }

    #[test]
    fn foreign_ids_are_not_ours() {
        for foreign in
            ["", "req_123", "tenfold-", "tenfold-9f3c2a11-4x-o1", "tenfold-9f3c2a11-4-o1-r1-x", "tenfold-é"]
        {
            assert_eq!(RequestId::parse(foreign), None, "{foreign}");
        }
        assert_eq!(
            RequestId::parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            None
        );
        assert_eq!(RequestId::parse_traceparent("é"), None);
    }

    #[test]
    fn a_returning_caller_is_known_again() {
        assert_eq!(caller_of("tenfold-9f3c2a11-412-o400-r1"), "tenfold-9f3c2a11-412-o400");
        assert_eq!(caller_of("tenfold-9f3c2a11-412-o400-d1"), "tenfold-9f3c2a11-412-o400");
        assert_eq!(caller_of("abc-rx"), "abc-rx");
        assert_eq!(caller_of("abc"), "abc");
    }
}
