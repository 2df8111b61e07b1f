use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::measure::Measures;
use crate::units::Moment;

/// How a run stands, as if it had ended at that instant: what is open is unfinished.
#[derive(Debug)]
pub struct Standing {
    /// The instant, on the load's time line.
    pub at: Moment,
    /// What was measured until then.
    pub measures: Measures,
}

/// Where a run leaves how it stands, for whoever wants to look. Nobody who looks is waited for, and where nobody does,
/// nothing is done.
#[derive(Debug, Clone, Default)]
pub struct Board(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    wanted: AtomicBool,
    standing: Mutex<Option<Arc<Standing>>>,
}

impl Board {
    /// The latest that was left, and a wish for a newer one.
    pub fn look(&self) -> Option<Arc<Standing>> {
        self.0.wanted.store(true, Ordering::Release);
        self.latest()
    }

    /// The latest that was left.
    pub fn latest(&self) -> Option<Arc<Standing>> {
        self.0.standing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Leaves what `standing` makes, if someone has looked since the last time.
    pub(super) fn leave(&self, standing: impl FnOnce() -> Standing) {
        if self.0.wanted.swap(false, Ordering::AcqRel) {
            let standing = Arc::new(standing());
            *self.0.standing.lock().unwrap_or_else(PoisonError::into_inner) = Some(standing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing;

    #[test]
    fn only_who_looks_makes_work() {
        let board = Board::default();
        let plan = testing::plan("http://127.0.0.1:9");
        let mut made = 0;
        let mut leave = |board: &Board| {
            board.leave(|| {
                made += 1;
                Standing { at: Moment::from_secs(made), measures: Measures::new(&plan) }
            });
        };
        leave(&board);
        assert!(board.look().is_none(), "nobody had looked");
        leave(&board);
        leave(&board);
        assert_eq!(board.look().unwrap().at, Moment::from_secs(1), "once for one look");
    }
}
