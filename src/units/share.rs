use std::fmt;

/// A part of a whole, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// The share `value`, or `None` outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// So many hundredths, or `None` if they are more than a hundred.
    pub const fn of_percent(percent: u32) -> Option<Self> {
        if percent > 100 { None } else { Some(Self(percent as f64 / 100.0)) }
    }

    /// The value, 0 to 1.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Reads `5%` or `0.05`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (digits, unit) = text.strip_suffix('%').map_or((text, 1.0), |rest| (rest, 100.0));
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        plain
            .then(|| digits.parse::<f64>().ok())
            .flatten()
            .and_then(|value| Self::new(value / unit))
            .ok_or_else(|| format!("`{text}` is no share between 0 and 1 (write 5% or 0.05)"))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        if (percent - percent.round()).abs() < 1e-9 {
            write!(f, "{percent:.0} %")
        } else {
            write!(f, "{percent:.2} %")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_stay_between_none_and_all() {
        let read = |t| Share::parse(t).map(Share::get).ok();
        assert_eq!(read("5%"), Some(0.05));
        assert_eq!(read("0.05"), Some(0.05));
        assert_eq!(read("99.5%"), Some(0.995));
        for bad in ["5", "101%", "-1%", "nan", "inf", "", "%"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
