//! The report as Markdown, for a pull request or the summary of a CI job.

use std::io;

use super::tame::tame;
use super::{CheckPart, Format, Report, Style, sentences};
use crate::check::{RunVerdict, Verdict};

pub(super) const FORMAT: Format =
    Format { name: "markdown", about: "Markdown, for a pull request or the summary of a CI job", render };

fn render(report: &Report, _style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let report = &tame(report)?;
    let sign = match report.verdict {
        RunVerdict::Passed => "✅",
        RunVerdict::Failed => "❌",
        RunVerdict::Inconclusive | RunVerdict::Invalid | RunVerdict::Interrupted => "⚠️",
    };
    writeln!(
        out,
        "### {sign} {}: {}\n",
        sentences::verdict(report.verdict),
        escaped(&sentences::title(report))
    )?;
    if report.verdict == RunVerdict::Invalid {
        writeln!(out, "**{}**\n", escaped(&sentences::our_fault(report)))?;
    }
    if let Some(why) = &report.run.ended_early {
        writeln!(out, "**{}**\n", escaped(why))?;
    }
    if let Some(warning) = sentences::warning(report) {
        writeln!(out, "**⚠️ Warning: {}**\n", escaped(&warning))?;
    }
    let mut points: Vec<_> = sentences::name(report).into_iter().collect();
    points.push(sentences::offered(report));
    points.extend(report.plan.trace.as_ref().map(super::TracePart::words));
    points.extend([sentences::own(report), sentences::requests(report)]);
    points.extend(sentences::attempts(report));
    points.extend(sentences::failures(report));
    points.extend(sentences::latency(report));
    points.extend(sentences::streams(report));
    points.extend(sentences::told(report));
    points.extend(sentences::said(report));
    points.iter().try_for_each(|point| writeln!(out, "- {}", escaped(point)))?;
    writeln!(out)?;
    // what needs a look stands open, the rest is folded away
    let (open, folded): (Vec<_>, Vec<_>) = report.checks.iter().enumerate().partition(|(_, check)| {
        check.verdict == Verdict::Fail || (check.verdict == Verdict::NoData && !check.tolerated)
    });
    if !open.is_empty() {
        table(&open, out)?;
        writeln!(out)?;
    }
    writeln!(out, "<details><summary>{}</summary>\n", sentences::tally(report))?;
    table(if folded.is_empty() { &open } else { &folded }, out)?;
    writeln!(out, "\n</details>\n\n{}", foot(report))
}

fn foot(report: &Report) -> String {
    format!(
        "<sub>tenfold {} · run {} · {}</sub>",
        escaped(&report.run.version),
        escaped(&report.run.id),
        escaped(&report.run.started)
    )
}

fn table(checks: &[(usize, &CheckPart)], out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "| | check | found | measured | limit |\n|---|---|---|---:|---:|")?;
    for (n, check) in checks {
        let value = |value: Option<f64>| {
            value.map_or_else(String::new, |value| escaped(&sentences::quantity(value, &check.unit)))
        };
        let mut found = escaped(&sentences::found(check));
        if check.verdict == Verdict::Fail {
            let evidence = escaped(&sentences::evidence(*n, check));
            found = format!("{found}<br>promised: {}<br>{evidence}", escaped(&check.promised));
        }
        writeln!(
            out,
            "| {} | {} | {found} | {} | {} |",
            sentences::sign(check.verdict),
            escaped(&check.id),
            value(check.measured),
            value(check.expected)
        )?;
    }
    Ok(())
}

/// Text that is shown as it is: no markup, no table cell, no link, nobody is called by an `@`.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len() + 16);
    for (i, c) in text.char_indices() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => safe.extend(['\\', c]),
            // in the midst of a text only; a comment parts what would be joined to a name, a number or a link
            '@' | '#' => safe.extend([&c.to_string(), "<!-- -->"]),
            ':' if text[i..].starts_with("://") => safe.push_str(":<!-- -->"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_sent_is_no_markup() {
        assert_eq!(
            escaped("<script>|`a`|[x](http://b) @all #1 &amp;"),
            "&lt;script&gt;\\|\\`a\\`\\|\\[x\\](http:<!-- -->//b) @<!-- -->all #<!-- -->1 &amp;amp;"
        );
        assert_eq!(escaped("1,040 offered = 708 shed; 0.5 %"), "1,040 offered = 708 shed; 0.5 %");
    }
}
