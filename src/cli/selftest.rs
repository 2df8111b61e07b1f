//! `tenfold selftest`: what can this machine keep up with?

use std::fs;
use std::path::{Path, PathBuf};

use super::{complain, exit, faults, say};
use crate::live::Scheduling;
use crate::live::selftest::{Kept, Limits};
use crate::plan::Plan;

/// The largest file of limits that is read.
const MOST: u64 = 64 << 10;

/// Find what this machine can keep up with, and store it, so that `run` refuses a plan beyond it
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Find what this machine can keep up with: the highest rate of the generator with each sender over \
each version of HTTP, and of the provider with each engine. It takes about a minute and a half, on loopback only. The result is stored where `tenfold run` finds it \
($XDG_CACHE_HOME/tenfold/limits.json, or ~/.cache/tenfold/limits.json); a plan beyond it is refused before it runs, unless \
--beyond-limits is given."
)]
pub(super) struct Args {
    /// Store the result in this file instead; `run` reads it with TENFOLD_LIMITS
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Finds the limits, stores and prints them; gives the exit code.
    pub(super) fn run(&self, quiet: bool) -> u8 {
        let Some(file) = self.output.clone().or_else(place) else {
            complain(
                "error: there is no home directory to store the result in: name a file with --output FILE\n",
            );
            return exit::USAGE;
        };
        let found = Limits::find(&mut |what| {
            if !quiet {
                complain(&format!("trying {what}\n"));
            }
        });
        let limits = match found {
            Ok(limits) => limits,
            Err(error) => {
                complain(&format!("error: {}\n", faults::tame(&error.to_string())));
                return exit::COULD_NOT_RUN;
            }
        };
        let text = serde_json::to_string_pretty(&limits).unwrap_or_default();
        if let Err(error) = store(&file, &text) {
            complain(&format!("error: the result cannot be stored in {}: {error}\n", file.display()));
            return exit::COULD_NOT_RUN;
        }
        say(&if self.json { format!("{text}\n") } else { table(&limits, &file) });
        exit::PASSED
    }
}

/// Where limits are stored and looked for: `$TENFOLD_LIMITS`, or `tenfold/limits.json` in the user's cache.
fn place() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = || named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    named("TENFOLD_LIMITS").or_else(|| cache().map(|cache| cache.join("tenfold").join("limits.json")))
}

fn store(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(file, format!("{text}\n"))
}

/// Why `plan`, as it is rehearsed, is beyond what `selftest` found on this machine, if it found anything.
pub(super) fn beyond(plan: &Plan, forwarded: f64) -> Option<String> {
    let file = place()?;
    let short = fs::metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() <= MOST);
    let text = short.then(|| fs::read_to_string(&file).ok()).flatten()?;
    let limits: Limits = match serde_json::from_str(&text) {
        Ok(limits) => limits,
        Err(error) => {
            complain(&format!(
                "warning: {} is no result of `tenfold selftest` and is not used: {}\n",
                file.display(),
                faults::tame(&error.to_string())
            ));
            return None;
        }
    };
    let why = limits.exceeded_by(plan, forwarded)?;
    if !limits.fit_here() {
        complain(&format!(
            "warning: {} was found on {} cores with scheduling `{}`, which is not this machine as it is now; by it, {why}; \
             `tenfold selftest` finds it anew\n",
            file.display(),
            limits.cores,
            faults::tame(&limits.scheduling)
        ));
        return None;
    }
    Some(format!(
        "this plan is beyond what this machine keeps up with: {why}; --beyond-limits goes on all the same\n\
         (found by `tenfold selftest` at {}, in {})",
        faults::tame(&limits.measured),
        file.display()
    ))
}

fn table(limits: &Limits, file: &Path) -> String {
    let micros = |us: u64| format!("{:.2} ms", us as f64 / 1e3);
    let row = |what: &str, kept: &Kept| {
        let deviation = kept.deviation_p99_us.map_or_else(|| "-".to_owned(), micros);
        let then = kept.then.as_deref().unwrap_or("no higher rate was tried");
        format!(
            "  {what:<27} {:>9}/s {:>10} {:>10} {:>10}   {}\n",
            kept.rate_per_s,
            micros(kept.lag_p99_us),
            deviation,
            kept.gaps_us.map_or_else(|| "-".to_owned(), |(_, p99)| micros(p99)),
            faults::tame(then)
        )
    };
    let mut text = format!(
        "  {:<27} {:>11} {:>10} {:>10} {:>10}   then\n",
        "", "keeps up to", "lag p99", "deviation", "gaps p99"
    );
    for kept in &limits.generator {
        text.push_str(&row(&format!("generator, {}, HTTP/{}", kept.name, kept.http), kept));
    }
    for kept in &limits.provider {
        text.push_str(&row(&format!("provider, {}", kept.name), kept));
    }
    let scheduling = faults::tame(&limits.scheduling);
    let more = if scheduling == Scheduling::RealTime.to_string() {
        ""
    } else {
        "; a user that may schedule in real time (CAP_SYS_NICE, or an rtprio limit) sends more evenly"
    };
    text.push_str(&format!(
        "\n  {} cores, scheduling {scheduling}{more}; stored in {}\n",
        limits.cores,
        file.display()
    ));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_each_limit_and_where_it_is_kept() {
        let kept = |name: &str, rate_per_s| Kept {
            name: name.into(),
            http: 1,
            rate_per_s,
            lag_p99_us: 310,
            deviation_p99_us: Some(120),
            gaps_us: Some((40, 250)),
            then: Some("6000/s: lag p99 4.0 ms".into()),
        };
        let limits = Limits {
            schema: "tenfold.limits/2".into(),
            measured: "2026-11-30T12:00:00Z".into(),
            cores: 2,
            scheduling: "real-time".into(),
            generator: vec![kept("hyper", 5_000)],
            provider: vec![Kept { deviation_p99_us: None, then: None, ..kept("wiremock", 4_000) }],
        };
        let text = table(&limits, Path::new("/x/limits.json"));
        let generator = "  generator, hyper, HTTP/1         5000/s    0.31 ms    0.12 ms    0.25 ms   6000/s: lag p99 4.0 ms\n";
        assert!(text.contains(generator), "{text}");
        assert!(
            text.contains("provider, wiremock")
                && text.contains("no higher rate was tried")
                && text.ends_with("  2 cores, scheduling real-time; stored in /x/limits.json\n"),
            "{text}"
        );
        let text = table(&Limits { scheduling: "nice -10".into(), ..limits }, Path::new("/x/limits.json"));
        assert!(
            text.contains("2 cores, scheduling nice -10; a user that may schedule in real time"),
            "{text}"
        );
    }
}
