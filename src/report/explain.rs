//! The formula behind each number of a forecast, with the plan's numbers put in and where it comes from.

use std::io;

use serde::Serialize;

use super::Style;
use super::lines::{Colour, Lines};
use crate::check::words::{number, percent, seconds, thousands};
use crate::forecast::{Forecast, Recovery, Retries};
use crate::units::Window;

/// A formula.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The quantity, as the forecast calls it.
    pub what: &'static str,
    /// The formula, in symbols.
    pub formula: &'static str,
    /// The same with the numbers of the plan, and the result.
    pub numbers: String,
    /// Where it comes from.
    pub source: &'static str,
}

/// The symbols the formulas share.
const SYMBOLS: &str = "λ callers a second, λ0 after the event, h tokens held for a request, x = λh and x0 = λ0h tokens \
     offered a second, r tokens drained a second, μ = r/h, c calls at once, D the deadline, s the service time, m the \
     margin, φ the share kept for returns, B what the budget holds at the start, Q what may wait, T the event's length, k \
     requests a caller sends at most";

const FLUID: &str = "fluid approximation of a queue: G. F. Newell, Applications of Queueing Theory (1982)";
const FIRST_PASSAGE: &str = "B and Q fill at x − r; first passage of a random walk with drift: Cox and Miller, The Theory of Stochastic Processes \
     (1965)";
const BUCKET: &str =
    "a token bucket passes B + rt in any t: J. Turner, New Directions in Communications (1986)";
const LITTLE: &str = "J. D. C. Little, A Proof for the Queuing Formula L = λW (1961)";
const REDIAL: &str =
    "who is served did not fail every time; a fluid model of redials in call centres: arXiv 1311.6248 (2013)";
const METASTABLE: &str =
    "N. Bronson et al., Metastable Failures in Distributed Systems (HotOS 2021); L. Huang et al. (OSDI 2022)";

/// The formulas behind `forecast`. A quantity that the plan has not is left out.
pub fn explain(forecast: &Forecast) -> Vec<Explanation> {
    let mut all = load(forecast);
    all.extend(bound(forecast));
    all.extend(course(forecast));
    all.extend(unbounded(forecast));
    all.extend((!forecast.tenants.is_empty()).then(|| tenants(forecast)));
    all.extend(forecast.retries.iter().flat_map(|it| retries(forecast, it)));
    all.extend(forecast.recovery.iter().map(|it| recovery(forecast, it)));
    all
}

fn load(forecast: &Forecast) -> Vec<Explanation> {
    let basis = &forecast.basis;
    let quota = basis.capacity * basis.mean_hold;
    let mut all = vec![
        Explanation {
            what: "served",
            formula: "μ = r/h",
            numbers: format!(
                "{} tokens a minute / {} = {} a minute",
                number(basis.drain.per_min_f64()),
                number(basis.mean_hold),
                number(forecast.serviceable_per_min)
            ),
            source: BUCKET,
        },
        Explanation {
            what: "load",
            formula: "ρ = λ/μ",
            numbers: format!(
                "{} / {} = {}",
                number(forecast.offered_per_min),
                number(forecast.serviceable_per_min),
                number(forecast.load_ratio)
            ),
            source: "the definition of load",
        },
        Explanation {
            what: "refused",
            formula: "1 − 1/ρ, none below 1",
            numbers: format!("1 − 1/{} = {}", number(forecast.load_ratio), percent(forecast.shed_share)),
            source: "conservation: what comes in and is not served is refused; every loss system tends to it in overload",
        },
    ];
    if let Some(slots) = basis.slots {
        all.push(Explanation {
            what: "calls at once",
            formula: "μ = min(r/h, c/E[s])",
            numbers: format!(
                "min({} / {}, {slots} / {}) = {} a second",
                number(quota),
                number(basis.mean_hold),
                seconds(basis.mean_service),
                number(basis.served)
            ),
            source: LITTLE,
        });
    }
    if basis.hold_factor > 1.0 {
        all.push(Explanation {
            what: "held for used",
            formula: "E[prompt + max_tokens] / E[prompt + output]",
            numbers: format!("{} held, {} times what is used", number(basis.mean_hold), number(basis.hold_factor)),
            source: "providers charge the reservation when a request is admitted; a gateway gives back what was not used",
        });
    }
    all
}

fn bound(forecast: &Forecast) -> Vec<Explanation> {
    let (basis, queue) = (&forecast.basis, &forecast.queue_bound);
    let r = number(basis.drain.per_sec_f64());
    let (d, s) = (seconds(basis.deadline.as_secs_f64()), seconds(basis.service.as_secs_f64()));
    let m = seconds(basis.margin.as_secs_f64());
    let (what, formula, source) = match basis.window {
        Window::Bucket { .. } => ("queue bound", "Q = (1 − φ)·r·(D − s − m), floor(Q/h) requests", FLUID),
        Window::Fixed { .. } | Window::Round { .. } => (
            "queue bound",
            "Q = (1 − φ)·W·(renewals within D − s − m), which depends on the instant",
            "the supply function of windows that begin anew",
        ),
        Window::Sliding { .. } => (
            "queue bound",
            "Q = (1 − φ)·(W − what was used later than D − s − m before a period ago), which depends on the instant",
            "the supply function of a sliding window",
        ),
    };
    let numbers = match basis.window {
        Window::Bucket { .. } => format!(
            "(1 − {})·{r}·({d} − {s} − {m}) = {} tokens, {} requests of {}",
            number(basis.reserve),
            thousands(queue.effective.tokens),
            thousands(queue.effective.requests),
            thousands(basis.largest_hold.get())
        ),
        Window::Fixed { .. } | Window::Round { .. } | Window::Sliding { .. } => format!(
            "at most {} tokens; {} when the first is refused",
            thousands(queue.with_margin.tokens),
            thousands(queue.effective.tokens)
        ),
    };
    vec![Explanation { what, formula, numbers, source }]
}

fn course(forecast: &Forecast) -> Vec<Explanation> {
    let (basis, drain) = (&forecast.basis, &forecast.drain);
    let (x, r) = (basis.tokens_at(basis.offered), basis.drain.per_sec_f64());
    let mut all = Vec::new();
    if let Some(onset) = forecast.onset {
        let flows = matches!(basis.window, Window::Bucket { .. });
        let from = format!(
            "({} + {}) / ({} − {}) = {}",
            thousands(basis.burst.get()),
            thousands(onset.depth_tokens),
            number(x),
            number(r),
            seconds(onset.after_s)
        );
        let walked = format!("{} at {} tokens", seconds(onset.after_s), thousands(onset.depth_tokens));
        all.push(Explanation {
            what: "first shed",
            formula: if flows {
                "(B + Q)/(x − r), with a spread of sqrt(λ·E[h²]·(B + Q)/(x − r)³) unless callers are evenly spaced"
            } else {
                "the first caller whom the supply within D − s − m does not reach"
            },
            numbers: if flows { from } else { walked },
            source: if flows { FIRST_PASSAGE } else { "the supply function walked along the arrivals" },
        });
    }
    if let Some(lasts) = drain.with_tail_s.filter(|_| !matches!(basis.window, Window::Fixed { .. })) {
        all.push(Explanation {
            what: "drain",
            formula: "Q/(r − x0); Q/r if nobody came any more",
            numbers: format!(
                "{} / ({} − {}) = {}; {}",
                thousands(forecast.queue_bound.effective.tokens),
                number(r),
                number(basis.tokens_at(basis.tail)),
                seconds(lasts),
                seconds(drain.stopped_s)
            ),
            source: FLUID,
        });
    }
    all.push(Explanation {
        what: "memory",
        formula: "N_waiting·(body + overhead) + N_called·(body + overhead + answer) + λ·t_refusal·overhead + allocator",
        numbers: format!("{} bytes above the memory before the load", thousands(forecast.memory.growth_bytes)),
        source: "the counts by Little's law; overhead as measured on the reference gateway",
    });
    all
}

fn unbounded(forecast: &Forecast) -> Vec<Explanation> {
    let (basis, story) = (&forecast.basis, &forecast.unbounded);
    let (Some(wait), true) = (story.last_wait_s, story.backlog_requests > 0) else { return Vec::new() };
    let (mu, tail) = (number(forecast.serviceable_per_min), number(basis.tail * 60.0));
    let backlog = thousands(story.backlog_requests);
    let t = basis.lasts.as_secs_f64();
    let mut all = vec![
        Explanation {
            what: "unbounded backlog",
            formula: "q = (λ − μ)·T − B/h",
            numbers: format!(
                "({} − {mu}) · {} − {} = {backlog} of {}",
                number(forecast.offered_per_min),
                seconds(basis.lasts.as_secs_f64()),
                number(((basis.offered - basis.served) * t - story.backlog_requests as f64).max(0.0).floor()),
                thousands(story.offered_requests)
            ),
            source: FLUID,
        },
        Explanation {
            what: "its last wait",
            formula: "q/μ: those who come later join behind",
            numbers: format!("{backlog} / {mu} a minute = {}", seconds(wait)),
            source: LITTLE,
        },
        Explanation {
            what: "in time without bound",
            formula: "λ·((D − s)·μ + B/h)/(λ − μ) of λ·T",
            numbers: percent(1.0 - story.late_share),
            source: "the callers who came before the wait had reached D − s",
        },
    ];
    all.push(Explanation {
        what: "wasted without bound",
        formula: "q, or those late where they are fewer, times the tokens an answer uses; in all, those late in the event and those behind it too",
        numbers: match story.wasted_in_all_tokens {
            Some(wasted) => {
                format!("{} tokens; in all {}", thousands(story.wasted_tokens), thousands(wasted))
            }
            None => format!("{} tokens, and all that come later", thousands(story.wasted_tokens)),
        },
        source: "every answer that comes later than D is for nobody",
    });
    if let Some(empty) = story.empty_after_s {
        all.push(Explanation {
            what: "unbounded, empty",
            formula: "q/(μ − λ0)",
            numbers: format!("{backlog} / ({mu} − {tail}) a minute = {}", seconds(empty)),
            source: FLUID,
        });
    }
    all
}

fn recovery(forecast: &Forecast, recovery: &Recovery) -> Explanation {
    let basis = &forecast.basis;
    Explanation {
        what: "recovered",
        formula: "Q*/(μ − λ0) + orbit/(μ − λ0) + s, orbit = (λ' − λ) times what a refused caller rests",
        numbers: format!(
            "{} + {}/({} − {}) + {} = {} after the event",
            seconds(recovery.queue_s),
            thousands(recovery.orbit_requests.round() as u64),
            number(basis.served),
            number(basis.tail),
            seconds(basis.service.as_secs_f64()),
            seconds(recovery.after_s)
        ),
        source: METASTABLE,
    }
}

fn tenants(forecast: &Forecast) -> Explanation {
    let parts = forecast.tenants.iter().map(|it| format!("{} {}", it.tenant, percent(it.token_share)));
    Explanation {
        what: "tenants",
        formula: "r by weight; nobody gets more than it asks for, and the rest goes to the others by weight",
        numbers: parts.collect::<Vec<_>>().join(", "),
        source: "weighted max-min fairness: D. Bertsekas and R. Gallager, Data Networks (1987)",
    }
}

fn retries(forecast: &Forecast, retries: &Retries) -> [Explanation; 2] {
    let basis = &forecast.basis;
    let k = number(retries.attempts);
    let left = basis.served - retries.attempts * basis.tail;
    [
        Explanation {
            what: "retries",
            formula: "p = 1 − (1 − μ/λ)^(1/k), λ' = μ/p, whatever time is announced",
            numbers: format!(
                "1 − (1 − {}/{})^(1/{k}) = {}; {} requests a minute",
                number(forecast.serviceable_per_min),
                number(forecast.offered_per_min),
                percent(retries.success_per_attempt),
                number(retries.offered_per_min)
            ),
            source: REDIAL,
        },
        Explanation {
            what: "recovery",
            formula: "a queue without bound and recheck recovers only if k·λ0 < μ, by μ − k·λ0",
            numbers: format!(
                "{k} · {} {} {}",
                number(basis.tail * 60.0),
                if left > 0.0 { "<" } else { "≥" },
                number(forecast.serviceable_per_min)
            ),
            source: METASTABLE,
        },
    ]
}

/// Writes the formulas for people.
pub(super) fn render(forecast: &Forecast, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    const HEAD: usize = 26;
    let mut lines = Lines::new(out, *style);
    lines.item("  how it was computed", Colour::None, 0, "")?;
    lines.blank()?;
    lines.item("", Colour::None, 4, SYMBOLS)?;
    lines.blank()?;
    for it in explain(forecast) {
        lines.item(&format!("    {}", it.what), Colour::None, HEAD, it.formula)?;
        lines.item("", Colour::None, HEAD, &it.numbers)?;
        lines.item("", Colour::Grey, HEAD, &format!("[{}]", it.source))?;
    }
    Ok(())
}
