//! `tenfold diff`: whether the new build is worse than the old one.

use super::run::style;
use super::{complain, exit, faults, reports, say};
use crate::diff::Comparison;
use crate::report::comparison::{self, Form};

/// Compare the reports of two builds: is the new one worse, by more than chance and the plan's tolerance?
///
/// A side is a report.json, a directory that is searched for them, or several of either with commas between. Five runs
/// a side (`tenfold run --repeat 5`) can tell a change from chance; fewer tell only whether a check broke. Exit code 1
/// is a regression, 5 two sides that are not comparable.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The old build's report, directory or list
    base: String,

    /// The new build's
    new: String,

    /// The form of the result on stdout
    #[arg(long, default_value = "text", value_parser = form)]
    format: &'static Form,

    /// A key of the plan, a measure or a check that may differ or be missing; a part of the plan stands for all its keys
    #[arg(long, value_name = "KEY")]
    allow: Vec<String>,
}

impl Args {
    /// Compares; gives the exit code.
    pub(super) fn run(&self) -> u8 {
        let (base, new) = match (reports::side(&self.base), reports::side(&self.new)) {
            (Ok(base), Ok(new)) => (base, new),
            (Err(why), _) | (_, Err(why)) => {
                complain(&format!("error: {}\n", faults::tame(&why)));
                return exit::USAGE;
            }
        };
        let comparison = Comparison::of(&base, &new, &self.allow);
        let mut text = Vec::new();
        if let Err(why) = (self.format.render)(&comparison, &style(), &mut text) {
            complain(&format!("error: the comparison cannot be written: {why}\n"));
            return exit::COULD_NOT_RUN;
        }
        say(&String::from_utf8_lossy(&text));
        comparison.verdict.exit_code()
    }
}

fn form(name: &str) -> Result<&'static Form, String> {
    comparison::find(name).ok_or_else(|| {
        let known: Vec<_> = comparison::ALL.iter().map(|form| form.name).collect();
        format!("known: {}", known.join(", "))
    })
}
