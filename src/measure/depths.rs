use super::{Frame, Windows};
use crate::observe::{Depth, Gauge};
use crate::units::Moment;

/// How deep the queue stood over the run, seen from outside.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Depths {
    last: Option<(Moment, Gauge)>,
    before: u64,
    /// The deepest it stood.
    pub peak: Depth,
    /// What stood where at the end of the event; `None` if the run has not come that far.
    pub at_event_end: Option<Gauge>,
    /// The first instant after the event at which the depth was back at its level before and no ghost was left.
    pub drained: Option<Moment>,
}

impl Depths {
    /// The most requests that stood in the gateway in the phase before the event; at least one, since a request that
    /// is being forwarded stands there too.
    pub fn level_before(&self) -> u64 {
        self.before.max(1)
    }

    /// What stood where at the last sighting.
    pub fn now(&self) -> Gauge {
        self.last.map(|(_, gauge)| gauge).unwrap_or_default()
    }

    /// Notes what stands where from `at` on.
    pub(super) fn stand(&mut self, frame: &Frame, windows: &mut Windows, at: Moment, gauge: &Gauge) {
        let (since, stood) = self.last.unwrap_or_default();
        windows.turned(frame, (&stood, since), (gauge, at));
        self.last = Some((at.max(since), *gauge));
        self.peak.requests = self.peak.requests.max(gauge.depth.requests);
        self.peak.tokens = self.peak.tokens.max(gauge.depth.tokens);
        if frame.before.is_some_and(|before| before.contains(at)) {
            self.before = self.before.max(gauge.depth.requests);
        }
        let Some(event) = frame.event.filter(|event| at >= event.end) else { return };
        if self.at_event_end.is_none() {
            self.at_event_end = Some(stood);
            self.drain(event.end, &stood);
        }
        self.drain(at, gauge);
    }

    fn drain(&mut self, at: Moment, gauge: &Gauge) {
        if self.drained.is_none() && gauge.depth.requests <= self.level_before() && gauge.ghosts == 0 {
            self.drained = Some(at);
        }
    }

    /// Adds another's depths: of the two, one saw the end of the event, or both did and the later drain counts.
    pub(super) fn add(&mut self, other: &Self) {
        self.last = self.last.into_iter().chain(other.last).max_by_key(|(at, _)| *at);
        self.before = self.before.max(other.before);
        self.peak.requests = self.peak.requests.max(other.peak.requests);
        self.peak.tokens = self.peak.tokens.max(other.peak.tokens);
        self.at_event_end =
            self.at_event_end.into_iter().chain(other.at_event_end).max_by_key(|gauge| gauge.depth.requests);
        self.drained = self.drained.into_iter().chain(other.drained).max();
    }
}
