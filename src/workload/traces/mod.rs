//! Recorded loads: when requests came somewhere, and how large they and their answers were.
//!
//! A trace is read once, line by line, before anything is started: every row is checked, and what lies in the window is
//! kept, 16 bytes a row. So no file is read while a load runs, a file that changes meanwhile changes nothing, and all
//! commands see the same load. What is wrong is told with the number of its line.
//!
//! To add a format: one file here, two lines below.

use crate::units::{Place, Ratio, Read, Reader, nearest};
use std::time::Duration;

mod azure;
mod burstgpt;
mod clock;
mod csv;
mod lines;
mod mooncake;
mod row;
mod rows;

pub use clock::Clock;
pub use rows::{Row, Rows, Sum, Survey, Wrong};

/// Every format a plan can name, sorted.
pub const ALL: &[Format] = &[azure::FORMAT, burstgpt::FORMAT, csv::FORMAT, mooncake::FORMAT];

/// An entry of [`ALL`].
#[derive(Debug)]
pub struct Format {
    /// Its name in a plan.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// How its rows are written.
    layout: Layout,
    /// The names of its columns; none where the plan names them.
    columns: Option<[&'static str; 3]>,
    /// How its times are written; none where the plan says.
    clock: Option<Clock>,
}

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Fields with commas, below a line of names (RFC 4180, a row a line).
    Csv,
    /// A JSON object a line.
    JsonLines,
}

/// What becomes of a row without tokens, a request that failed where it was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zero {
    /// It is left out, and counted.
    Drop,
    /// It is sent with one token in the place of none: it arrived all the same.
    One,
    /// The trace is refused.
    Refuse,
}

/// A trace as a plan describes it.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The file, as the plan names it.
    pub file: String,
    /// Where the plan names it.
    pub place: Place,
    /// Its format.
    pub format: &'static str,
    layout: Layout,
    /// The columns of time, prompt and output.
    columns: [String; 3],
    clock: Clock,
    /// What lies before this, from the first row on, is left out.
    pub from: Duration,
    /// What lies from here on is, too.
    pub to: Option<Duration>,
    /// So many times as fast: gaps are divided by it.
    pub speed: Ratio,
    /// So many times as many: rows are left out or come again.
    pub rate: Ratio,
    /// What becomes of rows without tokens.
    pub zero: Zero,
}

impl Read for Spec {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let place = map.reader("file").map(|reader| reader.node().place.clone());
        let file: Option<String> = map.need("file");
        let format = match map.reader("format") {
            Some(reader) => Format::read(&reader),
            None => {
                map.here().fault(format!("`format` is missing: how is it written? ({})", known()));
                None
            }
        };
        let columns = map.reader("columns");
        let clock = map.reader("clock");
        let from = map.or("from", Duration::ZERO);
        let to = match map.reader("to") {
            Some(reader) => Duration::read(&reader).map(Some),
            None => Some(None),
        };
        let speed = map.or("speed", Ratio::ONE);
        let rate = map.or("rate", Ratio::ONE);
        let zero = map.or("zero_tokens", Zero::Drop);
        let format = format?;
        let columns = format.columns(map.here(), columns.as_ref());
        let clock = format.clock(map.here(), clock.as_ref());
        let (from, to) = (from?, to?);
        if to.is_some_and(|to| to <= from) {
            map.here().fault("`to` does not lie after `from`: nothing is left between them");
            return None;
        }
        Some(Self {
            file: file?,
            place: place?,
            format: format.name,
            layout: format.layout,
            columns: columns?,
            clock: clock?,
            from,
            to,
            speed: speed?,
            rate: rate?,
            zero: zero?,
        })
    }
}

impl Format {
    fn read(reader: &Reader<'_>) -> Option<&'static Self> {
        reader.parse("the format of a trace", |text| {
            let names: Vec<_> = ALL.iter().map(|format| format.name).collect();
            ALL.iter().find(|format| format.name == text).ok_or_else(|| {
                let guess =
                    nearest(text, &names).map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
                format!("unknown format `{text}` ({guess}{})", known())
            })
        })
    }

    /// The names of the columns: the format's own, or those of the plan.
    fn columns(&self, here: &Reader<'_>, given: Option<&Reader<'_>>) -> Option<[String; 3]> {
        match (self.columns, given) {
            (Some(own), None) => Some(own.map(str::to_owned)),
            (Some(_), Some(reader)) => {
                reader.fault(format!("`{}` has its own columns: leave this out, or write `csv`", self.name));
                None
            }
            (None, None) => {
                here.fault("`columns` is missing: write `columns: { time: …, prompt: …, output: … }`");
                None
            }
            (None, Some(reader)) => {
                let mut map = reader.map()?;
                let names =
                    [map.need::<String>("time"), map.need::<String>("prompt"), map.need::<String>("output")];
                let [time, prompt, output] = names;
                Some([time?, prompt?, output?])
            }
        }
    }

    /// How times are written: the format's own way, or what the plan says; seconds if it does not.
    fn clock(&self, _: &Reader<'_>, given: Option<&Reader<'_>>) -> Option<Clock> {
        match (self.clock, given) {
            (Some(own), None) => Some(own),
            (None, None) => Some(Clock::Seconds),
            (None, Some(reader)) => Clock::read(reader),
            (Some(_), Some(reader)) => {
                reader.fault(format!("`{}` has its own times: leave this out, or write `csv`", self.name));
                None
            }
        }
    }
}

fn known() -> String {
    format!("known: {}", ALL.iter().map(|format| format.name).collect::<Vec<_>>().join(", "))
}

impl Zero {
    /// Its name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::One => "one",
            Self::Refuse => "refuse",
        }
    }
}

impl Read for Zero {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        match reader.one_of("policy for rows without tokens", &["drop", "one", "refuse"])? {
            ("drop", None) => Some(Self::Drop),
            ("one", None) => Some(Self::One),
            ("refuse", None) => Some(Self::Refuse),
            (name, _) => {
                reader.fault(format!("`{name}` has no settings"));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests;
