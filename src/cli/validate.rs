//! `tenfold validate`: is this a plan, and what does it say?

use std::path::PathBuf;

use super::{complain, exit, faults, load, say};
use crate::plan::{Plan, TargetKind};
use crate::report::TracePart;
use crate::units::show_duration;

/// Check plan files and say in a few words what they describe.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The plan files
    #[arg(required = true, value_name = "PLAN")]
    plans: Vec<PathBuf>,

    /// Change a key of each plan before it is checked: requests.0.deadline=20s
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
}

impl Args {
    /// Checks every file; one that is no plan makes the whole a usage error.
    pub(super) fn run(&self, quiet: bool) -> u8 {
        let mut code = exit::PASSED;
        for path in &self.plans {
            let file = path.display().to_string();
            match load::read(path, &self.set) {
                Ok(loaded) if quiet => drop(loaded),
                Ok(loaded) => {
                    complain(&faults::render_warnings(&file, &loaded.warnings));
                    say(&format!("{}: {}\n", faults::tame(&file), summary(&loaded.plan)));
                }
                Err(problem) => {
                    complain(&problem.render(&file));
                    code = exit::USAGE;
                }
            }
        }
        code
    }
}

/// What a plan describes, in a paragraph.
fn summary(plan: &Plan) -> String {
    let small = plan.rehearsed();
    let served =
        small.provider.quota.tokens.per_min_f64() / small.requests.mean(crate::workload::Class::hold);
    let event: Vec<String> = small
        .load
        .phases
        .iter()
        .filter(|phase| phase.event)
        .map(|phase| {
            let ratio = phase.rate.per_min_f64() / served;
            format!(
                "`{}` offers {} for {}, {ratio:.1} times capacity",
                phase.name,
                phase.rate,
                show_duration(phase.lasts)
            )
        })
        .collect();
    let event = if event.is_empty() { "no phase is an event".to_owned() } else { event.join("; ") };
    let target = match &plan.target.kind {
        TargetKind::Embedded(_) => "the embedded gateway".to_owned(),
        TargetKind::Spawn(spawn) => format!("the command `{}`", spawn.command[0]),
        TargetKind::Url { url, .. } => url.clone(),
    };
    let scale = match &plan.rehearsal {
        Some(rehearsal) => format!(" at scale {}", rehearsal.scale),
        None => String::new(),
    };
    let text = format!(
        "`{}` is a plan; a rehearsal{scale} takes {} and sends about {:.0} requests of {} to {target}; {event}",
        plan.name,
        show_duration(small.load.end().since(crate::units::Moment::ZERO)),
        small.load.expected(),
        match small.requests.classes().len() {
            1 => "one class".to_owned(),
            n => format!("{n} classes"),
        },
    );
    let trace = TracePart::of(plan).map_or_else(String::new, |trace| format!("; {}", trace.words()));
    faults::tame(&format!("{text}{trace}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_gives_the_numbers_of_the_rehearsal() {
        let text = include_str!("../../plans/flash-promotion.yaml");
        let plan = crate::plan::parse(text, &[], &|_| None).unwrap().plan;
        assert_eq!(
            summary(&plan),
            "`flash-promotion` is a plan; a rehearsal at scale 1/2 takes 2 min 10 s and sends about 1117 requests of \
             one class to the embedded gateway; `promotion` offers 1000/min for 60 s, 4.8 times capacity"
        );
    }
}
