//! The comparison for scripts.

use std::io;

use super::{Comparison, Form, Style};

pub(super) const FORM: Form =
    Form { name: "json", about: "the whole comparison, for scripts (tenfold.diff/1)", render };

fn render(comparison: &Comparison, _style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, comparison)?;
    writeln!(out)
}
