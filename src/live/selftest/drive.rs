//! The load of a plan without its provider: only the callers, and what they saw.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::live::crew::{Crew, Goal};
use crate::live::desk::Desk;
use crate::live::request::Wire;
use crate::live::seen::channels;
use crate::live::{Clock, LiveError};
use crate::measure::Measures;
use crate::plan::Plan;
use crate::workload::Schedule;

/// From the start of the threads to the first arrival.
const LEAD: Duration = Duration::from_millis(300);

/// What the callers of a plan saw, and what they cost.
#[derive(Debug)]
pub struct Driven {
    /// What was measured, on the load's own time line.
    pub measures: Measures,
    /// Processor time of this process during the load.
    pub cpu: Duration,
    /// From the first arrival to the end of the last exchange.
    pub took: Duration,
}

/// Plays the callers of `plan`, which has been rehearsed, against `base` (scheme and authority), and folds what they
/// see as a run does. No provider is started and no canary sent.
///
/// # Errors
/// If the address, a header or the certificates cannot be used, or no thread can be started.
pub fn drive(plan: &Plan, base: &str) -> Result<Driven, LiveError> {
    let clock = Clock::start();
    let (out, seen) = channels();
    let wire = Wire::new(base, plan, 1)?;
    let start = clock.now() + LEAD;
    let before = cpu();
    let goal = Goal { base, memory: None, metrics_port: None };
    let arrivals = Schedule::new(&plan.load, &plan.requests);
    let crew = Crew::start(plan, arrivals, wire, &goal, (clock, start), out)?;
    let mut desk = Desk::new(plan, clock, start, seen, (None, None));
    desk.follow(&crew);
    let cpu = cpu().saturating_sub(before);
    if let Some(why) = crew.dismiss().failed {
        return Err(LiveError::Thread(std::io::Error::other(why)));
    }
    let (measures, end, _) = desk.close();
    Ok(Driven { measures, cpu, took: end.since(crate::units::Moment::ZERO) })
}

/// Processor time of this process so far.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
