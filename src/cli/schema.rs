//! `tenfold schema`: JSON Schemas, for editors and scripts.

use super::{exit, say};
use crate::plan::schema;
use crate::report;

/// Print a JSON Schema (draft 2020-12).
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Of what
    what: What,
}

/// What there is a schema of.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum What {
    /// A plan file
    Plan,
    /// The report of a run
    Report,
}

impl Args {
    /// Prints it.
    pub(super) fn run(&self) -> u8 {
        let schema = match self.what {
            What::Plan => schema::plan(),
            What::Report => report::schema(),
        };
        say(&format!("{schema:#}\n"));
        exit::PASSED
    }
}
