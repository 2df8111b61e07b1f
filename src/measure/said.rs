use crate::units::Bytes;

/// A gauge the target offers, next to what was seen from outside at the same instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauged {
    /// How often both were known.
    pub samples: u64,
    /// The most the target said.
    pub said_peak: u64,
    /// The most that was seen.
    pub seen_peak: u64,
    said_sum: u128,
    seen_sum: u128,
    /// The most by which they differed.
    pub most_apart: u64,
}

impl Gauged {
    /// Takes in a pair.
    pub(super) fn pair(&mut self, said: u64, seen: u64) {
        self.samples += 1;
        self.said_peak = self.said_peak.max(said);
        self.seen_peak = self.seen_peak.max(seen);
        self.said_sum += u128::from(said);
        self.seen_sum += u128::from(seen);
        self.most_apart = self.most_apart.max(said.abs_diff(seen));
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.said_peak = self.said_peak.max(other.said_peak);
        self.seen_peak = self.seen_peak.max(other.seen_peak);
        self.said_sum += other.said_sum;
        self.seen_sum += other.seen_sum;
        self.most_apart = self.most_apart.max(other.most_apart);
    }

    /// The mean of what the target said; `None` if it said nothing.
    pub fn said_mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.said_sum as f64 / self.samples as f64)
    }

    /// The mean of what was seen at the same instants.
    pub fn seen_mean(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.seen_sum as f64 / self.samples as f64)
    }
}

/// What the target says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Said {
    /// Pages of metrics that came.
    pub pages: u64,
    /// Pages that did not come, or had none of the metrics on them.
    pub lost: u64,
    /// Requests that wait in it.
    pub queue_depth: Gauged,
    /// Its memory, in bytes.
    pub memory: Gauged,
}

impl Said {
    /// Takes in a page: what it says, and what is seen from outside.
    pub(super) fn page(&mut self, said: (Option<u64>, Option<Bytes>), depth: u64, memory: Option<Bytes>) {
        if said == (None, None) {
            self.lost += 1;
            return;
        }
        self.pages += 1;
        if let Some(said) = said.0 {
            self.queue_depth.pair(said, depth);
        }
        if let Some((said, seen)) = said.1.zip(memory) {
            self.memory.pair(said.get(), seen.get());
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        self.lost += other.lost;
        self.queue_depth.add(&other.queue_depth);
        self.memory.add(&other.memory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_stands_next_to_what_is_seen() {
        let mut said = Said::default();
        said.page((Some(3), Some(Bytes::new(500))), 3, Some(Bytes::new(400)));
        said.page((Some(0), None), 4, Some(Bytes::new(900)));
        said.page((None, None), 9, None);
        // memory that is not seen from outside is no pair
        said.page((Some(3), Some(Bytes::new(700))), 2, None);
        let depth = said.queue_depth;
        assert_eq!((said.pages, said.lost, depth.samples), (3, 1, 3));
        assert_eq!((depth.said_peak, depth.seen_peak, depth.most_apart), (3, 4, 4));
        assert_eq!((depth.said_mean(), depth.seen_mean()), (Some(2.0), Some(3.0)));
        assert_eq!((said.memory.samples, said.memory.most_apart), (1, 100));
        let mut twice = said;
        twice.add(&said);
        assert_eq!((twice.pages, twice.queue_depth.said_mean()), (6, Some(2.0)));
        assert_eq!(Said::default().queue_depth.said_mean(), None, "nothing said is not nought");
    }
}
