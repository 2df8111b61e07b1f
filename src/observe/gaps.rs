use std::time::Duration;

/// Times from one piece of a streamed answer to the next, in microseconds: at most [`Gaps::MOST`] different ones in a row,
/// each with how often. What does not fit any more is for the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gaps {
    runs: [(u32, u32); Self::MOST],
    len: usize,
}

impl Gaps {
    /// How many runs of equal gaps are kept.
    pub const MOST: usize = 16;

    /// Notes that `gap` came `count` times. Gives whether there is no room for another.
    pub fn push(&mut self, gap: Duration, count: u32) -> bool {
        let micros = u32::try_from(gap.as_micros()).unwrap_or(u32::MAX);
        let last = self.len.checked_sub(1).and_then(|last| self.runs.get_mut(last));
        match last.filter(|(same, _)| *same == micros) {
            Some((_, often)) => *often = often.saturating_add(count),
            None => {
                if let Some(run) = self.runs.get_mut(self.len).filter(|_| count > 0) {
                    *run = (micros, count);
                    self.len += 1;
                }
            }
        }
        self.is_full()
    }

    /// Whether there is no room for another.
    pub const fn is_full(&self) -> bool {
        self.len == Self::MOST
    }

    /// The gaps in their order, each with how often it came in a row.
    pub fn iter(&self) -> impl Iterator<Item = (Duration, u64)> {
        let runs = self.runs.iter().take(self.len);
        runs.map(|(micros, count)| (Duration::from_micros(u64::from(*micros)), u64::from(*count)))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.iter().map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_gaps_in_a_row_are_one_run_and_there_is_room_for_sixteen() {
        let mut gaps = Gaps::default();
        let ms = Duration::from_millis;
        assert!(!gaps.push(ms(20), 0) && gaps.iter().next().is_none());
        for gap in [20, 20, 0, 20] {
            assert!(!gaps.push(ms(gap), 1));
        }
        assert!(!gaps.push(ms(20), 1_000));
        assert_eq!(gaps.iter().collect::<Vec<_>>(), [(ms(20), 2), (ms(0), 1), (ms(20), 1_001)]);
        assert_eq!(gaps.count(), 1_004);
        let full: Vec<_> = (0..13).map(|n| gaps.push(ms(n), 1)).collect();
        assert_eq!(full.iter().position(|full| *full), Some(12));
        gaps.push(ms(500), 1);
        assert_eq!(gaps.count(), 1_017, "it stays as it is");
        gaps.push(Duration::MAX, 1);
        assert!(gaps.is_full());
    }
}
