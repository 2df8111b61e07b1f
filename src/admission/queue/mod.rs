//! The waiting requests: by tier, by tenant, by age and by deadline.

use std::collections::BTreeSet;
use std::sync::Arc;

mod ages;
mod deadlines;
mod few;
mod lane;
mod turns;
mod urgency;

pub use lane::{Lane, Outlook};

use self::deadlines::{Deadline, Deadlines};
use self::few::Few;
use self::turns::{Turn, Turns};
use super::orders::Order;
use super::shares::Share;
use super::{Ask, Id, TenantId};
use crate::units::{Bytes, Dense, Moment, Rate, Tokens};

/// How the waiting are laid out.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// Who is next within a lane.
    pub(super) order: Arc<dyn Order>,
    /// What [`Order::by_deadline`] says of it.
    pub(super) by_deadline: bool,
    /// Whether those who can no longer be served in time are looked for.
    pub(super) recheck: bool,
    /// Whose lane is next within a tier.
    pub(super) share: Arc<dyn Share>,
    /// Whether a more important tier is served first; otherwise tiers are all one.
    pub(super) strict: bool,
    /// Whether those of a less important tier give way, so that they must be found.
    pub(super) evict: bool,
    /// Weights of the tenants, by number.
    pub(super) weights: Vec<u32>,
    /// What the queue drains at, in the long run.
    pub(super) drain: Rate,
}

/// The waiting requests. Every operation takes at most log n steps for n waiting, taken over many of them (and one a
/// tenant, where tenants have lanes of their own).
#[derive(Debug)]
pub struct Queue {
    layout: Layout,
    waiting: Dense<Waiting>,
    /// Of those whose lane does not know, where deadlines are looked for at all.
    by_deadline: Deadlines,
    tiers: Few<u8, Tier>,
    /// Where all tiers stand in one line, the tiers of those who may have to give way.
    by_tier: BTreeSet<(u8, Id)>,
    resting: BTreeSet<(Moment, Id)>,
    tokens: Tokens,
    bytes: Bytes,
}

/// One that waits.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) ask: Ask,
    /// Since when.
    pub(super) since: Moment,
    /// How often it was forwarded already.
    pub(super) tries: u16,
    /// Not to be served before this; zero if it stands in a lane.
    pub(super) rests_until: Moment,
}

#[derive(Debug, Default)]
struct Tier {
    lanes: Few<TenantId, Lane>,
    turns: Turns,
    tokens: Tokens,
}

/// Where a request would stand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Standing {
    /// Holds that are served before it, as seen at the whole drain rate.
    pub(super) ahead: Tokens,
    /// The part of the drain its lane gets while others wait too.
    pub(super) share: f64,
    /// How much may be put before those behind it without making one of them late; `None` for no limit.
    pub(super) room: Option<Tokens>,
}

impl Standing {
    /// What `tokens` of its own lane come to, as seen at the whole drain rate.
    pub(super) fn own(&self, tokens: Tokens) -> Tokens {
        at_whole_rate(tokens, self.share)
    }
}

/// What `tokens` of a lane that has this `share` of the drain come to, as seen at the whole rate.
pub(super) fn at_whole_rate(tokens: Tokens, share: f64) -> Tokens {
    // apart, for a division is otherwise made and thrown away where a lane has all
    #[inline(never)]
    fn divided(tokens: Tokens, share: f64) -> Tokens {
        Tokens::new((tokens.get() as f64 / share) as u64)
    }
    if share < 1.0 { divided(tokens, share) } else { tokens }
}

impl Queue {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            layout,
            waiting: Dense::default(),
            by_deadline: Deadlines::default(),
            tiers: Few::default(),
            by_tier: BTreeSet::new(),
            resting: BTreeSet::new(),
            tokens: Tokens::ZERO,
            bytes: Bytes::ZERO,
        }
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// True if nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether nobody stands in line: those that wait all rest.
    pub(super) const fn is_clear(&self) -> bool {
        self.tiers.is_empty()
    }

    /// Whether `id` is one of them.
    pub fn contains(&self, id: Id) -> bool {
        self.waiting.get(id.0).is_some()
    }

    /// The sum of their holds.
    pub const fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// The sum of their bodies.
    pub const fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Whose deadline is next, and when; of those in lanes that know no deadlines only where they are looked for.
    pub fn most_urgent(&self) -> Option<(Moment, Id)> {
        let first = self.by_deadline.first();
        if !self.layout.by_deadline {
            return first;
        }
        let lanes = self.tiers.values().flat_map(|row| row.lanes.values());
        lanes.filter_map(Lane::next_deadline).chain(first).min()
    }

    /// Who is served next: of the most important tier that waits, of the tenant whose turn it is, the first in order.
    pub(super) fn next(&self) -> Option<&Waiting> {
        let (_, tier) = self.tiers.first()?;
        let lane = match tier.lanes.len() {
            1 => tier.lanes.first()?.1,
            _ => tier.lanes.get(tier.turns.next(&self.turns_of(tier))?)?,
        };
        self.layout.order.next(lane).and_then(|id| self.get(id))
    }

    /// Takes out `next`, whom [`Self::next`] gave, and charges its tenant for the turn.
    pub(super) fn serve(&mut self, next: Id) -> Option<Waiting> {
        if let Some((number, tier)) = self.tiers.first().filter(|(_, tier)| tier.lanes.len() > 1) {
            let turns = self.turns_of(tier);
            if let Some(tier) = self.tiers.get_mut(number) {
                tier.turns.serve(&turns);
            }
        }
        self.remove(next)
    }

    pub(super) fn insert(&mut self, mut waiting: Waiting) {
        waiting.rests_until = Moment::ZERO;
        self.tokens += waiting.ask.hold();
        self.bytes += waiting.ask.bytes;
        if self.layout.recheck && !self.layout.by_deadline {
            self.by_deadline.insert((waiting.ask.deadline, waiting.ask.id));
        }
        self.line_up(&waiting.ask);
        let id = waiting.ask.id;
        self.waiting.insert(id.0, waiting);
    }

    /// Lets a request wait, but not be served before `until`.
    pub(super) fn rest(&mut self, mut waiting: Waiting, until: Moment) {
        waiting.rests_until = until;
        self.tokens += waiting.ask.hold();
        self.bytes += waiting.ask.bytes;
        if self.layout.recheck {
            self.by_deadline.insert((waiting.ask.deadline, waiting.ask.id));
        }
        self.resting.insert((until, waiting.ask.id));
        let id = waiting.ask.id;
        self.waiting.insert(id.0, waiting);
    }

    /// Puts those whose rest is over by `now` into their old places.
    pub(super) fn rouse(&mut self, now: Moment) {
        while let Some((until, id)) = self.resting.first().copied().filter(|(until, _)| *until <= now) {
            self.resting.remove(&(until, id));
            let Some(waiting) = self.waiting.get_mut(id.0) else { continue };
            waiting.rests_until = Moment::ZERO;
            let ask = waiting.ask.clone();
            if self.layout.by_deadline {
                self.gone((ask.deadline, id));
            }
            self.line_up(&ask);
        }
    }

    /// When the next rest is over.
    pub(super) fn next_rouse(&self) -> Option<Moment> {
        self.resting.first().map(|(until, _)| *until)
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<Waiting> {
        let waiting = self.waiting.remove(id.0)?;
        let ask = &waiting.ask;
        self.tokens = self.tokens - ask.hold();
        self.bytes = self.bytes - ask.bytes;
        let rested = waiting.rests_until > Moment::ZERO && self.resting.remove(&(waiting.rests_until, id));
        if rested || !self.layout.by_deadline {
            self.gone((ask.deadline, id));
        }
        if rested {
            return Some(waiting);
        }
        if self.layout.evict && !self.layout.strict {
            self.by_tier.remove(&(ask.tier, id));
        }
        let (tier, tenant) = self.place(ask);
        if let Some(row) = self.tiers.get_mut(tier)
            && let Some(lane) = row.lanes.get_mut(tenant)
        {
            let before = lane.tokens();
            lane.remove(ask);
            row.tokens = row.tokens - (before - lane.tokens());
            self.layout.order.watch(lane);
            if lane.is_empty() {
                row.lanes.remove(tenant);
            }
            if row.lanes.is_empty() {
                self.tiers.remove(tier);
            }
        }
        Some(waiting)
    }

    /// Where `ask` would stand at an instant when `level` can be spent at once; `ready` is that instant plus the
    /// service time.
    pub(super) fn standing(&self, ask: &Ask, ready: Moment, level: Tokens) -> Standing {
        let (tier, tenant) = self.place(ask);
        let above = self.tiers.iter().take_while(|(number, _)| *number < tier);
        let before: Tokens = above.map(|(_, tier)| tier.tokens).sum();
        let Some(row) = self.tiers.get(tier) else {
            return Standing { ahead: before, share: 1.0, room: None };
        };
        if row.lanes.len() == 1
            && let Some(lane) = row.lanes.get(tenant)
        {
            // nearly always
            let outlook = self.layout.order.outlook(lane, ask, ready, level);
            let room = outlook.room.map(|room| room - before);
            return Standing { ahead: before + outlook.ahead, share: 1.0, room };
        }
        let weight = |tenant: TenantId| f64::from(self.weight(tenant));
        let others: f64 =
            row.lanes.iter().filter(|(other, _)| *other != tenant).map(|(other, _)| weight(other)).sum();
        let share = weight(tenant) / (weight(tenant) + others);
        let lane = row.lanes.get(tenant);
        let outlook = lane.map(|lane| self.layout.order.outlook(lane, ask, ready, level));
        let own = outlook.map_or(Tokens::ZERO, |outlook| outlook.ahead);
        let room = outlook.and_then(|outlook| outlook.room).map(|room| room - before);
        Standing { ahead: before + at_whole_rate(own, share), share, room }
    }

    /// The least important tier of those that stand in line and may have to give way.
    pub(super) fn least_important(&self) -> Option<u8> {
        let apart = self.tiers.iter().next_back().map(|(tier, _)| tier);
        apart.max(self.by_tier.last().map(|(tier, _)| *tier))
    }

    /// Those of less important tiers than `ask`, the least important and of them the newest first.
    pub(super) fn less_important(&self, ask: &Ask) -> impl Iterator<Item = &Ask> {
        let tier = ask.tier;
        let below = self.tiers.iter().rev().take_while(move |(number, _)| *number > tier);
        let apart = below.flat_map(|(_, row)| row.lanes.values().flat_map(Lane::newest_first));
        let together = self.by_tier.range((tier.saturating_add(1), Id(0))..).rev();
        let together = together.filter(move |(number, _)| *number > tier).map(|(_, id)| *id);
        apart.chain(together).filter_map(|id| self.get(id).map(|waiting| &waiting.ask))
    }

    /// Whether those [`Self::less_important`] gives stand before `ask` in its own line.
    pub(super) fn in_one_line(&self) -> bool {
        !self.layout.strict && !self.layout.by_deadline
    }

    /// Those in the lane of `ask`, the oldest first.
    pub(super) fn own_lane(&self, ask: &Ask) -> impl Iterator<Item = &Ask> {
        let (tier, tenant) = self.place(ask);
        let lane = self.tiers.get(tier).and_then(|row| row.lanes.get(tenant));
        lane.into_iter()
            .flat_map(Lane::oldest_first)
            .filter_map(|id| self.get(id).map(|waiting| &waiting.ask))
    }

    fn get(&self, id: Id) -> Option<&Waiting> {
        self.waiting.get(id.0)
    }

    /// One has gone whose deadline no lane knows.
    fn gone(&mut self, deadline: Deadline) {
        if !self.layout.recheck {
            return;
        }
        let (waiting, lanes_know) = (&self.waiting, self.layout.by_deadline);
        let len = if lanes_know { self.resting.len() } else { waiting.len() };
        self.by_deadline.gone(deadline, len, |(at, id)| {
            let rests = |one: &Waiting| one.rests_until > Moment::ZERO;
            waiting.get(id.0).is_some_and(|one| one.ask.deadline == at && (!lanes_know || rests(one)))
        });
    }

    fn line_up(&mut self, ask: &Ask) {
        let (tier, tenant) = self.place(ask);
        let drain = self.layout.by_deadline.then_some(self.layout.drain);
        if self.layout.evict && !self.layout.strict {
            self.by_tier.insert((ask.tier, ask.id));
        }
        let row = self.tiers.get_or_insert_with(tier, Tier::default);
        row.tokens += ask.hold();
        let lane = row.lanes.get_or_insert_with(tenant, || Lane::new(drain));
        lane.insert(ask);
        self.layout.order.watch(lane);
    }

    fn place(&self, ask: &Ask) -> (u8, TenantId) {
        let tier = if self.layout.strict { ask.tier } else { 0 };
        let tenant = if self.layout.share.separate() { ask.tenant } else { TenantId(0) };
        (tier, tenant)
    }

    fn weight(&self, tenant: TenantId) -> u32 {
        self.layout.weights.get(usize::from(tenant.0)).copied().unwrap_or(1).max(1)
    }

    fn turns_of(&self, tier: &Tier) -> Vec<Turn> {
        let next = |lane: &Lane| self.layout.order.next(lane).and_then(|id| self.get(id));
        let turns = tier.lanes.iter().filter_map(|(tenant, lane)| {
            let cost = self.layout.share.cost(&next(lane)?.ask);
            let visit = self.layout.share.quantum().saturating_mul(u64::from(self.weight(tenant)));
            Some(Turn { tenant, cost, visit })
        });
        turns.collect()
    }
}
