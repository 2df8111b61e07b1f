use std::io;
use std::time::Duration;

use super::Style;
use super::lines::{Colour, Lines};
use crate::check::words::{number, percent, seconds, thousands};
use crate::forecast::{Amount, Basis, Bottleneck, Forecast, Retries};
use crate::units::{Bytes, Window, show_duration};

const HEAD: usize = 20;

/// The forecast for people: what will be offered, where the gateway should begin to refuse, what happens after.
/// `title` names the plan and what part of it this is.
///
/// # Errors
///
/// What `out` says.
pub fn forecast_text(
    title: &str,
    forecast: &Forecast,
    style: &Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut lines = Lines::new(out, *style);
    lines.item(title, Colour::None, 0, "")?;
    lines.blank()?;
    lines.item("", Colour::None, 2, &story(forecast))?;
    lines.blank()?;
    bound(forecast, style, &mut lines)?;
    if let Some(text) = window(forecast.basis.window) {
        lines.item("  window", Colour::None, HEAD, &text)?;
    }
    lines.item("  first shed", Colour::None, HEAD, &first_shed(forecast))?;
    let drain = match forecast.drain.with_tail_s {
        Some(s) => format!("{} to the level before, with the traffic after the event coming in", seconds(s)),
        None => "never: the traffic after the event is more than is served".to_owned(),
    };
    lines.item("  drain", Colour::None, HEAD, &drain)?;
    let memory = &forecast.memory;
    let memory = format!(
        "{} of waiting prompts; at most {} more than before the load for the embedded gateway",
        Bytes::new(memory.queue_bytes),
        Bytes::new(memory.growth_bytes)
    );
    lines.item("  memory", Colour::None, HEAD, &memory)?;
    if let Some(retries) = &forecast.retries {
        lines.item("  retries", Colour::None, HEAD, &retried(retries))?;
    }
    for (n, tenant) in forecast.tenants.iter().enumerate() {
        let text = format!(
            "{}: {} of {} a minute, {} of the tokens (weight {})",
            tenant.tenant,
            number(tenant.served_per_min),
            number(tenant.offered_per_min),
            percent(tenant.token_share),
            tenant.weight
        );
        lines.item(if n == 0 { "  tenants" } else { "" }, Colour::None, HEAD, &text)?;
    }
    for warning in &forecast.warnings {
        lines.item("  ! fragile", Colour::Yellow, HEAD, &warning.because)?;
    }
    Ok(())
}

fn story(forecast: &Forecast) -> String {
    let (unbounded, basis) = (&forecast.unbounded, &forecast.basis);
    let served = number(forecast.serviceable_per_min);
    let serves = match forecast.bottleneck {
        Bottleneck::ProviderQuota => format!("The provider serves {served}"),
        Bottleneck::Tokens => format!("The gateway's own budget of tokens lets {served} through"),
        Bottleneck::Requests => format!("The gateway's own budget of requests lets {served} through"),
        Bottleneck::Concurrent => format!("The calls the gateway makes at once serve {served}"),
    };
    let mut text = format!(
        "You will be offered {} requests a minute for {}. {serves}: load is {} times capacity.",
        number(forecast.offered_per_min),
        seconds(basis.lasts.as_secs_f64()),
        number(forecast.load_ratio),
    );
    if forecast.shed_share > 0.0 {
        text = format!("{text} {} must be refused, whatever the queue.", percent(forecast.shed_share));
    }
    if unbounded.backlog_requests == 0 {
        return text;
    }
    text = format!(
        "{text} Without a bound {} requests ({} of prompts) would wait when the event ends, the last of them {}; {} of \
         the event would be served in time, and {} tokens spent on callers who have left.",
        thousands(unbounded.backlog_requests),
        Bytes::new(unbounded.queue_bytes),
        seconds(unbounded.last_wait_s.unwrap_or(0.0)),
        percent(1.0 - unbounded.late_share),
        millions(unbounded.wasted_tokens),
    );
    match (unbounded.empty_after_s, unbounded.wasted_in_all_tokens) {
        (Some(empty), Some(wasted)) => format!(
            "{text} The queue would be empty {} later; with those who come behind it in the meantime {} tokens are \
             wasted.",
            seconds(empty),
            millions(wasted)
        ),
        _ => format!("{text} It would never be empty again."),
    }
}

/// `76 million`, `999,000`
fn millions(tokens: u64) -> String {
    if tokens < 1_000_000 { thousands(tokens) } else { format!("{} million", number(tokens as f64 / 1e6)) }
}

fn bound(forecast: &Forecast, style: &Style, lines: &mut Lines<'_>) -> io::Result<()> {
    let (basis, queue) = (&forecast.basis, &forecast.queue_bound);
    let service = format!("less {} of service", seconds(basis.service.as_secs_f64()));
    let mut rows: Vec<(String, &Amount)> = vec![
        (format!("{} of patience", seconds(basis.deadline.as_secs_f64())), &queue.deadline_only),
        (service, &queue.with_service),
        (margin(basis, queue.with_margin.tokens), &queue.with_margin),
    ];
    match basis.window {
        Window::Fixed { .. } | Window::Sliding { .. } if forecast.overload() => {
            rows.push(("at the first shed".to_owned(), &queue.effective));
        }
        _ if basis.reserve > 0.0 => {
            rows.push((format!("less {} kept for returns", percent(basis.reserve)), &queue.effective));
        }
        _ => {}
    }
    let last = rows.len() - 1;
    let arrow = if style.ascii { '<' } else { '◀' };
    for (n, (what, amount)) in rows.iter().enumerate() {
        let head = if n == 0 { "  queue bound" } else { "" };
        let mark = if n == last && forecast.overload() {
            format!("  {arrow} shed from here")
        } else {
            String::new()
        };
        let (tokens, requests) = (thousands(amount.tokens), thousands(amount.requests));
        lines.item(
            head,
            Colour::None,
            HEAD,
            &format!("{what:<27}{tokens:>9} tokens {requests:>7} requests{mark}"),
        )?;
    }
    Ok(())
}

/// What the third line of the bound is: the margin, or what the plan says may wait.
fn margin(basis: &Basis, tokens: u64) -> String {
    let slack = basis.deadline.saturating_sub(basis.service).saturating_sub(basis.margin);
    let flows = matches!(basis.window, Window::Bucket { .. });
    if flows && tokens != basis.drain.whole_in(slack) {
        "the plan's own bound".to_owned()
    } else {
        format!("less {} margin", seconds(basis.margin.as_secs_f64()))
    }
}

fn window(window: Window) -> Option<String> {
    let named = |kind: &str, period: Duration, what: &str| {
        Some(format!("{kind} of {}: {what}", show_duration(period)))
    };
    match window {
        Window::Bucket { .. } => None,
        Window::Fixed { period } | Window::Round { period } => named(
            "fixed",
            period,
            "the whole budget at its start, so that what may wait depends on how near the next one is",
        ),
        Window::Sliding { period } => {
            named("sliding", period, "what was used comes free as long after, as unevenly as it was used")
        }
    }
}

fn first_shed(forecast: &Forecast) -> String {
    let Some(onset) = forecast.onset else {
        return "nobody: no more is offered than is served, or not for long enough".to_owned();
    };
    let spread = if onset.sd_s > 0.0 { format!(" ± {}", seconds(onset.sd_s)) } else { String::new() };
    format!("{}{spread} into the event", seconds(onset.after_s))
}

fn retried(retries: &Retries) -> String {
    let text = format!(
        "callers who come up to {} times make {} requests a minute in the event, {} times the callers; each succeeds with {}",
        number(retries.attempts),
        number(retries.offered_per_min),
        number(retries.amplification),
        percent(retries.success_per_attempt)
    );
    match retries.unbounded_drains_per_min {
        Some(left) => {
            format!("{text}; a queue without a bound would shrink by {} a minute after it", number(left))
        }
        None => format!("{text}; a queue without a bound would never shrink again"),
    }
}
