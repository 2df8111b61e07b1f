//! `tenfold completions`: a script that teaches a shell the command line.

use clap::CommandFactory;

use super::{Cli, exit, say};

/// Print a completion script for a shell.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which shell
    shell: clap_complete::Shell,
}

impl Args {
    /// Prints it.
    pub(super) fn run(&self) -> u8 {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "tenfold", &mut script);
        say(&String::from_utf8_lossy(&script));
        exit::PASSED
    }
}
