use super::Hist;
use super::boundary::Extremes;
use crate::observe::Inverted;
use crate::plan::Plan;
use crate::units::Tokens;

/// Requests that were turned away while less important ones stood in the gateway, by class: whether those stood in their
/// way is told by what stood there that is no less important.
#[derive(Debug, Clone, PartialEq)]
pub struct Inversions(Vec<OfClass>);

#[derive(Debug, Clone, PartialEq, Default)]
struct OfClass {
    /// Tokens that stood there, the request itself included.
    with_it: Hist,
    least: Extremes,
}

impl Inversions {
    /// None yet of a run of `plan`; `None` if all its requests are of one tier.
    pub(super) fn of(plan: &Plan) -> Option<Box<Self>> {
        let classes = plan.requests.classes();
        let several = classes.iter().any(|class| class.tier != classes[0].tier);
        several.then(|| Box::new(Self(vec![OfClass::default(); classes.len()])))
    }

    pub(super) fn note(&mut self, inverted: &Inverted) {
        if let Some(of) = self.0.get_mut(usize::from(inverted.class.0)) {
            of.with_it.record_count(inverted.with_it.get());
            of.least.note(inverted.with_it.get(), inverted.attempt.seq);
        }
    }

    /// Those of the class at `class`, by its place, that would have had room but for the less important: they met at most
    /// `room` tokens of their own tier and of more important ones, themselves included. How many, and examples.
    pub fn with_room(&self, class: usize, room: Tokens) -> (u64, Vec<u64>) {
        let Some(of) = self.0.get(class) else { return (0, Vec::new()) };
        (of.with_it.count_to(room.get()), of.least.up_to(room.get()))
    }

    /// Adds another's.
    pub(super) fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.with_it.add(&theirs.with_it);
            mine.least.add(&theirs.least);
        }
    }
}
