use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

mod attempts;
mod calls;
mod gone;
mod tiers;

use self::attempts::Attempts;
use self::calls::Calls;
pub use self::tiers::Inverted;
use self::tiers::{TRANSIT, Tiers};

use super::outcome::{self, Ending};
use super::{Attempt, Depth, Outcome, Record, Sighting};
use crate::admission::Config;
use crate::plan::{Plan, Refusal};
use crate::units::{Moment, Tokens};
use crate::workload::{ClassId, Mix};

/// How long an ended attempt is remembered, in case the provider still sees it.
const LINGER: Duration = Duration::from_secs(10);

/// The same for one whose caller left or whose connection broke: its work may stand in a queue for long.
const LINGER_LEFT: Duration = Duration::from_secs(120);

/// How long ended attempts are remembered.
#[derive(Debug, Clone, Copy)]
struct Linger {
    ended: Duration,
    /// Those whose callers left or whose connections broke.
    left: Duration,
}

/// What stands where, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Gauge {
    /// In the gateway: sent, not yet at the provider, not yet ended.
    pub depth: Depth,
    /// At the provider, their callers still waiting.
    pub at_provider: u64,
    /// At the provider, their callers gone.
    pub ghosts: u64,
    /// Sent and not ended for their callers.
    pub outstanding: u64,
}

/// A request that reached the provider after it had ended for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ghost {
    /// Which.
    pub attempt: Attempt,
    /// Its class.
    pub class: ClassId,
    /// When it had been due.
    pub due: Moment,
    /// When it reached the provider.
    pub at: Moment,
    /// How it had ended.
    pub outcome: Outcome,
    /// Tokens it cost: wasted, all of them.
    pub charged: Tokens,
    /// True if the provider refused it.
    pub refused: bool,
}

/// A call that was cut off after its request had ended for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spared {
    /// When its request had been due.
    pub due: Moment,
    /// Its class.
    pub class: ClassId,
    /// Tokens that had been counted as wasted and were never made.
    pub tokens: Tokens,
    /// Tokens that were made until then.
    pub spent: Tokens,
}

/// Joins both sides of every request by its id. Memory follows what is open, and what ended lately.
#[derive(Debug, Clone)]
pub struct Joiner {
    mix: Mix,
    /// By class, how long the gateway believes its callers to wait.
    believed: Vec<Duration>,
    refusal: Refusal,
    linger: Linger,
    open: Attempts<Open>,
    gone: Attempts<Gone>,
    /// When those that ended, and those that were left, are to be forgotten: in order of time each.
    forget: [VecDeque<(Moment, Attempt)>; 2],
    calls: Calls,
    /// First due times of callers who mean to try again, by arrival.
    returning: BTreeMap<u64, Moment>,
    ghosts: Vec<Ghost>,
    /// Calls that were cut off after they had been counted as wasted.
    spared: Vec<Spared>,
    strays: u64,
    gauge: Gauge,
    /// Where there are several.
    tiers: Option<Box<Tiers>>,
}

/// Why the provider took no work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turned {
    /// A fault of the plan.
    ByFault,
    /// Its quota is spent, or can never grant so much.
    ForQuota,
}

/// An attempt that has not ended for its caller.
#[derive(Debug, Clone)]
struct Open {
    class: ClassId,
    hold: Tokens,
    probe: bool,
    again: bool,
    in_gateway: bool,
    visits: u32,
    refusals: u32,
    due: Moment,
    first_due: Moment,
    sent: Option<Moment>,
    depth_met: Depth,
    at_provider: Option<Moment>,
    busy_until: Option<Moment>,
    charged: Tokens,
    /// Whether a call told the provider no deadline.
    untold: bool,
    /// The most by which a call told it more time than was left.
    overtold: Duration,
    /// What calls cost that were cut off.
    cut: Tokens,
    first_token: Option<Moment>,
    tokens: u64,
}

/// An attempt that has ended for its caller.
#[derive(Debug, Clone)]
struct Gone {
    class: ClassId,
    due: Moment,
    outcome: Outcome,
    /// Its call at the provider that goes on, and what of it is counted as wasted.
    call: Option<(Moment, Tokens)>,
}

impl Joiner {
    /// Nothing seen yet of a run of `plan`, whose classes and expected refusals tell what an answer means.
    pub fn new(plan: &Plan) -> Self {
        Self::lingering(plan, Linger { ended: LINGER, left: LINGER_LEFT }, TRANSIT)
    }

    /// The same for a run in virtual time: nothing travels, so what has ended is seen no more. Only a gateway that does
    /// not notice leavers, by its policy or by a fault, may still serve them, however late.
    pub fn in_virtual_time(plan: &Plan) -> Self {
        let notices = plan.policy().is_none_or(Config::forgets_leavers);
        let left = if notices { Duration::ZERO } else { Duration::MAX };
        Self::lingering(plan, Linger { ended: Duration::ZERO, left }, Duration::ZERO)
    }

    fn lingering(plan: &Plan, linger: Linger, transit: Duration) -> Self {
        Self {
            mix: plan.requests.clone(),
            believed: plan.requests.classes().iter().map(|class| plan.believed(class)).collect(),
            refusal: plan.expect.refusal.clone(),
            linger,
            open: Attempts::default(),
            gone: Attempts::default(),
            forget: [VecDeque::new(), VecDeque::new()],
            calls: Calls::default(),
            returning: BTreeMap::new(),
            ghosts: Vec::new(),
            spared: Vec::new(),
            strays: 0,
            gauge: Gauge::default(),
            tiers: Tiers::of(plan, transit),
        }
    }

    /// Takes in a sighting and appends the record of the request if it has now ended for its caller. Sightings come in
    /// order of time. One of an attempt that is not open is ignored, except at the provider.
    pub fn see(&mut self, sighting: &Sighting, ended: &mut Vec<Record>) {
        self.advance(sighting.at());
        let attempt = sighting.attempt();
        match sighting {
            Sighting::Due { at, class, hold, probe, .. } => self.due(attempt, *at, *class, *hold, *probe),
            Sighting::Unsent { at, .. } => self.end(attempt, *at, Ending::bare(Outcome::Unsent), ended),
            Sighting::Sent { at, .. } => self.sent(attempt, *at),
            Sighting::AtProvider { at, until, charged, refused, faulty, budget, .. } => {
                self.told(attempt, *at, *budget);
                let turned = refused.then_some(if *faulty { Turned::ByFault } else { Turned::ForQuota });
                self.at_provider(attempt, *at, *until, *charged, turned);
            }
            Sighting::CutOff { spent, .. } => self.cut_off(attempt, *spent),
            Sighting::Tokens { first, gaps, .. } => {
                if let Some(open) = self.open.get_mut(attempt) {
                    open.first_token = open.first_token.or(*first);
                    open.tokens += gaps.count() + u64::from(first.is_some());
                }
            }
            Sighting::Again { .. } => self.again(attempt),
            Sighting::Answered { at, answer, .. } => {
                let Some(open) = self.open.remove(attempt) else { return };
                let deadline = self.mix.class(open.class).deadline;
                let ending = outcome::of(answer, &self.refusal, open.due + deadline, open.sent, *at);
                self.close(attempt, &open, *at, ending, ended);
            }
            Sighting::Left { at, .. } => self.end(attempt, *at, Ending::bare(Outcome::Abandoned), ended),
            Sighting::Broken { at, why, read, .. } => {
                self.end(attempt, *at, Ending::broken(*why, *read), ended);
            }
        }
    }

    /// What stands where after the last sighting.
    pub const fn gauge(&self) -> &Gauge {
        &self.gauge
    }

    /// Requests that reached the provider after they had ended, since this was last asked.
    pub fn take_ghosts(&mut self) -> Vec<Ghost> {
        std::mem::take(&mut self.ghosts)
    }

    /// Calls that were cut off after they had been counted as wasted, since this was last asked.
    pub fn take_spared(&mut self) -> Vec<Spared> {
        std::mem::take(&mut self.spared)
    }

    /// How many there are of those.
    pub const fn spared(&self) -> usize {
        self.spared.len()
    }

    /// How many ghosts [`Self::take_ghosts`] would give.
    pub const fn ghosts(&self) -> usize {
        self.ghosts.len()
    }

    /// When the next call at the provider ends, if any runs.
    pub const fn next_end(&self) -> Option<Moment> {
        self.calls.next_end()
    }

    /// Requests that were turned away while less important ones stood in the gateway, since this was last asked.
    pub fn take_inverted(&mut self) -> Vec<Inverted> {
        self.tiers.as_mut().map(|tiers| tiers.take()).unwrap_or_default()
    }

    /// Sightings at the provider of requests that were never sent, or that ended too long ago to be known.
    pub const fn strays(&self) -> u64 {
        self.strays
    }

    /// Lets time pass up to `now`: calls at the provider end.
    pub fn advance(&mut self, now: Moment) {
        while self.next_end().is_some_and(|end| end <= now)
            && let Some(((_, attempt), gone)) = self.calls.pop_first()
        {
            if gone {
                self.gauge.ghosts -= 1;
            } else {
                self.gauge.at_provider -= 1;
                if let Some(open) = self.open.get_mut(attempt) {
                    open.busy_until = None;
                }
            }
        }
        if let Some(tiers) = &mut self.tiers {
            tiers.advance(now);
        }
        for row in &mut self.forget {
            while let Some((_, attempt)) = row.front().copied().filter(|(at, _)| *at <= now) {
                row.pop_front();
                self.gone.remove(attempt);
            }
        }
    }

    /// Ends the run at `end`: what is open is unfinished.
    pub fn finish(&mut self, end: Moment, ended: &mut Vec<Record>) {
        self.advance(end);
        for attempt in self.open.all() {
            self.end(attempt, end, Ending::bare(Outcome::Unfinished), ended);
        }
    }

    fn due(&mut self, attempt: Attempt, due: Moment, class: ClassId, hold: Tokens, probe: bool) {
        if self.open.get(attempt).is_some() {
            return;
        }
        let retry = attempt.nth > 0 && !probe && !attempt.is_copy();
        let first_due = if retry { self.returning.remove(&attempt.seq) } else { None };
        let open = Open {
            class,
            hold,
            probe,
            again: false,
            in_gateway: false,
            visits: 0,
            refusals: 0,
            due,
            first_due: first_due.unwrap_or(due),
            sent: None,
            depth_met: Depth::default(),
            at_provider: None,
            busy_until: None,
            charged: Tokens::ZERO,
            untold: false,
            overtold: Duration::ZERO,
            cut: Tokens::ZERO,
            first_token: None,
            tokens: 0,
        };
        self.open.insert(attempt, open);
    }

    fn again(&mut self, attempt: Attempt) {
        if let Some(open) = self.open.get_mut(attempt) {
            open.again = true;
            self.returning.insert(attempt.seq, open.first_due);
        }
    }

    fn sent(&mut self, attempt: Attempt, at: Moment) {
        // a copy waits for the answer of its original: while that is open it is no more work
        let attached = attempt.is_copy() && self.open.get(Attempt { nth: 0, ..attempt }).is_some();
        let Some(open) = self.open.get_mut(attempt).filter(|open| open.sent.is_none()) else { return };
        open.sent = Some(at);
        open.depth_met = self.gauge.depth;
        open.in_gateway = !attached;
        if open.in_gateway {
            self.gauge.depth.requests += 1;
            self.gauge.depth.tokens += open.hold;
        }
        self.gauge.outstanding += 1;
        if let Some(tiers) = &mut self.tiers {
            tiers.enter(at, attempt, open.class, open.hold);
        }
    }

    /// A call tells the provider that its caller waits `budget` more, or nothing of it.
    fn told(&mut self, attempt: Attempt, at: Moment, budget: Option<Duration>) {
        let Some(open) = self.open.get_mut(attempt) else { return };
        match budget {
            Some(budget) => {
                let believed = self.believed.get(usize::from(open.class.0)).copied().unwrap_or_default();
                let left = (open.due + believed).since(at);
                open.overtold = open.overtold.max(budget.saturating_sub(left));
            }
            None => open.untold = true,
        }
    }

    fn at_provider(
        &mut self,
        attempt: Attempt,
        at: Moment,
        until: Moment,
        charged: Tokens,
        turned: Option<Turned>,
    ) {
        let Some(open) = self.open.get_mut(attempt) else {
            return self.late_at_provider(attempt, at, until, charged, turned == Some(Turned::ForQuota));
        };
        open.at_provider.get_or_insert(at);
        open.visits += 1;
        open.charged += charged;
        if let Some(turned) = turned {
            open.refusals += u32::from(turned == Turned::ForQuota);
            return;
        }
        if std::mem::take(&mut open.in_gateway) {
            self.gauge.depth = less(self.gauge.depth, open.hold);
            if let Some((tiers, sent)) = self.tiers.as_mut().zip(open.sent) {
                tiers.leave(sent, attempt, open.class, open.hold);
            }
        }
        // a second call while the first still runs: the later end counts, once
        let works = until > at;
        if let Some(old) = std::mem::replace(&mut open.busy_until, works.then_some(until)) {
            self.calls.remove((old, attempt));
            self.gauge.at_provider -= 1;
        }
        if works {
            self.calls.insert((until, attempt), false);
            self.gauge.at_provider += 1;
        }
    }

    fn end(&mut self, attempt: Attempt, at: Moment, ending: Ending, ended: &mut Vec<Record>) {
        if let Some(open) = self.open.remove(attempt) {
            self.close(attempt, &open, at, ending, ended);
        }
    }

    /// What stood open has ended.
    fn close(&mut self, attempt: Attempt, open: &Open, at: Moment, ending: Ending, ended: &mut Vec<Record>) {
        if open.sent.is_some() {
            self.gauge.outstanding -= 1;
        }
        if open.in_gateway {
            self.gauge.depth = less(self.gauge.depth, open.hold);
            if let Some((tiers, sent)) = self.tiers.as_mut().zip(open.sent) {
                tiers.leave(sent, attempt, open.class, open.hold);
                let gave_way = ending.outcome == Outcome::Expired
                    && open.refusals == 0
                    && tiers.is_early(open.class, open.due, at);
                if ending.outcome == Outcome::Shed || gave_way {
                    tiers.turn_away(open.class, attempt, open.hold, (sent, at));
                }
            }
        }
        let counts = !matches!(ending.outcome, Outcome::Unfinished | Outcome::Unsent);
        // what was cut off was for nobody, whatever became of another call
        let mut wasted = if counts { open.cut.min(open.charged) } else { Tokens::ZERO };
        let mut call = None;
        if let Some(until) = open.busy_until {
            // the provider goes on: for nobody
            self.calls.insert((until, attempt), true);
            self.gauge.at_provider -= 1;
            self.gauge.ghosts += 1;
            if counts {
                wasted = open.charged;
            }
            call = Some((until, wasted));
        }
        let left = match ending.outcome {
            Outcome::Abandoned | Outcome::Failed => true,
            Outcome::Unsent
            | Outcome::Shed
            | Outcome::Throttled
            | Outcome::Expired
            | Outcome::Completed
            | Outcome::Late
            | Outcome::Unfinished => false,
        };
        let linger = if left { self.linger.left } else { self.linger.ended };
        if !linger.is_zero() {
            self.gone
                .insert(attempt, Gone { class: open.class, due: open.due, outcome: ending.outcome, call });
            if linger < Duration::MAX {
                self.forget[usize::from(left)].push_back((at + linger, attempt));
            }
        }
        ended.push(record(attempt, open, at, ending, wasted));
    }
}

fn record(attempt: Attempt, open: &Open, ended: Moment, ending: Ending, wasted: Tokens) -> Record {
    Record {
        attempt,
        class: open.class,
        hold: open.hold,
        probe: open.probe,
        again: open.again,
        first_due: open.first_due,
        due: open.due,
        sent: open.sent,
        depth_met: open.depth_met,
        at_provider: open.at_provider,
        upstream_attempts: open.visits,
        upstream_refusals: open.refusals,
        untold: open.untold,
        overtold: open.overtold,
        first_token: open.first_token,
        tokens: open.tokens,
        streamed: ending.streamed,
        ended,
        outcome: ending.outcome,
        status: ending.status,
        reason: ending.reason,
        broken: ending.broken,
        read: ending.read,
        retry_after: ending.retry_after,
        hints: ending.hints,
        should_retry: ending.should_retry,
        shape: ending.shape,
        charged: open.charged,
        wasted,
    }
}

fn less(depth: Depth, hold: Tokens) -> Depth {
    Depth { requests: depth.requests - 1, tokens: depth.tokens - hold }
}

#[cfg(test)]
mod tests;
