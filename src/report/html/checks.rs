//! A card for each check: its sentence, its number on a scale against its limit, its evidence folded away.

use maud::{Markup, html};

use super::super::{CheckPart, RawRefusal, Report, sentences};
use super::chart::short;
use crate::check::Verdict;

/// Raw refusals shown in one card.
const MOST_IN_A_CARD: usize = 3;

/// All cards, in the order of every form. Of a run that goes on none is shown as passed.
pub(super) fn cards(report: &Report, running: bool) -> Markup {
    html! {
        @if running { p.muted { "So far; nothing is judged before the end." } }
        div.cards {
            @for (n, check) in report.checks.iter().enumerate() { (card(report, n, check, running)) }
        }
    }
}

fn card(report: &Report, n: usize, check: &CheckPart, running: bool) -> Markup {
    let (class, sign, word) = match check.verdict {
        Verdict::Pass if running => ("sofar", "…", "so far"),
        Verdict::Pass => ("pass", "✓", "passed"),
        Verdict::Fail => ("fail", "✗", "failed"),
        Verdict::NoData => ("nodata", "?", "no data"),
        Verdict::NotApplicable => ("na", "–", "not applicable"),
    };
    let refusals: Vec<_> =
        report.refusals.iter().filter(|raw| check.examples.contains(&raw.seq)).take(MOST_IN_A_CARD).collect();
    html! {
        section class={ "card " (class) } {
            h3 { span.sign { (sign) } (check.id) " " small { (word) } }
            p { (sentences::found(check)) }
            (scale(check))
            @if check.verdict == Verdict::Fail { p.muted { "promised: " (check.promised) } }
            @if check.verdict == Verdict::Fail || !check.examples.is_empty() {
                details {
                    summary { "evidence" }
                    @if check.verdict != Verdict::Fail { p.muted { "promised: " (check.promised) } }
                    p { (sentences::evidence(n, check)) }
                    @if check.examples.len() > 3 {
                        p.muted { @for seq in &check.examples { (format!("{seq:06} ")) } }
                    }
                    @for raw in refusals { (refusal(raw)) }
                }
            }
        }
    }
}

/// The number against its limit, where it has both.
fn scale(check: &CheckPart) -> Markup {
    let Some((measured, expected)) = check.measured.zip(check.expected) else { return html! {} };
    let show = |value: f64| sentences::quantity(value, &check.unit);
    let most = if check.unit == "share" { 1.0 } else { measured.max(expected) * 1.12 };
    let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
    let at = |value: f64| short((value / most).clamp(0.0, 1.0) * 1_000.0);
    html! {
        div.scale {
            svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img"
                aria-label={ "measured " (show(measured)) ", limit " (show(expected)) } {
                path.rail d="M0 10H1000" {}
                path.lim d={ "M" (at(expected)) " 0V20" } {}
                path.at d={ "M" (at(measured)) " 10h0" } {}
            }
        }
        small { "● measured " (show(measured)) " · | limit " (show(expected)) }
    }
}

/// Refusals as they were read.
pub(super) fn raw(report: &Report) -> Markup {
    html! {
        @if !report.refusals.is_empty() {
            h2 { "Refusals as they were read" }
            details {
                summary { (report.refusals.len()) " of them, cut and without secrets" }
                @for raw in &report.refusals { (refusal(raw)) }
            }
        }
    }
}

fn refusal(raw: &RawRefusal) -> Markup {
    html! {
        pre {
            "id " (format!("{:06}", raw.seq)) "\n" (raw.status) "\n"
            @for (name, value) in &raw.headers { (name) ": " (value) "\n" }
            "\n" (raw.body)
        }
    }
}
