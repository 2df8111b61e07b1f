//! What happened over time: the phases, the queue seen from both sides, the load, memory, lag.

use maud::{Markup, html};

use super::super::{Report, sentences};
use super::chart::{Chart, Level, Mark, Series, short};
use super::times::{Times, mean, most, rate};
use crate::check::words::{number, seconds, thousands};
use crate::units::Bytes;

/// The phases, over which all charts line up.
pub(super) fn strip(times: &Times<'_>) -> Markup {
    html! {
        h2 { "Over time" }
        div.frame {
            div.strip {
                @for band in &times.bands {
                    @let (from, to) = (100.0 * times.share(band.from), 100.0 * times.share(band.to));
                    div.event[band.phase.event] style={ "left:" (short(from)) "%;width:" (short(to - from)) "%" }
                        title={ (band.phase.name) ": " (number(band.phase.rate_per_min)) "/min for " (seconds(band.phase.lasts_s)) } {
                        (band.phase.name) @if band.phase.event { " (event)" } " · " (number(band.phase.rate_per_min)) "/min"
                    }
                }
            }
        }
    }
}

fn requests(value: f64) -> String {
    number(value)
}

/// The picture that takes both sides: how deep the gateway's queue was, with no instrument in it.
pub(super) fn depth(report: &Report, times: &Times<'_>) -> Markup {
    let forecast = &report.forecast.rehearsal;
    let bound = forecast.queue_bound.effective.requests;
    let declared = forecast.onset.is_some();
    let first = report.onset.map(|onset| Mark {
        at: onset.at_s,
        value: onset.depth_requests as f64,
        text: format!(
            "first shed: {} deep after {}",
            thousands(onset.depth_requests),
            seconds(onset.after_s)
        ),
    });
    let met = match (&first, declared) {
        (Some(mark), true) => format!("{}; predicted at {}", mark.text, thousands(bound)),
        (Some(mark), false) => format!("{}; none was predicted", mark.text),
        (None, true) => {
            format!("nobody was shed, though it was predicted from a depth of {} on", thousands(bound))
        }
        (None, false) => "nobody was shed, and no overload was predicted".to_owned(),
    };
    let mut series = vec![
        Series {
            name: "in the gateway, mean",
            class: "area",
            value: |b| Some(mean(b, |w| w.depth_mean_requests)),
            area: true,
        },
        Series {
            name: "in the gateway, most",
            class: "main",
            value: |b| most(b, |w| Some(w.depth_max_requests)),
            area: false,
        },
        Series {
            name: "at the provider, most",
            class: "quiet",
            value: |b| most(b, |w| Some(w.at_provider_max_requests)),
            area: false,
        },
    ];
    if report.windows.iter().any(|window| window.ghosts_max_requests > 0) {
        series.push(Series {
            name: "ghosts, most",
            class: "third",
            value: |b| most(b, |w| Some(w.ghosts_max_requests)),
            area: false,
        });
    }
    let level =
        Level { name: format!("predicted bound, {}", thousands(bound)), class: "limit", at: bound as f64 };
    Chart {
        id: "depth",
        title: "Queue depth, seen from both sides",
        about: format!(
            "Requests sent to the gateway that had not reached the provider. Deepest {}; {met}.",
            thousands(report.drain.peak_requests)
        ),
        times,
        series,
        levels: if declared { vec![level] } else { Vec::new() },
        mark: first,
        show: requests,
        small: false,
    }
    .render()
}

/// What was offered and what became of it, by due time.
pub(super) fn load(report: &Report, times: &Times<'_>) -> Markup {
    let served = report.forecast.rehearsal.serviceable_per_min / 60.0;
    let line = |name, class, value| Series { name, class, value, area: false };
    let mut series = vec![
        line("offered", "quiet", |b| Some(rate(b, |w| w.offered))),
        line("shed", "alt", |b| Some(rate(b, |w| w.shed))),
        line("goodput", "main", |b| Some(rate(b, |w| w.goodput))),
    ];
    if report.totals.throttled > 0 {
        series.push(line("throttled", "third", |b| Some(rate(b, |w| w.throttled))));
    }
    Chart {
        id: "load",
        title: "Offered, goodput, shed, throttled",
        about: format!(
            "Requests a second by the instant they were due. {}; answers in time came at {}/s in the event.",
            capitalised(&sentences::offered(report)),
            number(report.totals.goodput_per_s)
        ),
        times,
        series,
        levels: vec![Level { name: format!("capacity, {}/s", number(served)), class: "bound", at: served }],
        mark: None,
        show: |value| format!("{}/s", number(value)),
        small: false,
    }
    .render()
}

/// How many fell due together: arrivals beside callers who came again, where any did.
pub(super) fn waves(report: &Report, times: &Times<'_>) -> Markup {
    let Some(wave) = report.retry_after.wave else { return html! {} };
    let line = |name, class, value| Series { name, class, value, area: false };
    fn tenth(counts: &[u32]) -> Option<u64> {
        Some(counts.iter().max().map_or(0, |most| u64::from(*most)))
    }
    Chart {
        id: "waves",
        title: "Due together: arrivals and callers who came again",
        about: format!(
            "The most that were due within {}. {} came again together at {}, the most there were.",
            seconds(wave.width_s),
            thousands(wave.again),
            seconds(wave.from_s)
        ),
        times,
        series: vec![
            line("arrivals, most", "quiet", |b| most(b, |w| tenth(&w.offered_tenths))),
            line("came again, most", "alt", |b| most(b, |w| tenth(&w.again_tenths))),
        ],
        levels: Vec::new(),
        mark: None,
        show: requests,
        small: true,
    }
    .render()
}

/// Memory against its ceiling.
pub(super) fn memory(report: &Report, times: &Times<'_>) -> Markup {
    let memory = &report.memory;
    let size = |bytes: u64| Bytes::new(bytes).to_string();
    let Some(peak) = memory.peak_bytes else {
        return html! { p { "The target's memory was not measured." } };
    };
    let ceiling = memory.ceiling_bytes.map(|bytes| Level {
        name: format!("ceiling, {}", size(bytes)),
        class: "limit",
        at: bytes as f64,
    });
    let limit = memory.ceiling_bytes.map_or_else(String::new, |bytes| format!(", ceiling {}", size(bytes)));
    let before = memory.baseline_bytes.map_or_else(String::new, |b| format!(", {} before the load", size(b)));
    let line = |name, class, value| Series { name, class, value, area: false };
    Chart {
        id: "memory",
        title: "Memory",
        about: format!("The target's peak {}{limit}{before}.", size(peak)),
        times,
        series: vec![
            line("the target", "main", |b| most(b, |w| w.target_bytes)),
            line("tenfold itself", "quiet", |b| most(b, |w| w.own_bytes)),
        ],
        levels: ceiling.into_iter().collect(),
        mark: None,
        show: |value| if value > 0.0 { Bytes::new(value as u64).to_string() } else { "0".to_owned() },
        small: true,
    }
    .render()
}

/// How late requests were sent, which is our own doing.
pub(super) fn lag(report: &Report, times: &Times<'_>) -> Markup {
    let validity = &report.validity;
    let limit = seconds(validity.lag_limit_us as f64 / 1e6);
    let p99 = validity.lag_p99_us.map_or_else(|| "not known".to_owned(), |us| seconds(us as f64 / 1e6));
    let line = |name, class, value| Series { name, class, value, area: false };
    Chart {
        id: "lag",
        title: "Lag and ping",
        about: format!(
            "How late requests were sent: our own doing. p99 {p99}, limit {limit}. The ping is a small request beside \
             the load: it says when the machine itself was slow."
        ),
        times,
        series: vec![
            line("lag, most", "main", |b| most(b, |w| Some(w.lag_max_us))),
            line("lag, p99", "alt", |b| most(b, |w| w.lag_p99_us)),
            line("ping, slowest", "quiet", |b| most(b, |w| w.ping_max_us)),
        ],
        levels: vec![Level {
            name: format!("limit of lag p99, {limit}"),
            class: "limit",
            at: validity.lag_limit_us as f64,
        }],
        mark: None,
        show: |value| seconds(value / 1e6),
        small: true,
    }
    .render()
}

pub(super) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
