//! Something of each request is never given back.

use super::{Kind, Wrongs};
use crate::admission::faults::Amount;

pub(super) const KIND: Kind = Kind {
    name: "leak_per_request",
    set: |wrongs, amount| {
        if let Amount::Size(size) = amount {
            wrongs.leak = usize::try_from(size.get()).unwrap_or(usize::MAX).min(MOST);
        }
    },
};

/// The most that one request leaves: the machine is to be measured, and not to be brought down.
const MOST: usize = 16 << 20;

/// Leaves so many bytes behind, written, so that they are really there.
pub(super) fn at(wrongs: &Wrongs) {
    if wrongs.leak > 0 {
        wrongs.leaked.borrow_mut().push(vec![1; wrongs.leak].into_boxed_slice());
    }
}
