use std::fmt;
use std::time::Duration;

use super::amount::decimal;
use super::parse_duration;

/// A positive exact fraction, such as the scale of a rehearsal: `1/2`, `0.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    num: u64,
    den: u64,
}

impl Ratio {
    /// One: nothing is scaled.
    pub const ONE: Self = Self { num: 1, den: 1 };

    /// `num / den`, or `None` if either is zero or they differ by more than a million times.
    pub fn new(num: u64, den: u64) -> Option<Self> {
        let fits = |a: u64, b: u64| a > 0 && a <= b.saturating_mul(1_000_000);
        (fits(num, den) && fits(den, num)).then(|| {
            let common = gcd(num, den);
            Self { num: num / common, den: den / common }
        })
    }

    /// The value as a float.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    /// This times `other`; the nearest that is in range.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let (num, den) =
            (u128::from(self.num) * u128::from(other.num), u128::from(self.den) * u128::from(other.den));
        let common = gcd_wide(num, den);
        let (mut num, mut den) = (num / common, den / common);
        while num > u128::from(u64::MAX) || den > u128::from(u64::MAX) {
            (num, den) = (num >> 1, den >> 1);
        }
        let narrow = |wide: u128| u64::try_from(wide).unwrap_or(u64::MAX);
        Self::new(narrow(num), narrow(den)).unwrap_or(self)
    }

    /// `span` divided by this, rounded down: how long it takes at so many times the speed.
    pub fn divide(self, span: Duration) -> Duration {
        let nanos = span.as_nanos().saturating_mul(u128::from(self.den)) / u128::from(self.num);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Reads `1/2`, `0.5` or `2`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let ratio = match text.split_once('/') {
            Some((n, d)) => {
                n.trim().parse().ok().zip(d.trim().parse().ok()).and_then(|(n, d)| Self::new(n, d))
            }
            None => decimal(text).and_then(|(whole, part)| {
                let den = 10u64.checked_pow(u32::try_from(part.len()).ok()?)?;
                Self::new(format!("{whole}{part}").parse().ok()?, den)
            }),
        };
        ratio.ok_or_else(|| format!("`{text}` is no ratio above zero (write 1/2 or 0.5)"))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 { write!(f, "{}", self.num) } else { write!(f, "{}/{}", self.num, self.den) }
    }
}

/// A positive, exact rate: `count` things in every `per` nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    count: u64,
    per: u64,
}

impl Rate {
    /// `count` in every `per`, or `None` if either is zero or the rate is out of range
    /// (slower than one a year, faster than 10^12 a second).
    pub fn new(count: u64, per: Duration) -> Option<Self> {
        Self::from_nanos(u128::from(count), per.as_nanos())
    }

    fn from_nanos(count: u128, per: u128) -> Option<Self> {
        if count == 0 || per == 0 {
            return None;
        }
        let common = gcd_wide(count, per);
        let (mut count, mut per) = (count / common, per / common);
        while count > 1 << 62 || per > 1 << 62 {
            // beyond 2^62 the fraction is rounded by less than 2^-60
            (count, per) = (count >> 1, per >> 1);
        }
        let (count, per) = (u64::try_from(count).ok()?, u64::try_from(per).ok()?);
        (count > 0 && per > 0 && count <= per.saturating_mul(1_000) && per / count < 31_557_600_000_000_000)
            .then_some(Self { count, per })
    }

    /// This many in a minute; `None` for zero.
    pub fn per_minute(count: u64) -> Option<Self> {
        Self::new(count, Duration::from_secs(60))
    }

    /// This many in a second; `None` for zero.
    pub fn per_second(count: u64) -> Option<Self> {
        Self::new(count, Duration::from_secs(1))
    }

    /// The numerator: so many in every [`Self::per_nanos`].
    pub const fn count(self) -> u64 {
        self.count
    }

    /// The denominator, in nanoseconds.
    pub const fn per_nanos(self) -> u64 {
        self.per
    }

    /// Things a second.
    pub fn per_sec_f64(self) -> f64 {
        self.count as f64 / self.per as f64 * 1e9
    }

    /// Things a minute.
    pub fn per_min_f64(self) -> f64 {
        self.per_sec_f64() * 60.0
    }

    /// How long `n` things take at this rate, rounded up: exact for every `n`, nothing accumulates.
    pub fn time_for(self, n: u64) -> Duration {
        self.time_for_parts(u128::from(n) * u128::from(self.per))
    }

    /// The same for things cut into [`Self::per_nanos`] parts each: `count` of these come in a nanosecond.
    pub(super) fn time_for_parts(self, parts: u128) -> Duration {
        let nanos = match u64::try_from(parts) {
            Ok(parts) if self.count == 1 => parts,
            // nearly always: a division of half the width takes a tenth of the time
            Ok(parts) => parts.div_ceil(self.count),
            Err(_) => u64::try_from(parts.div_ceil(u128::from(self.count))).unwrap_or(u64::MAX),
        };
        Duration::from_nanos(nanos)
    }

    /// How many whole things fit in `span`.
    pub fn whole_in(self, span: Duration) -> u64 {
        let n = span.as_nanos().saturating_mul(u128::from(self.count)) / u128::from(self.per);
        u64::try_from(n).unwrap_or(u64::MAX)
    }

    /// This rate times `ratio`.
    pub fn scaled(self, ratio: Ratio) -> Self {
        Self::from_nanos(
            u128::from(self.count) * u128::from(ratio.num),
            u128::from(self.per) * u128::from(ratio.den),
        )
        .unwrap_or(self)
    }

    /// The nearest rate of a whole number a minute, at least one.
    pub fn whole_per_minute(self) -> Self {
        let whole = self.per_min_f64().round().max(1.0) as u64;
        Self::per_minute(whole).unwrap_or(self)
    }

    /// Reads `33.3/s`, `2000/min`, `500k/min` or `10/h`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let hint = |why: &str| Err(format!("`{text}` {why} (write 33.3/s or 2000/min)"));
        let Some((count, unit)) = text.split_once('/') else {
            return hint("has no unit of time");
        };
        let span = match unit.trim() {
            "s" => Duration::from_secs(1),
            "min" | "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3_600),
            other => match parse_duration(other) {
                Ok(span) if !span.is_zero() => span,
                _ => return hint("has a unit of time that is not known"),
            },
        };
        let count = count.trim();
        let (digits, unit) = count.strip_suffix('k').map_or((count, 1u128), |rest| (rest, 1_000));
        let Some((whole, part)) = decimal(digits) else {
            return hint("is no rate");
        };
        let scale = 10u128.pow(u32::try_from(part.len()).unwrap_or(0));
        let number: u128 = format!("{whole}{part}").parse().unwrap_or(0);
        if number == 0 {
            return hint("is a rate of zero: nothing would ever arrive");
        }
        match Self::from_nanos(number * unit, span.as_nanos().saturating_mul(scale)) {
            Some(rate) => Ok(rate),
            None => hint("is out of range"),
        }
    }
}

impl fmt::Display for Rate {
    /// In minutes below 10 a second or where that is a whole number, else in seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let minute = self.per_min_f64();
        let (value, unit) = if minute < 600.0 { (minute, "min") } else { (self.per_sec_f64(), "s") };
        if (value - value.round()).abs() < 1e-9 {
            write!(f, "{value:.0}/{unit}")
        } else if (minute - minute.round()).abs() < 1e-9 {
            write!(f, "{minute:.0}/min")
        } else {
            write!(f, "{value:.2}/{unit}")
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn gcd_wide(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd_wide(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_times_are_exact_however_far_out() {
        let rate = Rate::parse("200/s").unwrap();
        assert_eq!(rate.time_for(9_999), Duration::from_millis(49_995));
        let odd = Rate::parse("33.3/s").unwrap();
        assert_eq!(odd.time_for(333_000), Duration::from_secs(10_000));
        assert_eq!(Rate::parse("0.4/s").unwrap().time_for(720), Duration::from_secs(1_800));
    }

    #[test]
    fn rates_need_a_number_and_a_unit() {
        for bad in ["0/min", "0.0/s", "2000", "x/s", "2000/", "2000/week", "-1/s", "1e9/s", "9999999999999/s"]
        {
            assert!(Rate::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(Rate::parse("500k/min"), Rate::parse("500_000/min"));
        assert_eq!(Rate::parse("2000/min").unwrap().to_string(), "2000/min");
        assert_eq!(Rate::parse("80/s").unwrap().to_string(), "80/s");
    }

    #[test]
    fn scaling_is_exact() {
        let half = Ratio::parse("1/2").unwrap();
        assert_eq!(Rate::parse("2000/min").unwrap().scaled(half), Rate::parse("1000/min").unwrap());
        assert_eq!(Ratio::parse("0.5").unwrap(), half);
        assert_eq!(half.times(Ratio::parse("3").unwrap()), Ratio::new(3, 2).unwrap());
        assert_eq!(half.divide(Duration::from_secs(1)), Duration::from_secs(2));
        assert!(Ratio::parse("0").is_err() && Ratio::parse("1/0").is_err());
    }
}
