//! Who of which tier stands in the gateway, and who was turned away while somebody less important stood there. Kept only
//! where a plan has more than one tier.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::observe::{Attempt, Depth};
use crate::plan::Plan;
use crate::units::{Moment, Tokens};
use crate::workload::{Class, ClassId};

/// How long a request may be on its way, live: whoever came or went within it may have been there or not.
pub(super) const TRANSIT: Duration = Duration::from_millis(10);

/// A request that was turned away while a less important one stood in the gateway: sent before it, and there after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inverted {
    /// Which.
    pub attempt: Attempt,
    /// Its class.
    pub class: ClassId,
    /// What stood in the gateway then that is no less important than it, itself included.
    pub with_it: Tokens,
}

/// One that was turned away, until it is known who stayed.
#[derive(Debug, Clone, Copy)]
struct Turned {
    inverted: Inverted,
    tier: u8,
    sent: Moment,
    ended: Moment,
}

#[derive(Debug, Clone)]
struct Row {
    waiting: BTreeSet<(Moment, Attempt)>,
    depth: Depth,
}

/// The tiers of a plan.
#[derive(Debug, Clone)]
pub(super) struct Tiers {
    of_class: Vec<u8>,
    /// How long after its due time a request of each class can still be answered in time.
    spare: Vec<Duration>,
    rows: BTreeMap<u8, Row>,
    turned: VecDeque<Turned>,
    inverted: Vec<Inverted>,
    transit: Duration,
}

impl Tiers {
    /// Those of `plan`; `None` if it has but one.
    pub(super) fn of(plan: &Plan, transit: Duration) -> Option<Box<Self>> {
        let of_class: Vec<u8> = plan.requests.classes().iter().map(|class| class.tier).collect();
        let believed = plan.policy().map_or(Duration::ZERO, |policy| policy.service.start);
        // a rule on how long requests waited drops them early, whatever their tier
        let drops = plan.policy().is_some_and(|policy| policy.codel.is_some());
        let spare = |class: &Class| {
            let takes = plan.provider.service.time_for(class.output.most()).max(believed);
            if drops { Duration::ZERO } else { class.deadline.saturating_sub(takes + transit) }
        };
        let empty = || Row { waiting: BTreeSet::new(), depth: Depth::default() };
        let rows: BTreeMap<u8, Row> = of_class.iter().map(|tier| (*tier, empty())).collect();
        (rows.len() > 1).then(|| {
            Box::new(Self {
                spare: plan.requests.classes().iter().map(spare).collect(),
                of_class,
                rows,
                turned: VecDeque::new(),
                inverted: Vec::new(),
                transit,
            })
        })
    }

    fn tier(&self, class: ClassId) -> u8 {
        self.of_class.get(usize::from(class.0)).copied().unwrap_or(0)
    }

    /// One has come.
    pub(super) fn enter(&mut self, sent: Moment, attempt: Attempt, class: ClassId, hold: Tokens) {
        let tier = self.tier(class);
        if let Some(row) = self.rows.get_mut(&tier)
            && row.waiting.insert((sent, attempt))
        {
            row.depth = Depth { requests: row.depth.requests + 1, tokens: row.depth.tokens + hold };
        }
    }

    /// One stands there no more.
    pub(super) fn leave(&mut self, sent: Moment, attempt: Attempt, class: ClassId, hold: Tokens) {
        let tier = self.tier(class);
        if let Some(row) = self.rows.get_mut(&tier)
            && row.waiting.remove(&(sent, attempt))
        {
            row.depth = Depth { requests: row.depth.requests - 1, tokens: row.depth.tokens - hold };
        }
    }

    /// Whether a request of `class` due at `due` that was dropped at `at` could have been answered in time.
    pub(super) fn is_early(&self, class: ClassId, due: Moment, at: Moment) -> bool {
        self.spare.get(usize::from(class.0)).is_some_and(|spare| at < due + *spare)
    }

    /// One was turned away at `ended`, and stands there no more.
    pub(super) fn turn_away(
        &mut self,
        class: ClassId,
        attempt: Attempt,
        hold: Tokens,
        span: (Moment, Moment),
    ) {
        let tier = self.tier(class);
        if self.rows.last_key_value().is_none_or(|(lowest, _)| *lowest == tier) {
            return;
        }
        let above: Tokens = self.rows.range(..=tier).map(|(_, row)| row.depth.tokens).sum();
        let inverted = Inverted { attempt, class, with_it: above + hold };
        self.turned.push_back(Turned { inverted, tier, sent: span.0, ended: span.1 });
    }

    /// It is `now`: of those turned away before, it is known who stayed.
    pub(super) fn advance(&mut self, now: Moment) {
        while let Some(turned) = self.turned.front().copied()
            && turned.ended + self.transit < now
        {
            self.turned.pop_front();
            let lower = self.rows.range(turned.tier.saturating_add(1)..);
            let stayed = lower.filter_map(|(_, row)| row.waiting.first());
            if stayed.into_iter().any(|(sent, _)| *sent + self.transit < turned.sent) {
                self.inverted.push(turned.inverted);
            }
        }
    }

    /// Those found since this was last asked.
    pub(super) fn take(&mut self) -> Vec<Inverted> {
        std::mem::take(&mut self.inverted)
    }
}
