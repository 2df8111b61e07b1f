//! How a recording is followed: what another gateway did with a request is done here, too, and beside it stands what
//! this policy would have done in the very same state.

use super::Admission;
use super::arrival::Verdict;
use crate::admission::config::Counts;
use crate::admission::{Ask, Effect, Limit};
use crate::units::{Moment, Tokens};

/// A margin beyond so many requests is not told apart.
const FURTHEST: u32 = 1_024;

/// How a request is met when it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Met {
    /// It is let in: forwarded at once, or it waits.
    Admitted,
    /// Refused for scarcity.
    Shed,
    /// Refused for entitlement.
    Throttled,
    /// Refused for good.
    Rejected,
}

/// What a policy would have done with a request that was met otherwise, or alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Says {
    /// What it would have done.
    pub met: Met,
    /// Where it would have done otherwise: how many requests like it must wait more, or fewer, until it would not. `None`
    /// where no such number is near.
    pub margin: Option<u32>,
    /// Whether it would have done as was done if the caller's return had not been kept room for, or had.
    pub by_return: bool,
    /// What stood before it, in tokens of everyone who waits.
    pub waiting: Tokens,
    /// Whether others would have given way to it.
    pub evicting: bool,
}

impl Admission {
    /// Takes in an arrival that was met as `met`, says how this policy would have met it, and goes on as if it had met it
    /// like that. Without an operation: duplicates are not told apart here.
    pub fn follow(&mut self, now: Moment, ask: Ask, met: Met, effects: &mut Vec<Effect>) -> Says {
        self.advance(now, effects);
        let waiting = self.queue.tokens();
        let says = match self.refusal(&ask) {
            Some(Effect::Throttle { .. }) => self.says_throttled(&ask, met, waiting),
            Some(_) => Says { met: Met::Rejected, margin: None, by_return: false, waiting, evicting: false },
            None => self.follow_entitled(now, &ask, met, waiting, effects),
        };
        if says.met != met && met == Met::Admitted && says.met != Met::Rejected {
            self.ledger.take_own(&ask, Counts::Passed);
            self.treat(now, ask, Verdict::Admit(Vec::new()), effects);
        }
        let supply = self.supply(now, effects);
        self.wake = self.when_to_wake(supply);
        says
    }

    /// The same for one whose tenant is within its limits. Done is what both would do, and a refusal in any case.
    fn follow_entitled(
        &mut self,
        now: Moment,
        ask: &Ask,
        met: Met,
        waiting: Tokens,
        effects: &mut Vec<Effect>,
    ) -> Says {
        let returning = self.redeem(now, ask);
        let verdict = self.weigh(now, ask, returning, 0);
        let evicting = matches!(&verdict, Verdict::Admit(evicted) if !evicted.is_empty());
        let says = if matches!(verdict, Verdict::Shed(_)) { Met::Shed } else { Met::Admitted };
        let mut told = Says { met: says, margin: None, by_return: false, waiting, evicting };
        if says != met {
            let flips = |more: i64| self.lets_in(now, ask, returning, more) != (says == Met::Admitted);
            let sign = if says == Met::Admitted { 1 } else { -1 };
            match met {
                Met::Admitted | Met::Shed => {
                    told.margin = nearest(|count| flips(sign * i64::from(count)));
                    told.by_return = self.lets_in(now, ask, !returning, 0) == (met == Met::Admitted);
                }
                Met::Throttled => told.margin = self.own_room(ask),
                Met::Rejected => {}
            }
        }
        match (met, verdict) {
            (Met::Admitted, Verdict::Shed(_)) => {}
            (Met::Admitted, verdict) => {
                self.ledger.take_own(ask, Counts::Passed);
                self.treat(now, ask.clone(), verdict, effects);
            }
            (Met::Shed, verdict) => {
                self.ledger.take_own(ask, Counts::Passed);
                let until_room = match verdict {
                    Verdict::Shed(until_room) => until_room,
                    Verdict::Forward | Verdict::Admit(_) => 0.0,
                };
                self.appoint(now, ask, until_room);
            }
            (Met::Throttled | Met::Rejected, _) => {}
        }
        told
    }

    fn lets_in(&self, now: Moment, ask: &Ask, returning: bool, more: i64) -> bool {
        !matches!(self.weigh(now, ask, returning, more), Verdict::Shed(_))
    }

    /// Of one whose tenant is over a limit of its own: by how many requests.
    fn says_throttled(&self, ask: &Ask, met: Met, waiting: Tokens) -> Says {
        let over = self.ledger.over_own(ask).filter(|_| met != Met::Throttled);
        let margin = over.and_then(|(limit, wait)| {
            let tenant = self.config.tenants.get(usize::from(ask.tenant.0))?;
            let each = match limit {
                Limit::TenantRequests => tenant.requests?.time_for(1),
                Limit::TenantTokens | Limit::Tokens => tenant.tokens?.time_for(ask.hold().get()),
            };
            let requests = wait.as_nanos().div_ceil(each.as_nanos().max(1));
            u32::try_from(requests).ok().filter(|requests| *requests <= FURTHEST)
        });
        Says { met: Met::Throttled, margin, by_return: false, waiting, evicting: false }
    }

    /// How many requests like `ask` its tenant may still send, if it has limits.
    fn own_room(&self, ask: &Ask) -> Option<u32> {
        let room = self.ledger.own_room(ask)?;
        u32::try_from(room).ok().filter(|room| *room <= FURTHEST)
    }
}

/// The least number from one on for which `flips` holds, which then holds for all larger ones too; `None` if it is far.
fn nearest(flips: impl Fn(u32) -> bool) -> Option<u32> {
    let mut high = 1;
    while !flips(high) {
        high *= 2;
        if high > FURTHEST {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if flips(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Config, Id, TenantId, testing};
    use crate::units::Bytes;

    fn machine(policy: &str) -> Admission {
        let config: Config = testing::config(policy);
        Admission::new(&config, Moment::ZERO)
    }

    fn ask(id: u64, tenant: u16, tier: u8) -> Ask {
        Ask {
            id: Id(id),
            caller: id,
            prompt: Tokens::new(800),
            max_output: Tokens::new(400),
            bytes: Bytes::new(100),
            deadline: Moment::from_secs(1_000),
            tenant: TenantId(tenant),
            tier,
            operation: None,
        }
    }

    /// Nothing drains within the test: 1,200 tokens a minute, and what can be spent at once.
    const SLOW: &str = "{ service: { start: 1s }, margin: 0s, retry_after: none, bound: { requests: 5 }, \
                        budgets: { tokens_per_minute: 1_200, burst: 60s } }";

    fn follow(machine: &mut Admission, id: u64, met: Met) -> Says {
        machine.follow(Moment::from_millis(id), ask(id, 0, 0), met, &mut Vec::new())
    }

    #[test]
    fn the_state_is_what_was_done_and_the_verdict_what_the_policy_says_of_it() {
        let mut machine = machine(SLOW);
        // one is forwarded, five may wait
        for id in 0..6 {
            assert_eq!(follow(&mut machine, id, Met::Admitted).met, Met::Admitted, "{id}");
        }
        let over: Vec<Says> = (6..10).map(|id| follow(&mut machine, id, Met::Admitted)).collect();
        assert!(over.iter().all(|says| says.met == Met::Shed));
        let margins: Vec<_> = over.iter().map(|says| says.margin).collect();
        assert_eq!(margins, [Some(1), Some(2), Some(3), Some(4)], "each stands further over");
        assert_eq!(machine.waiting(), 9, "they are let in all the same");
    }

    #[test]
    fn a_shed_too_early_is_as_far_off_as_there_is_room() {
        let mut machine = machine(SLOW);
        follow(&mut machine, 0, Met::Admitted);
        let early: Vec<Says> = (1..3).map(|id| follow(&mut machine, id, Met::Shed)).collect();
        assert!(early.iter().all(|says| (says.met, says.margin) == (Met::Admitted, Some(5))), "{early:?}");
        assert_eq!(machine.waiting(), 0);
        for id in 3..7 {
            follow(&mut machine, id, Met::Admitted);
        }
        assert_eq!(follow(&mut machine, 7, Met::Shed).margin, Some(1), "the last place");
    }

    #[test]
    fn a_throttle_is_as_far_off_as_its_tenant_is_from_its_limit() {
        let own = "{ service: { start: 1s }, retry_after: none, bound: none, \
                   budgets: { tokens_per_minute: 1_200, burst: 60s }, \
                   tenants: [{ name: a, requests: 60/min, burst: 5s }] }";
        let mut machine = machine(own);
        let early = follow(&mut machine, 0, Met::Throttled);
        assert_eq!((early.met, early.margin), (Met::Admitted, Some(5)));
        for id in 1..6 {
            assert_eq!(follow(&mut machine, id, Met::Admitted).met, Met::Admitted);
        }
        let over: Vec<_> = (6..9).map(|id| follow(&mut machine, id, Met::Admitted)).collect();
        let margins: Vec<_> = over.iter().map(|says| (says.met, says.margin)).collect();
        assert_eq!(margins, [1, 2, 3].map(|margin| (Met::Throttled, Some(margin))));
    }

    #[test]
    fn those_who_would_have_given_way_are_noticed() {
        let mut machine = machine(SLOW);
        for id in 0..6 {
            machine.follow(Moment::from_millis(id), ask(id, 0, 2), Met::Admitted, &mut Vec::new());
        }
        let says = machine.follow(Moment::from_millis(9), ask(9, 0, 0), Met::Shed, &mut Vec::new());
        assert_eq!((says.met, says.evicting), (Met::Admitted, true));
    }

    #[test]
    fn those_who_cannot_make_room_are_not_counted_twice() {
        let by_deadline = SLOW.replace("bound: { requests: 5 }", "bound: deadline");
        let mut machine = machine(&by_deadline);
        for id in 0..10 {
            machine.follow(Moment::from_millis(id), ask(id, 0, 2), Met::Admitted, &mut Vec::new());
        }
        // 999 s at 20 tokens a second: 16 wait before those of a lower tier, whoever of those goes
        let says: Vec<Says> = (10..30)
            .map(|id| machine.follow(Moment::from_millis(id), ask(id, 0, 0), Met::Admitted, &mut Vec::new()))
            .collect();
        let over = says.iter().position(|says| says.met == Met::Shed).unwrap();
        assert_eq!((over, says[over].margin), (16, Some(1)));
    }
}
