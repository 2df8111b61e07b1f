//! Everyone at work during the load: the client, which paces and sends, and the sampler of memory.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::watch;

use super::client::{self, Callers};
use super::memory::{Sampler, Whose};
use super::metrics::Scraper;
use super::pacer::Pacer;
use super::pacing::{self, Paced};
use super::request::{self, Wire};
use super::seen::Out;
use super::{Clock, Evidence, LiveError, Looked, Scheduling, ping};
use crate::plan::{Plan, SenderKind};
use crate::units::Moment;
use crate::workload::Arrival;

/// What the load goes to.
#[derive(Debug, Clone)]
pub(super) struct Goal<'a> {
    /// Its scheme and authority.
    pub(super) base: &'a str,
    /// Where its memory is read, if that is a place on this machine.
    pub(super) memory: Option<Whose>,
    /// The port that is kept for its metrics, if it is a command of ours.
    pub(super) metrics_port: Option<u16>,
}

/// What sends a load, and how exactly it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generator {
    /// The sender.
    pub sender: SenderKind,
    /// How the sending thread was scheduled; nothing if it never began.
    pub scheduling: Option<Scheduling>,
    /// The resolution of the timer that wakes it.
    pub resolution: Duration,
    /// How long a wake-up waits for others to fall due, if it does in any phase.
    pub grain: Option<Duration>,
}

/// What is known once everyone has ended.
#[derive(Debug)]
pub(super) struct Leftovers {
    pub(super) evidence: Vec<Evidence>,
    /// How the target's name was looked up, if it has one.
    pub(super) looked: Option<Looked>,
    /// Returning callers whose time comes after the last phase.
    pub(super) not_waited_for: u64,
    /// What sent the load.
    pub(super) generator: Generator,
    /// Why the client did not end as it should, if it did not.
    pub(super) failed: Option<String>,
}

/// The threads of a load.
#[derive(Debug)]
pub(super) struct Crew {
    callers: Arc<Callers>,
    paced: Arc<Paced>,
    quit: watch::Sender<bool>,
    client: JoinHandle<io::Result<()>>,
    generator: Generator,
    _sampler: Sampler,
    _scraper: Option<Scraper>,
}

/// How long the client is waited for once it has been told to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// How `thread` ended, if it does within so long. One that stands still is left behind: what was seen until then is worth
/// more than its end.
fn ends<T>(thread: JoinHandle<T>, within: Duration) -> Option<thread::Result<T>> {
    let clock = Clock::start();
    let until = clock.now() + within;
    while !thread.is_finished() {
        if clock.now() >= until {
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
    Some(thread.join())
}

impl Crew {
    /// Starts everyone; the epoch of `arrivals` is `start`. Pings and samples of memory begin at once.
    pub(super) fn start(
        plan: &Plan,
        arrivals: impl Iterator<Item = Arrival> + Send + 'static,
        wire: Wire,
        target: &Goal<'_>,
        (clock, start): (Clock, Moment),
        out: Out,
    ) -> Result<Self, LiveError> {
        let sampler =
            Sampler::start(target.memory.clone(), clock, out.machine.clone()).map_err(LiveError::Thread)?;
        let port = target.metrics_port;
        let scraper = Scraper::start(&plan.target, target.base, port, clock, out.machine)?;
        let (returns, coming) = tokio::sync::mpsc::unbounded_channel();
        let (quit, quitting) = watch::channel(false);
        let paced = Arc::new(Paced::default());
        let ends = client::Ends { out: out.requests.clone(), returns, paced: Arc::clone(&paced) };
        let callers = Callers::new(plan, wire, clock, start, ends)?;
        // a client of its own: a ping shares no connection and waits for none
        let health = request::join(target.base, &plan.target.request.health)?;
        let own = request::client(&plan.target.request)?.build().map_err(LiveError::Client)?;
        let ping = ping::ping(own, health, clock, out.requests.clone());
        let pacer = Pacer::new(arrivals, &plan.load, start);
        let generator = Generator {
            sender: plan.target.request.transport.sender,
            scheduling: None,
            resolution: Clock::resolution(),
            grain: pacer.grain(),
        };
        let ends = pacing::Ends { returns: coming, out: out.requests };
        let client = client::start(Arc::clone(&callers), pacer, ends, quitting, ping)?;
        Ok(Self { callers, paced, quit, client, generator, _sampler: sampler, _scraper: scraper })
    }

    /// Everything due before this instant has been said to be due.
    pub(super) fn paced_until(&self) -> Moment {
        self.paced.until()
    }

    /// Whether the arrivals are over and no request is open.
    pub(super) fn is_done(&self) -> bool {
        self.client.is_finished()
    }

    /// Ends everyone, whatever is open.
    pub(super) fn dismiss(self) -> Leftovers {
        // no receiver is left if the client has ended by itself
        let _ = self.quit.send(true);
        let failed = match ends(self.client, PATIENCE) {
            // of one that stands still it has been said
            None | Some(Ok(Ok(()))) => None,
            Some(Ok(Err(error))) => Some(format!("the generator's timer failed: {error}")),
            Some(Err(_)) => Some("the generator's thread panicked".to_owned()),
        };
        Leftovers {
            failed,
            evidence: self.callers.take_evidence(),
            looked: self.callers.looked(),
            not_waited_for: self.paced.not_waited_for.load(Ordering::Relaxed),
            generator: Generator { scheduling: self.paced.scheduling.get().copied(), ..self.generator },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in vllm-project/guidellm#431: what stands still is not waited for without end.
    #[test]
    fn a_thread_that_does_not_end_is_left_behind() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let stuck = thread::spawn(move || ended.recv());
        assert!(ends(stuck, Duration::from_millis(20)).is_none());
        end.send(()).unwrap();
        let soon = thread::spawn(|| 7);
        assert_eq!(ends(soon, Duration::from_secs(60)).unwrap().unwrap(), 7);
    }
}
