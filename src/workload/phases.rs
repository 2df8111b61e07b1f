use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::Mix;
use super::arrivals::{Process, Trace};
use super::traces::Rows;
use crate::units::{Moment, Rate, Ratio, Read, Reader};

/// A stretch of the run with one rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// Its name, unique in the plan.
    pub name: String,
    /// Callers arriving.
    pub rate: Rate,
    /// How long.
    pub lasts: Duration,
    /// True for the part that is rehearsed: the overload.
    pub event: bool,
    /// The weights of classes of requests, by name, where they differ from the usual ones: who is not named does not come.
    pub mix: Option<BTreeMap<String, u32>>,
}

/// A half-open span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Its first instant.
    pub start: Moment,
    /// The first instant after it.
    pub end: Moment,
}

impl Span {
    /// How long it is.
    pub const fn length(self) -> Duration {
        self.end.since(self.start)
    }

    /// Whether `at` lies in it.
    pub fn contains(self, at: Moment) -> bool {
        self.start <= at && at < self.end
    }
}

/// What lateness of the generator does to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Late {
    /// It is sent late, and its latency still counts from its due time.
    Send,
    /// Past this it is not sent at all, and counted as unsent.
    DropAfter(Duration),
}

/// The offered load: the process and its phases.
#[derive(Debug, Clone)]
pub struct Load {
    /// What every stream of random numbers is derived from.
    pub seed: u64,
    /// How callers are spaced.
    pub arrivals: Arc<dyn Process>,
    /// What lateness does.
    pub late: Late,
    /// The phases in order; never empty, none of zero length.
    pub phases: Vec<Phase>,
}

impl Load {
    /// The phases with the spans they cover, from the epoch on.
    pub fn spans(&self) -> impl Iterator<Item = (&Phase, Span)> {
        self.phases.iter().scan(Moment::ZERO, |at, phase| {
            let span = Span { start: *at, end: *at + phase.lasts };
            *at = span.end;
            Some((phase, span))
        })
    }

    /// The span of the event: from the start of its first phase to the end of its last. `None` on a quiet day.
    pub fn event(&self) -> Option<Span> {
        let mut spans = self.spans().filter(|(phase, _)| phase.event).map(|(_, span)| span);
        let first = spans.next()?;
        Some(Span { start: first.start, end: spans.last().unwrap_or(first).end })
    }

    /// The instant after the last phase.
    pub fn end(&self) -> Moment {
        self.phases.iter().fold(Moment::ZERO, |at, phase| at + phase.lasts)
    }

    /// The shortest mean gap between two callers of any phase.
    pub fn shortest_gap(&self) -> Duration {
        self.phases.iter().map(|phase| phase.rate.time_for(1)).min().unwrap_or(Duration::MAX)
    }

    /// Callers a second where they come closest together, in any phase.
    pub fn peak_per_s(&self) -> f64 {
        self.busiest().map_or(0.0, |(_, peak)| peak)
    }

    /// The phase in which callers come closest together, and how many a second they are then.
    pub fn busiest(&self) -> Option<(&Phase, f64)> {
        self.peaks().max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The phases, and callers a second where they come closest together in each.
    pub fn peaks(&self) -> impl Iterator<Item = (&Phase, f64)> {
        self.befores().map(|(phase, before)| (phase, self.arrivals.peak(phase.rate, before)))
    }

    /// The number of callers expected in all.
    pub fn expected(&self) -> f64 {
        self.befores().map(|(phase, before)| self.arrivals.expected(phase, before)).sum()
    }

    /// The phases, each with the rate of the one before it.
    fn befores(&self) -> impl Iterator<Item = (&Phase, Option<Rate>)> {
        let before = std::iter::once(None).chain(self.phases.iter().map(|phase| Some(phase.rate)));
        self.phases.iter().zip(before)
    }

    /// The mix of those who come in the event, or in the whole run without one, of a plan whose usual mix is `usual`: the
    /// mean of the phases' mixes, by how many come in each.
    pub fn mix_of_event(&self, usual: &Mix) -> Mix {
        let whole = self.phases.iter().all(|phase| !phase.event);
        let phases = self.phases.iter().filter(|phase| whole || phase.event);
        let parts: Vec<_> = phases
            .map(|phase| (phase.rate.per_sec_f64() * phase.lasts.as_secs_f64(), phase.mix.as_ref()))
            .collect();
        match &parts[..] {
            parts if parts.iter().all(|(_, mix)| mix.is_none()) => usual.clone(),
            [(_, Some(mix))] => usual.reweighed(mix),
            parts => usual.blended(parts),
        }
    }

    /// The same load with every rate times `ratio`.
    pub fn scaled(&self, ratio: Ratio) -> Self {
        let phases = self.phases.iter().map(|p| Phase { rate: p.rate.scaled(ratio), ..p.clone() }).collect();
        let arrivals = self.arrivals.scaled(ratio).unwrap_or_else(|| Arc::clone(&self.arrivals));
        Self { phases, arrivals, ..self.clone() }
    }

    /// Gives a trace its rows, and the phases their rates from it; a plan that names no phases has one, the whole window.
    ///
    /// # Errors
    ///
    /// The number of a phase in which no row lies.
    pub fn play(&mut self, trace: &Trace, rows: Arc<Rows>) -> Result<(), usize> {
        if self.phases.is_empty() {
            let lasts = rows.lasts(trace.spec());
            self.phases.push(Phase {
                name: "trace".to_owned(),
                rate: unknown_rate(),
                lasts,
                event: false,
                mix: None,
            });
        }
        self.arrivals = Arc::new(trace.with(rows, self.phases.iter().map(|phase| phase.lasts)));
        self.follow_trace()
    }

    /// Gives the phases the rates their parts of the trace have, if there is one: their lengths have changed.
    ///
    /// # Errors
    ///
    /// The number of the first phase in which no row lies; it keeps its rate.
    pub fn follow_trace(&mut self) -> Result<(), usize> {
        let Some(trace) = self.arrivals.trace() else { return Ok(()) };
        let mut empty = None;
        for (at, phase) in self.phases.iter_mut().enumerate().filter(|(at, _)| trace.plays(*at)) {
            match trace.rate(at, phase.lasts) {
                Some(rate) => phase.rate = rate,
                None => empty = empty.or(Some(at)),
            }
        }
        empty.map_or(Ok(()), Err)
    }
}

/// Stands where a rate is not known before a trace is read.
fn unknown_rate() -> Rate {
    Rate::per_second(1).unwrap_or_else(|| unreachable!("one a second is a rate"))
}

impl Phase {
    /// A phase of a load that plays a trace, or of another one.
    pub(super) fn read(reader: &Reader<'_>, traced: bool) -> Option<Self> {
        let mut map = reader.map()?;
        let name = map.need("name");
        let rate = match map.reader("rate") {
            Some(rate) if traced => {
                rate.fault(
                    "a trace has its own rate: leave this out (`trace: { rate: 2 }` makes more of its rows)",
                );
                None
            }
            Some(rate) => Rate::read(&rate),
            None if traced => Some(unknown_rate()),
            None => {
                map.here().fault("`rate` is missing");
                None
            }
        };
        let lasts = map.reader("for").map_or_else(
            || {
                map.here().fault("`for` is missing: how long does the phase last?");
                None
            },
            |r| positive(&r),
        );
        let event = map.or("event", false);
        let mix = match map.reader("mix") {
            Some(reader) => read_weights(&reader).map(Some),
            None => Some(None),
        };
        Some(Self { name: name?, rate: rate?, lasts: lasts?, event: event?, mix: mix? })
    }
}

/// Weights by name, one of them above zero.
fn read_weights(reader: &Reader<'_>) -> Option<BTreeMap<String, u32>> {
    let weights: Option<BTreeMap<String, u32>> =
        reader.map()?.rest().into_iter().map(|(name, weight)| Some((name, u32::read(&weight)?))).collect();
    let weights = weights?;
    if weights.values().all(|weight| *weight == 0) {
        reader.fault("every class has weight 0: nothing would ever be sent");
        return None;
    }
    Some(weights)
}

/// A duration above zero and of at most 30 days.
fn positive(reader: &Reader<'_>) -> Option<Duration> {
    let span = Duration::read(reader)?;
    if span.is_zero() || span > Duration::from_secs(30 * 86_400) {
        reader.fault("a phase lasts more than nothing and at most 30 days (720h)");
        return None;
    }
    Some(span)
}

impl Read for Late {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        match reader.one_of("late policy", &["drop_after", "send"])? {
            ("send", None) => Some(Self::Send),
            ("drop_after", Some(inner)) => Duration::read(&inner).map(Self::DropAfter),
            _ => {
                reader.fault("write `late: send` or `late: { drop_after: 50ms }`");
                None
            }
        }
    }
}

impl Read for Load {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let seed = map.or("seed", 1u64);
        let arrivals: Option<Arc<dyn Process>> = map.need("arrivals");
        let late = map.or("late", Late::Send);
        let traced = arrivals.as_ref().is_some_and(|arrivals| arrivals.trace().is_some());
        let phases = match map.reader("phases") {
            Some(reader) => read_phases(&reader, traced),
            None if traced => Some(Vec::new()),
            None => {
                map.here().fault("`phases` is missing");
                None
            }
        };
        let load = Self { seed: seed?, arrivals: arrivals?, late: late?, phases: phases? };
        load.check(map.here()).then_some(load)
    }
}

fn read_phases(reader: &Reader<'_>, traced: bool) -> Option<Vec<Phase>> {
    let phases: Vec<_> = reader.list()?.iter().map(|item| Phase::read(item, traced)).collect();
    if phases.is_empty() {
        reader.fault("a load has 1 to 1,000 phases");
        return None;
    }
    phases.into_iter().collect()
}

impl Load {
    /// What must hold across the phases.
    fn check(&self, here: &Reader<'_>) -> bool {
        if self.phases.len() > 1_000 {
            here.fault("a load has 1 to 1,000 phases");
            return false;
        }
        let twice =
            self.phases.iter().enumerate().find(|(i, p)| self.phases[..*i].iter().any(|q| q.name == p.name));
        if let Some((_, phase)) = twice {
            here.fault(format!("two phases are named `{}`: give each its own name", phase.name));
            return false;
        }
        let starts =
            (0..self.phases.len()).filter(|&i| self.phases[i].event && (i == 0 || !self.phases[i - 1].event));
        if starts.count() > 1 {
            here.fault("the phases with `event: true` must follow one another: a rehearsal has one event");
            return false;
        }
        true
    }
}
