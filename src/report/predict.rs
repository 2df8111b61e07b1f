//! A prediction as text and as JSON.

use std::io;

use super::lines::{Colour, Lines};
use super::{Style, explain, forecast_text, plain};
use crate::check::words::{number, percent, thousands};
use crate::forecast::Prediction;
use crate::forecast::levers::{Amount, Needed, Pulled};

/// Columns of a lever's name.
const NAME: usize = 40;

/// The prediction as an engineer's note; with the formulas where `explained`.
///
/// # Errors
///
/// What `out` says.
pub fn predict_text(
    prediction: &Prediction,
    explained: bool,
    style: &Style,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let Prediction { plan, event, rehearsal, .. } = prediction;
    forecast_text(&format!("{plan}, the whole event"), event, style, out)?;
    if explained {
        writeln!(out)?;
        explain::render(event, style, out)?;
    }
    if !prediction.levers.is_empty() {
        writeln!(out)?;
        levers(prediction, &mut Lines::new(out, *style))?;
    }
    if !prediction.until.is_empty() {
        writeln!(out)?;
        until(&prediction.until, &mut Lines::new(out, *style))?;
    }
    if rehearsal != event {
        writeln!(out)?;
        forecast_text(&format!("{plan}, rehearsed at {} scale", prediction.scale), rehearsal, style, out)?;
    }
    Ok(())
}

/// The prediction for scripts (`tenfold.forecast/1`); with the event's formulas under `explain` where `explained`.
///
/// # Errors
///
/// What `out` says.
pub fn predict_json(prediction: &Prediction, explained: bool, out: &mut dyn io::Write) -> io::Result<()> {
    let mut value = serde_json::to_value(prediction)?;
    if let Some(map) = value.as_object_mut().filter(|_| explained) {
        map.insert("explain".to_owned(), serde_json::to_value(explain(&prediction.event))?);
    }
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn levers(prediction: &Prediction, lines: &mut Lines<'_>) -> io::Result<()> {
    let shut = prediction.levers.iter().any(|line| (line.shed_share - line.kept_shed_share).abs() > 1e-9);
    let more = if shut { "  of those let in" } else { "" };
    let mut row = |text: &str| lines.item(text, Colour::None, 0, "");
    row(&format!(
        "  {:<width$}{:>12}{:>13}{:>10}{more}",
        "levers, in order",
        "offered/min",
        "served/min",
        "refused",
        width = NAME + 2
    ))?;
    let event = &prediction.event;
    let today = Pulled {
        name: "today".to_owned(),
        offered_per_min: event.offered_per_min,
        serviceable_per_min: event.serviceable_per_min,
        shed_share: event.shed_share,
        kept_shed_share: event.shed_share,
    };
    for line in std::iter::once(&today).chain(&prediction.levers) {
        let kept = if shut { format!("{:>17}", percent(line.kept_shed_share)) } else { String::new() };
        row(&format!(
            "    {:<NAME$}{:>12}{:>13}{:>10}{kept}",
            short(&line.name),
            number(line.offered_per_min),
            number(line.serviceable_per_min),
            percent(line.shed_share)
        ))?;
    }
    Ok(())
}

/// A name in the columns there are.
fn short(name: &str) -> String {
    let name = plain(name);
    if name.chars().count() < NAME {
        name.into_owned()
    } else {
        name.chars().take(NAME - 2).chain(['…']).collect()
    }
}

fn until(needed: &[Needed], lines: &mut Lines<'_>) -> io::Result<()> {
    let goal = percent(needed[0].shed_share);
    lines.item(
        &format!("  to refuse no more than {goal}, the other levers as they are"),
        Colour::None,
        0,
        "",
    )?;
    for it in needed {
        lines.item(&format!("    {}", short(&name(it))), Colour::None, NAME + 4, &takes(it))?;
    }
    Ok(())
}

/// What people call it.
fn name(needed: &Needed) -> String {
    if needed.lever == needed.kind { needed.kind.replace('_', " ") } else { needed.lever.clone() }
}

/// How much it takes, rounded to the side on which the goal is still reached.
fn takes(needed: &Needed) -> String {
    match needed.amount {
        None if needed.possible() => format!("nothing: {} are refused without it", percent(needed.without)),
        None => format!("can't: as far as it goes, {} are still refused", percent(needed.reached)),
        Some(Amount::Share(share)) => {
            let what = if needed.kind == "defer" {
                "put off until after the event"
            } else {
                "answered without the model"
            };
            format!("at least {} {what}", percent((share * 1_000.0).ceil() / 1_000.0))
        }
        Some(Amount::TokensPerMin(tokens)) => {
            format!("a quota of at least {} tokens a minute", thousands(above(tokens)))
        }
        Some(Amount::TokensPerRequest(tokens)) => {
            format!("at most {} tokens a request", thousands(below(tokens)))
        }
        Some(Amount::Tier(tier)) => format!("tier {tier} and those less important shut out"),
    }
}

/// The whole number above, or the one it is but for the last bits.
fn above(value: f64) -> u64 {
    (value * (1.0 - 1e-12)).ceil() as u64
}

/// The whole number below, or the one it is but for the last bits.
fn below(value: f64) -> u64 {
    (value * (1.0 + 1e-12)).floor() as u64
}
