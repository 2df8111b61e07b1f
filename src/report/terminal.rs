//! The report for people: the verdict first, then what was offered, what became of it, and what each check found.

use std::io;

use super::lines::{Colour, Lines};
use super::{CheckPart, Format, Report, Style, sentences};
use crate::check::{RunVerdict, Verdict};

pub(super) const FORMAT: Format = Format {
    name: "text",
    about: "a page for people: the verdict, the numbers, each check in a line",
    render,
};

/// Where the text of a head begins, and that of a check.
const HEAD: usize = 12;
const CHECK: usize = 31;

fn render(report: &Report, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut lines = Lines::new(out, *style);
    verdict(report, &mut lines)?;
    lines.blank()?;
    load(report, &mut lines)?;
    lines.blank()?;
    requests(report, &mut lines)?;
    lines.blank()?;
    for (n, check) in report.checks.iter().enumerate() {
        one(n, check, style, &mut lines)?;
    }
    if let Some(path) = &report.run.path {
        lines.blank()?;
        lines.item("  report", Colour::None, HEAD, path)?;
    }
    Ok(())
}

fn verdict(report: &Report, lines: &mut Lines<'_>) -> io::Result<()> {
    let colour = match report.verdict {
        RunVerdict::Passed => Colour::Green,
        RunVerdict::Failed | RunVerdict::Invalid => Colour::Red,
        RunVerdict::Inconclusive | RunVerdict::Interrupted => Colour::Yellow,
    };
    let word = sentences::verdict(report.verdict);
    let indent = word.len() + 2;
    let title = sentences::title(report);
    if report.verdict == RunVerdict::Invalid {
        lines.item(word, colour, indent, &sentences::our_fault(report))?;
        lines.item("", Colour::None, indent, &title)?;
    } else {
        lines.item(word, colour, indent, &title)?;
        if let Some(why) = &report.run.ended_early {
            lines.item("", Colour::None, indent, why)?;
        }
    }
    match sentences::warning(report) {
        Some(warning) => lines.item("WARNING", Colour::Yellow, indent, &warning),
        None => Ok(()),
    }
}

fn load(report: &Report, lines: &mut Lines<'_>) -> io::Result<()> {
    if let Some(name) = sentences::name(report) {
        lines.item("  target", Colour::None, HEAD, &name)?;
    }
    lines.item("  load", Colour::None, HEAD, &sentences::offered(report))?;
    if let Some(trace) = &report.plan.trace {
        lines.item("", Colour::None, HEAD, &trace.words())?;
    }
    lines.item("", Colour::None, HEAD, &sentences::own(report))?;
    lines.item("", Colour::None, HEAD, &sentences::busiest(report))
}

fn requests(report: &Report, lines: &mut Lines<'_>) -> io::Result<()> {
    lines.item("  requests", Colour::None, HEAD, &sentences::requests(report))?;
    for failure in sentences::attempts(report).into_iter().chain(sentences::failures(report)) {
        lines.item("", Colour::None, HEAD, &failure)?;
    }
    let times = [sentences::latency(report), sentences::streams(report)];
    times.iter().flatten().try_for_each(|line| lines.item("", Colour::None, HEAD, line))?;
    let sections = [("  told", sentences::told(report)), ("  metrics", sentences::said(report))];
    for (head, said) in &sections {
        let heads = std::iter::once(*head).chain(std::iter::repeat(""));
        said.iter().zip(heads).try_for_each(|(said, head)| lines.item(head, Colour::None, HEAD, said))?;
    }
    Ok(())
}

/// One line for a check; three for one that failed: what happened, what was promised, where to look.
fn one(n: usize, check: &CheckPart, style: &Style, lines: &mut Lines<'_>) -> io::Result<()> {
    let (ascii, colour) = match check.verdict {
        Verdict::Pass => ("+", Colour::Green),
        Verdict::Fail => ("x", Colour::Red),
        Verdict::NoData => ("?", Colour::Yellow),
        Verdict::NotApplicable => ("-", Colour::Grey),
    };
    let sign = if style.ascii { ascii } else { sentences::sign(check.verdict) };
    lines.item(&format!("  {sign} {}", check.id), colour, CHECK, &sentences::found(check))?;
    if check.verdict != Verdict::Fail {
        return Ok(());
    }
    lines.item("", Colour::None, CHECK, &format!("promised: {}", check.promised))?;
    lines.item("", Colour::None, CHECK, &sentences::evidence(n, check))
}
