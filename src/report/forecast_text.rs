use std::io;

use super::Style;
use super::lines::{Colour, Lines};
use crate::check::words::{number, percent, seconds, thousands};
use crate::forecast::{Amount, Forecast};
use crate::units::Bytes;

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
    bound(forecast, &mut lines)?;
    if let Some(onset) = forecast.onset {
        let spread = if onset.sd_s > 0.0 { format!(" ± {}", seconds(onset.sd_s)) } else { String::new() };
        lines.item(
            "  first shed",
            Colour::None,
            HEAD,
            &format!("{}{spread} into the event", seconds(onset.after_s)),
        )?;
    }
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
    lines.item("  memory", Colour::None, HEAD, &memory)
}

fn story(forecast: &Forecast) -> String {
    let (unbounded, basis) = (&forecast.unbounded, &forecast.basis);
    let mut text = format!(
        "{} requests a minute are offered for {}; the provider serves {}: load is {} times capacity.",
        number(forecast.offered_per_min),
        seconds(basis.lasts.as_secs_f64()),
        number(forecast.serviceable_per_min),
        number(forecast.load_ratio),
    );
    if forecast.shed_share > 0.0 {
        text = format!("{text} {} must be refused, whatever the queue.", percent(forecast.shed_share));
    }
    if let (true, Some(empty)) = (unbounded.backlog_requests > 0, unbounded.empty_after_s) {
        text = format!(
            "{text} Without a bound {} requests ({} of prompts) would wait when the event ends, the last of them {}; \
             the queue would be empty {} later, and {} of the event late.",
            thousands(unbounded.backlog_requests),
            Bytes::new(unbounded.queue_bytes),
            seconds(unbounded.last_wait_s.unwrap_or(0.0)),
            seconds(empty),
            percent(unbounded.late_share),
        );
    }
    text
}

fn bound(forecast: &Forecast, lines: &mut Lines<'_>) -> io::Result<()> {
    let (basis, queue) = (&forecast.basis, &forecast.queue_bound);
    let reserve = format!("less {} kept for returns", percent(basis.reserve));
    let service = format!("less {} of service", seconds(basis.service.as_secs_f64()));
    let margin = format!("less {} margin", seconds(basis.margin.as_secs_f64()));
    let rows: [(String, &Amount); 4] = [
        (format!("{} of patience", seconds(basis.deadline.as_secs_f64())), &queue.deadline_only),
        (service, &queue.with_service),
        (margin, &queue.with_margin),
        (reserve, &queue.effective),
    ];
    for (n, (what, amount)) in rows.iter().enumerate() {
        let head = if n == 0 { "  queue bound" } else { "" };
        let mark = if n == 3 && forecast.overload() { "  < shed from here" } else { "" };
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
