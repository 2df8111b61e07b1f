//! The head of the page: the verdict as one sentence, what the run itself did, what became of the requests.

use maud::{Markup, html};

use super::super::{Report, sentences};
use super::Running;
use crate::check::RunVerdict;
use crate::check::words::seconds;

/// The window's title.
pub(super) fn page_title(report: &Report, running: Option<Running>) -> String {
    let word = running.map_or_else(|| sentences::verdict(report.verdict), |_| "RUNNING");
    format!("{word}: {}", sentences::tried(report))
}

/// The verdict, first.
pub(super) fn verdict(report: &Report, running: Option<Running>) -> Markup {
    let class = running.map_or_else(|| report.verdict.name(), |_| "running");
    html! {
        header class={ "verdict " (class) } {
            @if let Some(running) = running {
                h1 { span.word { "RUNNING" } " · " (sentences::tried(report)) }
                p { (seconds(running.at_s)) " of " (seconds(running.lasts_s)) "; nothing is judged before the end." }
                @for reason in &report.validity.reasons { p { "At risk: " (reason) } }
            } @else {
                h1 { span.word { (sentences::verdict(report.verdict)) } " · " (sentences::tried(report)) }
                @if report.verdict == RunVerdict::Invalid { p { strong { (sentences::our_fault(report)) } } }
                @if let Some(why) = &report.run.ended_early { p { strong { (why) } } }
                @if let Some(warning) = sentences::warning(report) { p { strong { "Warning: " (warning) } } }
                p { (sentences::tally(report)) " of " (report.checks.len()) " checks." }
            }
            p.muted {
                (report.run.started) " · " (seconds(report.run.took_s)) " · seed " (report.plan.seed)
                @if !report.plan.about.is_empty() { " · " (report.plan.about) }
            }
        }
    }
}

/// The lines under it.
pub(super) fn facts(report: &Report) -> Markup {
    html! {
        ul.facts {
            li { b { "the run" } span { (sentences::own(report)) "; " (sentences::busiest(report)) } }
            @if let Some(name) = sentences::name(report) { li { b { "target" } span { (name) } } }
            li { b { "load" } span { (sentences::offered(report)) } }
            @if let Some(trace) = &report.plan.trace { li { b { "trace" } span { (trace.words()) } } }
            li { b { "requests" } span { (sentences::requests(report)) } }
            @if let Some(attempts) = sentences::attempts(report) { li { b { "attempts" } span { (attempts) } } }
            @for failure in sentences::failures(report) { li { b { "failed" } span { (failure) } } }
            @if let Some(latency) = sentences::latency(report) { li { b { "latency" } span { (latency) } } }
            @if let Some(streams) = sentences::streams(report) { li { b { "streams" } span { (streams) } } }
        }
    }
}

/// The last lines.
pub(super) fn foot(report: &Report) -> Markup {
    html! {
        footer {
            "tenfold " (report.run.version) " · run " (report.run.id)
            @if let Some(path) = &report.run.path { " · " code { (path) } }
        }
    }
}
