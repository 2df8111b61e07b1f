//! The `tenfold` command; see the library for everything it does.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(tenfold::cli::run(std::env::args_os()))
}
