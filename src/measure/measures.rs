use std::time::Duration;

use super::{
    Counts, Depths, Examples, Frame, Hist, Latencies, PerClass, Refusals, Returns, Trouble, Upstream, Vital,
    Vitals, Windows,
};
use crate::observe::{Attempt, Depth, Gauge, Outcome, Record};
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
    /// What became of them, by their first attempts.
    pub arrivals: Counts,
    /// What became of all attempts, returns included.
    pub attempts: Counts,
    /// The run over time.
    pub windows: Windows,
    /// Latency by outcome.
    pub latencies: Latencies,
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
    /// What became of the probes.
    pub returns: Returns,
    /// What reached the provider.
    pub upstream: Upstream,
    /// Queue depth seen from outside.
    pub depths: Depths,
    /// Pings, memory, clocks.
    pub vitals: Vitals,
    /// Requests that were seen on one side only.
    pub unjoined: u64,
    /// Requests that stood in the gateway, or waited for an answer, when the run ended.
    pub open_at_end: Gauge,
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
            windows: Windows::default(),
            latencies: Latencies::default(),
            lag: Hist::default(),
            pace: Pace::default(),
            classes: vec![PerClass::default(); frame.classes()],
            onset: None,
            refusals: Refusals::default(),
            returns: Returns::default(),
            upstream: Upstream::default(),
            depths: Depths::default(),
            vitals: Vitals::default(),
            unjoined: 0,
            open_at_end: Gauge::default(),
            end: Moment::ZERO,
            examples: Examples::default(),
            frame,
        }
    }

    /// An attempt came due. Counted apart from what becomes of it, so that a request that is lost shows.
    pub fn due(&mut self, attempt: Attempt, at: Moment) {
        let window = self.windows.at(&self.frame, at);
        window.attempts += 1;
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
        self.vitals.see(vital, self.offered > 0, &self.frame, &mut self.windows);
    }

    /// Takes in an attempt that has ended.
    pub fn record(&mut self, record: &Record) {
        let good = record.outcome == Outcome::Completed;
        self.count(record, good);
        self.pace(record);
        self.latencies.record(record);
        self.refusals.record(record, &self.frame, self.depths.drained, &mut self.examples);
        self.returns.record(record, &self.frame, &mut self.examples);
        self.shed(record);
        self.upstream.forwards += u64::from(record.upstream_attempts);
        self.upstream.refused += u64::from(record.upstream_refusals);
        self.upstream.charged += record.charged;
        self.upstream.wasted += record.wasted;
        let seq = record.attempt.seq;
        if record.upstream_refusals > 0 {
            self.examples.note(Trouble::UpstreamRefused, seq);
        }
        if record.outcome == Outcome::Failed {
            self.examples.note(Trouble::Failed, seq);
        }
        if matches!(record.outcome, Outcome::Completed | Outcome::Late) && record.at_provider.is_none() {
            self.unjoined += 1;
            self.examples.note(Trouble::Unjoined, seq);
        }
    }

    fn count(&mut self, record: &Record, good: bool) {
        let hold = self.frame.hold(record.class);
        self.attempts.bump(record.outcome);
        let window = self.windows.at(&self.frame, record.due);
        if record.attempt.nth == 0 {
            self.arrivals.bump(record.outcome);
            window.arrivals.bump(record.outcome);
        }
        if good {
            window.goodput += 1;
            window.goodput_tokens += hold;
        }
        if let Some(class) = self.classes.get_mut(usize::from(record.class.0)) {
            class.goodput += u64::from(good);
            if record.attempt.nth == 0 {
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
        window.lag_max = window.lag_max.max(lag);
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
            hold: self.frame.hold(record.class),
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
        self.windows.add(&other.windows);
        self.latencies.add(&other.latencies);
        self.lag.add(&other.lag);
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
        self.returns.add(&other.returns);
        self.upstream.add(&other.upstream);
        self.depths.add(&other.depths);
        self.vitals.add(&other.vitals);
        self.unjoined += other.unjoined;
        self.open_at_end.depth.requests += other.open_at_end.depth.requests;
        self.open_at_end.depth.tokens += other.open_at_end.depth.tokens;
        self.open_at_end.at_provider += other.open_at_end.at_provider;
        self.open_at_end.ghosts += other.open_at_end.ghosts;
        self.open_at_end.outstanding += other.open_at_end.outstanding;
        self.end = self.end.max(other.end);
        self.examples.add(&other.examples);
    }
}

/// Widens a span so that it holds `at`.
fn stretch(span: &mut Option<(Moment, Moment)>, at: Moment) {
    let (first, last) = span.unwrap_or((at, at));
    *span = Some((first.min(at), last.max(at)));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{arrive, depth, gauge, healthy, record, smoke};
    use super::*;

    #[test]
    fn the_sum_is_exact_in_every_window_and_a_lost_request_shows() {
        let mut measures = healthy(&smoke().plan());
        assert_eq!(measures.offered, 16 + 960 + 64);
        assert!(measures.sums_are_exact());
        measures.due(Attempt { seq: 9_999, nth: 0 }, Moment::from_secs(3));
        assert!(!measures.sums_are_exact());
    }

    #[test]
    fn two_halves_of_a_run_add_to_the_whole_in_either_order() {
        let plan = smoke().plan();
        let (mut whole, mut a, mut b) = (Measures::new(&plan), Measures::new(&plan), Measures::new(&plan));
        for seq in 0..400u64 {
            let outcome = Outcome::ALL[(seq % 9) as usize];
            let mut record = record(seq, seq * 47, 3 + seq % 5, outcome);
            record.depth_met = depth(seq % 40);
            let vital =
                Vital::Ping { at: record.due, took: (seq % 7 > 0).then_some(Duration::from_micros(seq)) };
            for (measures, chosen) in [(&mut whole, true), (&mut a, seq % 3 == 0), (&mut b, seq % 3 != 0)] {
                if chosen {
                    arrive(measures, &record);
                }
            }
            whole.vital(vital.clone());
            a.vital(vital);
        }
        let (mut ab, mut ba) = (a.clone(), b.clone());
        ab.add(&b);
        ba.add(&a);
        assert_eq!(ab, whole);
        assert_eq!(ba, whole);
        let before = whole.clone();
        whole.add(&Measures::new(&plan));
        assert_eq!(whole, before, "a new one is the zero");
    }

    #[test]
    fn the_onset_is_the_shed_that_was_sent_first_not_the_one_that_ended_first() {
        let mut measures = Measures::new(&smoke().plan());
        let shed = |seq, due_ms, took_ms, met| {
            let mut record = record(seq, due_ms, took_ms, Outcome::Shed);
            record.depth_met = depth(met);
            record
        };
        for record in
            [shed(3, 1_900, 1, 2), shed(80, 2_840, 1, 38), shed(79, 2_830, 40, 37), shed(900, 15_000, 1, 3)]
        {
            arrive(&mut measures, &record);
        }
        let onset = measures.onset.unwrap();
        assert_eq!((onset.attempt.seq, onset.depth_met, onset.hold), (79, depth(37), Tokens::new(1_200)));
        assert_eq!(measures.refusals.before_event, 1, "arrival 3 was refused on a quiet day");
        assert_eq!(measures.refusals.after_drain, 0, "nobody has seen the depth come back");
    }

    #[test]
    fn the_backlog_is_drained_when_the_depth_is_back_and_no_ghost_is_left() {
        let mut measures = Measures::new(&smoke().plan());
        let at = Moment::from_millis;
        measures.stand(at(500), &gauge(2));
        measures.stand(at(1_000), &gauge(0));
        measures.stand(at(6_000), &gauge(37));
        measures.stand(at(15_000), &Gauge { ghosts: 1, ..gauge(30) });
        let full = measures.depths.at_event_end.unwrap();
        assert_eq!(full.depth.requests, 37, "what stood there when the event ended");
        measures.stand(at(18_000), &Gauge { ghosts: 1, ..gauge(2) });
        assert_eq!(measures.depths.drained, None, "a ghost is left");
        measures.stand(at(19_000), &gauge(2));
        measures.stand(at(20_000), &gauge(5));
        assert_eq!(measures.depths.drained, Some(at(19_000)), "two requests stood there before the event");
        arrive(&mut measures, &record(1, 19_500, 1, Outcome::Shed));
        assert_eq!(measures.refusals.after_drain, 1);
    }

    #[test]
    fn the_mean_depth_is_weighted_by_time_and_spread_over_the_windows_it_lasts() {
        let mut measures = Measures::new(&smoke().plan());
        measures.stand(Moment::from_millis(500), &gauge(10));
        measures.stand(Moment::from_millis(2_250), &gauge(0));
        let mean: Vec<_> = measures.windows.iter().map(|window| window.depth_time / 1_000_000).collect();
        assert_eq!(mean, [5_000, 10_000, 2_500]);
        assert!(measures.windows.iter().all(|window| window.depth_max == depth(10)));
    }

    /// A caller five times a second, a server that takes one second for each, one at a time: from the due time the
    /// latency grows for as long as the run goes on, and the server itself is as fast as ever.
    #[test]
    fn latency_from_the_due_time_grows_while_the_server_keeps_its_pace() {
        let mut measures = Measures::new(&smoke().plan());
        for seq in 0..150u64 {
            let due = Moment::from_millis(seq * 200);
            let ended = Moment::from_secs(seq + 1);
            let record = Record { due, ended, ..record(seq, 0, 0, Outcome::Completed) };
            let sent = Some(ended - Duration::from_secs(1));
            arrive(&mut measures, &Record { sent, ..record });
        }
        let due = measures.latencies.from_due(Outcome::Completed);
        let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 2e-3, "{got} instead of {want}");
        let at = |q| due.quantile(q).unwrap().as_secs_f64();
        close(due.mean().unwrap() / 1e6, 60.6);
        close(at(0.5), 60.2);
        close(at(0.95), 114.6);
        close(at(0.99), 119.4);
        close(at(1.0), 120.2);
        close(measures.latencies.from_sent(Outcome::Completed).quantile(1.0).unwrap().as_secs_f64(), 1.0);
    }

    #[test]
    fn the_busiest_second_is_told_as_planned_and_as_sent() {
        let mut measures = Measures::new(&smoke().plan());
        for seq in 0..200u64 {
            let record = record(seq, seq * 20, 1, Outcome::Completed);
            // the second second's requests go out 900 ms late, on top of the third's
            let late = if (50..100).contains(&seq) { 990 } else { 0 };
            let sent = Some(record.due + Duration::from_millis(late));
            let ended = record.ended + Duration::from_millis(late);
            arrive(&mut measures, &Record { sent, ended, ..record });
        }
        let (planned, sent) = measures.busiest();
        assert_eq!(planned, 50.0);
        assert_eq!(sent, 99.0);
    }

    #[test]
    fn the_rate_reached_is_never_above_the_planned_one_nor_a_nonsense() {
        let mut measures = Measures::new(&smoke().plan());
        assert_eq!(measures.achieved(), None);
        arrive(&mut measures, &record(0, 0, 1, Outcome::Completed));
        assert_eq!(measures.achieved(), None, "one arrival has no rate");
        for seq in 1..100 {
            arrive(&mut measures, &record(seq, seq * 10, 1, Outcome::Completed));
        }
        assert_eq!(measures.achieved(), Some(1.0));
        for seq in 100..200 {
            arrive(&mut measures, &record(seq, seq * 10, 0, Outcome::Unsent));
        }
        let reached = measures.achieved().unwrap();
        assert!(reached > 0.99, "what was sent was sent at the planned rate: {reached}");
        assert_eq!(measures.arrivals.get(Outcome::Unsent), 100);
    }

    #[test]
    fn probes_count_apart_and_never_as_arrivals() {
        let measures = healthy(&smoke().plan());
        let returned = measures.returns.inside.returned + measures.returns.after.returned;
        assert!(measures.returns.inside.returned > 20, "{:?}", measures.returns);
        assert_eq!(measures.attempts.total(), measures.offered + returned);
        assert_eq!(measures.returns.inside.kept + measures.returns.after.kept, returned);
    }

    #[test]
    fn what_a_server_sends_is_kept_in_bounded_number() {
        let mut measures = Measures::new(&smoke().plan());
        for seq in 0..6_000u64 {
            let mut record = record(seq, 3_000, 1, Outcome::Shed);
            record.shape = Err(format!("no header number {seq}"));
            record.retry_after = Some(crate::observe::RetryAfter::After(Duration::from_secs(seq)));
            arrive(&mut measures, &record);
        }
        assert_eq!((measures.refusals.unshapely, measures.refusals.faults.len()), (6_000, 20));
        assert_eq!(measures.refusals.distinct(), 4_096);
        assert_eq!(measures.examples.of(Trouble::Unshapely).len(), 20);
    }
}
