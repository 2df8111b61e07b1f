//! What a gateway that keeps to its declared strategy would tell a refused caller, computed from what is seen
//! outside.
//!
//! - `appointment`: θ·open/(reserve·r). The book of open promises is kept anew, window by window, from the refusals
//!   that were seen and the times they *should* have been told: the announced ones are what is judged, and a gateway
//!   that announces one second for all would keep its own book empty. θ is the declared start, and learned as the
//!   strategy does from those who came again. (The time until there is room, which it never goes below, is that of
//!   one hold where the queue stands at its bound.)
//! - `room`: (depth met + hold − A)/r, A the least of such sums at which one of the class was refused.
//! - `drain`, and any strategy that is not known: depth met/r, the state there is to follow.
//!
//! A header in whole seconds can say no more than whole seconds, so these are rounded up to them, and are at least
//! one.

use std::collections::BTreeMap;

use super::Scene;
use crate::admission::retry_after::Reserve;
use crate::measure::{Frame, Telling, Wait};

/// What would be announced.
#[derive(Debug)]
pub(super) struct Predicted<'a> {
    frame: &'a Frame,
    by: By,
    /// By class, the least depth, with its own hold, at which a caller was refused: there its bound is.
    bounds: BTreeMap<u16, u64>,
    /// r: tokens a second.
    drain: f64,
}

/// What the declared strategy goes by.
#[derive(Debug)]
enum By {
    /// Promises: θ·open/(reserve·r) in seconds, at the beginning of each window.
    Turns(Vec<f64>),
    Room,
    Depth,
}

impl<'a> Predicted<'a> {
    /// By the strategy the plan declares.
    pub(super) fn of(scene: &'a Scene<'_>) -> Self {
        let (forecast, measures) = (scene.forecast, scene.measures);
        let drain = forecast.basis.drain.per_sec_f64();
        let strategy = scene.plan.policy().map(|policy| &policy.retry_after);
        let by = match strategy.map(|strategy| (strategy.reserve(), strategy.name())) {
            Some((Some(reserve), _)) => {
                let width = measures.frame.width.as_secs_f64();
                By::Turns(turns(measures.waits.as_slice(), width, &reserve, reserve.share.get() * drain))
            }
            Some((None, "room")) => By::Room,
            _ => By::Depth,
        };
        let mut bounds = BTreeMap::new();
        for (_, telling) in measures.told.tellings().filter(|(_, telling)| !telling.throttled) {
            let needed = (telling.met + telling.hold).get();
            bounds
                .entry(telling.class)
                .and_modify(|least: &mut u64| *least = needed.min(*least))
                .or_insert(needed);
        }
        Self { frame: &measures.frame, by, bounds, drain }
    }

    /// The whole seconds `telling` should have said.
    pub(super) fn seconds(&self, telling: &Telling) -> u64 {
        let bound = self.bounds.get(&telling.class).copied().unwrap_or(0);
        let seconds = match &self.by {
            By::Turns(turns) => self.turn(turns, telling),
            By::Room => (telling.met + telling.hold).get().saturating_sub(bound) as f64 / self.drain,
            By::Depth => telling.met.get() as f64 / self.drain,
        };
        (seconds.ceil() as u64).max(1)
    }

    /// Between the beginning of its window and that of the next.
    fn turn(&self, turns: &[f64], telling: &Telling) -> f64 {
        let window = self.frame.window(telling.at);
        let part = telling.at.since(self.frame.begins(window)).as_secs_f64() / self.frame.width.as_secs_f64();
        let at = |window: usize| turns.get(window).or_else(|| turns.last()).copied().unwrap_or(0.0);
        at(window) + (at(window + 1) - at(window)) * part.min(1.0)
    }
}

/// θ·open/`kept` at the beginning of each window of `width` seconds: the book of promises, kept from the refusals. A
/// promise is told the ceiling of its time and 5 % of it, the mean of what is added, and closes one second after it.
fn turns(waits: &[Wait], width: f64, reserve: &Reserve, kept: f64) -> Vec<f64> {
    let mut closing = vec![(0u64, 0.0); waits.len() + 1];
    let (mut open, mut closed, mut came) = (0.0, 0u64, 0u64);
    let mut turns = Vec::with_capacity(closing.len());
    for (window, wait) in waits.iter().enumerate() {
        let (count, tokens) = closing[window];
        closed += count;
        open -= tokens;
        came += wait.came;
        let theta = if reserve.learn {
            (20.0 * reserve.start.get() + came as f64) / (20.0 + closed.max(came) as f64)
        } else {
            reserve.start.get()
        };
        let turn = theta * open / kept;
        turns.push(turn);
        let tokens = wait.told_tokens.get() as f64;
        open += tokens;
        let told = ((turn + theta * tokens / kept / 2.0) * 1.05 + 0.5).max(1.0);
        let closes = window + ((0.5 * width + told + 1.0) / width) as usize;
        if let Some(closing) = closing.get_mut(closes.max(window + 1)) {
            closing.0 += wait.told;
            closing.1 += tokens;
        }
    }
    turns
}
