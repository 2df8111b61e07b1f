//! What all threads of a run have seen, brought into one order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use crate::measure::Vital;
use crate::observe::Sighting;
use crate::units::Moment;

/// How long a sighting is held back, so that one of another thread that was earlier can overtake it.
const HOLD_BACK: Duration = Duration::from_millis(100);

/// A sighting or a vital sign.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// Of a request.
    Sighting(Sighting),
    /// Of the target, or of ourselves.
    Vital(Vital),
}

impl Seen {
    /// The same on the load's own time line, which begins at `start`. What came before it is at its beginning.
    pub(super) fn since(mut self, start: Moment) -> Self {
        let moved = |at: Moment| Moment::ZERO + at.since(start);
        match &mut self {
            Self::Sighting(Sighting::AtProvider { until, .. }) => *until = moved(*until),
            Self::Sighting(Sighting::Tokens { first: Some(first), .. }) => *first = moved(*first),
            _ => {}
        }
        let at = self.at();
        *at = moved(*at);
        self
    }

    /// When it was.
    const fn at(&mut self) -> &mut Moment {
        match self {
            Self::Sighting(
                Sighting::Due { at, .. }
                | Sighting::Again { at, .. }
                | Sighting::Unsent { at, .. }
                | Sighting::Sent { at, .. }
                | Sighting::AtProvider { at, .. }
                | Sighting::CutOff { at, .. }
                | Sighting::Tokens { at, .. }
                | Sighting::Answered { at, .. }
                | Sighting::Left { at, .. }
                | Sighting::Broken { at, .. },
            )
            | Self::Vital(
                Vital::TargetMemory { at, .. }
                | Vital::OwnMemory { at, .. }
                | Vital::Said { at, .. }
                | Vital::Ping { at, .. }
                | Vital::NoPing { at }
                | Vital::TargetEnded { at, .. }
                | Vital::ProviderSilent { at }
                | Vital::GeneratorStuck { at }
                | Vital::ClockStep { at, .. },
            ) => at,
        }
    }
}

/// Where what is seen goes in. Threads that sampling is left to have a way of their own: were one of them held up while it
/// hands something over, those that run before it would wait for it.
#[derive(Debug, Clone)]
pub(super) struct Out {
    /// Of requests, and of all that is seen by the threads they go through.
    pub(super) requests: Sender<Seen>,
    /// Of the machine, by threads that run beside them.
    pub(super) machine: Sender<Seen>,
}

/// Where it comes out.
#[derive(Debug)]
pub(super) struct In {
    requests: Receiver<Seen>,
    machine: Receiver<Seen>,
}

impl In {
    /// The next that has come in, if any has.
    pub(super) fn next(&self) -> Option<Seen> {
        self.requests.try_recv().or_else(|_| self.machine.try_recv()).ok()
    }
}

/// Both ends.
pub(super) fn channels() -> (Out, In) {
    let ((requests, these), (machine, those)) = (mpsc::channel(), mpsc::channel());
    (Out { requests, machine }, In { requests: these, machine: those })
}

/// Orders what comes in by time; at one instant, by the order of coming in.
#[derive(Debug, Default)]
pub(super) struct Order {
    waiting: BinaryHeap<Reverse<Entry>>,
    count: u64,
    released: Moment,
    /// What came in after something later had been handed out.
    overtaken: u64,
}

#[derive(Debug)]
struct Entry(Moment, u64, Seen);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

impl Order {
    /// Takes something in.
    pub(super) fn push(&mut self, mut seen: Seen) {
        let at = *seen.at();
        self.overtaken += u64::from(at < self.released);
        self.waiting.push(Reverse(Entry(at, self.count, seen)));
        self.count += 1;
    }

    /// Hands out what is old enough at `now`, in order. Nothing from `paced` on is handed out: the pacing thread has
    /// yet to say what is due from then on, and after a stall it may be far behind.
    pub(super) fn release(&mut self, now: Moment, paced: Moment, mut each: impl FnMut(Seen)) {
        let until = (now - HOLD_BACK).min(paced);
        while let Some(Reverse(Entry(at, ..))) = self.waiting.peek() {
            if *at >= until {
                break;
            }
            if let Some(Reverse(Entry(at, _, seen))) = self.waiting.pop() {
                self.released = self.released.max(at);
                each(seen);
            }
        }
    }

    /// Hands out all that is left.
    pub(super) fn drain(&mut self, each: impl FnMut(Seen)) {
        self.release(Moment::NEVER, Moment::NEVER, each);
    }

    /// How many came in after something later had been handed out.
    pub(super) const fn overtaken(&self) -> u64 {
        self.overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::Attempt;

    #[test]
    fn both_ways_in_come_out() {
        let (out, seen) = channels();
        out.machine.send(sent(1, 5)).unwrap();
        out.requests.send(sent(2, 5)).unwrap();
        drop(out);
        let all: Vec<_> = std::iter::from_fn(|| seen.next()).collect();
        assert_eq!(all, [sent(2, 5), sent(1, 5)]);
    }

    fn sent(seq: u64, millis: u64) -> Seen {
        Seen::Sighting(Sighting::Sent { attempt: Attempt { seq, nth: 0 }, at: Moment::from_millis(millis) })
    }

    fn times(order: &mut Order, now: u64, paced: u64) -> Vec<u64> {
        let mut out = Vec::new();
        order.release(Moment::from_millis(now), Moment::from_millis(paced), |mut seen| {
            out.push(seen.at().as_nanos() / 1_000_000);
        });
        out
    }

    #[test]
    fn threads_are_brought_into_one_order() {
        let mut order = Order::default();
        [30, 10, 20, 10, 140].into_iter().enumerate().for_each(|(i, at)| order.push(sent(i as u64, at)));
        assert_eq!(times(&mut order, 100, 1_000), Vec::<u64>::new(), "held back");
        assert_eq!(times(&mut order, 200, 1_000), [10, 10, 20, 30]);
        order.push(sent(9, 5));
        assert_eq!(order.overtaken(), 1, "too late, but not lost");
        let mut rest = Vec::new();
        order.drain(|seen| rest.push(seen));
        assert_eq!(rest, [sent(9, 5), sent(4, 140)]);
    }

    #[test]
    fn a_stalled_pacing_thread_holds_everything_back_that_its_arrivals_precede() {
        let mut order = Order::default();
        order.push(sent(0, 10));
        order.push(sent(1, 1_500));
        assert_eq!(times(&mut order, 3_000, 1_000), [10]);
        order.push(sent(2, 1_000));
        assert_eq!(times(&mut order, 3_000, 2_900), [1_000, 1_500]);
        assert_eq!(order.overtaken(), 0);
    }

    #[test]
    fn the_loads_time_line_begins_with_the_load() {
        let at_provider = Seen::Sighting(Sighting::AtProvider {
            attempt: Attempt { seq: 0, nth: 0 },
            at: Moment::from_millis(900),
            until: Moment::from_millis(2_000),
            charged: crate::units::Tokens::ZERO,
            refused: false,
            faulty: false,
            budget: None,
        });
        let Seen::Sighting(Sighting::AtProvider { at, until, .. }) = at_provider.since(Moment::from_secs(1))
        else {
            panic!("it stays what it is")
        };
        assert_eq!((at, until), (Moment::ZERO, Moment::from_secs(1)));
    }
}
