//! What a gateway does with events before its machine sees them.

use super::{Amount, Kind, hits, part};
use crate::admission::{Event, Id};
use crate::units::Share;

pub(super) const ABANDONED_WORK: Kind = Kind {
    name: "abandoned_work",
    about: "a part of the callers who left are served all the same (100%)",
    usual: Amount::Part(part(100)),
    live_only: false,
    bend: |bent, amount| bent.habits.serves_leavers = Some(amount.part()),
};

pub(super) const DUPLICATE_CALLS: Kind = Kind {
    name: "duplicate_calls",
    about: "idempotency keys are not looked at: each request is a call of its own",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.habits.ignores_keys = true,
};

pub(super) const EARLY_RELEASE: Kind = Kind {
    name: "early_release",
    about: "a slot is given back when the answer begins, not when it ends: what is streamed goes on without one",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.habits.releases_early = true,
};

pub(super) const LEAKED_HOLDS: Kind = Kind {
    name: "leaked_holds",
    about: "a part of the answers never settles: hold and slot stay taken (1%)",
    usual: Amount::Part(part(1)),
    live_only: false,
    bend: |bent, amount| bent.habits.leaks = Some(amount.part()),
};

pub(super) const TIER_INVERSION: Kind = Kind {
    name: "tier_inversion",
    about: "the least important tier is taken for the most important",
    usual: Amount::Whole,
    live_only: false,
    bend: |bent, _| bent.habits.inverts_tiers = true,
};

/// What is done wrong with events. It has no state: whom a share hits is drawn from the request's id.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Habits {
    inverts_tiers: bool,
    ignores_keys: bool,
    releases_early: bool,
    serves_leavers: Option<Share>,
    leaks: Option<Share>,
}

impl Habits {
    /// Whether there are any.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }

    /// Whether idempotency keys are not looked at.
    pub const fn ignores_keys(&self) -> bool {
        self.ignores_keys
    }

    /// Whether a slot is given back when the answer begins: then the machine wants to be told
    /// ([`Event::Begun`]).
    pub const fn releases_early(&self) -> bool {
        self.releases_early
    }

    /// Whether the request is served though its caller has left.
    pub fn serves_leaver(&self, id: Id) -> bool {
        hits(self.serves_leavers, id, 101)
    }

    /// `event` as the machine sees it; `None` if it never does.
    pub(in crate::admission) fn alter(&self, event: Event) -> Option<Event> {
        match event {
            Event::Arrive(mut ask) => {
                if self.inverts_tiers {
                    ask.tier = u8::MAX - ask.tier;
                }
                if self.ignores_keys {
                    ask.operation = None;
                }
                Some(Event::Arrive(ask))
            }
            Event::Settled { id, .. } if hits(self.leaks, id, 102) => None,
            Event::Left { id } if self.serves_leaver(id) => None,
            Event::Begun { .. } if !self.releases_early => None,
            event => Some(event),
        }
    }
}
