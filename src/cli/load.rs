//! Reading a plan for a command: the file, `--set`, the environment, and whether the target may be called.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{complain, exit, faults};
use crate::plan::address::Address;
use crate::plan::{self, Loaded, Plan, TargetKind, Variant, yaml};
use crate::units::Fault;

/// The plan a command works on, and what the command line changes of it.
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// The plan file
    pub plan: PathBuf,

    /// Change a key of the plan: requests.0.deadline=20s; lists by index or by name
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub set: Vec<String>,
}

/// Which target is tried instead of the plan's own, and the word that allows it.
#[derive(Debug, clap::Args)]
pub struct TargetArgs {
    /// Try what runs at this address instead of the plan's target
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,

    /// The host of a target that is not this machine, named once more to show that it is meant
    #[arg(long, value_name = "HOST")]
    pub confirm_target: Option<String>,
}

impl PlanArgs {
    /// The name of the file as messages show it.
    pub fn file(&self) -> String {
        self.plan.display().to_string()
    }

    /// The plan. What is wrong with it is told on stderr, and the exit code given back; warnings are told too.
    pub fn load(&self, quiet: bool) -> Result<Loaded, u8> {
        self.load_with(&[], quiet)
    }

    /// The plan with `target` in place of its own, if it names one. A target that is not this machine must be confirmed.
    pub fn load_for(&self, target: &TargetArgs, quiet: bool) -> Result<Loaded, u8> {
        let change = target.target.iter().map(|url| format!("target.url={}", quoted(url)));
        let loaded = self.load_with(&change.collect::<Vec<_>>(), quiet)?;
        if let Err(message) = confirm(&loaded.plan, target.confirm_target.as_deref()) {
            complain(&format!("{}\n", faults::tame(&message)));
            return Err(exit::USAGE);
        }
        Ok(loaded)
    }

    fn load_with(&self, more: &[String], quiet: bool) -> Result<Loaded, u8> {
        let file = self.file();
        match read(&self.plan, &[&self.set[..], more].concat()) {
            Ok(loaded) => {
                if !quiet {
                    complain(&faults::render_warnings(&file, &loaded.warnings));
                }
                Ok(loaded)
            }
            Err(problem) => {
                complain(&problem.render(&file));
                Err(exit::USAGE)
            }
        }
    }
}

/// Why there is no plan.
#[derive(Debug)]
pub enum Problem {
    /// The file cannot be read.
    File(std::io::Error),
    /// Its text is no plan.
    Faults(Vec<Fault>),
}

impl Problem {
    /// The lines that tell it, for the file called `file`.
    pub fn render(&self, file: &str) -> String {
        match self {
            Self::File(error) => format!("{}: the plan cannot be read: {error}\n", faults::tame(file)),
            Self::Faults(list) => faults::render(file, list),
        }
    }
}

/// Reads the plan at `path` with `overrides`, and variables from the environment of this process.
pub fn read(path: &Path, overrides: &[String]) -> Result<Loaded, Problem> {
    parse(path, &text(path)?, None, overrides)
}

/// Reads the plan in `text`, a variant of it if one is given. The file of a trace lies where its plan at `path` does, if
/// its name is no absolute one.
pub fn parse(
    path: &Path,
    text: &str,
    variant: Option<&Variant>,
    overrides: &[String],
) -> Result<Loaded, Problem> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let open = |name: &str| -> Result<Box<dyn BufRead>, String> {
        let file = folder.join(name);
        let opened = std::fs::File::open(&file);
        let plain = opened
            .and_then(|opened| if opened.metadata()?.is_dir() { Err(is_a_folder()) } else { Ok(opened) });
        let opened = plain.map_err(|e| format!("{} cannot be read: {e}", file.display()))?;
        Ok(Box::new(BufReader::with_capacity(1 << 16, opened)))
    };
    plan::parse_with(text, variant, overrides, &|name| std::env::var(name).ok(), &open)
        .map_err(Problem::Faults)
}

fn is_a_folder() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::IsADirectory, "it is a folder")
}

/// The text of the plan at `path`.
pub fn text(path: &Path) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    // one letter more than is allowed shows that there are too many, however long the file is
    let most = yaml::MOST_BYTES as u64 + 4;
    let file = std::fs::File::open(path).map_err(Problem::File)?;
    file.take(most).read_to_end(&mut bytes).map_err(Problem::File)?;
    let whole = if bytes.len() > yaml::MOST_BYTES { cut_at_char(&bytes) } else { &bytes };
    yaml::decode(whole).map(str::to_owned).map_err(|fault| Problem::Faults(vec![fault]))
}

/// A text too long to be read, without the part of a letter its last byte may be.
fn cut_at_char(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// A URL as a YAML text.
fn quoted(url: &str) -> String {
    format!("'{}'", url.replace('\'', "''"))
}

/// Whether every address of the target is this machine's own, or `confirmed` by name.
fn confirm(plan: &Plan, confirmed: Option<&str>) -> Result<(), String> {
    let urls: Vec<&str> = match &plan.target.kind {
        TargetKind::Embedded(_) => Vec::new(),
        TargetKind::Spawn(spawn) => vec![&spawn.ready, &spawn.url],
        TargetKind::Url { url, .. } => vec![url],
    };
    // a page of metrics is read four times a second, and not overloaded: it needs no word
    for url in urls {
        let address = Address::parse_or_free(url)?;
        let host = address.host.trim_start_matches('[').trim_end_matches(']');
        let meant = confirmed.is_some_and(|name| name.trim_matches(['[', ']']).eq_ignore_ascii_case(host));
        if !address.is_loopback() && !meant {
            return Err(format!(
                "the target {host} is not this machine: a rehearsal overloads it; add `--confirm-target {host}` if it is meant"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn confirmed(target: &str, host: Option<&str>) -> Result<(), String> {
        let overrides = [format!("target.url={}", quoted(target))];
        let text = include_str!("../../plans/smoke.yaml");
        let loaded = plan::parse(text, &overrides, &|_| None).unwrap();
        confirm(&loaded.plan, host)
    }

    #[test]
    fn only_this_machine_is_called_unasked() {
        for own in ["http://127.0.0.1:9/", "http://127.9.9.9", "http://[::1]:80", "http://LOCALHOST:1"] {
            assert_eq!(confirmed(own, None), Ok(()), "{own}");
        }
        for other in ["http://192.0.2.1/", "http://127.0.0.1.example", "http://0.0.0.0", "http://[::2]"] {
            assert!(confirmed(other, None).is_err(), "{other}");
            assert!(confirmed(other, Some("127.0.0.1")).is_err(), "{other}");
        }
        assert_eq!(confirmed("https://Gateway.Example:8443", Some("gateway.example")), Ok(()));
        assert_eq!(confirmed("http://[2001:db8::1]", Some("2001:db8::1")), Ok(()));
        let said = confirmed("http://192.0.2.1", None).unwrap_err();
        assert!(said.contains("--confirm-target 192.0.2.1"), "{said}");
    }

    #[test]
    fn another_target_replaces_the_plans_own_only_where_it_may_be_called() {
        let plan = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans/smoke.yaml");
        let args = PlanArgs { plan, set: Vec::new() };
        let load = |url: &str, host: Option<&str>| {
            let target = TargetArgs { target: Some(url.into()), confirm_target: host.map(str::to_owned) };
            args.load_for(&target, true).map(|loaded| match loaded.plan.target.kind {
                TargetKind::Url { url, policy: None } => url,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(load("http://127.0.0.1:9/", None), Ok("http://127.0.0.1:9".into()));
        assert_eq!(load("http://192.0.2.1/", None), Err(exit::USAGE));
        assert_eq!(load("http://192.0.2.1/", Some("192.0.2.1")), Ok("http://192.0.2.1".into()));
        assert_eq!(load("it's no URL", None), Err(exit::USAGE));
        let own = args.load_for(&TargetArgs { target: None, confirm_target: None }, true).unwrap();
        assert!(matches!(own.plan.target.kind, TargetKind::Embedded(_)));
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "é".repeat(yaml::MOST_BYTES)).unwrap();
        let Err(Problem::Faults(faults)) = read(file.path(), &[]) else { panic!("read") };
        assert!(faults[0].message.contains("at most 1048576"), "{faults:?}");
    }
}
