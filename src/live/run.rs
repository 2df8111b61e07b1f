//! A whole live run: start everything, prove the chain, play the load, end in order.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, SystemTime};

use tokio::runtime::Builder;

use super::board::Board;
use super::canary::{self, Chain};
use super::crew::{Crew, Generator, Goal, Leftovers};
use super::desk::{Desk, Over};
use super::holds;
use super::preflight::Needs;
use super::request::Wire;
use super::seen::channels;
use super::target::{Start, Target};
use super::wall::Stamp;
use super::{Arrived, Carriers, Clock, Evidence, Listener, LiveError, Log, Looked, ProviderShell, Seen};
use crate::measure::{Measures, Snapshot};
use crate::observe::Sighting;
use crate::plan::Plan;
use crate::units::Moment;
use crate::workload::{Arrival, Schedule};

/// The least time between the canary and the first arrival: for samples of memory at rest.
const LEAD: Duration = Duration::from_millis(600);
/// The most of it.
const LEAD_AT_MOST: Duration = Duration::from_secs(5);

/// How a run is made, besides its plan.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The program that is started as the reference gateway; by default this one.
    pub program: Option<PathBuf>,
    /// How long a target that does not answer yet is waited for.
    pub wait_ready: Option<Duration>,
    /// Told the provider's address as soon as it is known: where a running gateway must send its calls.
    pub announce: Option<fn(&str)>,
    /// Where it is left how the run stands, for those who look while it goes on.
    pub board: Option<Board>,
    /// Where every request is noted as it ends.
    pub log: Option<Log>,
    /// Who else is shown every request as it ends.
    pub listener: Option<Listener>,
}

/// A request to end, from a signal handler or another thread.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicU8>);

impl Stop {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks; gives how often that was done, this time included. The first ends a run in order.
    pub fn ask(&self) -> u8 {
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| Some(n.saturating_add(1))).unwrap_or(0)
            + 1
    }

    /// Whether someone has asked.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Acquire) > 0
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// The arrivals were over and no request was open.
    Done,
    /// Someone asked.
    Interrupted,
    /// A rule of `abort_when` said so; in words.
    Aborted(String),
}

/// What a run came to.
#[derive(Debug)]
pub struct Run {
    /// What was measured, on the load's own time line.
    pub measures: Measures,
    /// When the load began: RFC 3339, UTC.
    pub started: String,
    /// The run's name: `20261130-071502`.
    pub run_id: String,
    /// What was tried.
    pub target: String,
    /// Where the provider could be called.
    pub provider_url: String,
    /// How the target's name was looked up, and which of its addresses have answered; nothing where it has none.
    pub looked: Option<Looked>,
    /// What sent the load.
    pub generator: Generator,
    /// The carriers of the id that came through the chain.
    pub carriers: Carriers,
    /// Raw refusals, at most twenty.
    pub evidence: Vec<Evidence>,
    /// How it ended.
    pub ended_by: Ended,
    /// From the first arrival to the end.
    pub took: Duration,
    /// Returning callers that were not waited for, since they were due after the last phase.
    pub not_waited_for: u64,
    /// Requests at the provider that were none of this run's.
    pub strangers: u64,
    /// Sightings that came too late to be put in their order.
    pub overtaken: u64,
}

/// Runs `plan`, which has been rehearsed: [`Plan::rehearsed`]. `watch` is shown how things stand four times a second;
/// it is not in the path of any request.
///
/// # Errors
/// If the run could not be made. What goes wrong once the load has begun is measured instead.
pub fn run(
    plan: &Plan,
    options: &Options,
    watch: &mut dyn FnMut(&Snapshot),
    stop: &Stop,
) -> Result<Run, LiveError> {
    play(plan, Schedule::new(&plan.load, &plan.requests), options, watch, stop)
}

/// The same, with these arrivals.
fn play(
    plan: &Plan,
    arrivals: impl Iterator<Item = Arrival> + Send + 'static,
    options: &Options,
    watch: &mut dyn FnMut(&Snapshot),
    stop: &Stop,
) -> Result<Run, LiveError> {
    Needs::of(plan).secure()?;
    let clock = Clock::start();
    // this end keeps none of them open
    let (out, seen) = channels();
    let (mut stage, wire) = Stage::set(plan, options, clock, &out.requests, stop)?;
    let start = clock.now() + lead(plan);
    stage.provider.begin(start);
    let stamp = Stamp::of(clock.wall() + start.since(clock.now()));
    let goal = Goal {
        base: &stage.target.base,
        memory: stage.target.memory.clone(),
        metrics_port: stage.target.metrics_port(),
    };
    let crew = Crew::start(plan, arrivals, wire, &goal, (clock, start), out)?;
    let mut desk = Desk::new(plan, clock, start, seen, (options.log.clone(), options.listener.clone()));
    desk.board.clone_from(&options.board);
    let over = desk.attend(&crew, &mut stage.target, &stage.provider, watch, stop);
    let paced = crew.paced_until();
    let Leftovers { evidence, looked, not_waited_for, generator, failed } = crew.dismiss();
    if failed.is_some() {
        desk.generator_failed(paced);
    }
    let ended_by = match (failed, over) {
        (Some(why), _) | (None, Over::Aborted(why)) => Ended::Aborted(why),
        (None, Over::Played) => Ended::Done,
        (None, Over::Asked) => Ended::Interrupted,
    };
    let (mut measures, end, overtaken) = desk.close();
    // neither kind of returning caller was seen to the end
    measures.returns.censored += not_waited_for;
    if ended_by == Ended::Done {
        measures.held = holds::at_quiet(&plan.target, &stage.target.base);
    }
    Ok(Run {
        measures,
        started: stamp.rfc3339(),
        run_id: stamp.run_id(),
        target: stage.target.about.clone(),
        provider_url: stage.provider.url().to_owned(),
        looked,
        generator,
        carriers: stage.carriers,
        evidence,
        ended_by,
        took: end.since(Moment::ZERO),
        not_waited_for,
        strangers: stage.provider.strangers(),
        overtaken,
    })
}

/// From the canary to the first arrival: until the quota the canary took is there again.
fn lead(plan: &Plan) -> Duration {
    plan.provider.quota.tokens.time_for(plan.largest_hold().get()).clamp(LEAD, LEAD_AT_MOST)
}

/// Both ends of the chain, and the proof that it is one. Dropping it ends the target, then the provider.
#[derive(Debug)]
struct Stage {
    carriers: Carriers,
    target: Target,
    provider: ProviderShell,
}

impl Stage {
    /// Starts both ends and sends the canary. Gives the wire the load shall use, too.
    fn set(
        plan: &Plan,
        options: &Options,
        clock: Clock,
        out: &Sender<Seen>,
        stop: &Stop,
    ) -> Result<(Self, Wire), LiveError> {
        let run = run_number(clock.wall());
        let (provider, heard) = provider(plan, clock, run, out.clone())?;
        if let Some(announce) = options.announce {
            announce(provider.url());
        }
        // for the questions before the load; the load has a runtime of its own
        let runtime = Builder::new_current_thread().enable_all().build().map_err(LiveError::Thread)?;
        let target = Target::start(Start {
            plan,
            provider_url: provider.url(),
            program: options.program.as_deref(),
            clock,
            runtime: &runtime,
            stop,
        })?;
        let wire = || Wire::new(&target.base, plan, run);
        let carriers = canary::fly(
            Chain {
                plan,
                wire: &wire()?,
                target: &target,
                provider: &provider,
                heard: &heard,
                clock,
                runtime: &runtime,
            },
            options.wait_ready,
            stop,
        )?;
        // the canary's connections end with its runtime: the load begins with none
        let wire = wire()?;
        Ok((Self { carriers, target, provider }, wire))
    }
}

/// Starts the provider. Canaries that reach it are told apart from the load.
fn provider(
    plan: &Plan,
    clock: Clock,
    run: u32,
    out: Sender<Seen>,
) -> Result<(ProviderShell, Receiver<Arrived>), LiveError> {
    let (canaries, heard) = mpsc::channel();
    let tell = move |arrived: Arrived| {
        // nobody listens any more once the run is over
        if arrived.id.seq == canary::SEQ {
            // that it left, too, is of no consequence: it has been given up
            if matches!(arrived.sighting, Sighting::AtProvider { .. }) {
                let _ = canaries.send(arrived);
            }
        } else {
            let _ = out.send(Seen::Sighting(arrived.sighting));
        }
    };
    let shell = ProviderShell::start(&plan.provider, &plan.target.deadline, clock, run, tell)
        .map_err(|e| LiveError::Provider(e.to_string()))?;
    Ok((shell, heard))
}

/// A number that tells this run's requests from those of an earlier one that are still on their way.
fn run_number(wall: SystemTime) -> u32 {
    let nanos = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mixed = (nanos ^ (u128::from(std::process::id()) << 20)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    u32::try_from((mixed >> 32) & 0xFFFF_FFFF).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;
    use crate::live::testing;
    use crate::observe::Outcome;

    /// The plan of a provider that is its own gateway, and where both are.
    fn own_gateway() -> Plan {
        // below those that connections take, so that nobody else does in the meantime
        let mut ports = (0..10_000).map(|n| 20_000 + (std::process::id() as u16 % 97 * 101 + n) % 10_000);
        let address =
            ports.find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok()?.local_addr().ok()).unwrap();
        let mut plan = testing::plan(&format!("http://{address}"));
        plan.provider.listen = address.to_string();
        plan.requests = testing::mix("20s");
        plan
    }

    /// Whatever goes wrong in the sender, what was seen until then is kept, and the run is invalid.
    #[test]
    fn a_run_whose_sender_dies_is_kept_and_invalid() {
        let plan = own_gateway();
        let arrivals = Schedule::new(&plan.load, &plan.requests)
            .inspect(|arrival| assert!(arrival.seq < 45, "this is what the test is about"));
        let run = play(&plan, arrivals, &Options::default(), &mut |_| {}, &Stop::new()).unwrap();
        assert_eq!(run.ended_by, Ended::Aborted("the generator's thread panicked".to_owned()));
        assert!(run.measures.arrivals.get(Outcome::Completed) >= 15, "{:?}", run.measures.arrivals);
        // which makes a run invalid
        assert!(run.measures.vitals.generator_stuck.is_some());
    }

    /// As in vllm-project/guidellm#431: the sender is held up where one phase ends and the next begins. The run is ended
    /// and says whose fault that was; what was seen until then is not lost.
    #[test]
    fn a_run_whose_sender_stands_still_between_two_phases_is_ended_and_kept() {
        let mut plan = own_gateway();
        plan.load.phases.extend(testing::load("100/s", Duration::from_secs(1)).phases);
        let border = Moment::from_secs(1);
        let hold = Duration::from_secs(30);
        let mut held = false;
        let arrivals = Schedule::new(&plan.load, &plan.requests).inspect(move |arrival| {
            if arrival.due >= border && !std::mem::replace(&mut held, true) {
                thread::sleep(hold);
            }
        });
        let clock = Clock::start();
        let run = play(&plan, arrivals, &Options::default(), &mut |_| {}, &Stop::new()).unwrap();
        let took = clock.now().since(Moment::ZERO);
        assert!(took < hold, "nobody waits for it to go on: {took:?}");
        let Ended::Aborted(why) = &run.ended_by else { panic!("{:?}", run.ended_by) };
        assert!(why.contains("the generator stood still"), "{why}");
        // it is held up when it looks for who comes after the last of them
        let (offered, completed) = (run.measures.offered, run.measures.arrivals.get(Outcome::Completed));
        assert!((45..=50).contains(&offered) && completed >= 40, "the first phase is kept: {completed}");
        // which makes a run invalid
        assert!(run.measures.vitals.generator_stuck.is_some());
    }
}
