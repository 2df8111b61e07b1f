//! An appointment: everyone who is refused is given a time at which capacity is kept for them.
//!
//! A refusal announces the ceiling of R0 = max(time until room, θ·open/(reserve·r)), plus up to 10 % drawn from the
//! request's id so that callers refused together do not return together. `open` are the tokens promised and not yet
//! come for, θ the share of refused callers that do come back, so θ·open is the work that will return, and reserve·r
//! the rate kept for it: a fresh caller may use only (1 − reserve) of the bound, a returning one all of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Kind, Reserve, Scene, Strategy};
use crate::units::{Reader, Share};

pub(super) const KIND: Kind = Kind {
    name: "appointment",
    about: "a time at which part of the capacity is kept for those who return",
    build: |inner| read(inner).map(|it| Arc::new(it) as Arc<dyn Strategy>),
};

/// The longest time announced, in seconds: beyond it a caller is better told a day than a week.
const LONGEST: f64 = 86_400.0;

/// The most that is added to spread the returns, as a part of the time.
const SPREAD: f64 = 0.1;

#[derive(Debug)]
pub(super) struct Appointment(Reserve);

impl Default for Appointment {
    fn default() -> Self {
        let part = |value| Share::new(value).unwrap_or_else(|| unreachable!("a constant between 0 and 1"));
        Self(Reserve { share: part(0.25), start: part(0.05), learn: true })
    }
}

impl Strategy for Appointment {
    fn name(&self) -> &'static str {
        KIND.name
    }

    fn spec(&self) -> Value {
        let Reserve { share, start, learn } = self.0;
        json!({ "appointment": {
            "reserve": share.get().to_string(),
            "returning": { "start": start.get().to_string(), "learn": learn.to_string() },
        }})
    }

    fn reserve(&self) -> Option<Reserve> {
        Some(self.0)
    }

    fn announce(&self, scene: &Scene) -> Option<Duration> {
        let kept = self.0.share.get() * scene.drain;
        let turn = scene.returning * scene.promised.get() as f64 / kept;
        let base = turn.max(scene.until_room).min(LONGEST);
        // a float that is a whole second but for its last digits is that second
        let told = base * (1.0 + SPREAD * scene.draw) - 1e-9;
        let whole = told as u64;
        let whole = if (whole as f64) < told { whole + 1 } else { whole };
        Some(Duration::from_secs(whole.max(1)))
    }
}

fn read(inner: Option<&Reader<'_>>) -> Option<Appointment> {
    let Appointment(standard) = Appointment::default();
    let Some(reader) = inner else { return Some(Appointment(standard)) };
    let mut map = reader.map()?;
    let share = map.or("reserve", standard.share);
    let (start, learn) = match map.reader("returning") {
        None => (Some(standard.start), Some(standard.learn)),
        Some(returning) => {
            let mut map = returning.map()?;
            (map.or("start", standard.start), map.or("learn", standard.learn))
        }
    };
    let share = share?;
    if !(0.01..=0.9).contains(&share.get()) {
        map.here().fault(format!("`reserve` is {share}: keep between 1 % and 90 % for those who return"));
        return None;
    }
    Some(Appointment(Reserve { share, start: start?, learn: learn? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Tokens;

    #[test]
    fn the_time_grows_with_what_was_promised_and_is_spread_by_at_most_a_tenth() {
        let scene = |promised, draw| Scene {
            drain: 1_000.0,
            waiting: Tokens::ZERO,
            until_room: 1.5,
            promised: Tokens::new(promised),
            returning: 0.1,
            draw,
        };
        let told =
            |promised, draw| Appointment::default().announce(&scene(promised, draw)).unwrap().as_secs();
        assert_eq!(told(0, 0.0), 2, "until there is room, rounded up");
        // 0.1 · 100,000 / (0.25 · 1,000) = 40 s
        assert_eq!(told(100_000, 0.0), 40);
        assert_eq!(told(100_000, 0.999), 44);
    }
}
