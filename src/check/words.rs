//! Numbers as sentences say them.

use std::time::Duration;

use crate::units::show_duration;

/// `66,000`
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `once`, `1,234 times`
pub fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        n => format!("{} times", thousands(n)),
    }
}

/// `99.7 %`, `80 %`, `0.02 %`; a share that is not quite all is never said to be all.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let digits = if percent >= 10.0 { 1 } else { 2 };
    let scale = 10f64.powi(digits);
    let rounded = (percent * scale).round() / scale;
    let rounded = if rounded >= 100.0 && percent < 100.0 { 100.0 - 1.0 / scale } else { rounded };
    let text = format!("{rounded:.*}", digits as usize);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `4.5 s`, `31 s`, `292 min`
pub fn seconds(seconds: f64) -> String {
    show_duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// `3.46`, `16.7`, `1,000`: three significant digits.
pub fn number(value: f64) -> String {
    match value {
        v if v >= 99.95 => thousands(v.round() as u64),
        v if v >= 9.995 => trimmed(format!("{v:.1}")),
        v => trimmed(format!("{v:.2}")),
    }
}

/// The same of a number that may be below nothing: `-0.13`.
pub fn signed(value: f64) -> String {
    if value < 0.0 { format!("-{}", number(-value)) } else { number(value) }
}

fn trimmed(text: String) -> String {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!((times(1), times(1_234)), ("once".to_owned(), "1,234 times".to_owned()));
        assert_eq!(percent(0.997), "99.7 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!(percent(0.999_99), "99.9 %");
        assert_eq!(percent(0.000_2), "0.02 %");
        assert_eq!(percent(0.8), "80 %");
        assert_eq!(number(3.456), "3.46");
        assert_eq!(number(16.66), "16.7");
        assert_eq!(number(1_000.0), "1,000");
        assert_eq!(number(0.0), "0");
        assert_eq!((signed(-0.134), signed(0.5)), ("-0.13".to_owned(), "0.5".to_owned()));
        assert_eq!(seconds(4.5), "4.5 s");
        assert!(!seconds(f64::INFINITY).is_empty() && !seconds(f64::NAN).is_empty());
    }
}
