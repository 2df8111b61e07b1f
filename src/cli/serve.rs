//! `tenfold serve`: one of the two parties by itself.
//!
//! `serve gateway` is what a run starts as its child; `serve provider` plays the provider of a plan for a gateway that
//! is tried by hand. Both print one line, `listening on URL`, when they are ready, and end in order on SIGTERM or
//! Ctrl-C.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::load::PlanArgs;
use super::{complain, exit, faults};
use crate::gateway;
use crate::live::{self, Clock, ProviderError, ProviderShell};
use crate::plan::{Plan, yaml};
use crate::units::{Fault, Faults, Node, Read, Reader};

/// The largest configuration that is read.
const MOST: u64 = 1 << 20;

/// How often the provider is asked whether it still answers.
const WATCH: Duration = Duration::from_secs(1);

/// Play the gateway or the provider by itself
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Which party to play.
    #[command(subcommand)]
    pub party: Party,
}

/// What `tenfold serve` can play.
#[derive(Debug, clap::Subcommand)]
pub enum Party {
    /// The reference gateway, by a configuration of its own
    Gateway {
        /// The configuration, in YAML or JSON; `-` reads it from stdin
        #[arg(long, value_name = "FILE")]
        config: PathBuf,
    },
    /// The provider of a plan
    Provider {
        /// The plan: its provider is played as it stands there, not scaled
        #[command(flatten)]
        plan: PlanArgs,
    },
}

impl ServeArgs {
    /// Serves until it is asked to end; gives the exit code.
    pub(super) fn run(&self, quiet: bool) -> u8 {
        let served = match &self.party {
            Party::Gateway { config } => {
                // told by its parent what to be: the child of a run, which never lives longer than the run
                if config == Path::new("-") {
                    live::follow_parent();
                }
                read_config(config).and_then(|text| gateway(configuration(&text)?))
            }
            Party::Provider { plan } => match plan.load(quiet) {
                Ok(loaded) => provider(&loaded.plan),
                Err(code) => return code,
            },
        };
        let Err(error) = served else { return exit::PASSED };
        match &error {
            ServeError::Faults(list) => complain(&faults::render(&self.file(), list)),
            other => complain(&format!("error: {}\n", faults::tame(&other.to_string()))),
        }
        match error {
            ServeError::Config { .. } | ServeError::Faults(_) => exit::USAGE,
            ServeError::Gateway(_)
            | ServeError::Provider(_)
            | ServeError::Silent { .. }
            | ServeError::System(_) => exit::COULD_NOT_RUN,
        }
    }

    fn file(&self) -> String {
        match &self.party {
            Party::Gateway { config } if config == Path::new("-") => "stdin".to_owned(),
            Party::Gateway { config } => config.display().to_string(),
            Party::Provider { plan } => plan.file(),
        }
    }
}

/// The gateway's configuration in `text`, which is YAML, so that JSON will do as well.
fn configuration(text: &str) -> Result<gateway::Config, ServeError> {
    gateway_config(&yaml::read(text).map_err(|fault| ServeError::Faults(vec![fault]))?)
}

/// Why a party could not be played, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The configuration cannot be read.
    #[error("cannot read `{}`: {source}", file.display())]
    Config {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The configuration is wrong: exit code 2.
    #[error("the gateway's configuration has {} fault{}", .0.len(), if .0.len() == 1 { "" } else { "s" })]
    Faults(Vec<Fault>),
    /// The gateway cannot be started.
    #[error(transparent)]
    Gateway(#[from] gateway::ServeError),
    /// The provider cannot be started.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The provider no longer accepts connections: as a rule the descriptors have run out.
    #[error("the provider no longer answers at {url} (were there descriptors enough? see `ulimit -n`)")]
    Silent {
        /// Its address.
        url: String,
    },
    /// The system gives no signals, or stdout is closed.
    #[error("cannot serve: {0}")]
    System(#[from] io::Error),
}

/// The text of a configuration file, at most a megabyte of it; `-` is stdin.
pub fn read_config(file: &Path) -> Result<String, ServeError> {
    let read = || {
        let mut text = String::new();
        let source: Box<dyn io::Read> =
            if file == Path::new("-") { Box::new(io::stdin()) } else { Box::new(File::open(file)?) };
        source.take(MOST + 1).read_to_string(&mut text)?;
        let fits = text.len() as u64 <= MOST;
        fits.then_some(text).ok_or_else(|| io::Error::other(format!("it is larger than {MOST} bytes")))
    };
    read().map_err(|source| ServeError::Config { file: file.to_owned(), source })
}

/// The gateway's configuration in the tree at `node`; every fault of it at once.
pub fn gateway_config(node: &Node) -> Result<gateway::Config, ServeError> {
    let faults = Faults::default();
    match gateway::Config::read(&Reader::root(node, &faults)) {
        Some(config) if faults.is_empty() => Ok(config),
        _ => Err(ServeError::Faults(faults.into_sorted())),
    }
}

/// Serves as the gateway until SIGTERM or Ctrl-C, and ends in order.
pub fn gateway(config: gateway::Config) -> Result<(), ServeError> {
    let bound = gateway::Bound::new(config)?;
    let clock = Clock::start();
    let address = bound.address();
    let stop = move || {
        let stop = ends()?;
        ready(&format!("http://{address}"))?;
        Ok(stop)
    };
    Ok(bound.serve(move || clock.now(), move || clock.unix(), stop)?)
}

/// Serves as the provider of `plan`, which is taken as it is, until SIGTERM or Ctrl-C. Every request is a stranger's:
/// its answer has as many tokens as it allows.
pub fn provider(plan: &Plan) -> Result<(), ServeError> {
    let clock = Clock::start();
    let shell = ProviderShell::start(&plan.provider, &plan.target.deadline, clock, 0, |_| ())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let stopped = runtime.block_on(async {
        let mut stop = std::pin::pin!(ends()?);
        ready(shell.url())?;
        loop {
            tokio::select! {
                () = &mut stop => return Ok::<_, io::Error>(true),
                () = tokio::time::sleep(WATCH) => {}
            }
            // this thread does nothing else: it may block
            if !shell.answers(WATCH) {
                return Ok(false);
            }
        }
    })?;
    if stopped { Ok(()) } else { Err(ServeError::Silent { url: shell.url().to_owned() }) }
}

/// Ends with SIGTERM or Ctrl-C. Both are caught from this call on.
fn ends() -> io::Result<impl Future<Output = ()>> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    })
}

/// The one line on stdout.
fn ready(url: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "listening on {url}")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn the_example_configuration_is_one() {
        let text = include_str!("../../fixtures/gateways/reference.yaml");
        let config = configuration(text).unwrap();
        assert_eq!((config.admission.tenants.len(), config.listen.port()), (3, 8080));
    }

    use crate::units::{Place, Value};

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    #[test]
    fn the_arguments_are_read() {
        let line = Line::try_parse_from(["serve", "gateway", "--config", "-"]).unwrap();
        assert!(matches!(line.serve.party, Party::Gateway { config } if config == Path::new("-")));
        let line =
            Line::try_parse_from(["serve", "provider", "p.yaml", "--set", "a=1", "--set", "b=2"]).unwrap();
        assert!(matches!(line.serve.party, Party::Provider { plan } if plan.set == ["a=1", "b=2"]));
        assert!(Line::try_parse_from(["serve", "gateway"]).is_err());
    }

    #[test]
    fn a_file_that_is_not_there_or_too_large_is_named() {
        let missing = read_config(Path::new("no/such.yaml")).unwrap_err().to_string();
        assert!(missing.contains("no/such.yaml"), "{missing}");
        let large = tempfile::NamedTempFile::new().unwrap();
        large.as_file().set_len(MOST + 1).unwrap();
        assert!(read_config(large.path()).unwrap_err().to_string().contains("larger"));
    }

    #[test]
    fn faults_of_a_configuration_are_counted() {
        let nothing = Node { place: Place::File { line: 1, column: 1 }, value: Value::Null };
        let error = gateway_config(&nothing).unwrap_err();
        assert!(matches!(&error, ServeError::Faults(faults) if faults.len() == 1));
        assert_eq!(error.to_string(), "the gateway's configuration has 1 fault");
    }
}
