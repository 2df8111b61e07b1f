use std::collections::BTreeSet;

use super::Hist;
use crate::observe::{Outcome, Record};
use crate::plan::Plan;
use crate::units::{Tokens, Window};

/// The most arrivals that are kept as the furthest out.
const MOST: usize = 20;

/// Why nobody can say from outside, by the depth a request met, whether the declared policy had room for it; `None` where
/// that can be said.
pub fn untold(plan: &Plan) -> Option<&'static str> {
    let Some(policy) = plan.policy() else { return Some("what the gateway decides by is not declared") };
    let classes = plan.requests.classes();
    let several = |of: fn(&crate::workload::Class) -> &str| {
        classes.iter().any(|class| of(class) != of(&classes[0])) && policy.share.separate()
    };
    let quota = &plan.provider.quota;
    let moves = !plan.provider.faults.is_empty() || plan.provider.slots.is_some();
    let own = policy.budgets;
    let tighter = own.tokens.is_some_and(|own| own.per_sec_f64() <= quota.tokens.per_sec_f64());
    let buckets = matches!((own.window(), quota.window), (Window::Bucket { .. }, Window::Bucket { .. }));
    let reasons = [
        (policy.bound.name() == "none", "the policy has no bound"),
        (
            !buckets || !quota.sub_windows.is_empty(),
            "what may be spent is no bucket, and the bound moves with it",
        ),
        (moves, "the provider's capacity changes, and the bound with it"),
        (
            !tighter || own.requests.is_some() || own.concurrent.is_some() || quota.requests.is_some(),
            "tokens are not all that limits what is served",
        ),
        (
            policy.order.name() != "fifo" || policy.codel.is_some(),
            "the order of service decides what may wait",
        ),
        (policy.when_full != crate::admission::WhenFull::RefuseNewest, "others give way to a newcomer"),
        (several(|class| &class.tenant), "each tenant has a queue of its own"),
        (policy.replicas > 1, "each replica has a bound of its own"),
        (!policy.cancel, "callers who left still wait in the gateway"),
    ];
    reasons.into_iter().find(|(holds, _)| *holds).map(|(_, why)| why)
}

/// What refused and admitted requests met, so that whoever knows the bound can say which of them had room: the tokens that
/// stood in the gateway with the request itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Boundary {
    /// Of those who were shed.
    pub shed: Hist,
    /// Of those who were let in when they came first.
    pub fresh: Hist,
    /// Of those who were let in when they came back, and may have been kept room for.
    pub returned: Hist,
    /// The sheds that met the least.
    earliest: Extremes,
    /// The first comers let in who met the most.
    fullest: Extremes,
    /// The same of those who came back.
    fullest_returned: Extremes,
}

impl Boundary {
    /// Takes in an attempt, if it is known how it was met.
    pub(super) fn record(&mut self, record: &Record) {
        let with_it = (record.depth_met.tokens + record.hold).get();
        let seq = record.attempt.seq;
        let let_in = match record.outcome {
            Outcome::Shed => {
                self.shed.record_count(with_it);
                return self.earliest.note(with_it, seq);
            }
            Outcome::Completed | Outcome::Late | Outcome::Expired | Outcome::Abandoned => true,
            Outcome::Failed | Outcome::Unfinished => record.at_provider.is_some(),
            Outcome::Unsent | Outcome::Throttled => false,
        };
        if let_in {
            let (hist, fullest) = match record.attempt.nth {
                0 => (&mut self.fresh, &mut self.fullest),
                _ => (&mut self.returned, &mut self.fullest_returned),
            };
            hist.record_count(with_it);
            fullest.note(u64::MAX - with_it, seq);
        }
    }

    /// The sheds that met at most `room` tokens, themselves counted: how many, and examples.
    pub fn early(&self, room: Tokens) -> (u64, Vec<u64>) {
        let count = self.shed.count_to(room.get());
        (count, if count > 0 { self.earliest.up_to(room.get()) } else { Vec::new() })
    }

    /// Those let in, or let in again, who met at least `full` tokens, themselves counted: how many, and examples.
    pub fn beyond(&self, full: Tokens, returned: bool) -> (u64, Vec<u64>) {
        let (hist, fullest) = match returned {
            false => (&self.fresh, &self.fullest),
            true => (&self.returned, &self.fullest_returned),
        };
        let count = hist.count() - hist.count_to(full.get().saturating_sub(1));
        (count, if count > 0 { fullest.up_to(u64::MAX - full.get()) } else { Vec::new() })
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        self.shed.add(&other.shed);
        self.fresh.add(&other.fresh);
        self.returned.add(&other.returned);
        self.earliest.add(&other.earliest);
        self.fullest.add(&other.fullest);
        self.fullest_returned.add(&other.fullest_returned);
    }
}

/// The twenty arrivals of the least rank; of those alike the first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Extremes {
    kept: BTreeSet<(u64, u64)>,
    /// The last of them, once there are as many as are kept.
    last: Option<(u64, u64)>,
}

impl Extremes {
    pub(super) fn note(&mut self, rank: u64, seq: u64) {
        if self.last.is_some_and(|last| (rank, seq) > last) {
            return;
        }
        self.kept.insert((rank, seq));
        if self.kept.len() > MOST {
            self.kept.pop_last();
        }
        if self.kept.len() == MOST {
            self.last = self.kept.last().copied();
        }
    }

    /// The arrivals of at most this rank, by number.
    pub(super) fn up_to(&self, rank: u64) -> Vec<u64> {
        let mut seqs: Vec<u64> = self.kept.range(..=(rank, u64::MAX)).map(|(_, seq)| *seq).collect();
        seqs.sort_unstable();
        seqs
    }

    pub(super) fn add(&mut self, other: &Self) {
        other.kept.iter().for_each(|(rank, seq)| self.note(*rank, *seq));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{depth, record, smoke};

    #[test]
    fn who_had_room_and_who_had_none_is_told_by_what_they_met() {
        let mut boundary = Boundary::default();
        for (seq, met) in (0..60).zip([10, 20, 30].into_iter().cycle()) {
            let outcome = if seq % 2 == 0 { Outcome::Shed } else { Outcome::Completed };
            let mut record = record(seq, 100, 1, outcome);
            record.depth_met = depth(met);
            boundary.record(&record);
        }
        // 11, 21 and 31 requests of 1,200, ten of each shed
        let (count, examples) = boundary.early(Tokens::new(21 * 1_200));
        assert_eq!((count, examples.len()), (20, 20));
        assert_eq!(boundary.early(Tokens::new(11 * 1_200 - 100)), (0, Vec::new()));
        let (count, examples) = boundary.beyond(Tokens::new(31 * 1_200 - 100), false);
        assert_eq!((count, examples.len()), (10, 10));
        assert!(examples.iter().all(|seq| seq % 6 == 5), "{examples:?}");
        assert_eq!(boundary.beyond(Tokens::new(1), true), (0, Vec::new()), "nobody came back");
    }

    #[test]
    fn the_reasons_for_silence_are_found_in_the_plan() {
        let mut sketch = smoke();
        assert_eq!(untold(&sketch.plan()), None);
        sketch.policy = serde_json::json!({ "service": { "start": "1s" }, "order": "lifo" });
        assert!(untold(&sketch.plan()).unwrap().contains("order"));
        sketch.policy = serde_json::json!({ "service": { "start": "1s" }, "bound": "none" });
        assert!(untold(&sketch.plan()).unwrap().contains("no bound"));
    }
}
