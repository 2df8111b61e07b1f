//! The report as JSON: what scripts read, and what other forms are made from later.

use std::io;

use super::{Format, Report, Style};

pub(super) const FORMAT: Format =
    Format { name: "json", about: "the whole report, for scripts (tenfold.report/1)", render };

fn render(report: &Report, _style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}
