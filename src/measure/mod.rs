//! What a run comes to: windows, histograms and totals, folded from records as they end.
//!
//! [`Fold`] is the one entry: both evaluators hand it sightings in order of time (and live runs hand it [`Vital`]s);
//! it joins them and forgets each request as it ends, so memory stays flat. [`Measures`] is a commutative monoid:
//! two halves of a run add to the whole. Nothing here is kept per request; what is kept per window of time is bounded
//! by the number of windows, which grow wider where a run is long.

mod boundary;
mod budgets;
mod counts;
mod depths;
mod doubles;
mod examples;
mod failures;
mod fold;
mod frame;
mod hints;
mod hist;
mod holds;
mod inversions;
mod lags;
mod latencies;
mod measures;
mod refusals;
mod returns;
mod said;
mod shares;
mod snapshot;
mod streams;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod texts;
mod told;
mod unsent;
mod vitals;
mod waits;
mod windows;

pub use boundary::{Boundary, untold};
pub use budgets::Budgets;
pub use counts::{Counts, PerClass, Upstream};
pub use depths::Depths;
pub use doubles::Doubles;
pub use examples::{Examples, Trouble};
pub use failures::{Cause, Failures, Often};
pub use fold::{Closed, Fold};
pub use frame::{Frame, FramePhase};
pub use hints::{Hinted, Hints};
pub use hist::Hist;
pub use holds::Holds;
pub use inversions::Inversions;
pub use lags::Lags;
pub use latencies::Latencies;
pub use measures::{Measures, Onset, Pace};
pub use refusals::Refusals;
pub use returns::{Returns, Tally};
pub use said::{Gauged, Said};
pub use shares::{Part, Shares};
pub use snapshot::{Recent, Snapshot};
pub use streams::Streams;
pub use texts::Texts;
pub use told::{Returned, Telling, Told};
pub use unsent::UnsentBy;
pub use vitals::{Memory, Pings, Vital, Vitals};
pub use waits::{Door, Wait, Waits};
pub use windows::{Window, Windows};
