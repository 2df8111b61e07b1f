//! What is announced does not bring the refused back as a second storm.
//!
//! Each refused caller is counted in the second its announced time brings it to, whether it comes or not: an echo
//! shows without waiting for it. Two demands:
//!
//! 1. The returns are no more crowded than the refusals were. How crowded it is to the average of them is Σn²/Σn over
//!    the seconds' numbers n. Held against their mean it is at most 1.2 times the same of the refusals, and it never
//!    is more than 1.2 times that of the refusals itself. (The one busiest second says less: while a gateway learns
//!    how many come back its times may rise and fall once, and two seconds fall together.) Two allowances are made. A
//!    header in whole seconds cannot thin out what came together, so returns no more crowded than the refusals were
//!    are no echo, however thin they are in the mean. And k Poisson numbers around m are by chance more crowded than
//!    m, by 1 + 2.6·√((m + 2)/k) in all but one of a hundred runs.
//! 2. In the later half of the event's refusing, when it has been learned how many come back, no more work returns
//!    than there is room for: max(0, r − x) + reserve·r tokens a second, x what fresh callers ask for, and once the
//!    part reserve·Q* of the bound that is kept, too. Of callers who give up only the probes come back, one in so
//!    many; those who try again by their own rule are counted whole. Of a Poisson number around m all but one in a
//!    hundred are at most m + √(2mx) + x/3, x = ln 100.

use super::{Finding, Kind, Scene, Standard, words, words::thousands};
use crate::measure::{Measures, Wait};
use crate::units::Tokens;

pub(super) const KIND: Kind = Kind {
    id: "retry_after.no_echo",
    about: "callers who come back as told are no more crowded than the refused were, nor more than there is room for",
    limit: Standard::Nothing,
    unit: "requests",
    judge,
};

/// How much more crowded the returns may be than the refusals were.
const CROWDED: f64 = 1.2;
/// Fewer refusals are no crowd.
const LEAST: u64 = 20;

fn judge(scene: &Scene<'_>) -> Finding {
    let draft = KIND.draft(
        "those told to come back are at most 1.2 times as crowded as the refused were, and no more work comes back than \
         there is room for",
    );
    let measures = scene.measures;
    let draft = match scene.told_a_crowd(draft) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    if scene.nobody_heeds() {
        return draft.not_applicable("no caller comes back as told");
    }
    let told = Crowd::of(measures, |wait| wait.told);
    let back = Crowd::of(measures, |wait| wait.due_back);
    if told.count < LEAST {
        return draft.no_data(format!("only {} refusals for scarcity announced a time", told.count));
    }
    let allowed = allowed(&told, &back);
    let mut because = format!(
        "told to come back in the second of the average of them: {} ({} allowed; busiest {}); refused: {} (busiest {})",
        words::number(back.crowd()),
        words::number(allowed),
        thousands(back.peak),
        words::number(told.crowd()),
        thousands(told.peak)
    );
    if measures.waits.later > 0 {
        because = format!("{because}; {} more come over an hour later", thousands(measures.waits.later));
    }
    let work = Work::of(scene);
    if work.asked > 0.0 {
        because = format!(
            "{because}; in the event's later half the work of {} requests comes back, room for {}",
            words::number(work.asked),
            words::number(work.room)
        );
    }
    let holds = back.crowd() <= allowed && work.asked <= work.most();
    draft.judged(holds, back.crowd(), allowed, because)
}

/// How many came in each second, from the first to the last in which somebody did.
#[derive(Debug, Clone, Copy, Default)]
struct Crowd {
    count: u64,
    squares: f64,
    peak: u64,
    seconds: u64,
}

impl Crowd {
    fn of(measures: &Measures, of: fn(&Wait) -> u64) -> Self {
        let (mut crowd, mut first) = (Self::default(), None);
        for (window, wait) in measures.waits.as_slice().iter().enumerate() {
            let count = of(wait);
            if count > 0 {
                let first = *first.get_or_insert(window);
                crowd.seconds = (window - first) as u64 + 1;
                crowd.count += count;
                crowd.squares += count as f64 * count as f64;
                crowd.peak = crowd.peak.max(count);
            }
        }
        crowd
    }

    fn mean(&self) -> f64 {
        self.count as f64 / self.seconds.max(1) as f64
    }

    /// Σn²/Σn: how many come in the second of the average of them.
    fn crowd(&self) -> f64 {
        self.squares / self.count.max(1) as f64
    }
}

/// How crowded the returns may be.
fn allowed(told: &Crowd, back: &Crowd) -> f64 {
    let thinner = (back.mean() / told.mean()).min(1.0);
    let most = told.crowd() * (CROWDED * thinner).max(1.0);
    most + 1.0 + 2.6 * ((most + 2.0) / back.seconds.max(1) as f64).sqrt()
}

/// What comes back in the later half of the event's refusing, in requests of the mean hold.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    asked: f64,
    room: f64,
}

impl Work {
    fn of(scene: &Scene<'_>) -> Self {
        let (measures, basis) = (scene.measures, &scene.forecast.basis);
        let Some(event) = measures.frame.event else { return Self::default() };
        let drain = basis.drain.per_sec_f64() * measures.frame.width.as_secs_f64();
        let every = f64::from(scene.plan.probes.every);
        let probing = |asked: Tokens| if every > 0.0 { asked.get() as f64 / every } else { 0.0 };
        let waits = measures.waits.as_slice();
        let last = measures.frame.window(event.end).min(waits.len());
        let start = measures.frame.window(event.start);
        let Some(first) = (start..last).find(|window| waits[*window].told > 0) else {
            return Self::default();
        };
        let stock = basis.reserve * scene.forecast.queue_bound.with_margin.tokens as f64;
        let mut work = Self { asked: 0.0, room: stock };
        for wait in &waits[first + (last - first) / 2..last] {
            work.asked += probing(wait.asked_back) + wait.coming_back.get() as f64;
            work.room += (drain - wait.fresh as f64 * basis.mean_hold).max(0.0) + basis.reserve * drain;
        }
        Self { asked: work.asked / basis.mean_hold, room: work.room / basis.mean_hold }
    }

    /// What chance may make of the room.
    fn most(&self) -> f64 {
        let x = 100f64.ln();
        self.room + (2.0 * self.room * x).sqrt() + x / 3.0
    }
}
