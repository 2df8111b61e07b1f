//! What the gateway can know of a plan's callers, and which of them it can serve at all.

use std::borrow::Cow;
use std::time::Duration;

use super::{DeadlineForm, Plan};
use crate::units::Tokens;
use crate::workload::Class;

impl Plan {
    /// How long the gateway believes a caller of `class` to wait: an instant is written by the caller's own clock.
    pub fn believed(&self, class: &Class) -> Duration {
        match self.target.deadline.form {
            DeadlineForm::AbsoluteMs => {
                // counted from a day before, so that no clock shows a time before its epoch
                let day = Duration::from_secs(86_400);
                let shown = class.clock.shown(day.saturating_add(class.deadline));
                shown.saturating_sub(day).min(DeadlineForm::LONGEST_BELIEVED)
            }
            DeadlineForm::Grpc | DeadlineForm::RemainingMs | DeadlineForm::RemainingS => class.deadline,
        }
    }

    /// Whether no request of `class` is ever granted what it holds: its tenant may not spend so much at once.
    pub fn never_fits(&self, class: &Class) -> bool {
        let own = self.policy().and_then(|policy| {
            let tenant = policy.tenants.iter().find(|tenant| tenant.name == class.tenant)?;
            let span = tenant.window.span();
            tenant.tokens.map(|rate| Tokens::new(rate.whole_in(span)))
        });
        own.is_some_and(|most| class.smallest_hold() > most)
    }

    /// The plan without the callers who are refused for good, and the part of all callers that is left. The plan itself
    /// where nobody is, or everybody.
    pub fn servable(&self) -> (Cow<'_, Self>, f64) {
        let part = self.requests.mean(|class| f64::from(u8::from(!self.never_fits(class))));
        if part >= 1.0 || part <= 0.0 {
            return (Cow::Borrowed(self), 1.0);
        }
        let mut plan = self.clone();
        let hopeless: Vec<_> = self
            .requests
            .classes()
            .iter()
            .filter(|class| self.never_fits(class))
            .map(|class| &class.name)
            .collect();
        plan.requests = self.requests.without(&hopeless);
        for mix in plan.load.phases.iter_mut().filter_map(|phase| phase.mix.as_mut()) {
            mix.retain(|name, _| !hopeless.contains(&name));
        }
        (Cow::Owned(plan), part)
    }
}
