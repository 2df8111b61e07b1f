//! The report for people: the verdict first, then what was offered, what became of it, and what each check found.

use std::io;

use super::lines::{Colour, Lines};
use super::{CheckPart, Format, Report, Style};
use crate::check::words::{number, seconds, thousands};
use crate::check::{RunVerdict, Verdict};

pub(super) const FORMAT: Format = Format {
    name: "text",
    about: "a page for people: the verdict, the numbers, each check in a line",
    render,
};

/// Where the text of a head begins, and that of a check.
const HEAD: usize = 12;
const CHECK: usize = 28;

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
    let (word, colour) = match report.verdict {
        RunVerdict::Passed => ("PASSED", Colour::Green),
        RunVerdict::Failed => ("FAILED", Colour::Red),
        RunVerdict::Inconclusive => ("INCONCLUSIVE", Colour::Yellow),
        RunVerdict::Invalid => ("INVALID", Colour::Red),
        RunVerdict::Interrupted => ("INTERRUPTED", Colour::Yellow),
    };
    let indent = word.len() + 2;
    if report.verdict == RunVerdict::Invalid {
        let reasons = report.validity.reasons.join("; ");
        lines.item(word, colour, indent, &format!("our fault, not the gateway's: {reasons}"))?;
        return lines.item("", Colour::None, indent, &title(report));
    }
    lines.item(word, colour, indent, &title(report))?;
    match &report.run.ended_early {
        Some(why) => lines.item("", Colour::None, indent, why),
        None => Ok(()),
    }
}

fn title(report: &Report) -> String {
    let (plan, run) = (&report.plan, &report.run);
    let scale = if plan.scale == "1" { String::new() } else { format!(" at {} scale", plan.scale) };
    format!("{}{scale} against {} · {} · seed {}", plan.name, run.target, seconds(run.took_s), plan.seed)
}

fn load(report: &Report, lines: &mut Lines<'_>) -> io::Result<()> {
    let (forecast, load, validity) = (&report.forecast.rehearsal, &report.load, &report.validity);
    let offered = format!(
        "{}/min offered for {} against {}/min served: {} times capacity",
        number(forecast.offered_per_min),
        seconds(load.event_s),
        number(forecast.serviceable_per_min),
        number(forecast.load_ratio),
    );
    lines.item("  load", Colour::None, HEAD, &offered)?;
    let count = |count: u64, what: &str| match count {
        0 => format!("nothing {what}"),
        n => format!("{} {what}", thousands(n)),
    };
    let state = if validity.reasons.is_empty() { ": the run is valid" } else { "" };
    let lag = validity
        .lag_p99_us
        .map_or_else(|| "no lag known".to_owned(), |us| format!("lag p99 {}", seconds(us as f64 / 1e6)));
    let own = format!(
        "{lag}, {}, {}{state}",
        count(validity.unsent, "unsent"),
        count(validity.unjoined, "unjoined")
    );
    lines.item("", Colour::None, HEAD, &own)?;
    let busiest = format!(
        "busiest second {} due, {} sent",
        number(load.busiest_planned_per_s),
        number(load.busiest_sent_per_s)
    );
    lines.item("", Colour::None, HEAD, &busiest)
}

fn requests(report: &Report, lines: &mut Lines<'_>) -> io::Result<()> {
    let t = &report.totals;
    let outcomes = [
        (t.shed, "shed"),
        (t.completed, "completed"),
        (t.throttled, "throttled"),
        (t.expired, "expired"),
        (t.late, "late"),
        (t.abandoned, "abandoned"),
        (t.failed, "failed"),
        (t.unsent, "unsent"),
        (t.unfinished, "unfinished"),
    ];
    let some: Vec<_> = outcomes
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{} {word}", thousands(*n)))
        .collect();
    let none: Vec<_> = outcomes.iter().filter(|(n, _)| *n == 0).map(|(_, word)| *word).collect();
    let sum = if some.is_empty() { "0".to_owned() } else { some.join(" + ") };
    let rest = if none.is_empty() { String::new() } else { format!("; 0 {}", none.join(", ")) };
    lines.item(
        "  requests",
        Colour::None,
        HEAD,
        &format!("{} offered = {sum}{rest}", thousands(t.offered)),
    )?;
    for failure in &report.failures {
        let (first, last) = (seconds(failure.first_s), seconds(failure.last_s));
        let when = if failure.count == 1 { format!("at {first}") } else { format!("from {first} to {last}") };
        let text = format!("{} failed: {}, {when}", thousands(failure.count), failure.cause);
        lines.item("", Colour::None, HEAD, &text)?;
    }
    let Some(completed) = report.latency.by_outcome.get("completed") else { return Ok(()) };
    let pair = |from: &super::Distribution| {
        let time = |us: Option<u64>| seconds(us.unwrap_or(0) as f64 / 1e6);
        format!("{} median, {} p99", time(from.p50_us), time(from.p99_us))
    };
    let latency = format!(
        "completed after {} from their due time; {} from sending",
        pair(&completed.from_due),
        pair(&completed.from_sent)
    );
    lines.item("", Colour::None, HEAD, &latency)
}

/// One line for a check; three for one that failed: what happened, what was promised, where to look.
fn one(n: usize, check: &CheckPart, style: &Style, lines: &mut Lines<'_>) -> io::Result<()> {
    let (sign, ascii, colour) = match check.verdict {
        Verdict::Pass => ("✓", "+", Colour::Green),
        Verdict::Fail => ("✗", "x", Colour::Red),
        Verdict::NoData => ("?", "?", Colour::Yellow),
        Verdict::NotApplicable => ("–", "-", Colour::Grey),
    };
    let sign = if style.ascii { ascii } else { sign };
    let because = match check.verdict {
        Verdict::NoData if check.tolerated => format!("no data, which the plan allows: {}", check.because),
        Verdict::NoData => format!("no data: {}", check.because),
        Verdict::NotApplicable => format!("not applicable: {}", check.because),
        Verdict::Pass | Verdict::Fail => check.because.clone(),
    };
    lines.item(&format!("  {sign} {}", check.id), colour, CHECK, &because)?;
    if check.verdict != Verdict::Fail {
        return Ok(());
    }
    lines.item("", Colour::None, CHECK, &format!("promised: {}", check.promised))?;
    let ids: Vec<_> = check.examples.iter().take(3).map(|seq| format!("{seq:06}")).collect();
    let more = if check.examples.len() > 3 { " …" } else { "" };
    let evidence = match ids.is_empty() {
        true => format!("evidence: report.json at /checks/{n} and /windows"),
        false => format!("evidence: ids {}{more} in report.json at /checks/{n}/examples", ids.join(", ")),
    };
    lines.item("", Colour::None, CHECK, &evidence)
}
