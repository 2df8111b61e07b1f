//! A bound that is not where it was declared.

use std::sync::Arc;

use super::{Amount, Bent, Kind, part};
use crate::admission::bounds::{Bound, Excess, Scene, unbounded};

pub(super) const UNBOUNDED_QUEUE: Kind = Kind {
    name: "unbounded_queue",
    about: "everyone waits, whatever the bound",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.policy.bound = unbounded(),
};

pub(super) const EARLY_SHEDDING: Kind = Kind {
    name: "early_shedding",
    about: "the bound is smaller by a part (20%)",
    usual: Amount::Part(part(20)),
    live_only: false,
    bend: |bent, amount| stretch(bent, 1.0 - amount.part().get()),
};

pub(super) const LATE_SHEDDING: Kind = Kind {
    name: "late_shedding",
    about: "the bound is larger by a part (20%)",
    usual: Amount::Part(part(20)),
    live_only: false,
    bend: |bent, amount| stretch(bent, 1.0 + amount.part().get()),
};

fn stretch(bent: &mut Bent, times: f64) {
    bent.policy.bound = Arc::new(Stretched { bound: Arc::clone(&bent.policy.bound), times });
}

/// Another bound, so many times as large; what the budget holds at once stays.
#[derive(Debug)]
struct Stretched {
    bound: Arc<dyn Bound>,
    times: f64,
}

impl Bound for Stretched {
    fn name(&self) -> &'static str {
        self.bound.name()
    }

    fn split(&self, parts: u64, which: u64) -> Option<Arc<dyn Bound>> {
        let bound = self.bound.split(parts, which)?;
        Some(Arc::new(Self { bound, times: self.times }))
    }

    fn is_whole(&self) -> bool {
        self.bound.is_whole()
    }

    fn excess(&self, scene: &Scene) -> Excess {
        self.bound.excess(&Scene { part: scene.part * self.times, ..*scene })
    }
}
