//! What the provider sees of requests that have ended for their callers, and of calls that end before their answers do.

use std::time::Duration;

use super::{Ghost, Gone, Joiner, Spared};
use crate::observe::Attempt;
use crate::units::{Moment, Tokens};

impl Joiner {
    pub(super) fn late_at_provider(
        &mut self,
        attempt: Attempt,
        at: Moment,
        until: Moment,
        charged: Tokens,
        refused: bool,
    ) {
        let Some(gone) = self.gone.get(attempt) else {
            self.strays += 1;
            return;
        };
        let Gone { class, due, outcome, .. } = *gone;
        self.ghosts.push(Ghost { attempt, class, due, at, outcome, charged, refused });
        if self.linger.left == Duration::MAX && !refused {
            self.gone.remove(attempt);
        }
        if until > at && self.calls.insert((until, attempt), true).is_none() {
            self.gauge.ghosts += 1;
            if let Some(gone) = self.gone.get_mut(attempt) {
                gone.call = Some((until, charged));
            }
        }
    }

    /// A call left the provider before the end of its answer: what it cost is what was made until then.
    pub(super) fn cut_off(&mut self, attempt: Attempt, spent: Tokens) {
        if let Some(open) = self.open.get_mut(attempt) {
            let Some(until) = open.busy_until.take() else { return };
            open.cut += spent;
            self.calls.remove((until, attempt));
            self.gauge.at_provider -= 1;
        } else if let Some(gone) = self.gone.get_mut(attempt)
            && let Some((until, wasted)) = gone.call.take()
            && self.calls.remove((until, attempt)).is_some()
        {
            let (due, class) = (gone.due, gone.class);
            self.spared.push(Spared { due, class, tokens: wasted - spent, spent });
            self.gauge.ghosts -= 1;
        }
    }
}
