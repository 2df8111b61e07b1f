//! The process ends in the middle of its work.

use super::{Kind, Wrongs};
use crate::admission::faults::Amount;

pub(super) const KIND: Kind = Kind {
    name: "crash",
    set: |wrongs, amount| {
        if let Amount::Count(count) = amount {
            wrongs.last = Some(count);
        }
    },
};

/// What a process says that has panicked.
const STATUS: i32 = 101;

/// Ends the process at the request of that number, with whatever is under way.
pub(super) fn at(wrongs: &Wrongs) {
    if wrongs.last.is_some_and(|last| wrongs.requests.get() >= last) {
        std::process::exit(STATUS);
    }
}
