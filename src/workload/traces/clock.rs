use chrono::NaiveDate;

use crate::units::{Read, Reader};

/// How the times of a trace are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// `12.5`: seconds from any beginning.
    Seconds,
    /// `12500`: milliseconds from any beginning.
    Milliseconds,
    /// `2023-11-16 18:17:03.9799600`, with `T` or a blank between date and time, and with a zone or none.
    Date,
}

impl Read for Clock {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        match reader.one_of("way to write times", &["date", "milliseconds", "seconds"])? {
            ("date", None) => Some(Self::Date),
            ("milliseconds", None) => Some(Self::Milliseconds),
            ("seconds", None) => Some(Self::Seconds),
            (name, _) => {
                reader.fault(format!("`{name}` has no settings"));
                None
            }
        }
    }
}

impl Clock {
    /// Nanoseconds from some beginning, the same for all times of a trace.
    pub(super) fn read_time(self, text: &str) -> Option<i128> {
        let text = text.trim();
        match self {
            Self::Seconds => decimal(text, 9),
            Self::Milliseconds => decimal(text, 6),
            Self::Date => date(text),
        }
    }

    /// Its form, for messages.
    pub(super) const fn form(self) -> &'static str {
        match self {
            Self::Seconds => "seconds, such as 12.5",
            Self::Milliseconds => "milliseconds, such as 12500",
            Self::Date => "a date and a time, such as 2023-11-16 18:17:03.9799600",
        }
    }
}

/// `12.5` times ten to the `places`; digits past those are dropped. No sign, no exponent, and at most 12 digits before
/// the point: 30,000 years of seconds.
fn decimal(text: &str, places: u32) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |run: &str| run.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 12 || part.len() > 30 || !digits(whole) || !digits(part) {
        return None;
    }
    let kept = &part[..part.len().min(places as usize)];
    let below = 10i128.pow(places - u32::try_from(kept.len()).ok()?);
    let part: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    Some(whole.parse::<i128>().ok()? * 10i128.pow(places) + part * below)
}

/// Nanoseconds since 1970, as if a time without a zone were UTC.
fn date(text: &str) -> Option<i128> {
    let (day, time) = text.split_once([' ', 'T'])?;
    let mut parts = day.split('-');
    let (year, month, day_of) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.len() != 4 {
        return None;
    }
    let date =
        NaiveDate::from_ymd_opt(number(year, 9_999)?.cast_signed(), number(month, 12)?, number(day_of, 31)?)?;
    let (time, zone) = split_zone(time)?;
    let mut parts = time.splitn(3, ':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let nanos = decimal(seconds, 9).filter(|nanos| *nanos < 61_000_000_000)?;
    let midnight = date.and_hms_opt(number(hours, 23)?, number(minutes, 59)?, 0)?.and_utc().timestamp();
    Some((i128::from(midnight) - i128::from(zone)) * 1_000_000_000 + nanos)
}

/// The time of day, and its zone in seconds east of Greenwich.
fn split_zone(time: &str) -> Option<(&str, i64)> {
    if let Some(time) = time.strip_suffix(['Z', 'z']) {
        return Some((time, 0));
    }
    let Some(at) = time.find(['+', '-']) else { return Some((time, 0)) };
    let (time, zone) = time.split_at(at);
    let digits: String = zone.chars().skip(1).filter(|c| *c != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits, 23)?, 0),
        4 => (number(digits.get(..2)?, 23)?, number(digits.get(2..)?, 59)?),
        _ => return None,
    };
    let seconds = i64::from(hours * 3_600 + minutes * 60);
    Some((time, if zone.starts_with('-') { -seconds } else { seconds }))
}

/// A whole number of at most four digits.
fn number(text: &str, most: u32) -> Option<u32> {
    let plain = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().filter(|number| *number <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_forms_of_all_years() {
        let at = |text| Clock::Date.read_time(text).unwrap();
        let first = at("2023-11-16 18:17:03.9799600");
        assert_eq!(first, 1_700_158_623_979_960_000);
        assert_eq!(at("2023-11-16T18:17:03.97996Z"), first);
        assert_eq!(at("2023-11-16 18:17:03.979960+00:00"), first);
        assert_eq!(at("2023-11-16 20:17:03.979960+0200"), first);
        assert_eq!(at("2023-11-16 13:17:03.979960-05"), first);
        assert_eq!(at("2024-02-29 00:00:00") - at("2024-02-28 00:00:00"), 86_400_000_000_000);
        for bad in [
            "",
            "18:17:03",
            "2023-11-16",
            "2023-02-29 00:00:00",
            "2023-11-16 24:00:00",
            "2023-11-16 18:17:61",
            "2023-11-16 18:17",
            "2023-11-16 18:17:03+1",
            "2023-11-16 18:17:nan",
            "-023-11-16 18:17:03",
            "2023-11-16 18:17:03é",
            "16/11/2023 18:17:03",
        ] {
            assert_eq!(Clock::Date.read_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn plain_times_are_exact_and_nothing_else_is_one() {
        assert_eq!(Clock::Seconds.read_time("12.5"), Some(12_500_000_000));
        assert_eq!(Clock::Seconds.read_time(" 5 "), Some(5_000_000_000));
        assert_eq!(Clock::Seconds.read_time("0.0000000019"), Some(1), "digits past a nanosecond are dropped");
        assert_eq!(Clock::Milliseconds.read_time("27482"), Some(27_482_000_000));
        for bad in ["", "-1", "+1", "1e3", "nan", "inf", ".5", "1.2.3", "9999999999999", "1,5", "５"] {
            assert_eq!(Clock::Seconds.read_time(bad), None, "{bad}");
        }
    }
}
