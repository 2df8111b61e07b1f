/// What the status of a provider's answer says about the call, for a gateway that has to decide what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// It was answered.
    Answered,
    /// The provider took no work, for a reason that is not the quota (503, or 529 as Anthropic's API says it): it may be
    /// repeated.
    Busy,
    /// An error of the provider's: it may have cost its tokens, so it is not repeated.
    Broken,
    /// An error of the caller's: it cost nothing, and would fail again.
    Rejected,
    /// The quota is spent (429).
    Spent,
}

impl Meaning {
    /// Of `status`.
    pub const fn of(status: u16) -> Self {
        match status {
            429 => Self::Spent,
            503 | 529 => Self::Busy,
            500.. => Self::Broken,
            400..500 => Self::Rejected,
            _ => Self::Answered,
        }
    }
}
