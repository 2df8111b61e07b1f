//! `tenfold predict`: what arithmetic says of a plan, before a single request is sent.

use super::load::PlanArgs;
use super::{complain, exit, faults, run, say};
use crate::forecast::Prediction;
use crate::forecast::levers::Goal;
use crate::report;

/// Say what will happen: how much is refused, from which depth, how long the backlog lasts, what helps.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    plan: PlanArgs,

    /// How the answer is written
    #[arg(long, value_enum, default_value = "text")]
    format: Format,

    /// Show the formula behind each number, with the plan's numbers put in
    #[arg(long)]
    explain: bool,

    /// Say how much of a lever a goal takes: shed_share=5%
    #[arg(long, value_name = "GOAL", value_parser = Goal::parse)]
    until: Option<Goal>,

    /// The lever to reach the goal by, by its name in the plan or by its kind; without it each of them
    #[arg(long, value_name = "NAME", requires = "until")]
    lever: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A note for people
    Text,
    /// For scripts (tenfold.forecast/1)
    Json,
}

impl Args {
    /// Predicts and prints.
    pub(super) fn run(&self, quiet: bool) -> u8 {
        let loaded = match self.plan.load(quiet) {
            Ok(loaded) => loaded,
            Err(code) => return code,
        };
        let until = self.until.as_ref().map(|goal| (goal, self.lever.as_deref()));
        let prediction = match Prediction::of(&loaded.plan, until) {
            Ok(prediction) => prediction,
            Err(message) => {
                complain(&format!("{}\n", faults::tame(&message)));
                return exit::USAGE;
            }
        };
        let mut out = Vec::new();
        let written = match self.format {
            Format::Text => report::predict_text(&prediction, self.explain, &run::style(), &mut out),
            Format::Json => report::predict_json(&prediction, self.explain, &mut out),
        };
        written.expect("writing to memory cannot fail, and no number of a forecast is out of JSON's range");
        say(&String::from_utf8_lossy(&out));
        exit::PASSED
    }
}
