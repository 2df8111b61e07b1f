//! Where a run is followed: sightings are put in order and folded, the target and the provider are looked after.

use std::thread;
use std::time::Duration;

use super::board::{Board, Standing};
use super::crew::Crew;
use super::run::Stop;
use super::seen::{In, Order, Seen};
use super::target::{Target, pause};
use super::wall::Steps;
use super::{Clock, Listener, Log, ProviderShell, abort};
use crate::measure::{Fold, Measures, Snapshot, Vital};
use crate::observe::Sighting;
use crate::plan::{AbortRule, Plan};
use crate::units::{Moment, show_duration};

/// From one turn to the next.
const TURN: Duration = Duration::from_millis(20);
/// From one look at the target's process to the next, in turns.
const LOOK: u64 = 5;
/// From one snapshot to the next, in turns.
const SHOW: u64 = 12;
/// From one look at the provider and the wall clock to the next, in turns.
const CARE: u64 = 50;
/// How long the provider may take to say that it is there.
const PROVIDER: Duration = Duration::from_secs(1);
/// So often in a row it must not answer to be silent: once is a slow machine.
const SILENT: u32 = 3;
/// How long the end of work at the provider is waited for when no request is open any more.
const GHOSTS: Duration = Duration::from_secs(120);

/// After so many sightings the thread lets others run. On a machine of few cores the thread that sends may wait for this
/// one's, and what has piled up in a turn at 20,000/s takes a millisecond.
const BITE: u32 = 32;

/// Arrivals that are due and not begun for so long are a sender that stands still.
const STUCK: Duration = Duration::from_secs(5);
/// In so many turns in a row it must be seen.
const LOOKS: u32 = 10;

/// Why a run is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Over {
    /// The arrivals are over, no request is open, and the provider has nothing left to do.
    Played,
    /// Someone asked.
    Asked,
    /// A rule said so.
    Aborted(String),
}

/// Follows a run.
#[derive(Debug)]
pub(super) struct Desk {
    fold: Fold,
    order: Order,
    seen: In,
    clock: Clock,
    start: Moment,
    rules: Vec<AbortRule>,
    steps: Steps,
    /// Until when the provider has work, as far as is known.
    at_work: Moment,
    unanswered: u32,
    target_gone: bool,
    /// So many turns in a row the sender has stood still.
    still: u32,
    /// Where it is left how the run stands, if anywhere.
    pub(super) board: Option<Board>,
}

impl Desk {
    /// A desk for the load that begins at `start`; what is seen comes in by `seen`, and what ends goes to those who are
    /// told.
    pub(super) fn new(
        plan: &Plan,
        clock: Clock,
        start: Moment,
        seen: In,
        told: (Option<Log>, Option<Listener>),
    ) -> Self {
        let fold = Fold::new(plan);
        Self {
            fold: match told {
                (None, None) => fold,
                (log, listener) => fold.telling(move |closed| {
                    log.iter().for_each(|log| log.note(closed));
                    listener.iter().for_each(|listener| listener.tell(closed));
                }),
            },
            order: Order::default(),
            seen,
            clock,
            start,
            rules: plan.abort_when.clone(),
            steps: Steps::new(clock.now(), clock.wall()),
            at_work: Moment::ZERO,
            unanswered: 0,
            target_gone: false,
            still: 0,
            board: None,
        }
    }

    /// Follows the run until it is over.
    pub(super) fn attend(
        &mut self,
        crew: &Crew,
        target: &mut Target,
        provider: &ProviderShell,
        watch: &mut dyn FnMut(&Snapshot),
        stop: &Stop,
    ) -> Over {
        let mut quiet_since = None;
        for turn in 1u64.. {
            // first this, then what was seen: whoever has ended has said all before
            let done = crew.is_done();
            let paced = crew.paced_until();
            self.take();
            let now = self.clock.now();
            self.release(now, paced);
            if stop.asked() {
                return Over::Asked;
            }
            if let Some(why) = self.stuck(now, paced).filter(|_| !done) {
                return Over::Aborted(why);
            }
            if turn.is_multiple_of(LOOK) {
                self.look_after(target);
            }
            if turn.is_multiple_of(CARE) {
                self.care(provider);
            }
            self.post(now);
            if turn.is_multiple_of(SHOW) {
                let at = self.on_the_load(now);
                watch(&self.fold.snapshot(at));
                if let Some(why) = self.rule_broken(at) {
                    return Over::Aborted(why);
                }
            }
            if done {
                let quiet = *quiet_since.get_or_insert(now);
                if now >= self.at_work.min(quiet + GHOSTS) {
                    break;
                }
            }
        }
        Over::Played
    }

    /// Follows a load that has neither provider nor target of ours, until it is over.
    pub(super) fn follow(&mut self, crew: &Crew) {
        loop {
            let done = crew.is_done();
            let paced = crew.paced_until();
            self.take();
            self.release(self.clock.now(), paced);
            if done {
                return;
            }
        }
    }

    /// The sender has come to an end that is none, when everything due before `paced` had been begun.
    pub(super) fn generator_failed(&mut self, paced: Moment) {
        let at = paced.min(self.clock.now());
        self.order.push(Seen::Vital(Vital::GeneratorStuck { at }));
    }

    /// Ends the measuring. Gives what was measured, the end on the load's time line, and how many sightings came too
    /// late to be put in their order.
    pub(super) fn close(mut self) -> (Measures, Moment, u64) {
        while let Some(seen) = self.seen.next() {
            self.note(seen);
        }
        let (fold, start) = (&mut self.fold, self.start);
        self.order.drain(|seen| into(fold, start, seen));
        let end = self.on_the_load(self.clock.now());
        (self.fold.finish(end), end, self.order.overtaken())
    }

    fn on_the_load(&self, at: Moment) -> Moment {
        Moment::ZERO + at.since(self.start)
    }

    /// Lets a turn pass and takes in what was seen. One wake-up a turn, not one a sighting: they would cost the
    /// pacing thread its punctuality.
    fn take(&mut self) {
        pause(self.clock, TURN);
        let mut bite = Bite::default();
        while let Some(seen) = self.seen.next() {
            self.note(seen);
            bite.taken();
        }
    }

    fn note(&mut self, seen: Seen) {
        if let Seen::Sighting(Sighting::AtProvider { until, .. }) = &seen {
            self.at_work = self.at_work.max(*until);
        }
        self.order.push(seen);
    }

    fn release(&mut self, now: Moment, paced: Moment) {
        let (fold, start) = (&mut self.fold, self.start);
        let mut bite = Bite::default();
        self.order.release(now, paced, |seen| {
            into(fold, start, seen);
            bite.taken();
        });
    }

    /// Ends the run if the sender stands still. Not at the first look: after a halt of the whole machine it has yet to
    /// wake up.
    fn stuck(&mut self, now: Moment, paced: Moment) -> Option<String> {
        let why = stuck(now, paced.max(self.start));
        self.still = if why.is_some() { self.still + 1 } else { 0 };
        let why = why.filter(|_| self.still >= LOOKS)?;
        self.order.push(Seen::Vital(Vital::GeneratorStuck { at: now }));
        Some(why)
    }

    fn look_after(&mut self, target: &mut Target) {
        if self.target_gone {
            return;
        }
        if let Some(how) = target.ended() {
            self.target_gone = true;
            let how = format!("{how}{}", target.last_words());
            self.order.push(Seen::Vital(Vital::TargetEnded { at: self.clock.now(), how }));
        }
    }

    fn care(&mut self, provider: &ProviderShell) {
        self.unanswered = if provider.answers(PROVIDER) { 0 } else { self.unanswered + 1 };
        let at = self.clock.now();
        if self.unanswered == SILENT {
            self.order.push(Seen::Vital(Vital::ProviderSilent { at }));
        }
        if let Some(seconds) = self.steps.look(at, self.clock.wall()) {
            self.order.push(Seen::Vital(Vital::ClockStep { at, seconds }));
        }
    }

    /// Leaves how the run stands on the board, if someone has looked there.
    fn post(&self, now: Moment) {
        if let Some(board) = &self.board {
            let at = self.on_the_load(now);
            board.leave(|| Standing { at, measures: self.fold.so_far(at) });
        }
    }

    fn rule_broken(&self, at: Moment) -> Option<String> {
        abort::reason(&self.rules, at, &|span| {
            let recent = self.fold.measures().recent(at, span);
            (recent.offered, recent.completions)
        })
    }
}

/// Counts sightings up to [`BITE`].
#[derive(Debug, Default)]
struct Bite(u32);

impl Bite {
    /// One more; after the last of a bite others may run.
    fn taken(&mut self) {
        self.0 += 1;
        if self.0 == BITE {
            self.0 = 0;
            thread::yield_now();
        }
    }
}

/// Says that nothing was sent for long though something was due: the run would show a freeze of our own making.
fn stuck(now: Moment, paced: Moment) -> Option<String> {
    let behind = now.since(paced);
    (behind >= STUCK).then(|| {
        format!("the generator stood still: an arrival due {} ago was not begun", show_duration(behind))
    })
}

/// Folds something seen, moved to the time line of the load that began at `start`.
fn into(fold: &mut Fold, start: Moment, seen: Seen) {
    match seen.since(start) {
        Seen::Sighting(sighting) => fold.see(sighting),
        Seen::Vital(vital) => fold.vital(vital),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in vllm-project/guidellm#431: a sender that freezes between two phases ends the run, and is not waited for.
    #[test]
    fn a_sender_that_stands_still_is_noticed_and_one_that_is_late_is_not() {
        let paced = Moment::from_secs(10);
        assert_eq!(stuck(paced + Duration::from_millis(4_900), paced), None);
        assert_eq!(stuck(Moment::from_secs(3), Moment::NEVER), None, "nothing more is due");
        let why = stuck(Moment::from_secs(16), paced).unwrap();
        assert!(why.contains("stood still") && why.contains("6 s"), "{why}");
    }
}
