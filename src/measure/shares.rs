use std::time::Duration;

use crate::observe::Record;
use crate::plan::Plan;
use crate::units::{Moment, Tokens};
use crate::workload::{ClassId, Span};

/// Into so many slices the event is cut.
const SLICES: usize = 64;

/// What each class asked for and was served while the event went on, slice by slice of equal length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shares {
    event: Span,
    classes: Vec<OfClass>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OfClass {
    /// Holds of the attempts that were sent.
    wanted: [Tokens; SLICES],
    /// Tokens the provider took for attempts that reached it.
    served: [Tokens; SLICES],
    sent: [u64; SLICES],
}

/// What a class asked for and was served in a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Part {
    /// Tokens its attempts would hold.
    pub wanted: Tokens,
    /// Those attempts.
    pub sent: u64,
    /// Tokens the provider took for its attempts.
    pub served: Tokens,
}

impl Shares {
    /// Nothing yet of a run of `plan`; `None` if it has no event, or its policy gives tenants no shares.
    pub(super) fn of(plan: &Plan) -> Option<Box<Self>> {
        let event = plan.load.event()?;
        let of =
            || OfClass { wanted: [Tokens::ZERO; SLICES], served: [Tokens::ZERO; SLICES], sent: [0; SLICES] };
        let classes = plan.requests.classes().iter().map(|_| of()).collect();
        plan.policy()?.share.separate().then(|| Box::new(Self { event, classes }))
    }

    pub(super) fn record(&mut self, record: &Record) {
        if let Some(slice) = record.sent.and_then(|sent| self.slice(sent))
            && let Some(class) = self.classes.get_mut(usize::from(record.class.0))
        {
            class.wanted[slice] += record.hold;
            class.sent[slice] += 1;
        }
        if let Some(at) = record.at_provider {
            self.serve(record.class, at, record.charged);
        }
    }

    /// The provider took `tokens` for a request of `class` at `at`.
    pub(super) fn serve(&mut self, class: ClassId, at: Moment, tokens: Tokens) {
        let Some(slice) = self.slice(at) else { return };
        if let Some(class) = self.classes.get_mut(usize::from(class.0)) {
            class.served[slice] += tokens;
        }
    }

    fn slice(&self, at: Moment) -> Option<usize> {
        let into = self.event.contains(at).then(|| at.since(self.event.start).as_nanos())?;
        let slice = into * SLICES as u128 / self.event.length().as_nanos().max(1);
        usize::try_from(slice).ok().filter(|slice| *slice < SLICES)
    }

    /// What the class at `class`, by its place, came to in the whole slices that begin `after` the event's beginning.
    pub fn part(&self, class: usize, after: Duration) -> Part {
        let Some(of) = self.classes.get(class) else { return Part::default() };
        let from = self.first(after);
        let sum = |row: &[Tokens; SLICES]| row[from..].iter().copied().sum();
        Part { wanted: sum(&of.wanted), sent: of.sent[from..].iter().sum(), served: sum(&of.served) }
    }

    /// How long those slices are together.
    pub fn lasts(&self, after: Duration) -> Duration {
        let slices = u32::try_from(SLICES - self.first(after)).unwrap_or(0);
        self.event.length() / SLICES as u32 * slices
    }

    /// The first slice that begins no sooner than `after`.
    fn first(&self, after: Duration) -> usize {
        let slice = (after.as_nanos() * SLICES as u128).div_ceil(self.event.length().as_nanos().max(1));
        usize::try_from(slice).unwrap_or(SLICES).min(SLICES)
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            let pairs = mine.wanted.iter_mut().zip(theirs.wanted);
            pairs.chain(mine.served.iter_mut().zip(theirs.served)).for_each(|(mine, theirs)| *mine += theirs);
            mine.sent.iter_mut().zip(theirs.sent).for_each(|(mine, theirs)| *mine += theirs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{record, smoke};
    use crate::observe::Outcome;

    #[test]
    fn a_while_of_the_event_is_cut_out_by_its_slices() {
        let mut sketch = smoke();
        assert!(Shares::of(&sketch.plan()).is_none(), "nobody shares anything");
        sketch.policy =
            serde_json::json!({ "service": { "start": "1s" }, "share": { "drr": { "quantum": 1200 } } });
        // the event goes from 2 s to 14 s: slices of 187.5 ms
        let mut shares = Shares::of(&sketch.plan()).unwrap();
        for seq in 0..140 {
            shares.record(&record(seq, seq * 100 + 50, 100, Outcome::Completed));
        }
        let part = |after| shares.part(0, Duration::from_millis(after));
        assert_eq!(
            (part(0).sent, part(0).served, part(0).wanted),
            (120, Tokens::new(144_000), part(0).served)
        );
        assert_eq!(part(6_000).sent, 60);
        assert_eq!((part(12_000), part(99_000)), (Part::default(), Part::default()));
        assert_eq!(shares.lasts(Duration::from_secs(6)), Duration::from_secs(6));
        let mut twice = shares.clone();
        twice.add(&shares);
        assert_eq!(twice.part(0, Duration::ZERO).sent, 240);
    }
}
