//! How much may wait: bounds on the queue.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::units::{Bytes, Rate, Read, Reader, Tokens, Value as Node};

mod bytes;
mod deadline;
mod none;
mod requests;
mod seconds;
pub(super) mod smallest;
mod tokens;

/// Every bound a plan can name, sorted. A list of them is the smallest of them.
pub const ALL: &[Kind] =
    &[bytes::KIND, deadline::KIND, none::KIND, requests::KIND, seconds::KIND, tokens::KIND];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// An example of its limit, if it has one.
    pub limit: Option<&'static str>,
    /// Builds it from what stands under its name: for the property tests, without a limit it takes one of its own.
    pub build: fn(Option<&Reader<'_>>) -> Option<Arc<dyn Bound>>,
}

/// What a bound may look at when a request arrives.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// What the queue drains at, in tokens of holds a second.
    pub drain: f64,
    /// What remains of the caller's time, less the service time and the margin.
    pub slack: Duration,
    /// Tokens that can be spent at once.
    pub level: Tokens,
    /// Tokens that can be forwarded until the slack ends, the level included.
    pub supply: Tokens,
    /// Tokens to be forwarded before and with the request, as its lane sees them.
    pub wanted: Tokens,
    /// Requests that would wait, this one included.
    pub requests: u64,
    /// Tokens that would wait, this one included.
    pub tokens: Tokens,
    /// Bytes of bodies that would wait, this one included.
    pub bytes: Bytes,
    /// The part of the bound this request may use: less than 1 for a fresh caller where some is kept for those who
    /// return; more than 1 only where the bound is not where it was declared.
    pub part: f64,
}

/// By how much a request exceeds a bound. It fits if all are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Excess {
    /// In tokens.
    pub tokens: Tokens,
    /// In requests.
    pub requests: u64,
    /// In bytes.
    pub bytes: Bytes,
}

impl Excess {
    /// Whether there is none.
    pub fn fits(&self) -> bool {
        *self == Self::default()
    }

    /// An excess of tokens alone.
    pub fn of_tokens(tokens: Tokens) -> Self {
        Self { tokens, ..Self::default() }
    }

    /// The larger of both in every measure.
    pub fn or(self, other: Self) -> Self {
        Self {
            tokens: self.tokens.max(other.tokens),
            requests: self.requests.max(other.requests),
            bytes: self.bytes.max(other.bytes),
        }
    }
}

/// A bound on what may wait. It has no state.
pub trait Bound: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;
    /// The form it has in a plan.
    fn spec(&self) -> Value {
        Value::String(self.name().to_owned())
    }
    /// Whether it counts requests and nothing else, so that few are as exact a bound as many.
    fn is_whole(&self) -> bool {
        false
    }
    /// What part number `which` of so many `parts` of a gateway has of it; `None` where each has the same, since it follows
    /// from the part's own budgets or from the caller alone.
    fn split(&self, _parts: u64, _which: u64) -> Option<Arc<dyn Bound>> {
        None
    }
    /// By how much the request of `scene` exceeds the bound.
    fn excess(&self, scene: &Scene) -> Excess;
}

/// What may wait under `bound` when every request holds `hold` tokens and has `bytes` of body, the level of the budget
/// not counted: in tokens, `None` without a bound. `slack` is what a caller's deadline leaves after the service time and
/// the margin, `part` what a fresh caller may use of it.
pub fn most(
    bound: &dyn Bound,
    drain: Rate,
    slack: Duration,
    hold: Tokens,
    bytes: Bytes,
    part: f64,
) -> Option<Tokens> {
    // far more than any bound lets in; the excess tells how much less it would have been
    const CROWD: u64 = 1_000_000_000;
    let crowd = |each: u64| each.saturating_mul(CROWD);
    let scene = Scene {
        drain: drain.per_sec_f64(),
        slack,
        level: Tokens::ZERO,
        supply: Tokens::new(drain.whole_in(slack)),
        wanted: Tokens::new(crowd(hold.get())),
        requests: CROWD,
        tokens: Tokens::new(crowd(hold.get())),
        bytes: Bytes::new(crowd(bytes.get())),
        part,
    };
    let excess = bound.excess(&scene);
    if excess.fits() {
        return None;
    }
    let by_bytes = (scene.bytes - excess.bytes).get() / bytes.get().max(1);
    let requests = (CROWD - excess.requests).min(by_bytes);
    Some((scene.tokens - excess.tokens).min(Tokens::new(requests.saturating_mul(hold.get()))))
}

/// `part` of `whole`, rounded down.
fn part_of(whole: u64, part: f64) -> u64 {
    // exact where nothing is kept, whatever the size
    if (part - 1.0).abs() < f64::EPSILON { whole } else { (whole as f64 * part) as u64 }
}

/// No bound at all.
pub(super) fn unbounded() -> Arc<dyn Bound> {
    Arc::new(none::Unbounded)
}

/// The bound where a plan names none.
pub(super) fn standard() -> Arc<dyn Bound> {
    Arc::new(deadline::Deadline)
}

impl Read for Arc<dyn Bound> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        if let Node::List(_) = reader.node().value {
            return smallest::read(reader);
        }
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("bound", &names)?;
        let kind = ALL.iter().find(|kind| kind.name == name)?;
        if inner.is_none() && kind.limit.is_some() {
            let example = kind.limit.unwrap_or_default();
            reader.fault(format!("`{name}` needs its limit: write `{{ {name}: {example} }}`"));
            return None;
        }
        (kind.build)(inner.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::testing;

    /// What may wait of requests of 1,200 tokens and 6 kB, with 20 s to spare at 1,000 tokens a second.
    fn most_of(bound: &str, part: f64) -> Option<u64> {
        let bound: Arc<dyn Bound> = testing::read(bound);
        let rate = Rate::per_second(1_000).unwrap();
        let (hold, bytes) = (Tokens::new(1_200), Bytes::new(6_000));
        most(&*bound, rate, Duration::from_secs(20), hold, bytes, part).map(Tokens::get)
    }

    #[test]
    fn each_bound_lets_in_what_it_says() {
        assert_eq!(most_of("deadline", 1.0), Some(20_000));
        assert_eq!(most_of("deadline", 0.75), Some(15_000));
        assert_eq!(most_of("none", 1.0), None);
        assert_eq!(most_of("{ requests: 10 }", 1.0), Some(12_000));
        assert_eq!(most_of("{ tokens: 5k }", 1.0), Some(5_000));
        assert_eq!(most_of("{ bytes: 60kB }", 1.0), Some(12_000));
        assert_eq!(most_of("{ seconds: 400ms }", 1.0), Some(400));
        assert_eq!(most_of("[deadline, { requests: 10 }, { seconds: 11s }]", 1.0), Some(11_000));
    }

    #[test]
    fn a_latency_objective_is_tighter_than_the_deadline() {
        // 60 slots of 50 ms and callers who give up after 2 s: 2,400 may wait, for a wait of 400 ms 480 (420 with the
        // service counted)
        let rate = Rate::per_second(1_200).unwrap();
        let most = |bound: &str, slack| {
            let bound: Arc<dyn Bound> = testing::read(bound);
            most(&*bound, rate, Duration::from_millis(slack), Tokens::new(1), Bytes::new(1), 1.0)
                .map(Tokens::get)
        };
        assert_eq!(most("deadline", 2_000), Some(2_400));
        assert_eq!(most("[deadline, { seconds: 400ms }]", 2_000), Some(480));
        assert_eq!(most("[deadline, { seconds: 350ms }]", 1_950), Some(420));
    }
}
