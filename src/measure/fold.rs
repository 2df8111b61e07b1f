use std::fmt;

use super::{Measures, Snapshot, Vital};
use crate::observe::{Gauge, Ghost, Joiner, Record, Sighting};
use crate::plan::Plan;
use crate::units::Moment;

/// Joins and measures a run as it goes.
#[derive(Debug)]
pub struct Fold {
    joiner: Joiner,
    measures: Measures,
    ended: Vec<Record>,
    /// What stood where when that was last noted.
    stood: Gauge,
    told: Option<Told>,
}

/// Something that has come to its end.
#[derive(Debug, Clone, Copy)]
pub enum Closed<'a> {
    /// A request, both sides joined.
    Request(&'a Record),
    /// A call that reached the provider after its request had ended.
    Ghost(&'a Ghost),
}

/// Who is told of everything that ends.
struct Told(Box<dyn FnMut(Closed<'_>) + Send>);

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Told")
    }
}

impl Fold {
    /// Nothing seen yet of a run of `plan` (the rehearsed one, if it is a rehearsal that runs).
    pub fn new(plan: &Plan) -> Self {
        Self::over(Joiner::new(plan), plan)
    }

    /// The same for a run in virtual time, in which nothing is seen of a request that has ended.
    pub fn in_virtual_time(plan: &Plan) -> Self {
        Self::over(Joiner::in_virtual_time(plan), plan)
    }

    fn over(joiner: Joiner, plan: &Plan) -> Self {
        Self { joiner, measures: Measures::new(plan), ended: Vec::new(), stood: Gauge::default(), told: None }
    }

    /// The same, and `told` is shown everything that ends, in the order it ends.
    #[must_use]
    pub fn telling(self, told: impl FnMut(Closed<'_>) + Send + 'static) -> Self {
        Self { told: Some(Told(Box::new(told))), ..self }
    }

    /// Takes in a sighting. They come in order of time.
    pub fn see(&mut self, sighting: Sighting) {
        let at = sighting.at();
        if let Sighting::Due { attempt, .. } = sighting {
            self.measures.due(attempt, at);
        }
        if let Sighting::Unsent { why, .. } = sighting {
            self.measures.unsent.note(why);
        }
        if let Sighting::Tokens { gaps, .. } = &sighting {
            self.measures.gaps(gaps);
        }
        self.pass(at);
        self.joiner.see(&sighting, &mut self.ended);
        if self.joiner.spared() > 0 {
            for spared in self.joiner.take_spared() {
                self.measures.spared(&spared);
            }
        }
        self.stand(at);
        if !self.ended.is_empty() || self.joiner.ghosts() > 0 {
            self.drain();
        }
    }

    /// Notes what stands where from `at` on, if that has changed.
    fn stand(&mut self, at: Moment) {
        let gauge = self.joiner.gauge();
        if *gauge != self.stood {
            self.measures.stand(at, gauge);
            self.stood = *gauge;
        }
    }

    /// Lets time pass up to `now`: each call at the provider that ends changes what stands where.
    fn pass(&mut self, now: Moment) {
        while let Some(end) = self.joiner.next_end().filter(|end| *end <= now) {
            self.joiner.advance(end);
            self.stand(end);
        }
    }

    /// Takes in a vital sign.
    pub fn vital(&mut self, vital: Vital) {
        self.measures.vital(vital);
    }

    /// The run as it stands at `now`.
    pub fn snapshot(&self, now: Moment) -> Snapshot {
        self.measures.snapshot(now)
    }

    /// What was measured so far.
    pub const fn measures(&self) -> &Measures {
        &self.measures
    }

    /// What was measured, as if the run ended at `now`; it goes on.
    pub fn so_far(&self, now: Moment) -> Measures {
        // nobody is told: it has not come to its end
        let Self { joiner, measures, ended, stood, told: _ } = self;
        let copy = Self {
            joiner: joiner.clone(),
            measures: measures.clone(),
            ended: ended.clone(),
            stood: *stood,
            told: None,
        };
        copy.finish(now)
    }

    /// Ends the run at `end`: what is open is unfinished.
    pub fn finish(mut self, end: Moment) -> Measures {
        self.pass(end);
        self.measures.close(end, self.joiner.gauge(), self.joiner.strays());
        self.joiner.finish(end, &mut self.ended);
        self.drain();
        // calls that go on for callers who are gone: when they end is known already
        self.pass(Moment::NEVER);
        self.drain();
        self.measures
    }

    fn drain(&mut self) {
        if self.joiner.ghosts() > 0 {
            for ghost in self.joiner.take_ghosts() {
                self.measures.ghost(&ghost);
                if let Some(Told(told)) = &mut self.told {
                    told(Closed::Ghost(&ghost));
                }
            }
        }
        for inverted in self.joiner.take_inverted() {
            self.measures.inverted(&inverted);
        }
        // looked at where they are: they are large
        for record in &self.ended {
            self.measures.record(record);
            if let Some(Told(told)) = &mut self.told {
                told(Closed::Request(record));
            }
        }
        self.ended.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{sightings, smoke};
    use super::*;
    use crate::observe::Attempt;
    use crate::units::Tokens;

    #[test]
    fn what_is_joined_is_measured_and_forgotten() {
        let mut fold = Fold::new(&smoke().plan());
        let mut all: Vec<_> = (0..50)
            .flat_map(|seq| sightings(seq, seq * 100, 40, if seq % 2 == 0 { 503 } else { 200 }))
            .collect();
        all.sort_by_key(Sighting::at);
        all.into_iter().for_each(|sighting| fold.see(sighting));
        assert_eq!(fold.measures().offered, 50);
        let snapshot = fold.snapshot(Moment::from_secs(5));
        assert_eq!((snapshot.offered, snapshot.phase.unwrap().0.as_str()), (50, "promotion"));
        assert_eq!(snapshot.recent.per_second(snapshot.recent.offered), Some(10.0));
        let so_far = fold.so_far(Moment::from_secs(6));
        let measures = fold.finish(Moment::from_secs(6));
        assert_eq!(so_far, measures, "a look at a run leaves it as it was");
        assert_eq!(measures.end, Moment::from_secs(6));
        assert_eq!(measures.offered, 50);
    }

    #[test]
    fn a_refusal_that_was_forwarded_all_the_same_is_not_free_and_its_call_ends_by_itself() {
        let mut fold = Fold::new(&smoke().plan());
        sightings(0, 100, 40, 503).into_iter().for_each(|sighting| fold.see(sighting));
        let attempt = Attempt { seq: 0, nth: 0 };
        let (at, until, charged) = (Moment::from_millis(300), Moment::from_millis(1_300), Tokens::new(1_200));
        fold.see(Sighting::AtProvider {
            attempt,
            at,
            until,
            charged,
            refused: false,
            faulty: false,
            budget: None,
        });
        let measures = fold.finish(Moment::from_secs(1));
        assert_eq!((measures.refusals.costly, measures.upstream.wasted), (1, charged));
        assert_eq!(measures.open_at_end.ghosts, 1);
        assert_eq!(measures.depths.now().ghosts, 0, "it ended after the run");
    }
}
