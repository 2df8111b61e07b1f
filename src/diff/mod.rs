//! Two builds side by side: whether the new one is worse, by more than chance and by more than the plan tolerates.
//!
//! A [`Side`] is the runs of one build; a [`Comparison`] holds every [`Measure`] of both against each other. The unit is
//! the **run**: requests of one run share a queue and are not independent. From four runs a side on, exact tests by
//! ranks judge (paired, where both sides have the same seeds and there are runs enough for it); below, a bootstrap over
//! the windows of long runs, or nothing: then it says that it cannot tell. At most six measures are judged, corrected by
//! Holm; the others are told. A check that held and does not any more is a regression by itself. What one side lacks is
//! missing, never zero and never equal.
//!
//! To add a measure: an entry of [`ALL`], and one of [`crate::plan::MEASURES`], so that a plan can name it.

mod blocks;
mod comparable;
mod comparison;
mod flips;
mod holm;
mod interval;
mod judge;
mod measure;
mod rank;
mod run;
mod seen;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use blocks::Series;
pub use comparable::Difference;
pub use comparison::{About, Comparison, SCHEMA, Verdict};
pub use flips::{CheckRow, Flip, Tally};
pub use judge::{Call, Change, Method, Row, Sample};
pub use measure::{ALL, Better, Measure, Unit};
pub use run::{Checked, Run, Side};

/// A p of at most this is called.
pub const LEVEL: f64 = 0.05;
/// The fewest runs a side for tests by ranks.
pub const RANKS_FROM: usize = 4;
/// The most runs a side: up to here everything is counted exactly.
pub const MOST_RUNS: usize = 50;

/// The middle value, or the mean of the two in the middle; `None` of none.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}
