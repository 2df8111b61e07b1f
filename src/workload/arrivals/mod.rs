//! Arrival processes: when, within a phase, the next caller arrives.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::Phase;
use crate::units::{Node, Rate, Ratio, Read, Reader, Value};

mod constant;
mod gamma;
mod on_off;
mod oscillating;
mod poisson;
mod ramp;
mod rounds;
mod trace;

pub(super) use rounds::Carry;
pub use rounds::Rounds;
pub(super) use trace::Playback;
pub use trace::Trace;

/// Every arrival process a plan can name, sorted.
pub const ALL: &[Kind] = &[
    constant::KIND,
    gamma::KIND,
    on_off::KIND,
    oscillating::KIND,
    poisson::KIND,
    ramp::KIND,
    rounds::KIND,
    trace::KIND,
];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Kind {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Builds it from what stands under its name, if anything does.
    pub build: fn(Option<&Reader<'_>>) -> Option<Arc<dyn Process>>,
}

/// Where a process stands: the caller whose time is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Next<'a> {
    /// The phase it comes in.
    pub phase: &'a Phase,
    /// The rate of the phase before, if there is one.
    pub before: Option<Rate>,
    /// Its number in the phase, from 0.
    pub k: u64,
    /// The offset of the caller before it; zero for the first.
    pub after: Duration,
}

/// An arrival process. It has no state: what it needs of the past is handed to it.
pub trait Process: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;

    /// The offset from its phase's start at which the next caller arrives. `stream` is the stream of random numbers kept
    /// for arrivals. An offset at or past the phase's end means that no more arrive in it.
    fn offset(&self, next: &Next<'_>, stream: &mut Pcg64) -> Duration;

    /// How many callers are expected in a phase.
    fn expected(&self, phase: &Phase, _before: Option<Rate>) -> f64 {
        phase.rate.per_sec_f64() * phase.lasts.as_secs_f64()
    }

    /// How callers come in rounds, if they do: then each class comes by its weight, and nothing is drawn.
    fn rounds(&self) -> Option<&Rounds> {
        None
    }

    /// The trace it plays, if it plays one: then phases have the rates of its rows.
    fn trace(&self) -> Option<&Trace> {
        None
    }

    /// The same with `ratio` times the callers, where that is not told by the phases' rates alone.
    fn scaled(&self, _ratio: Ratio) -> Option<Arc<dyn Process>> {
        None
    }

    /// Callers in the second in which most come, in a phase of this mean rate after one of the rate `before`.
    fn peak(&self, rate: Rate, _before: Option<Rate>) -> f64 {
        rate.per_sec_f64()
    }

    /// The variance of a long phase's count over its mean, at `rate` callers: 0 where callers are evenly spaced, 1 where
    /// they are independent. For the spread of what is forecast.
    fn dispersion(&self, _rate: Rate) -> f64 {
        1.0
    }
}

/// How long a factor holds, or a round lasts: more than nothing.
struct Every(Duration);

impl Read for Every {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let span = Duration::read(reader)?;
        if span.is_zero() {
            reader.fault("this must last more than nothing");
            return None;
        }
        Some(Self(span))
    }
}

/// What a rate is multiplied by, one after the other.
#[derive(Debug, Clone, PartialEq)]
struct Factors(Vec<f64>);

impl Read for Factors {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let Value::List(items) = &reader.node().value else {
            reader.fault("a list of factors belongs here, such as [0.85, 0.85, 0.85, 1.45]");
            return None;
        };
        let factor = |node: &Node| match &node.value {
            Value::Text { text, .. } => text.parse::<f64>().ok().filter(|f| (0.0..=1_000.0).contains(f)),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        };
        let factors: Option<Vec<f64>> = items.iter().map(factor).collect();
        let factors = factors.filter(|list| list.len() <= 10_000 && list.iter().any(|f| *f > 0.0));
        if factors.is_none() {
            reader.fault("factors are numbers from 0 to 1000, up to 10,000 of them and one above 0");
        }
        factors.map(Self)
    }
}

impl Read for Arc<dyn Process> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = ALL.iter().map(|kind| kind.name).collect();
        let (name, inner) = reader.one_of("arrival process", &names)?;
        let kind = ALL.iter().find(|kind| kind.name == name)?;
        let built = (kind.build)(inner.as_ref());
        if built.is_none() && inner.is_none() {
            reader.fault(format!("`{name}` needs its settings: {}", kind.about));
        }
        built
    }
}

/// A plain number from `least` to `most`; no infinity, and nothing that is none.
pub(super) fn number(reader: &Reader<'_>, what: &str, least: f64, most: f64) -> Option<f64> {
    reader.parse(what, |text| {
        let number = text.parse::<f64>().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("`{text}` is not {what} from {least} to {most}"))
    })
}

/// For processes with settings: what stands under the name, or `standard`.
fn built<P: Process + Read + 'static>(inner: Option<&Reader<'_>>, standard: P) -> Option<Arc<dyn Process>> {
    inner.map_or(Some(standard), P::read).map(|process| Arc::new(process) as Arc<dyn Process>)
}

/// For processes without settings: reports anything that stands under the name.
fn no_settings(name: &str, inner: Option<&Reader<'_>>) -> Option<()> {
    match inner {
        None => Some(()),
        Some(reader) => {
            reader.fault(format!("`{name}` has no settings: write `arrivals: {name}`"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;
    use crate::workload::stream;

    /// Offsets of all callers of a phase of `secs` seconds at `rate` a second, drawn from `seed`.
    pub(super) fn offsets(process: &dyn Process, rate: u64, secs: u64, seed: u64) -> Vec<Duration> {
        let phase = phase(rate, secs);
        let (mut stream, mut all) = (stream::of(seed, stream::ARRIVALS), Vec::<Duration>::new());
        loop {
            let after = all.last().copied().unwrap_or_default();
            let next = Next { phase: &phase, before: None, k: all.len() as u64, after };
            let at = process.offset(&next, &mut stream);
            assert!(at >= after, "{}: time ran backwards", process.name());
            if at >= phase.lasts {
                return all;
            }
            all.push(at);
        }
    }

    pub(super) fn phase(rate: u64, secs: u64) -> Phase {
        let (rate, lasts) = (Rate::per_second(rate).unwrap(), Duration::from_secs(secs));
        Phase { name: "p".into(), rate, lasts, event: false, mix: None }
    }

    #[test]
    fn the_table_is_sorted_and_every_process_keeps_its_mean_rate() {
        assert!(ALL.windows(2).all(|pair| pair[0].name < pair[1].name));
        let phase = phase(50, 2_000);
        // a trace has no rate of its own before it is read
        for kind in ALL.iter().filter(|kind| kind.name != "trace") {
            let process = (kind.build)(None).unwrap();
            let k = offsets(&*process, 50, 2_000, 7).len();
            // 4 standard deviations of a Poisson count of 100,000
            assert!(k.abs_diff(100_000) < 1_265, "{}: {k} arrivals instead of 100,000", kind.name);
            assert!((process.expected(&phase, None) - 1e5).abs() < 1e-6, "{}", kind.name);
            assert_eq!(process.name(), kind.name);
        }
    }

    /// What is compared with a machine's limits: no second holds more, and one nearly as many.
    #[test]
    fn no_second_holds_more_callers_than_the_peak() {
        let named = |name: &str| (ALL.iter().find(|kind| kind.name == name).unwrap().build)(None).unwrap();
        let mut all = ["constant", "on_off", "oscillating", "ramp", "rounds"].map(named).to_vec();
        let short = super::super::testing::map(vec![("every", super::super::testing::text("600ms"))]);
        all.push(Arc::new(super::super::testing::read::<Rounds>(&short)));
        for process in all {
            let name = process.name();
            let all = offsets(&*process, 200, 60, 7);
            let second = |from: &Duration| {
                all.iter().filter(|at| *from <= **at && **at < *from + Duration::from_secs(1)).count()
            };
            let most = all.iter().map(second).max().unwrap() as f64;
            let peak = process.peak(Rate::per_second(200).unwrap(), None);
            assert!(peak * 0.9 <= most && most <= peak * 1.02 + 1.0, "{name}: {most} of {peak}");
        }
    }
}
