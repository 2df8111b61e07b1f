//! What is tried: the reference gateway as a child, a command, or something already running.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use reqwest::{Client, Url};
use tokio::runtime::Runtime;

use super::child::{self, Child};
use super::memory::Whose;
use super::run::Stop;
use super::spawn::{self, Berth};
use super::{Clock, LiveError};
use crate::gateway;
use crate::plan::{Embedded, MemoryFrom, Plan, TargetKind};
use crate::units::{Bytes, Moment};

/// How long a child may take until it is ready.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// From one look at its readiness to the next.
const LOOK: Duration = Duration::from_millis(50);
/// How long one question about readiness may take.
const QUESTION: Duration = Duration::from_secs(2);
/// What the reference gateway says when it is ready, followed by its URL.
const LISTENING: &str = "listening on ";

/// A target that is ready to be called. Its processes, if they are ours, end when it is dropped.
#[derive(Debug)]
pub(super) struct Target {
    /// The scheme and authority requests go to.
    pub(super) base: String,
    /// What it is, for a report.
    pub(super) about: String,
    // dropped before what it was given
    child: Option<Child>,
    berth: Option<Berth>,
    /// Where its memory is read, if that is a place on this machine.
    pub(super) memory: Option<Whose>,
}

/// What a target is started with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) plan: &'a Plan,
    /// What it shall call.
    pub(super) provider_url: &'a str,
    /// This program, for the reference gateway.
    pub(super) program: Option<&'a Path>,
    pub(super) clock: Clock,
    pub(super) runtime: &'a Runtime,
    pub(super) stop: &'a Stop,
}

impl Target {
    /// Starts the plan's target and waits until it is ready.
    pub(super) fn start(with: Start<'_>) -> Result<Self, LiveError> {
        let mut target = match &with.plan.target.kind {
            TargetKind::Embedded(embedded) => embedded_gateway(embedded, with)?,
            TargetKind::Spawn(command) => {
                let spawn::Spawned { child, berth, url } = spawn::start(command, with)?;
                let about = format!("`{}`", command.command.join(" "));
                Self { base: url, about, child: Some(child), memory: None, berth: Some(berth) }
            }
            TargetKind::Url { url, .. } => {
                Self { base: url.clone(), about: url.clone(), child: None, memory: None, berth: None }
            }
        };
        let own = target.child.as_ref().map(|child| Whose::Tree(child.id()));
        target.memory = match with.plan.target.memory.as_ref().map(|source| &source.from) {
            None | Some(MemoryFrom::Own) => own,
            Some(MemoryFrom::Pid(pid)) => Some(Whose::Tree(*pid)),
            Some(MemoryFrom::Cgroup(folder)) => Some(Whose::Group(folder.clone())),
            // read with the other metrics
            Some(MemoryFrom::Metric(_)) => None,
        };
        Ok(target)
    }

    /// The port that is kept for its metrics, if it is a command of ours.
    pub(super) fn metrics_port(&self) -> Option<u16> {
        self.berth.as_ref().map(Berth::metrics_port)
    }

    /// How its process ended, if it is ours and has.
    pub(super) fn ended(&mut self) -> Option<String> {
        self.child.as_mut()?.ended()
    }

    /// What its process said last, in a form that can follow a sentence; empty if it is not ours or said nothing.
    pub(super) fn last_words(&self) -> String {
        let words = self.child.as_ref().map(Child::last_words).unwrap_or_default();
        if words.is_empty() { words } else { format!("; it said last:\n  {words}") }
    }
}

/// The configuration of the reference gateway: the plan's policy, and what lies around it.
fn configuration(embedded: &Embedded, plan: &Plan, provider_url: &str) -> Result<gateway::Config, LiveError> {
    let deadline = &plan.target.deadline;
    let header = deadline.header.parse().map_err(|_| {
        LiveError::Request(format!("target.deadline.header: `{}` is no header name", deadline.header))
    })?;
    let classes = plan.requests.classes();
    let largest = classes.iter().map(|class| class.bytes).max().unwrap_or_default();
    let longest = classes.iter().map(|class| class.deadline).max().unwrap_or_default();
    Ok(gateway::Config {
        listen: ([127, 0, 0, 1], 0).into(),
        provider: provider_url.to_owned(),
        api: plan.provider.api,
        path: plan.target.request.path.clone(),
        admission: embedded.admission.clone(),
        deadline: gateway::Deadline {
            header,
            form: deadline.form,
            default: longest,
            longest: longest.max(gateway::Deadline::LONGEST),
        },
        // the text of the largest prompt, escaped at worst, and what stands around it
        max_body: largest + largest + Bytes::new(64_000),
        ca_file: None,
        insecure: false,
    })
}

fn embedded_gateway(embedded: &Embedded, with: Start<'_>) -> Result<Target, LiveError> {
    let config = configuration(embedded, with.plan, with.provider_url)?.to_json().to_string();
    let program = match with.program {
        Some(program) => program.to_owned(),
        None => std::env::current_exe().map_err(|e| {
            LiveError::Target(format!("this program cannot find itself to start the gateway: {e}"))
        })?,
    };
    let mut command = Command::new(program);
    command.args(["serve", "gateway", "--config", "-"]);
    child::to_follow(&mut command);
    let started = Child::start(command, Some(&config), with.clock);
    let (mut child, lines) =
        started.map_err(|e| LiveError::Target(format!("the embedded gateway could not be started: {e}")))?;
    let base = listening(&lines, &mut child, with)?;
    let about = "the embedded gateway".to_owned();
    Ok(Target { base, about, child: Some(child), memory: None, berth: None })
}

/// Waits for the line that says where the gateway listens.
fn listening(lines: &Receiver<String>, child: &mut Child, with: Start<'_>) -> Result<String, LiveError> {
    let until = with.clock.now() + READY_WITHIN;
    while with.clock.now() < until {
        if with.stop.asked() {
            return Err(LiveError::Interrupted);
        }
        match lines.recv_timeout(LOOK) {
            Ok(line) => {
                if let Some(url) = line.strip_prefix(LISTENING) {
                    return Ok(url.trim_end_matches('/').to_owned());
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // its output is closed; give it a moment to end
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK),
        }
        if let Some(how) = child.ended() {
            return Err(gone("the embedded gateway", &how, child));
        }
    }
    Err(LiveError::Target(format!(
        "the embedded gateway did not say within {} s where it listens{}",
        READY_WITHIN.as_secs(),
        said(child)
    )))
}

/// Whether `url` answers with a success.
pub(super) fn is_ready(runtime: &Runtime, client: &Client, url: &Url) -> bool {
    // the timer of the question needs the runtime around it from the start
    let ask = async { client.get(url.clone()).timeout(QUESTION).send().await };
    runtime.block_on(ask).is_ok_and(|answer| answer.status().is_success())
}

/// Waits for `span`.
pub(super) fn pause(clock: Clock, span: Duration) -> Moment {
    let until = clock.now() + span;
    clock.sleep_until(until);
    until
}

pub(super) fn gone(what: &str, how: &str, child: &Child) -> LiveError {
    // what it said may still be on its way
    std::thread::sleep(LOOK);
    LiveError::Target(format!("{what} ended before it was ready ({how}){}", said(child)))
}

pub(super) fn said(child: &Child) -> String {
    let words = child.last_words();
    if words.is_empty() {
        "; it said nothing on stderr".into()
    } else {
        format!("; it said last:\n  {words}")
    }
}
