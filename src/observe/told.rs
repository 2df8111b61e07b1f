use std::time::Duration;

/// A `Retry-After` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryAfter {
    /// Whole seconds, or a date less the answer's own `Date`.
    After(Duration),
    /// A number of seconds with a fraction: no standard has that, but it is plain what it means. In a box, for it is rare
    /// and this is moved often.
    Fraction(Box<Fraction>),
    /// Anything else, its first characters.
    Unreadable(String),
}

/// Seconds with a fraction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fraction {
    /// How long to wait.
    pub wait: Duration,
    /// What was sent.
    pub text: String,
}

impl RetryAfter {
    /// How long to wait, as far as that can be read.
    pub fn wait(&self) -> Option<Duration> {
        match self {
            Self::After(span) => Some(*span),
            Self::Fraction(fraction) => Some(fraction.wait),
            Self::Unreadable(_) => None,
        }
    }

    /// What was sent where it has not the standard's form: its first characters.
    pub fn odd(&self) -> Option<&str> {
        match self {
            Self::After(_) => None,
            Self::Fraction(fraction) => Some(&fraction.text),
            Self::Unreadable(text) => Some(text),
        }
    }
}

/// What another header than `Retry-After` says of when to come back: a vendor's own, which some clients look at and others
/// do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The header's name.
    pub header: String,
    /// What it says.
    pub says: Says,
    /// What was sent, its first characters.
    pub text: String,
}

/// The hints of a refusal; nearly always none, and then no room is taken for them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HintSet(Option<Box<Inside>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inside(Vec<Hint>);

impl HintSet {
    /// No hints.
    pub const NONE: Self = Self(None);

    /// The hints in the order of their headers.
    pub fn as_slice(&self) -> &[Hint] {
        self.0.as_ref().map_or(&[], |inside| &inside.0)
    }
}

impl FromIterator<Hint> for HintSet {
    fn from_iter<I: IntoIterator<Item = Hint>>(hints: I) -> Self {
        let hints: Vec<_> = hints.into_iter().collect();
        Self((!hints.is_empty()).then(|| Box::new(Inside(hints))))
    }
}

/// What such a header comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Says {
    /// To wait so long.
    Wait(Duration),
    /// A moment that has passed.
    Past,
    /// Nothing: it is less than nothing, or belongs to a limit that is, which is how it is said that there is none.
    Nothing,
    /// Something that cannot be read.
    Unknown,
}

impl Hint {
    /// The header that is `Retry-After` in milliseconds: it promises the same, only finer.
    pub const MILLISECONDS: &str = "retry-after-ms";

    /// Whether it promises the same as `told` does and yet something else: by a second or more, for `told` may be rounded.
    pub fn contradicts(&self, told: &RetryAfter) -> bool {
        match (self.says, told.wait()) {
            (Says::Wait(fine), Some(told)) if self.header == Self::MILLISECONDS => {
                fine.abs_diff(told) >= Duration::from_secs(1)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in openai/openai-python#1102: two headers of different precision agree, or one of them is wrong.
    #[test]
    fn two_precisions_agree_up_to_rounding() {
        let fine = |ms| Hint {
            header: Hint::MILLISECONDS.to_owned(),
            says: Says::Wait(Duration::from_millis(ms)),
            text: ms.to_string(),
        };
        let told = |secs| RetryAfter::After(Duration::from_secs(secs));
        assert!(!fine(4_321).contradicts(&told(5)));
        assert!(!fine(4_321).contradicts(&told(4)), "rounded down, but by no second");
        assert!(fine(4_321).contradicts(&told(60)) && fine(60_000).contradicts(&told(4)));
        assert!(!fine(4_321).contradicts(&RetryAfter::Unreadable("soon".into())));
        let reset = Hint { header: "x-ratelimit-reset-tokens".to_owned(), ..fine(4_321) };
        assert!(!reset.contradicts(&told(60)), "a limit's reset is another promise");
    }
}
