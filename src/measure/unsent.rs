use crate::observe::Unsent;

/// Attempts that were not sent, by why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnsentBy {
    /// Later than the plan's late policy, or its caller's patience, allows.
    pub late: u64,
    /// `max_outstanding` requests were open.
    pub outstanding: u64,
    /// This machine had no port, descriptor or memory left.
    pub exhausted: u64,
}

impl UnsentBy {
    /// Counts one.
    pub(super) const fn note(&mut self, why: Unsent) {
        let count = match why {
            Unsent::Late => &mut self.late,
            Unsent::Outstanding => &mut self.outstanding,
            Unsent::Exhausted => &mut self.exhausted,
        };
        *count += 1;
    }

    /// Adds another's.
    pub(super) const fn add(&mut self, other: &Self) {
        self.late += other.late;
        self.outstanding += other.outstanding;
        self.exhausted += other.exhausted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_apart() {
        let mut by = UnsentBy::default();
        [Unsent::Late, Unsent::Exhausted, Unsent::Late].into_iter().for_each(|why| by.note(why));
        let mut both = by;
        both.add(&by);
        assert_eq!(both, UnsentBy { late: 4, outstanding: 0, exhausted: 2 });
    }
}
