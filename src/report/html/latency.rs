//! Latency by outcome, never blended: from the due time, which is what a caller waited, and from sending.

use maud::{Markup, html};

use super::super::{Distribution, Report};
use super::chart::short;
use crate::check::words::{seconds, thousands};

/// One row of the table.
struct Row<'r> {
    name: &'r str,
    from: &'static str,
    of: &'r Distribution,
}

/// The section.
pub(super) fn section(report: &Report) -> Markup {
    let latency = &report.latency;
    let mut rows = Vec::new();
    for (name, both) in &latency.by_outcome {
        rows.push(Row { name, from: "due", of: &both.from_due });
        rows.push(Row { name, from: "sent", of: &both.from_sent });
    }
    if let Some(streams) = &report.streams {
        rows.push(Row { name: "first token", from: "due", of: &streams.first_token.from_due });
        rows.push(Row { name: "first token", from: "sent", of: &streams.first_token.from_sent });
        rows.push(Row { name: "token gap", from: "token", of: &streams.token_gap });
    }
    rows.push(Row { name: "refusal", from: "sent", of: &latency.refusal });
    rows.push(Row { name: "ping", from: "sent", of: &latency.ping });
    rows.push(Row { name: "lag", from: "due", of: &latency.lag });
    rows.retain(|row| row.of.count > 0);
    let span = Span::of(&rows);
    html! {
        h2 { "Latency by outcome" }
        p.muted {
            "All attempts. From due is what a caller waited, from sent what the target took. The bar reaches from the \
             median to p99, the tick is the longest, on a logarithmic scale from " (seconds(span.least / 1e6)) " to "
            (seconds(span.most / 1e6)) "."
        }
        div.wide { table {
            thead { tr {
                th { "outcome" } th { "from" } th.n { "count" } th.n { "p50" } th.n { "p90" } th.n { "p99" }
                th.n { "longest" } th { span hidden { "picture" } }
            } }
            tbody {
                @for row in &rows {
                    tr {
                        th scope="row" { (row.name) } td { (row.from) } td.n { (thousands(row.of.count)) }
                        td.n { (time(row.of.p50_us)) } td.n { (time(row.of.p90_us)) } td.n { (time(row.of.p99_us)) }
                        td.n { (time(row.of.max_us)) } td.pic { (span.bar(row.of)) }
                    }
                }
            }
        } }
    }
}

fn time(us: Option<u64>) -> String {
    us.map_or_else(|| "–".to_owned(), |us| seconds(us as f64 / 1e6))
}

/// What all bars share, in microseconds, as powers of ten.
struct Span {
    least: f64,
    most: f64,
}

impl Span {
    fn of(rows: &[Row<'_>]) -> Self {
        let medians = rows.iter().filter_map(|row| row.of.p50_us);
        let longest = rows.iter().filter_map(|row| row.of.max_us);
        // 100 µs at the least, and at least a decade
        let least = 10f64.powf((medians.min().unwrap_or(0).max(100) as f64).log10().floor());
        let most = 10f64.powf((longest.max().unwrap_or(0).max(1_000) as f64).log10().ceil());
        Self { least, most: most.max(least * 10.0) }
    }

    fn x(&self, us: Option<u64>) -> f64 {
        let us = us.unwrap_or(0).max(1) as f64;
        ((us / self.least).log10() / (self.most / self.least).log10()).clamp(0.0, 1.0) * 1_000.0
    }

    fn bar(&self, of: &Distribution) -> Markup {
        let (median, p99, longest) = (self.x(of.p50_us), self.x(of.p99_us), self.x(of.max_us));
        html! {
            svg viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true" {
                path.grid d="M0 10H1000" {}
                path.main d={ "M" (short(median)) " 10H" (short(p99)) } {}
                path.dot d={ "M" (short(median)) " 10h0" } {}
                path.quiet d={ "M" (short(longest)) " 4V16" } {}
            }
        }
    }
}
