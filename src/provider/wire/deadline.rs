use std::time::Duration;

use crate::units::{Read, Reader};

/// How a deadline is written in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeadlineForm {
    /// An instant, in whole milliseconds since 1970-01-01T00:00:00Z.
    AbsoluteMs,
    /// `grpc-timeout`: one to eight digits and a unit, H M S m u n (hours to nanoseconds).
    Grpc,
    /// What remains, in whole milliseconds.
    RemainingMs,
    /// What remains, in seconds, with a fraction or without.
    RemainingS,
}

/// The most that is read: a longer time is taken as this, so that no number overflows.
const LONGEST: Duration = Duration::from_secs(86_400);

/// The units of `grpc-timeout`, the finest first, in nanoseconds.
const UNITS: [(char, u64); 6] = [
    ('n', 1),
    ('u', 1_000),
    ('m', 1_000_000),
    ('S', 1_000_000_000),
    ('M', 60_000_000_000),
    ('H', 3_600_000_000_000),
];

/// The most a `grpc-timeout` can count.
const MOST_GRPC: u128 = 99_999_999;

impl DeadlineForm {
    /// The most that the reference gateway believes unless its configuration says otherwise: a clock that is ahead gets
    /// nobody a place for days.
    pub const LONGEST_BELIEVED: Duration = Duration::from_secs(600);

    /// Every form, sorted by name.
    pub const ALL: &[(&'static str, Self)] = &[
        ("absolute_ms", Self::AbsoluteMs),
        ("grpc", Self::Grpc),
        ("remaining_ms", Self::RemainingMs),
        ("remaining_s", Self::RemainingS),
    ];

    /// Its name in a plan or a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AbsoluteMs => "absolute_ms",
            Self::Grpc => "grpc",
            Self::RemainingMs => "remaining_ms",
            Self::RemainingS => "remaining_s",
        }
    }

    /// The time that remains by a header's `text`, at most a day. `unix` is the present instant, counted from 1970,
    /// which only [`Self::AbsoluteMs`] asks for.
    ///
    /// # Errors
    /// What is wrong with it: it is written otherwise, or nothing remains.
    pub fn read(self, text: &str, unix: Duration) -> Result<Duration, String> {
        let (span, remaining) = self.parts(text, unix)?;
        match remaining {
            Some(remaining) if !remaining.is_zero() => Ok(remaining.min(LONGEST)),
            Some(_) => Err(format!("`{}` leaves no time for an answer", shown(text))),
            None => {
                let ago = unix.saturating_sub(span);
                let (secs, millis) = (ago.as_secs(), ago.subsec_millis());
                Err(format!("`{}` was {secs}.{millis:03} s ago by this clock", shown(text)))
            }
        }
    }

    /// The same for whoever asks what it was told, and not whether that is enough: nothing where nothing remains, and
    /// `None` of what is written otherwise.
    pub fn told(self, text: &str, unix: Duration) -> Option<Duration> {
        let (_, remaining) = self.parts(text, unix).ok()?;
        Some(remaining.unwrap_or_default().min(LONGEST))
    }

    /// The span that is written, and what remains of it; `None` if it is over.
    fn parts(self, text: &str, unix: Duration) -> Result<(Duration, Option<Duration>), String> {
        let nanos = match self {
            Self::AbsoluteMs => digits(text).map(|ms| scaled(ms, 1_000_000)),
            Self::Grpc => grpc(text),
            Self::RemainingMs => digits(text).map(|ms| scaled(ms, 1_000_000)),
            Self::RemainingS => seconds(text),
        };
        let wanted = match self {
            Self::AbsoluteMs => "a whole number of milliseconds since 1970",
            Self::Grpc => "one to eight digits and one of H M S m u n",
            Self::RemainingMs => "a whole number of milliseconds",
            Self::RemainingS => "a number of seconds",
        };
        let span = Duration::from_nanos(nanos.ok_or_else(|| format!("`{}` is not {wanted}", shown(text)))?);
        Ok(match self {
            Self::AbsoluteMs => (span, span.checked_sub(unix)),
            Self::Grpc | Self::RemainingMs | Self::RemainingS => (span, Some(span)),
        })
    }

    /// `remaining` as the header writes it, never more than that; `unix` as for [`Self::read`].
    pub fn write(self, remaining: Duration, unix: Duration) -> String {
        match self {
            Self::AbsoluteMs => unix.saturating_add(remaining).as_millis().to_string(),
            Self::Grpc => {
                let count = |unit: u64| remaining.as_nanos() / u128::from(unit);
                let fits = UNITS.iter().find(|(_, unit)| count(*unit) <= MOST_GRPC);
                let (name, unit) = fits.copied().unwrap_or(UNITS[UNITS.len() - 1]);
                format!("{}{name}", count(unit).min(MOST_GRPC))
            }
            Self::RemainingMs => remaining.as_millis().to_string(),
            Self::RemainingS => format!("{}.{:03}", remaining.as_secs(), remaining.subsec_millis()),
        }
    }
}

/// A header's text as an error shows it.
fn shown(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_debug().to_string()
}

/// The number in `text` if it is nothing but digits; the largest there is when it does not fit.
fn digits(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().unwrap_or(u64::MAX))
}

const fn scaled(count: u64, nanos: u64) -> u64 {
    count.saturating_mul(nanos)
}

/// Nanoseconds in `12` or `12.345`; digits behind the ninth of the fraction are not looked at.
fn seconds(text: &str) -> Option<u64> {
    const SECOND: u64 = 1_000_000_000;
    let Some((whole, part)) = text.split_once('.') else { return digits(text).map(|s| scaled(s, SECOND)) };
    digits(part)?;
    let part = digits(&format!("{part:0<9}")[..9])?;
    Some(scaled(digits(whole)?, SECOND).saturating_add(part))
}

fn grpc(text: &str) -> Option<u64> {
    let unit = text.chars().last()?;
    let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let count = digits(&text[..text.len() - 1])?;
    (text.len() <= 9).then(|| scaled(count, *nanos))
}

impl Read for DeadlineForm {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = Self::ALL.iter().map(|(name, _)| *name).collect();
        match reader.one_of("form of a deadline", &names)? {
            (name, None) => Self::ALL.iter().find(|(n, _)| *n == name).map(|(_, form)| *form),
            (name, Some(_)) => {
                reader.fault(format!("`{name}` has no settings"));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some instant of 2026.
    const UNIX: Duration = Duration::from_millis(1_790_000_000_123);

    fn read(form: DeadlineForm, text: &str) -> Option<Duration> {
        form.read(text, UNIX).ok()
    }

    #[test]
    fn who_is_told_that_nothing_remains_has_been_told() {
        let told = |form: DeadlineForm, text| form.told(text, UNIX);
        for (form, text) in [
            (DeadlineForm::RemainingMs, "0"),
            (DeadlineForm::RemainingS, "0.000"),
            (DeadlineForm::Grpc, "0m"),
            (DeadlineForm::AbsoluteMs, "1790000000123"),
            (DeadlineForm::AbsoluteMs, "1780000000000"),
        ] {
            assert_eq!((told(form, text), read(form, text)), (Some(Duration::ZERO), None), "{text}");
        }
        assert_eq!(told(DeadlineForm::RemainingMs, "4500"), Some(Duration::from_millis(4_500)));
        assert_eq!((told(DeadlineForm::RemainingMs, "soon"), told(DeadlineForm::Grpc, "4")), (None, None));
    }

    #[test]
    fn each_form_is_read() {
        let ms = |n| Some(Duration::from_millis(n));
        assert_eq!(read(DeadlineForm::RemainingMs, "4500"), ms(4_500));
        assert_eq!(read(DeadlineForm::RemainingS, "4.5"), ms(4_500));
        assert_eq!(read(DeadlineForm::RemainingS, "25"), ms(25_000));
        assert_eq!(read(DeadlineForm::RemainingS, "1.0000000009"), ms(1_000));
        assert_eq!(read(DeadlineForm::AbsoluteMs, "1790000004623"), ms(4_500));
        for (text, millis) in
            [("250m", 250), ("4S", 4_000), ("2M", 120_000), ("3H", 10_800_000), ("5000u", 5)]
        {
            assert_eq!(read(DeadlineForm::Grpc, text), ms(millis), "{text}");
        }
        assert_eq!(read(DeadlineForm::Grpc, "7n"), Some(Duration::from_nanos(7)));
    }

    #[test]
    fn huge_numbers_never_overflow() {
        for (form, text) in [
            (DeadlineForm::AbsoluteMs, "99999999999999999999999"),
            (DeadlineForm::AbsoluteMs, "18446744073709551615"),
            (DeadlineForm::Grpc, "99999999H"),
            (DeadlineForm::RemainingMs, "18446744073709551616"),
            (DeadlineForm::RemainingS, "99999999999.9"),
            (DeadlineForm::RemainingS, "18446744073709551615.999999999999999999999999"),
        ] {
            assert_eq!(read(form, text), Some(LONGEST), "{text}");
        }
        assert_eq!(DeadlineForm::Grpc.write(Duration::MAX, UNIX), "99999999H");
        assert_eq!(
            read(DeadlineForm::RemainingMs, &DeadlineForm::RemainingMs.write(Duration::MAX, UNIX)),
            Some(LONGEST)
        );
        assert!(!DeadlineForm::AbsoluteMs.write(Duration::MAX, UNIX).is_empty());
    }

    #[test]
    fn anything_else_is_refused_and_shown() {
        for bad in ["", "-1", "+1", "1e3", " 5", "soon", "5.", ".5", "1_000", "٣", "0", "é"] {
            for (name, form) in DeadlineForm::ALL {
                assert_eq!(read(*form, bad), None, "{bad} as {name}");
            }
        }
        for bad in ["123456789S", "5", "S", "5s", "5h", "1.5S", "5é"] {
            assert_eq!(read(DeadlineForm::Grpc, bad), None, "{bad}");
        }
        assert_eq!(read(DeadlineForm::RemainingMs, "4.5"), None);
        let past = DeadlineForm::AbsoluteMs.read("1790000000000", UNIX).unwrap_err();
        assert!(past.contains("0.123 s ago"), "{past}");
    }

    #[test]
    fn what_is_written_is_read_back_and_never_longer() {
        assert!(DeadlineForm::ALL.is_sorted_by_key(|(name, _)| *name));
        for (name, form) in DeadlineForm::ALL {
            assert_eq!(form.name(), *name);
            for nanos in [1_000_000, 61_007_000_000, 99_999_999, 100_000_000, 3_599_999_999_999] {
                let span = Duration::from_nanos(nanos);
                let back = read(*form, &form.write(span, UNIX)).unwrap();
                assert!(back <= span && span - back < Duration::from_millis(1), "{name}: {span:?} {back:?}");
            }
        }
    }
}
