//! Retry-After: what was announced against how long the callers who came back waited until they were served.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::super::{ProbePart, Report, sentences};
use super::chart::{short, steps};
use super::over_time::capitalised;
use crate::check::words::{percent, seconds, thousands};

/// Grid of the picture: callers that fall together are drawn once.
const GRID: f64 = 250.0;

/// The section; nothing where nobody was refused.
pub(super) fn section(report: &Report) -> Markup {
    let told = &report.retry_after;
    if told.announced + told.missing + told.unparseable == 0 {
        return html! {};
    }
    html! {
        h2 { "Retry-After: announced, and waited" }
        @if told.returned.is_empty() {
            @if told.probes.inside.returned + told.probes.after.returned == 0 {
                p { "No refused caller came back before the run ended." }
            }
            (numbers(report))
        } @else {
            div.two { (picture(report)) (numbers(report)) }
        }
        @for told in sentences::told(report) { p { (capitalised(&told)) "." } }
    }
}

fn picture(report: &Report) -> Markup {
    let returned = &report.retry_after.returned;
    let most = returned.iter().map(|caller| caller.announced_s.max(caller.waited_s)).fold(0.0, f64::max);
    let (step, count) = steps(most);
    let top = step * f64::from(count);
    let mut places = BTreeMap::new();
    for caller in returned {
        let place = |value: f64| (value / top * GRID).clamp(0.0, GRID).round() as u32;
        let entry = (!caller.kept, place(caller.announced_s), place(caller.waited_s));
        places.entry(entry).or_insert((0u32, caller)).0 += 1;
    }
    let kept = returned.iter().filter(|caller| caller.kept).count();
    let on = |place: u32| f64::from(place) / GRID * 100.0;
    let labels: Vec<_> =
        (0..=count).map(|i| (100.0 * f64::from(i) / f64::from(count), step * f64::from(i))).collect();
    html! {
        figure.square id="waits" {
            figcaption {
                p id="waits-d" {
                    (thousands(returned.len() as u64)) " callers who came back as told: " (thousands(kept as u64))
                    " were served. On the line, the wait was the time announced; a little above it are those whose answer then took its time."
                }
                ul.legend {
                    li { svg viewBox="0 0 30 12" aria-hidden="true" { path.dot d="M15 6h0" {} } "served" }
                    li { svg viewBox="0 0 30 12" aria-hidden="true" { path.cross d="M11 2L19 10M19 2L11 10" {} } "refused again, or too late" }
                    li { svg viewBox="0 0 30 12" aria-hidden="true" { path.bound d="M0 6H30" {} } "as announced" }
                }
            }
            div.frame {
                div.y aria-hidden="true" {
                    @for (at, value) in &labels { span style={ "bottom:" (short(*at)) "%" } { (seconds(*value)) } }
                }
                div.plot {
                    svg viewBox="0 0 100 100" role="img" aria-labelledby="waits-d" {
                        @for (at, _) in labels.iter().skip(1) {
                            path.grid d={ "M0 " (short(100.0 - at)) "H100M" (short(*at)) " 0V100" } {}
                        }
                        path.bound d="M0 100L100 0" {}
                        @for ((lost, across, up), (times, caller)) in &places {
                            @let (x, y) = (on(*across), 100.0 - on(*up));
                            g {
                                title {
                                    (caller.announced_s) " s announced, served after " (seconds(caller.waited_s))
                                    @if *times > 1 { " (" (times) " callers)" }
                                }
                                @if *lost {
                                    path.cross d={ "M" (short(x - 1.4)) " " (short(y - 1.4)) "l2.8 2.8m0-2.8l-2.8 2.8" } {}
                                } @else { path.dot d={ "M" (short(x)) " " (short(y)) "h0" } {} }
                            }
                        }
                    }
                }
                div.x aria-hidden="true" {
                    @for (at, value) in &labels {
                        span.first[*at < 2.0].last[*at > 98.0] style={ "left:" (short(*at)) "%" } { (seconds(*value)) }
                    }
                }
            }
        }
    }
}

fn numbers(report: &Report) -> Markup {
    let told = &report.retry_after;
    let announced = |value: Option<u64>| value.map_or_else(|| "–".to_owned(), |value| seconds(value as f64));
    let probes = |part: &ProbePart| {
        let at_least =
            part.at_least_share.map_or_else(String::new, |share| format!(", at least {}", percent(share)));
        format!("{} of {}{at_least}", thousands(part.kept), thousands(part.returned))
    };
    let rows = [
        ("refusals with a time", thousands(told.announced)),
        ("without the header", thousands(told.missing)),
        ("not to be read", thousands(told.unparseable)),
        ("with a fraction of a second", thousands(told.fractional)),
        ("shortest announced", announced(told.min_s)),
        ("median", announced(told.median_s)),
        ("longest", announced(told.max_s)),
        ("different times", thousands(told.distinct)),
        ("kept, returned in the event", probes(&told.probes.inside)),
        ("kept, returned after it", probes(&told.probes.after)),
        ("not seen to the end", thousands(told.probes.censored)),
    ];
    html! {
        table { tbody {
            @for (name, value) in &rows { tr { th scope="row" { (name) } td.n { (value) } } }
        } }
    }
}
