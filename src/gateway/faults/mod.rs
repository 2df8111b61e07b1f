//! What an HTTP shell does wrong on purpose. The names and amounts stand in [`crate::admission::faults`]; what is done by
//! them stands here, one file each.
//!
//! To add one: its name in `admission/faults/shell.rs`, a file of that name here, and its entry in [`ALL`].

use std::cell::{Cell, RefCell};
use std::time::Duration;

use crate::admission::faults::{Amount, List};

mod crash;
mod leak_per_request;
mod slow_refusal;

/// Each fault of the shell, sorted, and what it sets.
const ALL: &[Kind] = &[crash::KIND, leak_per_request::KIND, slow_refusal::KIND];

/// An entry of [`ALL`].
struct Kind {
    /// Its name in a plan.
    name: &'static str,
    set: fn(&mut Wrongs, Amount),
}

/// What is wrong with a shell, and how far it has got; usually nothing is.
#[derive(Debug, Default)]
pub(super) struct Wrongs {
    /// Whether anything is: nearly always nothing is, and nothing else is looked at.
    any: bool,
    requests: Cell<u64>,
    /// The number of the request at which the process ends.
    last: Option<u64>,
    /// What stays behind of each request.
    leak: usize,
    leaked: RefCell<Vec<Box<[u8]>>>,
    /// How long a refusal takes to be written.
    slow: Duration,
}

impl Wrongs {
    /// Those of `faults` that are a shell's.
    pub(super) fn of(faults: &List) -> Self {
        let mut wrongs = Self::default();
        for fault in faults.iter() {
            if let Some(kind) = ALL.iter().find(|kind| kind.name == fault.kind.name) {
                (kind.set)(&mut wrongs, fault.amount);
                wrongs.any = true;
            }
        }
        wrongs
    }

    /// A request has come.
    pub(super) fn request(&self) {
        if self.any {
            self.requests.set(self.requests.get() + 1);
            crash::at(self);
            leak_per_request::at(self);
        }
    }

    /// A request was refused when it came, and its answer is about to be written.
    pub(super) async fn refusal(&self) {
        if self.any {
            slow_refusal::at(self).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::faults;

    #[test]
    fn what_only_a_shell_does_is_done_here() {
        let theirs: Vec<_> = faults::ALL.iter().filter(|kind| kind.live_only).map(|kind| kind.name).collect();
        let ours: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        assert_eq!(ours, theirs);
    }

    #[test]
    fn what_stays_behind_adds_up() {
        let wrongs = Wrongs { any: true, leak: 300, ..Wrongs::default() };
        (0..7).for_each(|_| wrongs.request());
        assert_eq!(wrongs.leaked.borrow().iter().map(|left| left.len()).sum::<usize>(), 2_100);
        let healthy = Wrongs::of(&List::default());
        healthy.request();
        assert_eq!((healthy.any, healthy.requests.get(), healthy.leaked.borrow().len()), (false, 0, 0));
    }
}
