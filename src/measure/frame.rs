use std::time::Duration;

use crate::plan::Plan;
use crate::provider::Engine;
use crate::units::Moment;
use crate::workload::{Class, ClassId, Copies, OnRefusal, Span};

/// The most windows that are kept; a longer run has wider ones.
const MOST_WINDOWS: u64 = 20_000;

/// Calls for one request where nothing is declared of the target: the first and two more, as SDKs and meshes do it.
const CUSTOMARY_CALLS: u32 = 3;

/// A phase and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramePhase {
    /// Its name.
    pub name: String,
    /// From when to when.
    pub span: Span,
}

/// What the refused callers of a class do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Caller {
    /// The longest wait after which they come when they were told to; nothing if they heed none.
    heeds: Duration,
    /// The longest wait they keep; `None` where there is no such limit.
    keeps: Option<Duration>,
    /// Whether they give up, but for the probes among them.
    gives_up: bool,
}

impl Caller {
    fn of(class: &Class) -> Self {
        Self {
            heeds: class.on_refusal.heeds(),
            keeps: class.on_refusal.keeps(),
            gives_up: class.on_refusal == OnRefusal::GiveUp,
        }
    }
}

/// What the measures of a run need to know of its plan: where the event lies, how wide a window is, how many classes there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The phases in order.
    pub phases: Vec<FramePhase>,
    /// The span of the event; `None` on a quiet day.
    pub event: Option<Span>,
    /// The phase that ends where the event begins, if there is one.
    pub before: Option<Span>,
    /// The instant after the last phase.
    pub end: Moment,
    /// How wide a window is: whole seconds, one unless the run is longer than five hours.
    pub width: Duration,
    /// Who is sent twice.
    pub copies: Copies,
    /// Calls to the provider that one request may be worth, by what is declared of the target.
    pub most_calls: u32,
    /// Whether the provider answers whole, so that nobody can break an answer off.
    pub whole_answers: bool,
    /// What refused callers do, by class.
    callers: Vec<Caller>,
    /// By class: whether its callers leave before their deadlines.
    impatient: Vec<bool>,
}

impl Frame {
    /// The number of the last window: it holds all that comes later, too.
    pub const LAST_WINDOW: usize = MOST_WINDOWS as usize - 1;

    /// The frame of `plan` as it is run (a rehearsal is framed by the rehearsed plan).
    pub fn of(plan: &Plan) -> Self {
        let phases: Vec<_> =
            plan.load.spans().map(|(phase, span)| FramePhase { name: phase.name.clone(), span }).collect();
        let event = plan.load.event();
        let before =
            event.and_then(|event| phases.iter().find(|p| p.span.end == event.start)).map(|p| p.span);
        let end = plan.load.end();
        let patience = plan.requests.classes().iter().map(|class| class.patience).max().unwrap_or_default();
        let seconds = (end + patience).since(Moment::ZERO).as_secs() + 1;
        Self {
            event,
            before,
            end,
            width: Duration::from_secs(seconds.div_ceil(MOST_WINDOWS)),
            copies: Copies::new(plan.load.seed, &plan.requests),
            most_calls: plan.policy().map_or(CUSTOMARY_CALLS, |policy| u32::from(policy.upstream.attempts)),
            whole_answers: plan.provider.engine == Engine::Wiremock,
            callers: plan.requests.classes().iter().map(Caller::of).collect(),
            impatient: plan.requests.classes().iter().map(|class| class.patience < class.deadline).collect(),
            phases,
        }
    }

    /// The number of the window `at` lies in. What comes after all windows is counted in the last.
    pub fn window(&self, at: Moment) -> usize {
        // widths are whole seconds, and nearly always one
        let (second, width) = (at.as_nanos() / 1_000_000_000, self.width.as_secs());
        let index = if width <= 1 { second } else { second / width };
        usize::try_from(index).unwrap_or(usize::MAX).min(Self::LAST_WINDOW)
    }

    /// The tenth of its window `at` lies in, 0 to 9.
    pub fn tenth(&self, at: Moment) -> usize {
        let width = self.width.as_secs().max(1);
        let within = at.as_nanos() % (width * 1_000_000_000);
        usize::try_from(within / (width * 100_000_000)).unwrap_or(0)
    }

    /// The instant window `index` begins.
    pub fn begins(&self, index: usize) -> Moment {
        let nanos = self.width.as_nanos().saturating_mul(index as u128);
        Moment::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How many windows lie wholly between two instants.
    pub fn whole_windows(&self, from: Moment, to: Moment) -> usize {
        let width = self.width.as_nanos().max(1);
        let first = u128::from(from.as_nanos()).div_ceil(width);
        let last = u128::from(to.as_nanos()) / width;
        usize::try_from(last.saturating_sub(first)).unwrap_or(usize::MAX)
    }

    /// Whether callers of `class` leave before their deadlines: that they left is nobody's fault.
    pub fn is_impatient(&self, class: ClassId) -> bool {
        self.impatient.get(usize::from(class.0)).copied().unwrap_or(false)
    }

    /// How many classes the mix has.
    pub const fn classes(&self) -> usize {
        self.callers.len()
    }

    /// Whether callers of `class` do not keep a wait of `told`: their clients give up, or come early.
    pub fn is_overlong(&self, class: ClassId, told: Duration) -> bool {
        self.callers.get(usize::from(class.0)).and_then(|them| them.keeps).is_some_and(|most| told > most)
    }

    /// Whether callers of `class`, if they come again, come after a wait of `told` when they were told it.
    pub fn heeds(&self, class: ClassId, told: Duration) -> bool {
        self.callers.get(usize::from(class.0)).is_some_and(|them| told <= them.heeds)
    }

    /// Whether callers of `class` give up when they are refused, but for the probes among them.
    pub fn gives_up(&self, class: ClassId) -> bool {
        self.callers.get(usize::from(class.0)).is_some_and(|them| them.gives_up)
    }

    /// The phase `at` lies in; the last one after the end.
    pub fn phase(&self, at: Moment) -> Option<&FramePhase> {
        self.phases.iter().find(|phase| phase.span.contains(at)).or_else(|| self.phases.last())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lasting(secs: u64) -> Frame {
        let end = Moment::from_secs(secs);
        Frame {
            phases: Vec::new(),
            event: None,
            before: None,
            end,
            width: Duration::from_secs((secs + 1).div_ceil(MOST_WINDOWS)),
            copies: Copies::default(),
            most_calls: 0,
            whole_answers: true,
            callers: Vec::new(),
            impatient: Vec::new(),
        }
    }

    #[test]
    fn a_month_keeps_no_more_windows_than_a_day() {
        let day = lasting(86_400);
        assert!(day.window(Moment::from_secs(86_400)) < 20_000);
        let month = lasting(30 * 86_400);
        assert_eq!(month.width, Duration::from_secs(130));
        assert!(month.window(Moment::NEVER) < 20_000);
        assert_eq!(lasting(60).window(Moment::from_millis(59_999)), 59);
        assert_eq!(lasting(60).begins(59), Moment::from_secs(59));
        let tenths = [0, 99, 100, 999, 1_000, 59_950].map(|ms| lasting(60).tenth(Moment::from_millis(ms)));
        assert_eq!((tenths, month.tenth(Moment::from_secs(130 + 65))), ([0, 0, 1, 9, 0, 9], 5));
    }

    #[test]
    fn only_whole_windows_count() {
        let (frame, ms) = (lasting(60), Moment::from_millis);
        let count = |from, to| frame.whole_windows(ms(from), ms(to));
        assert_eq!((count(2_000, 5_000), count(2_001, 5_000), count(2_000, 4_999)), (3, 2, 2));
        assert_eq!((count(2_100, 2_220), count(9_000, 2_000)), (0, 0));
    }
}
