//! Which attempts are due: the pure half of the generator. It knows no clock and never looks at an answer.
//!
//! First attempts come from the schedule, returning callers from a heap. Whatever is due is handed out at once and
//! exactly once, however late it is asked for; what the plan's late policy no longer wants sent is handed out as such,
//! so that `due = sent + unsent` holds whatever the machine does.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;
use std::time::Duration;

use crate::observe::Attempt;
use crate::units::Moment;
use crate::workload::{Arrival, ClassId, Late, Load, Sizes, Span};

/// From this rate on one wake-up sends everything due within a grain: a wake-up for each request would cost more than the
/// request.
const COALESCE_FROM: f64 = 5_000.0;

/// How long a wake-up waits for others to fall due, at such a rate: two requests share one at 5,000/s, five at 20,000/s.
const GRAIN: Duration = Duration::from_micros(200);

/// An attempt to be made. They order by due time, then by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Departure {
    /// When it is to be sent, on the run's clock.
    pub due: Moment,
    /// Which.
    pub attempt: Attempt,
    /// Its class.
    pub class: ClassId,
    /// How large it and its answer are.
    pub sizes: Sizes,
    /// True if it is a refused caller that came back exactly as told.
    pub probe: bool,
}

/// What is to be done with a [`Departure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is sent, late or not.
    Send,
    /// It is later than the plan's `late: { drop_after }` allows, and counted as unsent.
    TooLate,
}

/// What the policy `late` does at `now` with an attempt that was due at `due`.
pub(super) fn fate(late: Late, due: Moment, now: Moment) -> Fate {
    match late {
        Late::DropAfter(most) if now.since(due) > most => Fate::TooLate,
        Late::DropAfter(_) | Late::Send => Fate::Send,
    }
}

/// Hands out attempts as they fall due.
#[derive(Debug)]
pub struct Pacer<S: Iterator<Item = Arrival>> {
    schedule: Peekable<S>,
    returns: BinaryHeap<Reverse<Departure>>,
    start: Moment,
    end: Moment,
    late: Late,
    /// Phases whose wake-ups wait a grain.
    busy: Vec<Span>,
}

impl<S: Iterator<Item = Arrival>> Pacer<S> {
    /// A pacer of `schedule`, whose epoch is `start` on the run's clock, under the policy and phases of
    /// `load`.
    pub fn new(schedule: S, load: &Load, start: Moment) -> Self {
        let shift = start.since(Moment::ZERO);
        let busy = load.spans().zip(load.peaks()).filter(|(_, (_, peak))| *peak >= COALESCE_FROM);
        Self {
            schedule: schedule.peekable(),
            returns: BinaryHeap::new(),
            start,
            end: load.end() + shift,
            late: load.late,
            busy: busy
                .map(|((_, span), _)| Span { start: span.start + shift, end: span.end + shift })
                .collect(),
        }
    }

    /// A caller will come back. False, and nothing taken, if that is after the last phase: it is not waited for.
    pub fn returning(&mut self, departure: Departure) -> bool {
        let kept = departure.due < self.end;
        if kept {
            self.returns.push(Reverse(departure));
        }
        kept
    }

    /// How long wake-ups wait for others to fall due, if they do in any phase.
    pub fn grain(&self) -> Option<Duration> {
        (!self.busy.is_empty()).then_some(GRAIN)
    }

    /// The instant after the last phase, on the run's clock.
    pub const fn end(&self) -> Moment {
        self.end
    }

    /// The due time of the next attempt known of.
    pub fn next_due(&mut self) -> Option<Moment> {
        let fresh = self.schedule.peek().map(|arrival| arrival.due + self.start.since(Moment::ZERO));
        let back = self.returns.peek().map(|Reverse(departure)| departure.due);
        fresh.into_iter().chain(back).min()
    }

    /// When to wake up next: never before an attempt is due, and in a busy phase late enough to find several.
    pub fn wake_at(&mut self) -> Option<Moment> {
        let due = self.next_due()?;
        let busy = self.busy.iter().any(|span| span.contains(due));
        Some(if busy { due + GRAIN } else { due })
    }

    /// Appends everything due at `now`, in order of due times.
    pub fn due(&mut self, now: Moment, out: &mut Vec<(Departure, Fate)>) {
        while let Some(departure) = self.pop(now) {
            out.push((departure, fate(self.late, departure.due, now)));
        }
    }

    fn pop(&mut self, now: Moment) -> Option<Departure> {
        let shift = self.start.since(Moment::ZERO);
        let fresh = self.schedule.peek().map(|arrival| Departure {
            due: arrival.due + shift,
            attempt: Attempt { seq: arrival.seq, nth: 0 },
            class: arrival.class,
            sizes: arrival.sizes,
            probe: false,
        });
        let back = self.returns.peek().map(|Reverse(departure)| *departure);
        let next = fresh.into_iter().chain(back).min().filter(|departure| departure.due <= now)?;
        if fresh == Some(next) {
            self.schedule.next();
        } else {
            self.returns.pop();
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing;

    /// A load of one phase with evenly spaced arrivals.
    fn load(rate: &str, secs: u64, late: Late) -> Load {
        Load { late, ..testing::load(rate, Duration::from_secs(secs)) }
    }

    /// What a schedule of one class is made of, without a mix.
    fn arrivals_of(load: &Load) -> impl Iterator<Item = Arrival> + use<> {
        let phase = load.phases[0].clone();
        (0u64..)
            .map(move |seq| (seq, phase.rate.time_for(seq), phase.lasts))
            .take_while(|(_, at, lasts)| at < lasts)
            .map(|(seq, at, _)| Arrival {
                seq,
                due: Moment::ZERO + at,
                class: ClassId(0),
                sizes: Sizes::default(),
            })
    }

    /// Runs a pacer to its end on a scripted clock: every wake-up comes `oversleep(n)` after the instant
    /// asked for.
    /// Gives each departure with the instant it was handed out and its fate.
    fn played(load: &Load, mut oversleep: impl FnMut(u64) -> Duration) -> Vec<(Departure, Moment, Fate)> {
        let mut pacer = Pacer::new(arrivals_of(load), load, Moment::ZERO);
        let (mut handed, mut out, mut now, mut wakes) = (Vec::new(), Vec::new(), Moment::ZERO, 0);
        while let Some(wake) = pacer.wake_at() {
            now = now.max(wake) + oversleep(wakes);
            wakes += 1;
            pacer.due(now, &mut out);
            handed.extend(out.drain(..).map(|(departure, fate)| (departure, now, fate)));
        }
        handed
    }

    fn lateness(handed: &[(Departure, Moment, Fate)]) -> Duration {
        let sum: Duration = handed.iter().map(|(departure, at, _)| at.since(departure.due)).sum();
        sum / u32::try_from(handed.len()).unwrap()
    }

    /// As in vllm-project/vllm#21104: small delays of the sleeper do not add up (a relative sleep was 9 %
    /// short after 10,000 arrivals).
    #[test]
    fn delays_do_not_add_up_over_ten_thousand_arrivals() {
        let handed = played(&load("200/s", 50, Late::Send), |n| Duration::from_micros(100 + 450 * (n % 7)));
        assert_eq!(handed.len(), 10_000);
        assert_eq!(handed[9_999].0.due, Moment::from_millis(49_995));
        let window = handed[9_999].1.since(handed[0].1).as_secs_f64();
        assert!(9_999.0 / window >= 199.0, "{window} s");
        let (first, last) = (lateness(&handed[..1_000]), lateness(&handed[9_000..]));
        assert!(first.abs_diff(last) <= Duration::from_millis(2), "{first:?} then {last:?}");
        assert!(
            handed.iter().all(|(departure, at, _)| *at >= departure.due),
            "nothing is sent before it is due"
        );
    }

    /// As in tsenart/vegeta#620: the busiest second holds what the rate says, 51 at a boundary.
    #[test]
    fn the_busiest_second_holds_the_rate_and_no_more() {
        let handed = played(&load("50/s", 30, Late::Send), |n| Duration::from_millis(n % 3));
        let sent: Vec<_> = handed.iter().map(|(_, at, _)| *at).collect();
        let second = Duration::from_secs(1);
        let busiest = (0..sent.len())
            .map(|i| sent[i..].iter().take_while(|at| at.since(sent[i]) < second).count())
            .max()
            .unwrap();
        assert!((50..=51).contains(&busiest), "{busiest} in one second");
    }

    /// As in fortio/fortio#543: 2 s of stall at 100/s. Sent late and known to be late, or dropped; each
    /// exactly once.
    #[test]
    fn after_a_stall_each_arrival_is_sent_late_or_dropped_exactly_once() {
        let stall = |n| if n == 300 { Duration::from_secs(2) } else { Duration::ZERO };
        let limit = Duration::from_millis(50);
        let late = |handed: &[(Departure, Moment, Fate)]| {
            handed.iter().filter(|(departure, at, _)| at.since(departure.due) > limit).count()
        };
        let sent = played(&load("100/s", 10, Late::Send), stall);
        assert_eq!((sent.len(), late(&sent)), (1_000, 195), "200 fell due, 5 of them in the last 50 ms");
        assert!(sent.iter().all(|(_, _, fate)| *fate == Fate::Send));

        let dropped = played(&load("100/s", 10, Late::DropAfter(limit)), stall);
        let unsent = dropped.iter().filter(|(_, _, fate)| *fate == Fate::TooLate).count();
        assert_eq!((dropped.len(), unsent), (1_000, 195));
        let seqs: Vec<_> = dropped.iter().map(|(departure, _, _)| departure.attempt.seq).collect();
        assert_eq!(seqs, (0..1_000).collect::<Vec<_>>());
    }

    /// As in rakyll/hey#140 and hatoo/oha#577: the rate is the total, whatever an answer takes: there is no
    /// way for answers to slow it.
    #[test]
    fn the_rate_is_the_total_rate() {
        assert_eq!(played(&load("10/s", 30, Late::Send), |_| Duration::ZERO).len(), 300);
        let slow = played(&load("5/s", 60, Late::Send), |_| Duration::from_millis(3));
        assert_eq!(slow.len(), 300);
        assert!(slow.iter().all(|(_, at, _)| *at < Moment::from_secs(60)), "all 300 inside the minute");
    }

    #[test]
    fn a_busy_phase_is_woken_for_several_at_a_time_and_never_early() {
        let ruled = |rate: usize| {
            let mut wakes = 0;
            let handed = played(&load(&format!("{rate}/s"), 1, Late::Send), |n| {
                wakes = n + 1;
                Duration::ZERO
            });
            assert_eq!(handed.len(), rate);
            let latest = handed.iter().map(|(d, at, _)| at.as_nanos() - d.due.as_nanos()).max().unwrap();
            (wakes, Duration::from_nanos(latest))
        };
        assert_eq!(ruled(4_900), (4_900, Duration::ZERO), "each at its instant");
        for (rate, at_once) in [(5_000, 2), (7_000, 2), (10_000, 3), (20_000, 5)] {
            let (wakes, latest) = ruled(rate);
            assert!(wakes <= rate as u64 / at_once + 1, "{wakes} wake-ups at {rate}/s");
            assert!(latest <= GRAIN, "{latest:?} late at {rate}/s");
        }
        // two seconds of ten: bursts of 5,000/s
        let bursts = Load { arrivals: testing::arrivals("on_off"), ..load("1000/s", 1, Late::Send) };
        let handed = played(&bursts, |_| Duration::ZERO);
        assert!(handed.iter().all(|(departure, at, _)| at.since(departure.due) == GRAIN));
    }

    /// As in nats-io/nats.rs#875 and tokio-rs/tokio#6029: a sleeper that only knows whole milliseconds, and that now and then
    /// is not asked for 21 ms, loses no arrival, fires none early and does not drift.
    #[test]
    fn a_coarse_sleeper_keeps_five_thousand_a_second() {
        let mut asleep = Moment::ZERO;
        let load = load("5000/s", 5, Late::Send);
        let mut pacer = Pacer::new(arrivals_of(&load), &load, Moment::ZERO);
        let (mut lateness, mut out, mut wakes) = (Vec::new(), Vec::new(), 0u64);
        while let Some(wake) = pacer.wake_at() {
            let whole = wake.as_nanos().div_ceil(1_000_000) + if wakes % 2_500 == 2_499 { 21 } else { 0 };
            asleep = asleep.max(Moment::from_millis(whole));
            wakes += 1;
            pacer.due(asleep, &mut out);
            lateness.extend(out.drain(..).map(|(departure, _)| asleep.since(departure.due)));
        }
        assert_eq!(lateness.len(), 25_000);
        lateness[24_000..].iter().for_each(|late| assert!(*late <= Duration::from_millis(23)));
        lateness.sort_unstable();
        assert!(lateness[24_750] <= Duration::from_millis(2), "{:?}", lateness[24_750]);
    }

    #[test]
    fn returning_callers_are_merged_in_order_and_those_after_the_end_are_not_waited_for() {
        let load = load("10/s", 1, Late::Send);
        let start = Moment::from_secs(3);
        let mut pacer = Pacer::new(arrivals_of(&load), &load, start);
        let back = |millis, seq| Departure {
            due: start + Duration::from_millis(millis),
            attempt: Attempt { seq, nth: 1 },
            class: ClassId(0),
            sizes: Sizes::default(),
            probe: true,
        };
        assert!(pacer.returning(back(850, 2)));
        assert!(pacer.returning(back(250, 1)));
        assert!(
            !pacer.returning(back(1_000, 3)),
            "arrivals are due before the end, and so is whoever comes back"
        );
        let mut out = Vec::new();
        pacer.due(start + Duration::from_secs(5), &mut out);
        assert_eq!(out.len(), 12);
        assert!(out.windows(2).all(|pair| pair[0].0.due <= pair[1].0.due));
        assert_eq!(out.iter().filter(|(departure, _)| departure.probe).count(), 2);
        assert_eq!(pacer.next_due(), None);
    }
}
