use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::Serialize;

macro_rules! amount {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// None at all.
            pub const ZERO: Self = Self(0);

            /// This many.
            pub const fn new(count: u64) -> Self {
                Self(count)
            }

            /// The plain number.
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, Add::add)
            }
        }
    };
}

amount!(
    /// Model tokens. Sums saturate, differences stop at zero.
    Tokens
);
amount!(
    /// Bytes of memory or of a body. Sums saturate, differences stop at zero.
    Bytes
);

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Decimal suffixes of a token count.
const COUNTS: &[(&str, u64)] = &[("k", 1_000), ("M", 1_000_000), ("", 1)];

/// Suffixes of a size, longest first so that `kiB` is not read as `B`.
const SIZES: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

impl Tokens {
    /// Reads `500_000`, `500k` or `1.2M`.
    pub fn parse(text: &str) -> Result<Self, String> {
        scaled(text, COUNTS).map(Self).ok_or_else(|| format!("`{text}` is no token count (write 500_000 or 500k)"))
    }
}

impl Bytes {
    /// Reads `6kB`, `6KiB`, `1.5MB`, `512B`. The unit is required.
    pub fn parse(text: &str) -> Result<Self, String> {
        scaled(text, SIZES)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is no size with a unit (write 6kB, 6KiB or 512B)"))
    }
}

impl fmt::Display for Bytes {
    /// Three significant digits with a decimal unit: `6.00 kB`, `34.0 MB`, `512 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => return write!(f, "{} B", self.0),
            1_000..1_000_000 => (1e3, "kB"),
            1_000_000..1_000_000_000 => (1e6, "MB"),
            _ => (1e9, "GB"),
        };
        let value = self.0 as f64 / unit;
        let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        write!(f, "{value:.digits$} {name}")
    }
}

/// A decimal number with one of `units` behind it, as a whole count; `None` if it is anything else.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    units.iter().find_map(|(suffix, unit)| {
        let digits = text.strip_suffix(suffix)?;
        let (whole, part) = decimal(digits.trim_end())?;
        let scale = 10u128.pow(u32::try_from(part.len()).ok()?);
        let number: u128 = format!("{whole}{part}").parse().ok()?;
        let total = number.checked_mul(u128::from(*unit))?;
        (total.is_multiple_of(scale)).then_some(())?;
        u64::try_from(total / scale).ok()
    })
}

/// Splits `1_200.50` into (`1200`, `50`): digits with single underscores between them, at most 18 of each.
pub(super) fn decimal(text: &str) -> Option<(String, String)> {
    let (whole, part) = text.split_once('.').map_or((text, None), |(w, p)| (w, Some(p)));
    let plain = |run: &str| {
        let tidy = !run.starts_with('_') && !run.ends_with('_') && !run.contains("__");
        let digits: String = run.chars().filter(|c| *c != '_').collect();
        let ok = tidy && !digits.is_empty() && digits.len() <= 18 && digits.bytes().all(|b| b.is_ascii_digit());
        ok.then_some(digits)
    };
    Some((plain(whole)?, part.map_or(Some(String::new()), plain)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sizes_read_with_their_units() {
        let tokens = |t| Tokens::parse(t).map(Tokens::get).ok();
        assert_eq!(tokens("500_000"), Some(500_000));
        assert_eq!(tokens("500k"), Some(500_000));
        assert_eq!(tokens("1.2M"), Some(1_200_000));
        assert_eq!(tokens("1.0001k"), None, "a fraction of a token is none");
        for bad in ["", "k", "-5", "1e3", "5 0", "_5", "5__0", "99999999999999999999"] {
            assert_eq!(tokens(bad), None, "{bad}");
        }
        let bytes = |t| Bytes::parse(t).map(Bytes::get).ok();
        assert_eq!(bytes("6kB"), Some(6_000));
        assert_eq!(bytes("6KiB"), Some(6_144));
        assert_eq!(bytes("1.5MB"), Some(1_500_000));
        assert_eq!(bytes("6"), None, "a size needs its unit");
        assert_eq!(bytes("6mb"), None);
    }

    #[test]
    fn sizes_print_with_three_digits() {
        assert_eq!(Bytes::new(999).to_string(), "999 B");
        assert_eq!(Bytes::new(6_000).to_string(), "6.00 kB");
        assert_eq!(Bytes::new(34_000_000).to_string(), "34.0 MB");
        assert_eq!(Bytes::new(380_000_000).to_string(), "380 MB");
    }
}
