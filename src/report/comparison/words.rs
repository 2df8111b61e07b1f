//! Numbers of a comparison: each with its own unit, and with three significant digits at least, so that a value a
//! thousand times smaller than the other is never shown as nothing.

use crate::check::words::thousands;
use crate::diff::{Change, Unit};

/// A value in its unit: `3.47/s`, `1.46 µs`, `21.4 MB`.
pub(super) fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => scaled(value, &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB")], (1.0, "B")),
        Unit::PerSecond => format!("{}/s", digits(value)),
        Unit::Ratio | Unit::Requests | Unit::Tokens => digits(value),
        Unit::Seconds => scaled(value, &[(1.0, "s"), (1e-3, "ms")], (1e-6, "µs")),
        Unit::Share => format!("{} %", digits(value * 100.0)),
    }
}

/// A change: in parts of a hundred where it can be, in points where the measure is a share.
pub(super) fn change(change: Change, unit: Unit) -> String {
    let signed = |number: f64, text: String| match number {
        n if n > 0.0 => format!("+{text}"),
        n if n < 0.0 => format!("−{text}"),
        _ => text,
    };
    match (unit, change.share) {
        (Unit::Share, _) => signed(change.amount, format!("{} points", digits(change.amount.abs() * 100.0))),
        (_, Some(share)) => signed(share, format!("{} %", digits(share.abs() * 100.0))),
        (_, None) => signed(change.amount, value(change.amount.abs(), unit)),
    }
}

fn scaled(number: f64, units: &[(f64, &str)], last: (f64, &str)) -> String {
    if number.abs() < f64::MIN_POSITIVE {
        return format!("0 {}", units.last().map_or(last.1, |(_, name)| name));
    }
    // what rounds to a thousand of a unit is one of the next
    let fits = |(size, _): &&(f64, &str)| number.abs() >= size * 0.999_5;
    let (size, name) = units.iter().find(fits).unwrap_or(&last);
    format!("{} {name}", digits(number / size))
}

/// At least three significant digits.
fn digits(number: f64) -> String {
    let size = number.abs();
    if size < 1e-12 {
        return "0".to_owned();
    }
    let sign = if number < 0.0 { "−" } else { "" };
    let behind = (2.0 - size.log10().floor()).clamp(0.0, 12.0) as usize;
    if behind == 0 {
        return format!("{sign}{}", thousands(size.round() as u64));
    }
    let text = format!("{size:.behind$}");
    // a nought at the end is a digit too, unless it stands for nothing: 3.30 of 3.298, but 40 of 40
    let short = text.trim_end_matches('0').trim_end_matches('.');
    let exact = short.parse::<f64>().is_ok_and(|shown| (shown / size - 1.0).abs() < 1e-9);
    format!("{sign}{}", if exact { short } else { &text })
}

/// A p: three digits, and never nothing.
pub(super) fn p(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in rsc/benchstat#1, where 1.46 µs was shown as 0.00 ms.
    #[test]
    fn each_value_has_its_own_unit_and_three_digits() {
        assert_eq!(value(0.001_164, Unit::Seconds), "1.16 ms");
        assert_eq!(value(0.000_001_46, Unit::Seconds), "1.46 µs");
        assert_eq!(value(0.0, Unit::Seconds), "0 ms");
        assert_eq!(value(134.2, Unit::Seconds), "134 s");
        assert_eq!(value(0.999_8, Unit::Seconds), "1.000 s");
        assert_eq!(value(21_400_000.0, Unit::Bytes), "21.4 MB");
        assert_eq!(value(12.0, Unit::Bytes), "12 B");
        assert_eq!(value(3.468, Unit::PerSecond), "3.47/s");
        assert_eq!(value(3.298, Unit::PerSecond), "3.30/s");
        assert_eq!(value(482_400.0, Unit::Tokens), "482,400");
        assert_eq!(value(55.5, Unit::Requests), "55.5");
        assert_eq!(value(0.000_123_4, Unit::Share), "0.0123 %");
        assert_eq!(value(1.0, Unit::Share), "100 %");
    }

    #[test]
    fn a_change_says_its_sign() {
        let of = |amount, share| Change { amount, share };
        assert_eq!(change(of(-0.18, Some(-0.0519)), Unit::PerSecond), "−5.19 %");
        assert_eq!(change(of(0.031, Some(0.03)), Unit::Share), "+3.1 points");
        assert_eq!(change(of(5.0, None), Unit::Tokens), "+5");
        assert_eq!(change(of(0.0, Some(0.0)), Unit::Seconds), "0 %");
        assert_eq!((p(0.0079), p(0.000_01), p(1.0)), ("0.008".into(), "< 0.001".into(), "1.000".into()));
    }
}
