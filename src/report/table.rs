//! Variants of a plan side by side: one line each, for people and as JSON.

use std::io;

use serde_json::{Map, Value, json};

use super::lines::{Colour, Lines};
use super::{Style, plain};
use crate::check::RunVerdict;
use crate::check::words::{number, thousands};
use crate::simulate::{COLUMNS, Rounds, Summary};

/// A variant and what became of it, once for each seed.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// What tells it from the others.
    pub name: String,
    /// What each of its runs came to.
    pub runs: Vec<(Summary, RunVerdict)>,
}

/// Variants of a plan side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The plan's name.
    pub plan: String,
    /// One row for each variant.
    pub rows: Vec<TableRow>,
}

/// Mean, least and most of a column over the seeds; `None` where no run has a number.
fn spread(row: &TableRow, column: usize) -> Option<(f64, f64, f64)> {
    let values: Vec<f64> = row.runs.iter().filter_map(|(summary, _)| summary.0[column]).collect();
    let sum: f64 = values.iter().sum();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (!values.is_empty()).then(|| (sum / values.len() as f64, least, most))
}

/// `passed`, or `3 of 5 passed`.
fn verdicts(row: &TableRow) -> String {
    let first = row.runs.first().map_or("", |(_, verdict)| verdict.name());
    if row.runs.iter().all(|(_, verdict)| verdict.name() == first) {
        return first.to_owned();
    }
    let passed = row.runs.iter().filter(|(_, verdict)| *verdict == RunVerdict::Passed).count();
    format!("{passed} of {} passed", row.runs.len())
}

impl Table {
    /// The table for people; columns that are nothing everywhere are left out.
    pub fn text(&self, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
        let shown: Vec<usize> = (0..COLUMNS.len())
            .filter(|at| self.rows.iter().any(|row| spread(row, *at).is_some_and(|(_, _, most)| most > 0.0)))
            .collect();
        let head = ["variant".to_owned()]
            .into_iter()
            .chain(shown.iter().map(|at| COLUMNS[*at].name.replace('_', " ")))
            .chain(["verdict".to_owned()]);
        let mut lines = vec![head.collect::<Vec<_>>()];
        for row in &self.rows {
            let cell = |at: &usize| match spread(row, *at) {
                None => "–".to_owned(),
                Some((mean, least, most)) if most - least < 1e-9 => number(mean),
                Some((mean, least, most)) => {
                    format!("{} [{}, {}]", number(mean), number(least), number(most))
                }
            };
            let cells = std::iter::once(row.name.clone()).chain(shown.iter().map(cell));
            lines.push(cells.chain([verdicts(row)]).collect());
        }
        columns(&lines, style, out)
    }

    /// The table for scripts.
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let values = COLUMNS.iter().enumerate().map(|(at, column)| {
                let value = spread(row, at)
                    .map_or(Value::Null, |(mean, min, max)| json!({ "mean": mean, "min": min, "max": max }));
                (column.name.to_owned(), value)
            });
            let verdicts: Vec<_> = row.runs.iter().map(|(_, verdict)| verdict.name()).collect();
            json!({ "name": row.name, "verdicts": verdicts, "values": values.collect::<Map<_, _>>() })
        });
        json!({ "schema": "tenfold.table/1", "plan": self.plan, "rows": rows.collect::<Vec<_>>() })
    }
}

/// Gates that work in rounds, side by side.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundTable {
    /// The plan's name.
    pub plan: String,
    /// The plan as it stands.
    pub usual: Rounds,
    /// Variants by name.
    pub rows: Vec<(String, Rounds)>,
}

impl RoundTable {
    /// The table for people.
    pub fn text(&self, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
        let usual = &self.usual;
        let mut about = Lines::new(out, *style);
        let demand = match usual.capacity_units {
            Some(capacity) => format!(
                "{} rounds; capacity {} units a round, usual demand {:.2} ({:.1} %)",
                thousands(usual.rounds),
                thousands(capacity),
                usual.usual_units,
                usual.usual_units / capacity.max(1) as f64 * 100.0
            ),
            None => format!("{} rounds; usual demand {:.2} units a round", usual.rounds, usual.usual_units),
        };
        about.item(&self.plan, Colour::None, self.plan.chars().count() + 2, &demand)?;
        let flow = |class: &crate::simulate::RoundClass| {
            format!(
                "{} (tier {}, {} {}, {:.2} a round)",
                class.name,
                class.tier,
                class.units,
                if class.units == 1 { "unit" } else { "units" },
                class.usual_per_round
            )
        };
        let flows: Vec<_> = usual.classes.iter().map(flow).collect();
        about.item("flows", Colour::None, 7, &flows.join(", "))?;
        about.blank()?;
        let names: Vec<_> = usual.classes.iter().map(|class| class.name.as_str()).collect();
        let head = [
            "variant",
            &format!("accepted {}", names.join("/")),
            "throttled",
            "shed",
            "evicted",
            "oldest age",
            "backlog",
            "pending age",
            "rejected",
            "a round",
            "kept a round",
            "of usual",
        ];
        let mut lines = vec![head.map(str::to_owned).to_vec()];
        lines.extend(self.rows.iter().map(|(name, rounds)| cells(name, rounds)));
        columns(&lines, style, out)?;
        let mut about = Lines::new(out, *style);
        about.blank()?;
        about.item(
            "kept",
            Colour::None,
            6,
            "what was accepted of all tiers but the least important, a round, and its share of what they usually send; \
             ages are in rounds, the backlog in units",
        )
    }

    /// The table for scripts.
    pub fn json(&self) -> Value {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|(name, rounds)| {
                let (per_round, share) = rounds.kept();
                json!({
                    "name": name,
                    "rounds": rounds,
                    "rejected": rounds.rejected(),
                    "kept_per_round": per_round,
                    "kept_share": share,
                })
            })
            .collect();
        json!({ "schema": "tenfold.rounds/1", "plan": self.plan, "usual": self.usual, "rows": rows })
    }
}

fn cells(name: &str, rounds: &Rounds) -> Vec<String> {
    let each = |value: fn(&crate::simulate::RoundClass) -> u64| {
        rounds.classes.iter().map(|class| value(class).to_string()).collect::<Vec<_>>().join("/")
    };
    let (kept, share) = rounds.kept();
    vec![
        name.to_owned(),
        each(|class| class.accepted),
        each(|class| class.throttled),
        each(|class| class.shed),
        each(|class| class.evicted),
        rounds.oldest_age_rounds.to_string(),
        rounds.backlog_units.to_string(),
        rounds.pending_age_rounds.to_string(),
        rounds.rejected().to_string(),
        format!("{:.2}", rounds.rejected() as f64 / rounds.rounds.max(1) as f64),
        // half a hundredth is rounded down, as the nearest float of 480.405 is
        format!("{kept:.2}"),
        format!("{share:.4}"),
    ]
}

/// Lines in columns: the first to the left, the others to the right.
fn columns(lines: &[Vec<String>], style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let count = lines.iter().map(Vec::len).max().unwrap_or_default();
    let lines: Vec<Vec<String>> =
        lines.iter().map(|line| line.iter().map(|cell| plain(cell).into_owned()).collect()).collect();
    let width = |at: usize| lines.iter().filter_map(|l| l.get(at)).map(|c| c.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|at| width(at).unwrap_or_default()).collect();
    for (n, line) in lines.iter().enumerate() {
        let mut text = String::new();
        for (cell, (at, width)) in line.iter().zip(widths.iter().enumerate()) {
            let gap = width - cell.chars().count();
            text += &if at == 0 { format!("{cell}{:gap$}", "") } else { format!("  {:gap$}{cell}", "") };
        }
        let (bold, off) = if n == 0 && style.colour { ("\u{1b}[1m", "\u{1b}[0m") } else { ("", "") };
        writeln!(out, "{bold}{}{off}", text.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::testing;
    use crate::simulate;

    #[test]
    fn a_table_has_a_line_each_and_shows_the_spread_of_seeds() {
        let plan = testing::plan();
        let run = |seed| {
            let mut plan = plan.clone();
            plan.load.seed = seed;
            plan.load.arrivals = testing::read(&testing::text("poisson"));
            let (measures, _) = simulate::measure(&plan, plan.policy().unwrap());
            (Summary::of(&measures), RunVerdict::Passed)
        };
        let rows = vec![
            TableRow { name: "one".into(), runs: vec![run(1)] },
            TableRow { name: "three\u{1b}[2J".into(), runs: vec![run(1), run(2), run(3)] },
        ];
        let table = Table { plan: "p".into(), rows };
        let mut out = Vec::new();
        table.text(&Style::default(), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("variant") && !lines[0].contains("throttled"), "{text}");
        assert!(!lines[1].contains('[') && lines[2].contains('[') && !text.contains('\u{1b}'), "{text}");
        let json = table.json();
        assert_eq!(json["rows"][1]["verdicts"].as_array().unwrap().len(), 3);
        let offered = &json["rows"][1]["values"]["offered"];
        assert!(offered["min"].as_f64() < offered["mean"].as_f64());
        assert!(json["rows"][0]["values"]["throttled"]["mean"].as_f64() == Some(0.0));
    }

    #[test]
    fn mixed_verdicts_are_counted() {
        let row = |verdicts: &[RunVerdict]| TableRow {
            name: String::new(),
            runs: verdicts.iter().map(|verdict| (Summary(Vec::new()), *verdict)).collect(),
        };
        assert_eq!(verdicts(&row(&[RunVerdict::Failed])), "failed");
        let mixed = [RunVerdict::Passed, RunVerdict::Failed, RunVerdict::Passed];
        assert_eq!(verdicts(&row(&mixed)), "2 of 3 passed");
    }
}
