//! `tenfold report`: a report in another form.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::run::{format, print, style};
use super::{complain, exit, faults};
use crate::report::{self, Format, Report};

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
        let name = self.name();
        // one byte more than is allowed shows that there are too many, however many there are
        let most = report::MOST_BYTES + 1;
        let mut bytes = Vec::new();
        let got = if self.is_stdin() {
            io::stdin().lock().take(most).read_to_end(&mut bytes)
        } else {
            File::open(&self.file).and_then(|file| file.take(most).read_to_end(&mut bytes))
        };
        got.map_err(|e| format!("{name}: the report cannot be read: {e}"))?;
        let mut report = report::read(&bytes).map_err(|error| match error.place {
            Some((line, column)) => format!("{name}:{line}:{column}: {error}"),
            None => format!("{name}: {error}"),
        })?;
        report.run.path = (!self.is_stdin()).then_some(name);
        Ok(report)
    }
}
