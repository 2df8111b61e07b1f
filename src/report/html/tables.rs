//! What reads best as a table: classes with their tenants and tiers, the forecast beside what was measured, the plan.

use maud::{Markup, html};

use super::super::{ClassPart, Report, RequestPart};
use super::times::Times;
use crate::check::words::{number, percent, seconds, thousands};
use crate::forecast::Forecast;
use crate::units::Bytes;

/// Tenants and tiers, where there are any.
pub(super) fn classes(report: &Report) -> Markup {
    let of = |class: &ClassPart| report.plan.requests.iter().find(|request| request.name == class.name);
    let tenants = report.plan.requests.iter().any(|request| !request.tenant.is_empty());
    if report.classes.len() < 2 && !tenants {
        return html! {};
    }
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let dash = |text: &str| if text.is_empty() { "–".to_owned() } else { text.to_owned() };
    html! {
        h2 { "Tenants and tiers" }
        div.wide { table {
            thead { tr {
                th { "class" } th { "tenant" } th.n { "tier" } th.n { "offered" } th.n { "refused" }
                th.n { "answered in time" } th { span hidden { "share refused" } }
            } }
            tbody {
                @for class in &report.classes {
                    @let request: Option<&RequestPart> = of(class);
                    @let refused = share(class.refused, class.offered);
                    tr {
                        th scope="row" { (class.name) }
                        td { (request.map_or_else(String::new, |request| dash(&request.tenant))) }
                        td.n { @if let Some(request) = request { (request.tier) } }
                        td.n { (thousands(class.offered)) }
                        td.n { (thousands(class.refused)) " (" (percent(refused)) ")" }
                        td.n { (thousands(class.goodput)) }
                        td.pic {
                            svg viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true" {
                                path.grid d="M0 10H1000" {}
                                path.alt d={ "M0 10H" (format!("{:.0}", refused.clamp(0.0, 1.0) * 1_000.0)) } {}
                            }
                        }
                    }
                }
            }
        } }
    }
}

/// A row: what, for the event as written, as rehearsed, and as measured.
type Row = (&'static str, String, String, String);

/// The forecast next to what was measured.
pub(super) fn forecast(report: &Report, times: &Times<'_>) -> Markup {
    let mut rows = loads(report, times);
    rows.extend(queue(report));
    html! {
        h2 { "Forecast and measured" }
        div.wide { table {
            thead { tr { th {} th.n { "the event, forecast" } th.n { "as rehearsed, forecast" } th.n { "measured" } } }
            tbody {
                @for (name, event, rehearsal, measured) in &rows {
                    tr { th scope="row" { (name) } td.n { (event) } td.n { (rehearsal) } td.n { (measured) } }
                }
            }
        } }
    }
}

fn loads(report: &Report, times: &Times<'_>) -> Vec<Row> {
    let (event, rehearsal) = (&report.forecast.event, &report.forecast.rehearsal);
    let both = |text: fn(&Forecast) -> String| (text(event), text(rehearsal));
    let inside = report.windows.iter().filter(|window| times.in_event(window.from_s));
    let (offered, refused, seconds) =
        inside.fold((0u64, 0u64, 0.0), |(offered, refused, seconds), window| {
            (offered + window.offered, refused + window.shed + window.throttled, seconds + window.width_s)
        });
    let known = |value: f64, show: &dyn Fn(f64) -> String| if offered > 0 { show(value) } else { dash() };
    let per_min = |value: f64| format!("{}/min", number(value));
    let rate = known(offered as f64 / seconds * 60.0, &per_min);
    let share = known(refused as f64 / offered as f64, &percent);
    let row = |name, (event, rehearsal): (String, String), measured| (name, event, rehearsal, measured);
    vec![
        row("offered in the event", both(|f| format!("{}/min", number(f.offered_per_min))), rate),
        row(
            "served",
            both(|f| format!("{}/min", number(f.serviceable_per_min))),
            format!("{} in time", per_min(report.totals.goodput_per_s * 60.0)),
        ),
        row("load over capacity", both(|f| number(f.load_ratio)), dash()),
        row("refused in the event", both(|f| format!("{} in the long run", percent(f.shed_share))), share),
    ]
}

fn queue(report: &Report) -> Vec<Row> {
    let (event, rehearsal) = (&report.forecast.event, &report.forecast.rehearsal);
    let both = |text: fn(&Forecast) -> String| (text(event), text(rehearsal));
    let row = |name, (event, rehearsal): (String, String), measured| (name, event, rehearsal, measured);
    let size = |bytes: u64| Bytes::new(bytes).to_string();
    let or_dash = |text: Option<String>| text.unwrap_or_else(dash);
    let bound = |f: &Forecast| {
        let bound = &f.queue_bound.effective;
        format!("{} requests, {} tokens", thousands(bound.requests), thousands(bound.tokens))
    };
    let met = report.onset.map(|onset| {
        format!("{} requests, {} tokens", thousands(onset.depth_requests), thousands(onset.depth_tokens))
    });
    vec![
        row("first shed at a depth of", both(bound), or_dash(met)),
        row(
            "first shed after",
            both(|f| f.onset.as_ref().map_or_else(dash, |onset| seconds(onset.after_s))),
            or_dash(report.onset.map(|onset| seconds(onset.after_s))),
        ),
        row(
            "backlog gone after the event",
            both(|f| f.drain.with_tail_s.map_or_else(dash, seconds)),
            or_dash(report.drain.after_s.map(seconds)),
        ),
        row(
            "memory",
            both(|f| format!("ceiling {}", Bytes::new(f.memory.ceiling_bytes))),
            or_dash(report.memory.peak_bytes.map(|peak| format!("peak {}", size(peak)))),
        ),
        row(
            "without a bound: left waiting",
            both(|f| format!("{} requests", thousands(f.unbounded.backlog_requests))),
            dash(),
        ),
    ]
}

fn dash() -> String {
    "–".to_owned()
}

/// The whole plan, folded.
pub(super) fn plan(report: &Report) -> Markup {
    let text = serde_json::to_string_pretty(&report.plan).unwrap_or_default();
    html! {
        h2 { "Plan" }
        details { summary { "the whole plan, as it was run" } pre { (text) } }
    }
}
