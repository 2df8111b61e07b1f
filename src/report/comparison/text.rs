//! The comparison for people at a terminal.

use std::io;

use super::{Comparison, Form, Kind, Line, Style, Table};
use crate::report::lines::{Colour, Lines};
use crate::report::plain;

pub(super) const FORM: Form = Form { name: "text", about: "a table for people", render };

/// Where the columns begin: old, new, change, p.
const BASE: usize = 26;
const NEW: usize = 14;
const CHANGE: usize = 14;
const P: usize = 22;

fn render(comparison: &Comparison, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let table = Table::of(comparison);
    let mut lines = Lines::new(out, *style);
    lines.item(table.verdict, colour(table.kind), table.verdict.len() + 2, &table.title)?;
    if !table.differences.is_empty() {
        lines.blank()?;
    }
    for found in &table.differences {
        let text = format!("{} and {} {}", found.base, found.new, found.change);
        lines.item(&format!("  {}", found.name), Colour::Yellow, BASE + 10, text.trim_end())?;
    }
    for (n, rows) in [&table.judged, &table.checks, &table.told].into_iter().enumerate() {
        if rows.is_empty() {
            continue;
        }
        lines.blank()?;
        let (change, p) = if n == 0 { ("change", "p (Holm)") } else { ("", "") };
        let heads = ["", "base", "new", change, p].map(str::to_owned);
        if n == 0 {
            row(&mut lines, &heads, Colour::None)?;
        }
        for line in rows {
            row(&mut lines, &cells(line, style.ascii), colour(line.kind))?;
        }
    }
    if !table.notes.is_empty() {
        lines.blank()?;
    }
    table.notes.iter().try_for_each(|note| lines.item("  ·", Colour::None, 4, note))
}

fn cells(line: &Line, ascii: bool) -> [String; 5] {
    let shown = |text: &str| {
        let text = plain(text);
        if ascii {
            text.replace('✓', "+").replace('✗', "x").replace(['–', '−'], "-")
        } else {
            text.into_owned()
        }
    };
    [&line.name, &line.base, &line.new, &line.change, &line.p].map(|text| shown(text))
}

fn row(lines: &mut Lines<'_>, cells: &[String; 5], colour: Colour) -> io::Result<()> {
    let [name, base, new, change, p] = cells;
    let name = format!("  {name:<width$}", width = BASE - 3);
    let text = format!("{base:<bw$} {new:<nw$} {change:<cw$} {p}", bw = NEW - 1, nw = CHANGE - 1, cw = P - 1);
    lines.raw(&name, colour, text.trim_end())
}

fn colour(kind: Kind) -> Colour {
    match kind {
        Kind::Good => Colour::Green,
        Kind::Bad => Colour::Red,
        Kind::Unsure => Colour::Yellow,
        Kind::Plain => Colour::None,
    }
}
