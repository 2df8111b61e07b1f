//! The command line: one file a subcommand, each of which gives back an exit code.
//!
//! Results go to stdout, everything else to stderr. To add a subcommand: one file with an `Args` and its `run`, a
//! variant of `Command` and an arm in `Cli::run`.

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

mod completions;
mod dashboard;
mod diff;
pub mod exit;
pub mod faults;
mod header;
mod jobs;
mod list;
pub mod load;
mod predict;
mod progress;
mod report;
mod reports;
mod run;
mod schema;
mod selftest;
pub mod serve;
mod signals;
mod simulate;
mod validate;

/// Rehearse the day an LLM gateway gets ten times its traffic: tenfold plays the callers and the provider behind it.
#[derive(Debug, Parser)]
#[command(name = "tenfold", version, max_term_width = 100, after_help = exit::help())]
pub struct Cli {
    /// Print results and errors only
    #[arg(short, long, global = true)]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Completions(completions::Args),
    Diff(diff::Args),
    List(list::Args),
    Predict(predict::Args),
    Report(report::Args),
    Run(run::Args),
    Schema(schema::Args),
    Selftest(selftest::Args),
    Serve(serve::ServeArgs),
    Simulate(simulate::Args),
    Validate(validate::Args),
}

impl Cli {
    fn run(self) -> u8 {
        match self.command {
            Command::Completions(args) => args.run(),
            Command::Diff(args) => args.run(),
            Command::List(args) => args.run(),
            Command::Predict(args) => args.run(self.quiet),
            Command::Report(args) => args.run(),
            Command::Run(args) => args.run(self.quiet),
            Command::Schema(args) => args.run(),
            Command::Selftest(args) => args.run(self.quiet),
            Command::Serve(args) => args.run(self.quiet),
            Command::Simulate(args) => args.run(self.quiet),
            Command::Validate(args) => args.run(self.quiet),
        }
    }
}

/// Runs the command line `args`, the program's name first, and gives back the exit code.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    match Cli::try_parse_from(args) {
        Ok(cli) => cli.run(),
        Err(told) => {
            // help and version are asked for and no error; where they cannot be printed there is no one to tell
            let _ = told.print();
            u8::try_from(told.exit_code()).unwrap_or(exit::USAGE)
        }
    }
}

/// Prints a result. A reader that has gone away (`| head`) is no error.
pub(crate) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Tells the user something that is no result.
pub(crate) fn complain(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
