use std::collections::VecDeque;
use std::time::Duration;

use crate::admission::Met;
use crate::observe::{Attempt, Outcome, Record};
use crate::plan::Plan;
use crate::provider::Service;
use crate::units::{Moment, Tokens};
use crate::workload::{ClassId, Schedule, Sizes};

/// Of a trace, the sizes of so many arrivals are kept for callers who come back.
const KEPT: usize = 1 << 16;

/// A request as a run recorded it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recorded {
    /// Which.
    pub attempt: Attempt,
    /// When it was due; its deadline counts from here.
    pub due: Moment,
    /// When it was sent.
    pub sent: Moment,
    /// Its class.
    pub class: ClassId,
    /// How large it and its answer are.
    pub sizes: Sizes,
    /// What the gateway did with it.
    pub met: Met,
    /// Whether that is known: the run did not end before it could be.
    pub judged: bool,
    /// When it went before its end, if it did: its caller left, or it was dropped.
    pub left: Option<Moment>,
    /// Whether it waited in vain: it was dropped then, and its caller told so.
    pub expired: bool,
    /// When the answer of the provider had come, if it did.
    pub answered: Option<Moment>,
    /// Whether that was none.
    pub broke: bool,
    /// Tokens it used; `None` where nothing is known.
    pub used: Option<Tokens>,
    /// How long such an answer takes.
    pub takes: Duration,
    /// How often the provider refused it for its quota.
    pub refusals: u32,
    /// How often the provider turned it away otherwise before the last call.
    pub failures: u32,
}

/// What is known of the answers of a plan, for what a record does not say.
#[derive(Debug)]
pub(super) struct Answers {
    plan: Plan,
    service: Service,
    /// Of a trace: the schedule once more, and the sizes of the arrivals from `first` on.
    trace: Option<(Box<Schedule>, VecDeque<Sizes>)>,
    first: u64,
}

impl Answers {
    pub(super) fn new(plan: &Plan) -> Self {
        let trace = plan.load.arrivals.trace().is_some();
        Self {
            service: plan.provider.service,
            trace: trace.then(|| (Box::new(Schedule::new(&plan.load, &plan.requests)), VecDeque::new())),
            first: 0,
            plan: plan.clone(),
        }
    }

    /// What `record` says of how it was met; `None` if it never came to the gateway, as far as is known.
    pub(super) fn recorded(&mut self, record: &Record) -> Option<Recorded> {
        let sent = record.sent?;
        let reached = record.at_provider.is_some();
        let (met, judged) = match record.outcome {
            Outcome::Unsent => return None,
            Outcome::Shed => (Met::Shed, true),
            Outcome::Throttled => (Met::Throttled, true),
            Outcome::Failed if !reached && matches!(record.status, Some(413 | 422)) => (Met::Rejected, true),
            // it may not have come to the gateway at all
            Outcome::Failed if !reached => return None,
            Outcome::Unfinished => (Met::Admitted, reached),
            Outcome::Expired | Outcome::Completed | Outcome::Late | Outcome::Abandoned | Outcome::Failed => {
                (Met::Admitted, true)
            }
        };
        let sizes = self.sizes(record);
        let whole = matches!(record.outcome, Outcome::Completed | Outcome::Late);
        let expired = record.outcome == Outcome::Expired;
        let broke = reached && record.outcome == Outcome::Failed;
        let calls = record.upstream_attempts.saturating_sub(record.upstream_refusals);
        Some(Recorded {
            attempt: record.attempt,
            due: record.due,
            sent,
            class: record.class,
            sizes,
            met,
            judged,
            left: (expired || record.outcome == Outcome::Abandoned).then_some(record.ended),
            expired,
            answered: (reached && (whole || broke)).then_some(record.ended),
            broke,
            used: Some(sizes.used()),
            takes: self.service.time_for(sizes.output),
            refusals: record.upstream_refusals,
            failures: calls.saturating_sub(1),
        })
    }

    fn sizes(&mut self, record: &Record) -> Sizes {
        let class = self.plan.requests.class(record.class);
        let max_output = class.max_tokens;
        let prompt = record.hold - max_output;
        let seq = record.attempt.seq;
        let output = match &mut self.trace {
            None => class.answer(self.plan.load.seed, seq),
            Some((schedule, kept)) => {
                while seq >= self.first + kept.len() as u64
                    && let Some(arrival) = schedule.next()
                {
                    kept.push_back(arrival.sizes);
                    if kept.len() > KEPT {
                        kept.pop_front();
                        self.first += 1;
                    }
                }
                let place = seq.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
                place.and_then(|at| kept.get(at)).map_or(max_output, |sizes| sizes.output)
            }
        };
        Sizes { prompt, max_output, output: output.min(max_output) }
    }
}
