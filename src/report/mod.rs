//! The report: plain data, and one file for each form it is shown in.
//!
//! [`Report::of`] puts a run's measures, forecast and findings into numbers whose keys end in their unit; a
//! [`Format`] lays them out and computes nothing. Everything a server sent is escaped before it reaches a terminal.
//!
//! To add a form: one file, and two lines here (`mod x;` and an entry of [`ALL`]).

use std::fmt;
use std::io;

mod build;
mod compared;
pub mod comparison;
mod dry_run;
mod escape;
mod explain;
mod forecast_text;
pub mod html;
mod json;
mod junit;
mod lines;
mod markdown;
mod model;
mod plan_part;
mod predict;
mod read;
mod run_part;
mod schema;
mod sentences;
mod table;
mod tame;
mod terminal;
mod trace_part;
mod unusual;
mod wait_part;

pub use build::{Inputs, RunHeader};
pub use dry_run::{DryNeeds, DryRun};
pub use escape::plain;
pub use explain::{Explanation, explain};
pub use forecast_text::forecast_text;
pub use model::{
    CheckPart, ClassPart, Distribution, DrainPart, FailurePart, Forecasts, GaugedPart, Latency, LatencyPart,
    LoadPart, MemoryPart, OfAll, OnsetPart, RawRefusal, Report, SCHEMA, SaidPart, StreamsPart, Totals,
    UnsentPart, ValidityPart, WindowPart,
};
pub use plan_part::{
    CheckSetting, PhasePart, PlanPart, ProviderPart, RefusalPart, RequestPart, TargetPart, TolerancePart,
};
pub use predict::{predict_json, predict_text};
pub use read::{MOST_BYTES, Unreadable, read};
pub use run_part::{AddressPart, GeneratorPart, NamePart, RunPart};
pub use schema::schema;
pub use table::{RoundTable, Table, TableRow};
pub use trace_part::{SumPart, TracePart};
pub use wait_part::{
    HintPart, ProbePart, ProbesPart, RetryAfterPart, ReturnPart, TextPart, TextsPart, WavePart,
};

/// Every form of a report, sorted.
pub const ALL: &[Format] = &[html::FORMAT, json::FORMAT, junit::FORMAT, markdown::FORMAT, terminal::FORMAT];

/// An entry of [`ALL`].
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Writes the report in this form.
    pub render: fn(&Report, &Style, &mut dyn io::Write) -> io::Result<()>,
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Format").field("name", &self.name).finish_non_exhaustive()
    }
}

/// How text may be dressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// Colours, besides the signs.
    pub colour: bool,
    /// Signs of plain ASCII: `+ x ? -` for `✓ ✗ ? –`.
    pub ascii: bool,
}

/// The form with this name.
pub fn find(name: &str) -> Option<&'static Format> {
    ALL.iter().find(|format| format.name == name)
}

#[cfg(test)]
mod tests;
