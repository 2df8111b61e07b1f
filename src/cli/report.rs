//! `tenfold report`: a report in another form.

use std::io;
use std::path::PathBuf;

use super::run::{format, print, style};
use super::{complain, exit, faults, reports};
use crate::report::{Format, Report};

/// Show the report of a run again, in any form
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The report.json of a run; - for stdin
    #[arg(value_name = "REPORT")]
    file: PathBuf,

    /// The form
    #[arg(long, default_value = "text", value_parser = format)]
    format: &'static Format,
}

impl Args {
    /// Prints it.
    pub(super) fn run(&self) -> u8 {
        let shown = self.read().and_then(|report| {
            let mut text = Vec::new();
            let failed = |e: io::Error| format!("{}: {e}", self.name());
            (self.format.render)(&report, &style(), &mut text).map(|()| text).map_err(failed)
        });
        match shown {
            Ok(text) => {
                print(&text);
                exit::PASSED
            }
            Err(message) => {
                complain(&format!("{}\n", faults::tame(&message)));
                exit::USAGE
            }
        }
    }

    fn name(&self) -> String {
        if self.is_stdin() { "stdin".to_owned() } else { self.file.display().to_string() }
    }

    fn is_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    fn read(&self) -> Result<Report, String> {
        if self.is_stdin() {
            return reports::read_from(&self.name(), io::stdin().lock());
        }
        let mut report = reports::read(&self.file)?;
        report.run.path = Some(self.name());
        Ok(report)
    }
}
