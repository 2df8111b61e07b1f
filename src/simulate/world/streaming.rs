//! Answers that come token by token: what their callers read, and what breaks them off.

use super::{Open, World};
use crate::admission::Id;
use crate::observe::{Attempt, Gaps, Sighting};
use crate::provider::{Engine, Flow};
use crate::units::Tokens;

impl<See: FnMut(Sighting)> World<'_, See> {
    /// A caller leaves while the provider makes its answer.
    pub(super) fn break_off(&mut self, id: Id, open: &Open, flow: Flow, streams: bool) {
        if streams {
            self.read(open.attempt, flow);
        }
        if self.gateway.forgets_leaver(id) && !self.attached.wait_for(id) {
            self.flows.remove(id.0);
            if self.plan.provider.engine == Engine::Stream {
                let spent = open.sizes.prompt + Tokens::new(flow.by(self.now));
                (self.see)(Sighting::CutOff { attempt: open.attempt, at: self.now, spent });
            }
        }
    }

    /// A caller has read what there is by now of a streamed answer.
    pub(super) fn read(&mut self, attempt: Attempt, flow: Flow) {
        let mut left = flow.by(self.now);
        let mut first = (left > 0).then(|| flow.due(0));
        left = left.saturating_sub(1);
        while first.is_some() || left > 0 {
            let count = u32::try_from(left).unwrap_or(u32::MAX);
            let mut gaps = Box::<Gaps>::default();
            gaps.push(flow.gap, count);
            (self.see)(Sighting::Tokens { attempt, at: self.now, first: first.take(), gaps });
            left -= u64::from(count);
        }
    }
}
