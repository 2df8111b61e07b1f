use std::time::Duration;

use super::config::{Budgets, Counts};
use super::{Ask, Limit, TenantId};
use crate::units::{Meter, Moment, Rate, Tokens, Window};

/// What may be spent: budgets of tokens and requests for everyone and for each tenant, and slots at the provider.
///
/// All budgets a step needs are checked, then all are taken: a refusal takes from none.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    tokens: Option<Meter>,
    requests: Option<Meter>,
    /// Tokens and requests a second.
    rates: (Option<f64>, Option<f64>),
    slots: Option<u32>,
    in_use: u32,
    held: Tokens,
    tenants: Vec<Books>,
}

/// One tenant's own budgets.
#[derive(Debug, Clone)]
struct Books {
    counts: Counts,
    tokens: Option<Meter>,
    requests: Option<Meter>,
}

impl Ledger {
    pub(crate) fn new(budgets: &Budgets, tenants: &[super::config::Tenant], now: Moment) -> Self {
        let meter = |rate: Option<_>, window| rate.map(|rate| Meter::new(rate, window, now));
        let counter = |rate: Option<_>, window: Window| {
            rate.map(|rate| Meter::new(rate, window.holding_one(rate), now))
        };
        let books = tenants.iter().map(|tenant| Books {
            counts: tenant.counts,
            tokens: meter(tenant.tokens, tenant.window),
            requests: counter(tenant.requests, tenant.window),
        });
        Self {
            tokens: meter(budgets.tokens, budgets.window()),
            requests: counter(budgets.requests, budgets.window()),
            rates: (budgets.tokens.map(Rate::per_sec_f64), budgets.requests.map(Rate::per_sec_f64)),
            slots: budgets.concurrent,
            in_use: 0,
            held: Tokens::ZERO,
            tenants: books.collect(),
        }
    }

    pub(crate) fn advance(&mut self, now: Moment) {
        let advance = |meter: &mut Option<Meter>| {
            if let Some(meter) = meter {
                meter.advance(now);
            }
        };
        advance(&mut self.tokens);
        advance(&mut self.requests);
        for books in &mut self.tenants {
            advance(&mut books.tokens);
            advance(&mut books.requests);
        }
    }

    /// Tokens held for requests at the provider.
    pub(crate) const fn held(&self) -> Tokens {
        self.held
    }

    /// Tokens that could be spent at once by requests of `hold`.
    pub(crate) fn level(&self, hold: Tokens) -> Tokens {
        let by_tokens = self.tokens.as_ref().map(Meter::tokens);
        let by_requests = self.requests.as_ref().map(|meter| times(hold, meter.tokens().get()));
        let by_slots = self.slots.map(|slots| times(hold, u64::from(slots.saturating_sub(self.in_use))));
        smallest([by_tokens, by_requests, by_slots])
    }

    /// Tokens that can be spent within `span` by requests of `hold` whose answers take `service` on average.
    pub(crate) fn supply(&self, span: Duration, hold: Tokens, service: Duration) -> Tokens {
        let by_tokens = self.tokens.as_ref().map(|meter| meter.supply(span));
        let by_requests = self.requests.as_ref().map(|meter| times(hold, meter.supply(span).get()));
        let by_slots = self.slots.map(|slots| {
            let free = f64::from(slots.saturating_sub(self.in_use));
            let turned = f64::from(slots) * span.as_secs_f64() / service.as_secs_f64().max(1e-9);
            Tokens::new(((free + turned) * hold.get() as f64) as u64)
        });
        smallest([by_tokens, by_requests, by_slots])
    }

    /// What the budgets let through in the long run, in tokens a second, for requests of `hold` on average whose
    /// answers take `service`: the smallest of the token rate, the request rate and the slots.
    pub(crate) fn drain(&self, hold: Tokens, service: Duration) -> f64 {
        let hold = hold.get() as f64;
        let by_slots = self.slots.map(|slots| f64::from(slots) / service.as_secs_f64().max(1e-9) * hold);
        let by_tokens = self.rates.0.unwrap_or(f64::MAX);
        let by_requests = self.rates.1.map_or(f64::MAX, |rate| rate * hold);
        by_tokens.min(by_requests).min(by_slots.unwrap_or(f64::MAX))
    }

    /// The most a single request may ask for, ever, and whose limit that is.
    pub(crate) fn most(&self, tenant: TenantId) -> (Tokens, Limit) {
        let size = |meter: &Option<Meter>| meter.as_ref().map_or(Tokens::new(u64::MAX), Meter::size);
        let own = self
            .tenants
            .get(usize::from(tenant.0))
            .map_or(Tokens::new(u64::MAX), |books| size(&books.tokens));
        let all = size(&self.tokens);
        if own < all { (own, Limit::TenantTokens) } else { (all, Limit::Tokens) }
    }

    /// Which of its own limits `ask`'s tenant is over, and how long until it is not; `None` if none.
    pub(crate) fn over_own(&self, ask: &Ask) -> Option<(Limit, Duration)> {
        let books = self.tenants.get(usize::from(ask.tenant.0))?;
        if books.requests.is_none() && books.tokens.is_none() {
            return None;
        }
        let wait = |meter: &Option<Meter>, amount| {
            meter.as_ref().map_or(Some(Duration::ZERO), |m| m.time_until(amount))
        };
        let waits = [
            (Limit::TenantRequests, wait(&books.requests, Tokens::new(1))),
            (Limit::TenantTokens, wait(&books.tokens, ask.hold())),
        ];
        // what can never be is refused before
        let waits = waits.into_iter().map(|(limit, wait)| (limit, wait.unwrap_or(Duration::MAX)));
        waits.filter(|(_, wait)| !wait.is_zero()).max_by_key(|(_, wait)| *wait)
    }

    /// How many requests like `ask` its tenant's own limits still let through now; `None` where it has none.
    pub(crate) fn own_room(&self, ask: &Ask) -> Option<u64> {
        let books = self.tenants.get(usize::from(ask.tenant.0))?;
        let by_tokens = books.tokens.as_ref().map(|meter| meter.tokens().get() / ask.hold().get().max(1));
        let by_requests = books.requests.as_ref().map(|meter| meter.tokens().get());
        by_tokens.into_iter().chain(by_requests).min()
    }

    /// Takes a request from its tenant's own budgets at the stage that `stage` names, if that is when it counts.
    pub(crate) fn take_own(&mut self, ask: &Ask, stage: Counts) {
        let books = self.tenants.get_mut(usize::from(ask.tenant.0));
        let Some(books) = books.filter(|books| books.counts == stage) else { return };
        if let Some(meter) = &mut books.tokens {
            meter.charge(ask.hold());
        }
        if let Some(meter) = &mut books.requests {
            meter.charge(Tokens::new(1));
        }
    }

    /// Gives the tokens of a request that was admitted and never forwarded back to its tenant.
    pub(crate) fn return_own(&mut self, ask: &Ask) {
        self.settle_own(ask, Tokens::ZERO);
    }

    /// Takes what `ask` needs of the shared budgets if it is all there.
    pub(crate) fn hold(&mut self, ask: &Ask) -> bool {
        let hold = ask.hold();
        let fits = self.is_ready(ask);
        if fits {
            for (meter, amount) in [(&mut self.tokens, hold), (&mut self.requests, Tokens::new(1))] {
                if let Some(meter) = meter {
                    meter.charge(amount);
                }
            }
            self.occupy(ask);
        }
        fits
    }

    /// Whether [`Self::hold`] would succeed now.
    pub(crate) fn is_ready(&self, ask: &Ask) -> bool {
        let there = |meter: &Option<Meter>, amount| meter.as_ref().is_none_or(|meter| meter.holds(amount));
        self.slots.is_none_or(|slots| self.in_use < slots)
            && there(&self.tokens, ask.hold())
            && there(&self.requests, Tokens::new(1))
    }

    /// When [`Self::hold`] would succeed if nothing else is taken; `None` if only a freed slot can bring it about.
    pub(crate) fn ready_at(&self, ask: &Ask) -> Option<Moment> {
        if self.slots.is_some_and(|slots| self.in_use >= slots) {
            return None;
        }
        let ready = |meter: &Option<Meter>, amount| {
            meter.as_ref().map_or(Some(Moment::ZERO), |m| m.time_until(amount).map(|wait| m.at() + wait))
        };
        Some(ready(&self.tokens, ask.hold())?.max(ready(&self.requests, Tokens::new(1))?))
    }

    /// Replaces a hold by what was really used and frees its slot.
    pub(crate) fn settle(&mut self, ask: &Ask, used: Tokens) {
        self.free(ask);
        if let Some(meter) = &mut self.tokens {
            meter.refund(ask.hold() - used);
            meter.charge(used - ask.hold());
        }
        self.settle_own(ask, used);
    }

    /// Gives a hold back whole, the request too: the provider did no work for it. Its tenant's budgets stay taken, for
    /// it waits again.
    pub(crate) fn release(&mut self, ask: &Ask) {
        self.free(ask);
        for (meter, amount) in [(&mut self.tokens, ask.hold()), (&mut self.requests, Tokens::new(1))] {
            if let Some(meter) = meter {
                meter.refund(amount);
            }
        }
    }

    /// The provider says its quota is spent, whatever this ledger believed.
    pub(crate) fn believe_empty(&mut self) {
        if let Some(meter) = &mut self.tokens {
            meter.empty();
        }
    }

    /// Notes that `ask` has a slot, and its tokens are held.
    pub(crate) fn occupy(&mut self, ask: &Ask) {
        self.in_use += 1;
        self.held += ask.hold();
    }

    /// Notes that it has no more.
    pub(crate) fn free(&mut self, ask: &Ask) {
        self.in_use -= 1;
        self.held = self.held - ask.hold();
    }

    fn settle_own(&mut self, ask: &Ask, used: Tokens) {
        let books = self.tenants.get_mut(usize::from(ask.tenant.0));
        if let Some(meter) = books.and_then(|books| books.tokens.as_mut()) {
            meter.refund(ask.hold() - used);
            meter.charge(used - ask.hold());
        }
    }
}

fn times(hold: Tokens, count: u64) -> Tokens {
    Tokens::new(hold.get().saturating_mul(count))
}

/// The least of the limits there are; without any, as much as can be counted in a float without loss.
fn smallest(limits: [Option<Tokens>; 3]) -> Tokens {
    let least = |a: Option<Tokens>, b: Option<Tokens>| match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    let [a, b, c] = limits;
    least(least(a, b), c).unwrap_or(Tokens::new(1 << 53))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_rate_of_requests_lets_one_through_at_a_time() {
        let rate = Rate::per_minute(20).unwrap();
        let second = Duration::from_secs(1);
        for window in [
            Window::Bucket { burst: second },
            Window::Fixed { period: second },
            Window::Sliding { period: second },
        ] {
            let mut meter = Meter::new(rate, window.holding_one(rate), Moment::ZERO);
            assert!(meter.take(Tokens::new(1)) && !meter.take(Tokens::new(1)), "{window:?}");
            meter.advance(Moment::from_millis(3_001));
            assert!(meter.take(Tokens::new(1)), "{window:?}: one in three seconds");
        }
    }
}
