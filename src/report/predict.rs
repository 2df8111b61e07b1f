//! A prediction as text and as JSON.

use std::io;

use super::lines::{Colour, Lines};
use super::{Style, explain, forecast_text, plain};
use crate::check::words::{number, percent, thousands};
use crate::forecast::Prediction;
use crate::forecast::levers::{Amount, Measure, Needed, Pulled};

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
    let Some(first) = needed.first() else { return Ok(()) };
    let of = match first.measure {
        Measure::KeptShedShare => " of those let in",
        Measure::ShedShare => "",
    };
    let most = percent(first.at_most);
    let title = format!("  to refuse no more than {most}{of}, the other levers as they are");
    lines.item(&title, Colour::None, 0, "")?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forecast::levers::Goal;
    use crate::plan::{Plan, parse};
    use crate::report::tests::golden;

    fn plan(overrides: &[&str]) -> Plan {
        let text = include_str!("../../plans/levers.yaml");
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        parse(text, &overrides, &|_| None).unwrap().plan
    }

    fn text(plan: &Plan, explained: bool, until: Option<(&str, Option<&str>)>) -> String {
        let until = until.map(|(goal, lever)| (Goal::parse(goal).unwrap(), lever));
        let until = until.as_ref().map(|(goal, lever)| (goal, *lever));
        let prediction = Prediction::of(plan, until).unwrap();
        let mut out = Vec::new();
        predict_text(&prediction, explained, &Style::default(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_note_on_the_plan_with_levers() {
        let note = text(&plan(&[]), true, Some(("shed_share=5%", None)));
        assert!(note.lines().all(|line| line.chars().count() <= 100), "{note}");
        golden("predict.txt", &note);
    }

    #[test]
    fn the_json_has_the_keys_scripts_read_and_reads_back() {
        let goal = Goal::parse("shed_share=5%").unwrap();
        let prediction = Prediction::of(&plan(&[]), Some((&goal, Some("a second account")))).unwrap();
        let mut out = Vec::new();
        predict_json(&prediction, false, &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["schema"], "tenfold.forecast/1");
        for key in [
            "/event/offered_per_min",
            "/event/queue_bound/effective/requests",
            "/event/onset/sd_s",
            "/event/drain/with_tail_s",
            "/event/memory/ceiling_bytes",
            "/event/unbounded/late_share",
            "/rehearsal/load_ratio",
            "/levers/0/name",
            "/levers/1/shed_share",
            "/until/0/amount/tokens_per_min",
        ] {
            assert!(json.pointer(key).is_some(), "{key} is missing");
        }
        assert!(json.get("explain").is_none());
        let back: Prediction = serde_json::from_slice(&out).unwrap();
        // numbers may differ in their last bit
        let names = |all: &[Pulled]| all.iter().map(|line| line.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&back.levers), names(&prediction.levers));
        assert_eq!((back.until.len(), back.event.warnings), (1, prediction.event.warnings.clone()));
        out.clear();
        predict_json(&prediction, true, &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert!(json["explain"].as_array().is_some_and(|all| all.len() > 8));
    }

    #[test]
    fn what_is_rounded_still_reaches_the_goal() {
        let said = |lever: &str| text(&plan(&["levers=[]"]), false, Some(("shed_share=5%", Some(lever))));
        for (lever, says) in [
            ("answer_from_cache", "at least 78.1 % answered without the model"),
            ("defer", "at least 78.1 % put off until after the event"),
            ("more_quota", "a quota of at least 2,280,000 tokens a minute"),
            ("shrink_tokens", "at most 263 tokens a request"),
            ("shed_tier", "can't: as far as it goes, 79.2 % are still refused"),
        ] {
            assert!(said(lever).contains(says), "{lever}: {}", said(lever));
        }
        let kept = text(&plan(&[]), false, Some(("kept_shed_share=5%", Some("shed_tier"))));
        assert!(kept.contains("no more than 5 % of those let in") && kept.contains("nothing: 0 %"), "{kept}");
        assert!(
            Prediction::of(&plan(&[]), Some((&Goal::parse("shed_share=5%").unwrap(), Some("x")))).is_err()
        );
    }

    #[test]
    fn a_lever_with_a_long_name_keeps_its_line() {
        let long = format!("levers.0.name={}", "x".repeat(90));
        let note = text(&plan(&[&long, "levers.3={name: all out, shed_tier: 3}"]), false, None);
        assert!(note.contains("of those let in") && note.contains("x…  "), "{note}");
        assert!(note.lines().all(|line| line.chars().count() <= 100), "{note}");
    }
}
