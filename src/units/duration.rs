use std::time::Duration;

use super::amount::decimal;

const UNITS: &[(&str, u64)] = &[
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
];

/// Reads `300ms`, `25s`, `1.5h`, `1m30s`. Every number carries its unit, larger units come first, none twice.
///
/// `5M`, `1:30`, `90`, `1m30` and `-5s` are refused; the message says what to write instead.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let hint = |why: &str| Err(format!("`{text}` {why} (write 300ms, 25s, 1m30s or 2h)"));
    if text.contains(':') {
        return hint("looks like a clock time, which has no unit");
    }
    if text.is_empty() {
        return hint("is no duration");
    }
    let mut rest = text;
    let mut total: u64 = 0;
    let mut last = u64::MAX;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(rest.len());
        let Some((whole, part)) = decimal(&rest[..end]) else {
            return hint("is no duration");
        };
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let Some((_, unit)) = UNITS.iter().find(|(name, _)| *name == &rest[..end]) else {
            return if end == 0 { hint("has no unit") } else { hint("has a unit that is not known") };
        };
        rest = &rest[end..];
        if *unit >= last {
            return hint("has its units out of order");
        }
        last = *unit;
        let scale = 10u128.pow(u32::try_from(part.len()).unwrap_or(u32::MAX).min(18));
        let number: u128 = format!("{whole}{part}").parse().unwrap_or(u128::MAX);
        let nanos =
            number.checked_mul(u128::from(*unit)).map(|n| n / scale).and_then(|n| u64::try_from(n).ok());
        let Some(sum) = nanos.and_then(|n| total.checked_add(n)) else {
            return hint("is too long");
        };
        total = sum;
    }
    Ok(Duration::from_nanos(total))
}

/// `seconds` as a span, to the nearest nanosecond of those a float can tell apart. Less than nothing is nothing, and what
/// is longer than a span of 64 bits of nanoseconds is that.
pub fn span_of(seconds: f64) -> Duration {
    // a float that is turned into a whole number stops at its ends
    Duration::from_nanos((seconds * 1e9 + 0.5) as u64)
}

/// Prints a duration exactly, in the form [`parse_duration`] reads: `3000ms`, `1500us`. Below a microsecond it is cut.
pub fn plain_duration(span: Duration) -> String {
    let micros = span.as_micros();
    if micros.is_multiple_of(1_000) { format!("{}ms", micros / 1_000) } else { format!("{micros}us") }
}

/// Prints a duration as the plan would write it, with at most three significant parts of the largest unit:
/// `25 s`, `4.52 s`, `300 ms`, `2 min 14 s`, `4 h 52 min`, `2 d 7 h 5 min`.
pub fn show_duration(span: Duration) -> String {
    let nanos = span.as_nanos();
    let secs = span.as_secs_f64();
    if nanos == 0 {
        return "0 s".into();
    }
    if secs >= 172_800.0 {
        let minutes = (secs / 60.0).round() as u64;
        return format!("{} d {} h {} min", minutes / 1_440, minutes / 60 % 24, minutes % 60);
    }
    if secs >= 7_200.0 {
        let minutes = (secs / 60.0).round() as u64;
        return format!("{} h {} min", minutes / 60, minutes % 60);
    }
    if secs >= 100.0 {
        let whole = secs.round() as u64;
        return match whole % 60 {
            0 => format!("{} min", whole / 60),
            rest => format!("{} min {rest} s", whole / 60),
        };
    }
    let (value, unit) = match secs {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "µs"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_a_span_and_stop_at_its_ends() {
        let nanos = |seconds| span_of(seconds).as_nanos();
        assert_eq!(
            (nanos(0.0), nanos(1e-9), nanos(0.1), nanos(86_400.25)),
            (0, 1, 100_000_000, 86_400_250_000_000)
        );
        assert_eq!((nanos(-1.0), nanos(f64::NAN)), (0, 0));
        assert_eq!(nanos(f64::INFINITY), u128::from(u64::MAX));
    }

    #[test]
    fn every_number_needs_its_unit() {
        let read = |t| parse_duration(t).map(|d| d.as_millis()).ok();
        assert_eq!(read("5m"), Some(300_000));
        assert_eq!(read("1.5h"), Some(5_400_000));
        assert_eq!(read("1m30s"), Some(90_000));
        assert_eq!(read("300ms"), Some(300));
        for bad in ["5M", "1m30", "90", "-5s", "1:30", "1e400s", "", "s", "1s1m", "1s1s", "999999999999999h"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert!(parse_duration("90").is_err_and(|e| e.contains("no unit")));
        assert!(parse_duration("1:30").is_err_and(|e| e.contains("1m30s")));
    }

    #[test]
    fn printed_durations_are_short() {
        let show = |ms| show_duration(Duration::from_millis(ms));
        assert_eq!(show(0), "0 s");
        assert_eq!(show(300), "300 ms");
        assert_eq!(show(4_520), "4.52 s");
        assert_eq!(show(25_000), "25 s");
        assert_eq!(show(134_000), "2 min 14 s");
        assert_eq!(show(120_000), "2 min");
        assert_eq!(show(17_520_000), "4 h 52 min");
        assert_eq!(show(129_600_000), "36 h 0 min");
        assert_eq!(show(198_300_000), "2 d 7 h 5 min");
    }
}
