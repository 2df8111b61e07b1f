//! Callers as they came somewhere: the rows of a trace.
//!
//! A phase plays the stretch of the trace that lies where it begins in the plan; shortened by a rehearsal, it plays the
//! beginning of that stretch. A rate factor above one lets a row come again, its copies spread evenly until the next row;
//! below one it leaves rows out, each by a draw of its own, so that what was random stays as random. Where phases go on
//! after the plan's own (a simulation until the queue is empty) callers are evenly spaced at the last phase's rate.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand_pcg::Pcg64;

use super::{Kind, Next, Process};
use crate::units::{Rate, Ratio, Read};
use crate::workload::stream;
use crate::workload::traces::{Row, Rows, Spec};

pub(super) const KIND: Kind = Kind {
    name: "trace",
    about: "as recorded: { file: day.csv, format: azure, from: 10m, to: 20m, speed: 2, rate: 1/2 }",
    build: |inner| {
        let spec = Spec::read(inner?)?;
        Some(Arc::new(Trace::unread(spec)) as Arc<dyn Process>)
    },
};

/// A trace, and where in it the phases of a plan begin.
#[derive(Clone)]
pub struct Trace {
    spec: Spec,
    /// So many times as many rows: the plan's factor and a rehearsal's scale.
    factor: Ratio,
    /// The rows, once they have been read.
    rows: Option<Arc<Rows>>,
    starts: Vec<Duration>,
}

/// How far a trace has been played within a phase.
#[derive(Debug, Clone, Default)]
pub(in crate::workload) struct Playback {
    /// The next row, and which copy of it.
    next: Option<(usize, u32)>,
}

impl Trace {
    const fn unread(spec: Spec) -> Self {
        Self { factor: spec.rate, spec, rows: None, starts: Vec::new() }
    }

    /// The trace as the plan describes it.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Its rows; `None` until they have been read.
    pub const fn rows(&self) -> Option<&Arc<Rows>> {
        self.rows.as_ref()
    }

    /// The same with its rows, for phases that last so long.
    pub(in crate::workload) fn with(&self, rows: Arc<Rows>, phases: impl Iterator<Item = Duration>) -> Self {
        let starts = phases.scan(Duration::ZERO, |at, lasts| {
            let start = *at;
            *at = at.saturating_add(lasts);
            Some(start)
        });
        Self { rows: Some(rows), starts: starts.collect(), ..self.clone() }
    }

    /// Rows in the first `lasts` of the phase with the number `phase`; `None` where it is none of the plan's own.
    pub fn rows_in(&self, phase: usize, lasts: Duration) -> Option<u64> {
        Some(self.rows()?.count(*self.starts.get(phase)?, lasts))
    }

    /// The mean rate of a phase; `None` if no row lies in it.
    pub(in crate::workload) fn rate(&self, phase: usize, lasts: Duration) -> Option<Rate> {
        let rows = self.rows_in(phase, lasts)?;
        Rate::new(rows, lasts).map(|rate| rate.scaled(self.factor))
    }

    /// How often the row at `at` comes.
    fn copies(&self, seed: u64, at: usize) -> u32 {
        let factor = self.factor.as_f64();
        let whole = factor.floor();
        let more = factor > whole && stream::draw(seed, stream::TRACE, at as u64, 0) < factor - whole;
        // a ratio is at most a million
        whole as u32 + u32::from(more)
    }

    /// Whether the phase with this number plays rows.
    pub(in crate::workload) fn plays(&self, phase: usize) -> bool {
        phase < self.starts.len()
    }

    /// The next caller of the phase with the number `phase`, as an offset from its start, and its row.
    pub(in crate::workload) fn next(
        &self,
        seed: u64,
        playback: &mut Playback,
        phase: usize,
        lasts: Duration,
    ) -> Option<(Duration, Row)> {
        let (rows, start) = (self.rows()?, *self.starts.get(phase)?);
        let end = start.saturating_add(lasts);
        let (mut at, mut copy) = playback.next.unwrap_or_else(|| (rows.from(start), 0));
        loop {
            let row = *rows.all().get(at)?;
            let came = Duration::from_nanos(row.at);
            if came >= end {
                return None;
            }
            let copies = self.copies(seed, at);
            if copy < copies {
                playback.next = Some((at, copy + 1));
                let until = rows.all().get(at + 1).map_or(end, |next| Duration::from_nanos(next.at).min(end));
                let apart = until.saturating_sub(came).as_nanos() * u128::from(copy) / u128::from(copies);
                let later = Duration::from_nanos(u64::try_from(apart).unwrap_or(u64::MAX));
                return Some((came + later - start, row));
            }
            (at, copy) = (at + 1, 0);
            playback.next = Some((at, 0));
        }
    }

    /// A row for a caller that none brings: one after the other.
    pub(in crate::workload) fn any_row(&self, seq: u64) -> Option<Row> {
        let rows = self.rows()?.all();
        rows.get(usize::try_from(seq % rows.len().max(1) as u64).unwrap_or(0)).copied()
    }
}

impl fmt::Debug for Trace {
    /// What tells two traces apart: not where the file lies, but what is in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spec { format, from, speed, .. } = &self.spec;
        write!(
            f,
            "trace ({format}) from {from:?} at {speed} times the speed, {} times the rows",
            self.factor
        )?;
        match &self.rows {
            Some(rows) => write!(f, ", {} of them, {:016x}", rows.all().len(), rows.survey().fingerprint),
            None => Ok(()),
        }
    }
}

impl Process for Trace {
    fn name(&self) -> &'static str {
        KIND.name
    }

    /// For phases that are none of the plan's own: evenly.
    fn offset(&self, next: &Next<'_>, _: &mut Pcg64) -> Duration {
        next.phase.rate.time_for(next.k)
    }

    /// The trace's busiest second.
    fn peak(&self, rate: Rate, _: Option<Rate>) -> f64 {
        let busiest = self.rows().map_or(0, |rows| rows.survey().busiest_second);
        rate.per_sec_f64().max(busiest as f64 * self.factor.as_f64())
    }

    fn trace(&self) -> Option<&Self> {
        Some(self)
    }

    fn scaled(&self, ratio: Ratio) -> Option<Arc<dyn Process>> {
        Some(Arc::new(Self { factor: self.factor.times(ratio), ..self.clone() }))
    }
}
