//! The comparison for a pull request or a job's summary.

use std::io;

use super::{Comparison, Form, Kind, Line, Style, Table};
use crate::report::plain;

pub(super) const FORM: Form =
    Form { name: "markdown", about: "tables for a pull request or a job's summary", render };

fn render(comparison: &Comparison, _style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let table = Table::of(comparison);
    writeln!(out, "### {} tenfold: {}\n\n{}", sign(table.kind), table.verdict, escape(&table.title))?;
    if !table.differences.is_empty() {
        writeln!(out, "\n| key | base | new | |\n|---|---|---|---|")?;
        for found in &table.differences {
            let cells = [&found.name, &found.base, &found.new, &found.change].map(|text| escape(text));
            writeln!(out, "| {} |", cells.join(" | "))?;
        }
    }
    let changed = table.judged.iter().chain(&table.checks);
    rows(out, "p (Holm)", &changed.collect::<Vec<_>>())?;
    if !table.told.is_empty() {
        writeln!(out, "\n<details><summary>told, not judged</summary>")?;
        rows(out, "new, 95 %", &table.told.iter().collect::<Vec<_>>())?;
        writeln!(out, "\n</details>")?;
    }
    if !table.notes.is_empty() {
        writeln!(out)?;
    }
    table.notes.iter().try_for_each(|note| writeln!(out, "- {}", escape(note)))
}

fn rows(out: &mut dyn io::Write, last: &str, lines: &[&Line]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| | | base | new | change | {last} |\n|---|---|---|---|---|---|")?;
    for line in lines {
        let cells = [&line.name, &line.base, &line.new, &line.change, &line.p].map(|text| escape(text));
        writeln!(out, "| {} | {} |", sign(line.kind), cells.join(" | "))?;
    }
    Ok(())
}

/// A sign beside the words; nothing is told by colour alone.
fn sign(kind: Kind) -> &'static str {
    match kind {
        Kind::Good => "✅",
        Kind::Bad => "❌",
        Kind::Unsure => "⚠️",
        Kind::Plain => "",
    }
}

/// The text with everything that would be markup, or another cell, written out.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '~' | '#' | '@' | '!' => safe.extend(['\\', c]),
            _ => safe.push(c),
        }
    }
    safe
}
