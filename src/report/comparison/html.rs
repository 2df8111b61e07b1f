//! The comparison as one page: tables, no script, nothing from the network.

use std::io;

use super::{Comparison, Form, Kind, Line, Style, Table};
use crate::report::plain;

pub(super) const FORM: Form = Form { name: "html", about: "one self-contained page", render };

const HEAD: &str = "<!doctype html>
<html lang=\"en\"><head><meta charset=\"utf-8\">
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">
<meta name=\"color-scheme\" content=\"light dark\">
<style>
:root { --ink: #1b1f24; --paper: #fff; --line: #d0d7de; --good: #0a5fb4; --bad: #b3261e; --unsure: #8a5a00 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0d1117; --line: #30363d; --good: #6cb6ff; --bad: #ff8a80; --unsure: #e3b341 } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 960px; margin: 2rem auto; padding: 0 1rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top }
.good { color: var(--good); font-weight: 600 } .bad { color: var(--bad); font-weight: 600 } .unsure { color: var(--unsure) }
</style>
";

fn render(comparison: &Comparison, _style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let table = Table::of(comparison);
    let title = escape(&table.title);
    write!(out, "{HEAD}<title>{}: {title}</title></head><body>\n<main>\n", table.verdict)?;
    writeln!(out, "<h1 class=\"{}\">{}</h1>\n<p>{title}</p>", class(table.kind), table.verdict)?;
    rows(out, "Keys that differ", &["key", "base", "new", "where", ""], &table.differences)?;
    rows(out, "Judged", &HEADS, &table.judged)?;
    rows(out, "Checks that changed", &HEADS, &table.checks)?;
    rows(out, "Told, not judged", &["", "base", "new", "change", "new, 95 %"], &table.told)?;
    if !table.notes.is_empty() {
        writeln!(out, "<ul>")?;
        table.notes.iter().try_for_each(|note| writeln!(out, "<li>{}</li>", escape(note)))?;
        writeln!(out, "</ul>")?;
    }
    writeln!(out, "</main>\n</body></html>")
}

const HEADS: [&str; 5] = ["", "base", "new", "change", "p (Holm)"];

fn rows(out: &mut dyn io::Write, caption: &str, heads: &[&str; 5], lines: &[Line]) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>{caption}</h2>\n<div class=\"scroll\"><table>\n<thead><tr>")?;
    heads.iter().try_for_each(|head| writeln!(out, "<th scope=\"col\">{head}</th>"))?;
    writeln!(out, "</tr></thead>\n<tbody>")?;
    for line in lines {
        let [name, base, new, change, p] =
            [&line.name, &line.base, &line.new, &line.change, &line.p].map(|text| escape(text));
        let class = class(line.kind);
        writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td>{base}</td><td>{new}</td><td class=\"{class}\">{change}</td><td>{p}</td></tr>"
        )?;
    }
    writeln!(out, "</tbody></table></div>")
}

const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Good => "good",
        Kind::Bad => "bad",
        Kind::Unsure => "unsure",
        Kind::Plain => "plain",
    }
}

/// The text with everything that would be markup written out.
fn escape(text: &str) -> String {
    let text = plain(text);
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}
