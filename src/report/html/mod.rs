//! The report as one page of HTML: nothing is loaded, no script is needed, and what a server sent is never markup.
//!
//! Every text goes through `tame`, which shows control and direction characters as text, and then through the macro
//! that escapes it; the page's policy (`Content-Security-Policy`) allows no script but the one written here. Charts are
//! SVG by hand, not by a plotting library: those write colours as numbers and text as pixels, so that one drawing
//! cannot serve light, dark, print, a phone and a screen reader.
//!
//! The order is that of every form: the verdict, the run itself, then shedding, Retry-After, latency, memory, lag.

use std::io;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::tame::tame;
use super::{Format, Report, Style, sentences};

mod chart;
mod checks;
mod head;
mod latency;
mod over_time;
mod tables;
mod times;
mod waits;

pub(super) const FORMAT: Format =
    Format { name: "html", about: "one page that loads nothing, with pictures", render };

const STYLE: &str = include_str!("page.css");
const HOVER: &str = include_str!("page.js");
const LIVE: &str = include_str!("live.js");

/// How far a run is that a page is shown of while it goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Running {
    /// Seconds into the load; negative is not.
    pub at_s: f64,
    /// Seconds all its phases take.
    pub lasts_s: f64,
}

fn render(report: &Report, _style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(page(report, None)?.as_bytes())
}

/// The page. Of a run that goes on it looks for a newer one of itself every two seconds, and no check is shown as
/// passed.
///
/// # Errors
///
/// If a number in the report is none.
pub fn page(report: &Report, running: Option<Running>) -> io::Result<String> {
    let report = tame(report)?;
    let title = head::page_title(&report, running);
    Ok(whole(&title, running.is_some(), &body(&report, running)).into_string())
}

/// A page that waits for a run to begin, in the same form.
pub fn waiting(what: &str) -> String {
    let main = html! {
        div.verdict { h1 { span.word { "WAITING" } " · " (super::plain(what)) } p { "The load has not begun." } }
    };
    whole("tenfold: waiting", true, &main).into_string()
}

fn whole(title: &str, live: bool, main: &Markup) -> Markup {
    // a script that is in the page is allowed by its digest; `tests/html.rs` fails where one does not fit
    let policy =
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";
    let scripts = "script-src 'sha256-OYrQNJqLmxzH5EnTKk21zKLg1zdNdvwuB/4dQZ6tDAI=' 'sha256-E+h5E8H56P51BYTXqJxzoA6ZNs7jyKtzVbOtoq2eshg='";
    let connect = if live { "; connect-src 'self'" } else { "" };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content={ (policy) "; " (scripts) (connect) };
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if live { noscript { meta http-equiv="refresh" content="2"; } }
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main data-running[live] { (main) }
                script { (PreEscaped(HOVER)) }
                @if live { script { (PreEscaped(LIVE)) } }
            }
        }
    }
}

fn body(report: &Report, running: Option<Running>) -> Markup {
    let times = times::Times::of(report);
    html! {
        (head::verdict(report, running))
        (head::facts(report))
        (over_time::strip(&times))
        (over_time::depth(report, &times))
        (over_time::load(report, &times))
        (over_time::waves(report, &times))
        h2 { "Checks" }
        (checks::cards(report, running.is_some()))
        (waits::section(report))
        (latency::section(report))
        h2 { "The target's memory, and the run itself" }
        (over_time::memory(report, &times))
        @for said in sentences::said(report) { p { (over_time::capitalised(&said)) "." } }
        (over_time::lag(report, &times))
        (tables::classes(report))
        (tables::forecast(report, &times))
        (checks::raw(report))
        (tables::plan(report))
        (head::foot(report))
    }
}

#[cfg(test)]
mod tests;
