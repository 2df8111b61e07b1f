//! `tenfold simulate`: the whole event in virtual time.

use super::load::{self, PlanArgs};
use super::{complain, exit, faults, jobs, run, say};
use crate::admission;
use crate::check::{Judgement, Scene};
use crate::forecast::Forecast;
use crate::measure::Measures;
use crate::plan::{Loaded, Plan, Variant};
use crate::report::{Format, Inputs, Report, RoundTable, RunHeader, Table, TableRow};
use crate::simulate::{self, Agreement, Following, Summary};
use crate::units::Moment;

/// The most lines of one table.
const MOST_VARIANTS: usize = 100_000;

/// Simulate the whole event in virtual time, and judge what came of it
///
/// The plan is taken as written, not shrunk to its rehearsal. With --vary, --seeds, or variants in the plan, a table
/// shows a line for each; its verdicts make no exit code.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    plan: PlanArgs,

    /// Try each of these values: requests.0.deadline=20s,25s; repeated, every combination
    #[arg(long, value_name = "PATH=A,B,…")]
    vary: Vec<String>,

    /// Go on with the last phase's rate until the queue is empty
    #[arg(long, value_name = "drained", value_parser = ["drained"])]
    until: Option<String>,

    /// Try so many seeds, from the plan's own on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,

    /// Simulate so many lines of a table at once; as many as there are cores unless given. The result is the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_024))]
    jobs: Option<u16>,

    /// The form of the result on stdout; tables are text or json
    #[arg(long, default_value = "text", value_parser = run::format)]
    format: &'static Format,
}

/// A line of the table: its name, the variant of the plan, and overrides.
struct Line<'p> {
    name: String,
    variant: Option<&'p Variant>,
    set: Vec<String>,
}

impl Args {
    /// Simulates; gives the exit code.
    pub(super) fn run(&self, quiet: bool) -> u8 {
        self.simulate(quiet).unwrap_or_else(|message| {
            complain(&message);
            exit::USAGE
        })
    }

    fn simulate(&self, quiet: bool) -> Result<u8, String> {
        let file = self.plan.file();
        let text = load::text(&self.plan.plan).map_err(|problem| problem.render(&file))?;
        let base = load::parse(&self.plan.plan, &text, None, &self.plan.set)
            .map_err(|problem| problem.render(&file))?;
        if !quiet {
            complain(&faults::render_warnings(&file, &base.warnings));
        }
        let grid = self.grid()?;
        if grid.len() == 1 && base.plan.variants.is_empty() && self.seeds == 1 {
            return if base.plan.load.arrivals.rounds().is_some() {
                self.rounds(
                    &base,
                    &text,
                    &[Line { name: "as planned".to_owned(), variant: None, set: Vec::new() }],
                )
            } else {
                self.one(base.plan)
            };
        }
        let lines = lines(&base.plan.variants, &grid)?;
        if base.plan.load.arrivals.rounds().is_some() {
            return self.rounds(&base, &text, &lines);
        }
        let seeds = 0..self.seeds;
        let runs: Vec<(&Line<'_>, u64)> =
            lines.iter().flat_map(|line| seeds.clone().map(move |n| (line, n))).collect();
        let run = |(line, n): &(&Line<'_>, u64)| -> Result<_, String> {
            let mut plan = self.variant(&text, line)?;
            plan.load.seed = plan.load.seed.wrapping_add(*n);
            let (plan, measures) = self.evaluate(plan)?;
            Ok((Summary::of(&measures), judge(&plan, &Forecast::of(&plan), &measures, None).verdict))
        };
        let mut runs = jobs::each(self.jobs(), &runs, run)?.into_iter();
        let row = |line: &Line<'_>| TableRow {
            name: line.name.clone(),
            runs: seeds.clone().zip(&mut runs).map(|(_, run)| run).collect(),
        };
        let rows = lines.iter().map(row).collect();
        let table = Table { plan: base.plan.name, rows };
        self.show(|out| table.text(&run::style(), out), || table.json())
    }

    /// One run with its report.
    fn one(&self, plan: Plan) -> Result<u8, String> {
        let event = Forecast::of(&plan);
        let (plan, policy) = self.settled(plan)?;
        // without faults its verdicts are the policy's own
        let following = if policy.faults.is_empty() { None } else { Following::of(&plan) };
        let (measures, agreement) = match following {
            Some(following) => {
                let (measures, _, agreement) = simulate::measure_beside(&plan, &policy, &following);
                (measures, Some(agreement))
            }
            None => (simulate::measure(&plan, &policy).0, None),
        };
        let forecast = Forecast::of(&plan);
        let judgement = judge(&plan, &forecast, &measures, agreement.as_ref());
        let report = Report::of(Inputs {
            header: RunHeader {
                id: "simulated".to_owned(),
                simulated: true,
                started: String::new(),
                took: measures.end.since(Moment::ZERO),
                target: "the declared policy in virtual time".to_owned(),
                name: None,
                generator: None,
                ended_early: None,
                path: None,
            },
            plan: &plan,
            event: &event,
            rehearsal: &forecast,
            measures: &measures,
            judgement: &judgement,
            refusals: Vec::new(),
        });
        let mut text = Vec::new();
        (self.format.render)(&report, &run::style(), &mut text).map_err(|e| format!("error: {e}\n"))?;
        run::print(&text);
        Ok(report.verdict.exit_code())
    }

    /// Gates that work in rounds.
    fn rounds(&self, base: &Loaded, text: &str, lines: &[Line<'_>]) -> Result<u8, String> {
        let count = |plan: &Plan| {
            let policy = plan.policy().ok_or_else(|| self.undeclared())?;
            simulate::rounds(plan, policy).map_err(|error| self.failed(&error))
        };
        let row = |line: &Line<'_>| -> Result<_, String> {
            Ok((line.name.clone(), count(&self.variant(text, line)?)?))
        };
        let rows = jobs::each(self.jobs(), lines, row)?;
        let table = RoundTable { plan: base.plan.name.clone(), usual: count(&base.plan)?, rows };
        self.show(|out| table.text(&run::style(), out), || table.json())
    }

    fn jobs(&self) -> usize {
        self.jobs.map_or_else(jobs::standard, usize::from)
    }

    /// The plan of a line, with the changes of the command line.
    fn variant(&self, text: &str, line: &Line<'_>) -> Result<Plan, String> {
        let set = [&self.plan.set[..], &line.set].concat();
        let loaded = load::parse(&self.plan.plan, text, line.variant, &set);
        loaded.map(|loaded| loaded.plan).map_err(|problem| problem.render(&self.plan.file()))
    }

    /// Simulates `plan`, and gives it back as it was simulated.
    fn evaluate(&self, plan: Plan) -> Result<(Plan, Measures), String> {
        let (plan, policy) = self.settled(plan)?;
        let (measures, _) = simulate::measure(&plan, &policy);
        Ok((plan, measures))
    }

    /// `plan` as it is simulated, and the policy it is simulated under.
    fn settled(&self, plan: Plan) -> Result<(Plan, admission::Config), String> {
        let policy = plan.policy().cloned().ok_or_else(|| self.undeclared())?;
        let plan = match self.until {
            Some(_) => simulate::until_drained(&plan, &policy).map_err(|error| self.failed(&error))?,
            None => plan,
        };
        Ok((plan, policy))
    }

    /// What is tried: every combination of the values of `--vary`, a single empty one without.
    fn grid(&self) -> Result<Vec<Vec<String>>, String> {
        let mut grid = vec![Vec::new()];
        for text in &self.vary {
            let told = || {
                format!("--vary {}: write PATH=A,B such as requests.0.deadline=20s,25s\n", faults::tame(text))
            };
            let (path, values) =
                text.split_once('=').filter(|(path, _)| !path.is_empty()).ok_or_else(told)?;
            let values = split(values);
            if values.iter().any(|value| value.trim().is_empty()) {
                return Err(told());
            }
            let longer = grid.iter().flat_map(|set: &Vec<String>| {
                values.iter().map(move |value| [&set[..], &[format!("{path}={}", value.trim())]].concat())
            });
            grid = longer.collect();
            if grid.len() > MOST_VARIANTS {
                return Err(format!("--vary: more than {MOST_VARIANTS} combinations\n"));
            }
        }
        Ok(grid)
    }

    /// Prints a table in the form that was asked for.
    fn show(
        &self,
        text: impl Fn(&mut dyn std::io::Write) -> std::io::Result<()>,
        json: impl Fn() -> serde_json::Value,
    ) -> Result<u8, String> {
        match self.format.name {
            "json" => say(&format!("{:#}\n", json())),
            "text" => {
                let mut out = Vec::new();
                text(&mut out).map_err(|e| format!("error: {e}\n"))?;
                run::print(&out);
            }
            other => return Err(format!("--format {other}: a table is text or json\n")),
        }
        Ok(exit::PASSED)
    }

    fn undeclared(&self) -> String {
        format!(
            "{}: target.policy: what this gateway decides by is not declared, so it cannot be simulated; write it under \
             `target.policy`, in the keys of `target.embedded`\n",
            faults::tame(&self.plan.file())
        )
    }

    fn failed(&self, error: &dyn std::error::Error) -> String {
        format!("{}: {error}\n", faults::tame(&self.plan.file()))
    }
}

fn judge(plan: &Plan, forecast: &Forecast, measures: &Measures, agreement: Option<&Agreement>) -> Judgement {
    Judgement::of(&Scene::simulated(plan, forecast, measures).beside(agreement), false)
}

/// The lines of a table: every variant of the plan with every combination.
fn lines<'p>(variants: &'p [Variant], grid: &[Vec<String>]) -> Result<Vec<Line<'p>>, String> {
    let own = variants.iter().map(Some);
    let variants: Vec<Option<&Variant>> = if variants.is_empty() { vec![None] } else { own.collect() };
    if variants.len() * grid.len() > MOST_VARIANTS {
        return Err(format!("more than {MOST_VARIANTS} lines: fewer variants or values\n"));
    }
    let named = |variant: Option<&Variant>, set: &[String]| {
        let parts: Vec<String> =
            variant.map(|variant| variant.name.clone()).into_iter().chain(set.iter().cloned()).collect();
        if parts.is_empty() { "as planned".to_owned() } else { parts.join(" ") }
    };
    let line = |variant: Option<&'p Variant>, set: &Vec<String>| Line {
        name: named(variant, set),
        variant,
        set: set.clone(),
    };
    Ok(variants.iter().flat_map(|variant| grid.iter().map(move |set| line(*variant, set))).collect())
}

/// Splits at the commas that stand in no list, map or quotes.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start, mut parts) = (0u32, None, 0, Vec::new());
    for (at, sign) in text.char_indices() {
        match (quote, sign) {
            (Some(open), _) if sign == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(sign),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_split_at_their_own_commas_only() {
        assert_eq!(split("20s,25s"), ["20s", "25s"]);
        assert_eq!(split("none,{ tokens: [1, 2] },\"a,b\""), ["none", "{ tokens: [1, 2] }", "\"a,b\""]);
        assert_eq!(split(""), [""]);
    }
}
