use std::time::Duration;

use super::{
    Boundary, Budgets, Counts, Depths, Doubles, Examples, Failures, Frame, Hist, Holds, Inversions,
    Latencies, PerClass, Refusals, Returns, Shares, Streams, Told, Trouble, UnsentBy, Upstream, Vital,
    Vitals, Waits, Windows, boundary,
};
use crate::observe::{Attempt, Depth, Gaps, Gauge, Ghost, Inverted, Outcome, Record, Spared};
use crate::plan::Plan;
use crate::units::{Moment, Tokens};
use crate::workload::ClassId;

/// The first shed of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Onset {
    /// When the request was sent.
    pub sent: Moment,
    /// Which arrival.
    pub attempt: Attempt,
    /// Its class.
    pub class: ClassId,
    /// What it would have held.
    pub hold: Tokens,
    /// What stood in the gateway when it was sent.
    pub depth_met: Depth,
}

/// First and last instants of arrivals, for the rate that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// When the first and the last arrival was due.
    pub due: Option<(Moment, Moment)>,
    /// When the first and the last of them was sent.
    pub sent: Option<(Moment, Moment)>,
    /// How many were sent.
    pub count: u64,
}

/// What a run comes to. `add` is commutative and associative, and a new one is its zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Measures {
    /// Where the event lies and how wide a window is.
    pub frame: Frame,
    /// Arrivals that came due.
    pub offered: u64,
    /// What became of them, by their last attempts, probes left out.
    pub arrivals: Counts,
    /// What became of all attempts, returns included.
    pub attempts: Counts,
    /// Of these, those that are neither probes nor copies.
    pub own_attempts: u64,
    /// The run over time.
    pub windows: Windows,
    /// Failed attempts by cause.
    pub failures: Failures,
    /// Latency by outcome.
    pub latencies: Latencies,
    /// Streamed answers.
    pub streams: Streams,
    /// Microseconds an attempt was sent late: our own doing.
    pub lag: Hist,
    /// The rate that was planned and the one that was reached.
    pub pace: Pace,
    /// By class, in the order of the mix.
    pub classes: Vec<PerClass>,
    /// The first shed of the event.
    pub onset: Option<Onset>,
    /// What refusals looked like.
    pub refusals: Refusals,
    /// What refused and admitted requests met; `None` where nobody could say which of them had room.
    pub boundary: Option<Box<Boundary>>,
    /// Those turned away while less important ones waited; `None` where there is but one tier.
    pub inversions: Option<Box<Inversions>>,
    /// What each tenant was served over the event; `None` where tenants share nothing.
    pub shares: Option<Box<Shares>>,
    /// What became of the probes.
    pub returns: Returns,
    /// What they were told beside how long they waited: a sample.
    pub told: Told,
    /// What refused callers were told over time, and where that brings them.
    pub waits: Waits,
    /// What reached the provider.
    pub upstream: Upstream,
    /// Arrivals that were sent twice.
    pub doubles: Doubles,
    /// What it was told of its callers' time.
    pub budgets: Budgets,
    /// Queue depth seen from outside.
    pub depths: Depths,
    /// Pings, memory, clocks.
    pub vitals: Vitals,
    /// Requests that were seen on one side only.
    pub unjoined: u64,
    /// Attempts that were not sent, by why not.
    pub unsent: UnsentBy,
    /// Requests that stood in the gateway, or waited for an answer, when the run ended.
    pub open_at_end: Gauge,
    /// What the gateway still held then, by its own account; `None` where it was not asked.
    pub held: Option<Holds>,
    /// When the run ended; the epoch while it goes on.
    pub end: Moment,
    /// Arrivals that show what went wrong.
    pub examples: Examples,
}

impl Measures {
    /// Nothing measured yet of a run of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let frame = Frame::of(plan);
        Self {
            offered: 0,
            arrivals: Counts::default(),
            attempts: Counts::default(),
            own_attempts: 0,
            windows: Windows::default(),
            failures: Failures::default(),
            latencies: Latencies::default(),
            streams: Streams::default(),
            lag: Hist::default(),
            pace: Pace::default(),
            classes: vec![PerClass::default(); frame.classes()],
            onset: None,
            refusals: Refusals::default(),
            boundary: boundary::untold(plan).is_none().then(Box::default),
            inversions: Inversions::of(plan),
            shares: Shares::of(plan),
            returns: Returns::default(),
            told: Told::default(),
            waits: Waits::default(),
            upstream: Upstream::default(),
            doubles: Doubles::default(),
            budgets: Budgets::default(),
            depths: Depths::default(),
            vitals: Vitals::default(),
            unjoined: 0,
            unsent: UnsentBy::default(),
            open_at_end: Gauge::default(),
            held: None,
            end: Moment::ZERO,
            examples: Examples::default(),
            frame,
        }
    }

    /// An attempt came due. Counted apart from what becomes of it, so that a request that is lost shows.
    pub fn due(&mut self, attempt: Attempt, at: Moment) {
        let window = self.windows.at(&self.frame, at);
        window.attempts += 1;
        let tenth = &mut window.tenths[usize::from(attempt.nth > 0)][self.frame.tenth(at)];
        *tenth = tenth.saturating_add(1);
        if attempt.nth == 0 {
            window.offered += 1;
            self.offered += 1;
            stretch(&mut self.pace.due, at);
        }
    }

    /// Notes what stands where from `at` on.
    pub fn stand(&mut self, at: Moment, gauge: &Gauge) {
        self.depths.stand(&self.frame, &mut self.windows, at, gauge);
    }

    /// Takes in a vital sign.
    pub fn vital(&mut self, vital: Vital) {
        let depth = self.depths.now().depth.requests;
        self.vitals.see(vital, self.offered > 0, depth, &self.frame, &mut self.windows);
    }

    /// Takes in an attempt that has ended.
    pub fn record(&mut self, record: &Record) {
        // the answer of a copy is that of its original, and no more good
        let copy = record.attempt.is_copy();
        let good = record.outcome == Outcome::Completed && !copy;
        if self.frame.copies.are_any() {
            self.doubles.record(record, &self.frame, &mut self.examples);
        }
        self.count(record, good);
        self.pace(record);
        self.failures.record(record);
        self.latencies.record(record);
        self.streams.record(record);
        self.refusals.record(record, &self.frame, self.depths.drained, &mut self.examples);
        // a copy takes no place of its own
        if let Some(boundary) = self.boundary.as_mut().filter(|_| !copy) {
            boundary.record(record);
        }
        if let Some(shares) = &mut self.shares {
            shares.record(record);
        }
        self.returns.record(record, &self.frame, &mut self.examples);
        self.told.record(record);
        self.waits.record(record, &self.frame);
        self.shed(record);
        self.spent(record);
        self.budgets.record(record, &mut self.examples);
        let seq = record.attempt.seq;
        if record.outcome == Outcome::Failed {
            self.examples.note(Trouble::Failed, seq);
        }
        let answered = matches!(record.outcome, Outcome::Completed | Outcome::Late);
        if answered && !copy && record.at_provider.is_none() {
            self.unjoined += 1;
            self.examples.note(Trouble::Unjoined, seq);
        }
    }

    /// Takes in a call that reached the provider after its caller was gone: all it cost is wasted, and if its caller
    /// had been refused, the refusal was not free.
    pub fn ghost(&mut self, ghost: &Ghost) {
        self.upstream.ghost(ghost, &mut self.examples);
        let window = self.windows.at(&self.frame, ghost.due);
        window.charged += ghost.charged;
        window.wasted += ghost.charged;
        self.refusals.ghost(ghost, &mut self.examples);
        if let Some(shares) = &mut self.shares {
            shares.serve(ghost.class, ghost.at, ghost.charged);
        }
    }

    /// Takes in a request that was turned away while less important ones waited.
    pub fn inverted(&mut self, inverted: &Inverted) {
        if let Some(inversions) = &mut self.inversions {
            inversions.note(inverted);
        }
    }

    /// Takes in times from one token to the next.
    pub fn gaps(&mut self, gaps: &Gaps) {
        self.streams.gaps(gaps);
    }

    /// A call was cut off after its request had been counted: these tokens were not made, and are not wasted.
    pub fn spared(&mut self, spared: &Spared) {
        self.upstream.wasted = self.upstream.wasted - spared.tokens;
        let window = self.windows.at(&self.frame, spared.due);
        window.wasted = window.wasted - spared.tokens;
        // it was cut off as soon as that could be
        if self.frame.is_impatient(spared.class) {
            window.wasted = window.wasted - spared.spent;
        }
    }

    /// What the provider was asked for an attempt. Where its caller left before its deadline, while the provider worked, what
    /// was made until then is nobody's fault, and all of an answer that cannot be broken off.
    fn spent(&mut self, record: &Record) {
        let left = record.outcome == Outcome::Abandoned && self.frame.is_impatient(record.class);
        let unbroken = self.frame.whole_answers || record.wasted < record.charged;
        let blamed = if left && unbroken { Tokens::ZERO } else { record.wasted };
        self.upstream.record(record, self.frame.most_calls, &mut self.examples);
        if record.charged > Tokens::ZERO {
            let window = self.windows.at(&self.frame, record.due);
            window.charged += record.charged;
            window.wasted += blamed;
        }
        if blamed > Tokens::ZERO {
            self.examples.note(Trouble::Wasted, record.attempt.seq);
        }
    }

    fn count(&mut self, record: &Record, good: bool) {
        let hold = record.hold;
        self.attempts.bump(record.outcome);
        self.own_attempts += u64::from(!record.probe && !record.attempt.is_copy());
        if record.settles() {
            self.arrivals.bump(record.outcome);
            self.windows.at(&self.frame, record.first_due).arrivals.bump(record.outcome);
        }
        let window = self.windows.at(&self.frame, record.due);
        window.answers += u64::from(record.status.is_some());
        if good {
            window.goodput += 1;
            window.goodput_tokens += hold;
        }
        if let Some(class) = self.classes.get_mut(usize::from(record.class.0)) {
            class.goodput += u64::from(good);
            if good && self.frame.event.is_some_and(|event| event.contains(record.due)) {
                class.event_tokens += hold;
            }
            if !record.probe && !record.attempt.is_copy() {
                class.most_attempts = class.most_attempts.max(record.attempt.nth + 1);
            }
            class.shed += u64::from(record.outcome == Outcome::Shed);
            class.throttled += u64::from(record.outcome == Outcome::Throttled);
            if record.settles() {
                class.arrivals.bump(record.outcome);
            }
        }
        let window = self.windows.at(&self.frame, record.ended);
        window.completions += u64::from(good);
        window.refusals += u64::from(matches!(record.outcome, Outcome::Shed | Outcome::Throttled));
    }

    fn pace(&mut self, record: &Record) {
        let Some((sent, lag)) = record.sent.zip(record.lag()) else { return };
        self.lag.record(lag);
        let window = self.windows.at(&self.frame, record.due);
        window.lags.record(lag);
        if record.attempt.nth == 0 {
            self.windows.at(&self.frame, sent).sent += 1;
            self.pace.count += 1;
            stretch(&mut self.pace.sent, sent);
        }
    }

    /// Records come in order of ending; the first shed is the one that was sent first.
    fn shed(&mut self, record: &Record) {
        let Some(sent) = record.sent.filter(|_| record.outcome == Outcome::Shed) else { return };
        if self.frame.event.is_none_or(|event| !event.contains(sent)) {
            return;
        }
        let seen = Onset {
            sent,
            attempt: record.attempt,
            class: record.class,
            hold: record.hold,
            depth_met: record.depth_met,
        };
        self.first(seen);
    }

    fn first(&mut self, seen: Onset) {
        if self.onset.is_none_or(|kept| (seen.sent, seen.attempt) < (kept.sent, kept.attempt)) {
            self.onset = Some(seen);
        }
    }

    /// The run ends at `end`, with this still open and so many strays at the provider. Records of what is open follow.
    pub fn close(&mut self, end: Moment, gauge: &Gauge, strays: u64) {
        self.stand(end, gauge);
        self.end = end;
        self.open_at_end = *gauge;
        self.unjoined += strays;
    }

    /// Whether every arrival ended in exactly one outcome, in every window of due time.
    pub fn sums_are_exact(&self) -> bool {
        self.offered == self.arrivals.total()
            && self.windows.iter().all(|window| window.offered == window.arrivals.total())
    }

    /// Attempts for each arrival, but for probes and copies; `None` of no arrivals.
    pub fn amplification(&self) -> Option<f64> {
        (self.offered > 0).then(|| self.own_attempts as f64 / self.offered as f64)
    }

    /// The busiest window: arrivals due in it and, apart from that, first attempts sent in one; in requests a second.
    pub fn busiest(&self) -> (f64, f64) {
        let width = self.frame.width.as_secs_f64();
        let most = |count: fn(&super::Window) -> u64| {
            self.windows.iter().map(count).max().unwrap_or(0) as f64 / width
        };
        (most(|window| window.offered), most(|window| window.sent))
    }

    /// The rate of sending over the rate of the schedule, between the first and the last arrival: at most 1, and
    /// `None` of fewer than two.
    pub fn achieved(&self) -> Option<f64> {
        let rate = |count: u64, span: Option<(Moment, Moment)>| {
            let length = span.map(|(first, last)| last.since(first).as_secs_f64())?;
            (count > 1 && length > 0.0).then(|| (count - 1) as f64 / length)
        };
        let planned = rate(self.offered, self.pace.due)?;
        Some((rate(self.pace.count, self.pace.sent).unwrap_or(0.0) / planned).min(1.0))
    }

    /// Microseconds of the pings in those windows in which something was refused.
    pub fn pings_while_refusing(&self) -> Hist {
        let mut hist = Hist::default();
        for window in self.windows.iter().filter(|window| window.refusals > 0) {
            window.pings.iter().for_each(|micros| hist.record(Duration::from_micros(u64::from(*micros))));
        }
        hist
    }

    /// Adds another part of the same run.
    pub fn add(&mut self, other: &Self) {
        self.offered += other.offered;
        self.arrivals.add(&other.arrivals);
        self.attempts.add(&other.attempts);
        self.own_attempts += other.own_attempts;
        self.windows.add(&other.windows);
        self.failures.add(&other.failures);
        self.latencies.add(&other.latencies);
        self.streams.add(&other.streams);
        self.lag.add(&other.lag);
        self.unsent.add(&other.unsent);
        for at in other.pace.due.into_iter().flat_map(<[Moment; 2]>::from) {
            stretch(&mut self.pace.due, at);
        }
        for at in other.pace.sent.into_iter().flat_map(<[Moment; 2]>::from) {
            stretch(&mut self.pace.sent, at);
        }
        self.pace.count += other.pace.count;
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.add(theirs);
        }
        other.onset.into_iter().for_each(|seen| self.first(seen));
        self.refusals.add(&other.refusals);
        if let Some((mine, theirs)) = self.boundary.as_mut().zip(other.boundary.as_ref()) {
            mine.add(theirs);
        }
        if let Some((mine, theirs)) = self.inversions.as_mut().zip(other.inversions.as_ref()) {
            mine.add(theirs);
        }
        if let Some((mine, theirs)) = self.shares.as_mut().zip(other.shares.as_ref()) {
            mine.add(theirs);
        }
        self.returns.add(&other.returns);
        self.told.add(&other.told);
        self.waits.add(&other.waits);
        self.upstream.add(&other.upstream);
        self.doubles.add(&other.doubles, &mut self.examples);
        self.budgets.add(&other.budgets);
        self.depths.add(&other.depths);
        self.vitals.add(&other.vitals);
        self.unjoined += other.unjoined;
        self.open_at_end.depth.requests += other.open_at_end.depth.requests;
        self.open_at_end.depth.tokens += other.open_at_end.depth.tokens;
        self.open_at_end.at_provider += other.open_at_end.at_provider;
        self.open_at_end.ghosts += other.open_at_end.ghosts;
        self.open_at_end.outstanding += other.open_at_end.outstanding;
        Holds::add(&mut self.held, other.held);
        self.end = self.end.max(other.end);
        self.examples.add(&other.examples);
    }
}

/// Widens a span so that it holds `at`.
fn stretch(span: &mut Option<(Moment, Moment)>, at: Moment) {
    let (first, last) = span.unwrap_or((at, at));
    *span = Some((first.min(at), last.max(at)));
}
