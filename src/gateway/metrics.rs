//! `/metrics`: the machine's state and what became of requests, in Prometheus' text form.

use std::fmt::Write;

use crate::admission::Gauge;

/// What became of a request, as it is counted here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Answered by the provider with success, to the end.
    Completed,
    /// Admitted, then dropped.
    Expired,
    /// The provider failed, broke off or was too slow.
    Failed,
    /// Its caller left.
    Left,
    /// It made no sense, or its body could not be read.
    Malformed,
    /// It could never fit.
    NeverFits,
    /// Nothing is at its path.
    NotFound,
    /// Refused for scarcity.
    Shed,
    /// Refused because the gateway is going down.
    Stopping,
}

impl Outcome {
    /// All of them, sorted by name.
    const ALL: [(&'static str, Self); 9] = [
        ("completed", Self::Completed),
        ("expired", Self::Expired),
        ("failed", Self::Failed),
        ("left", Self::Left),
        ("malformed", Self::Malformed),
        ("never_fits", Self::NeverFits),
        ("not_found", Self::NotFound),
        ("shed", Self::Shed),
        ("stopping", Self::Stopping),
    ];
}

/// What was counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    outcomes: [u64; Outcome::ALL.len()],
    /// Calls to the provider.
    pub(crate) forwards: u64,
    /// Of these, refused by it for its quota.
    pub(crate) upstream_refusals: u64,
}

impl Counts {
    /// One more request ended so.
    pub(crate) const fn add(&mut self, outcome: Outcome) {
        self.outcomes[outcome as usize] += 1;
    }

    /// The whole page.
    pub(crate) fn render(&self, gauge: &Gauge) -> String {
        let mut page = String::with_capacity(4_096);
        let mut one = |name: &str, kind: &str, about: &str, value: &dyn std::fmt::Display| {
            // writing to a string cannot fail
            let _ = writeln!(page, "# HELP tenfold_gateway_{name} {about}");
            let _ = writeln!(page, "# TYPE tenfold_gateway_{name} {kind}");
            let _ = writeln!(page, "tenfold_gateway_{name} {value}");
        };
        one("queue_requests", "gauge", "Requests waiting.", &gauge.waiting);
        one("queue_tokens", "gauge", "Tokens reserved by those that wait.", &gauge.waiting_tokens);
        one("queue_bytes", "gauge", "Bytes of their bodies.", &gauge.waiting_bytes.get());
        one("in_flight_requests", "gauge", "Requests at the provider.", &gauge.in_flight);
        one("held_tokens", "gauge", "Tokens held for requests at the provider.", &gauge.held);
        one("level_tokens", "gauge", "Tokens that could be spent at once.", &gauge.level);
        one(
            "service_seconds",
            "gauge",
            "The service time that is reckoned with.",
            &gauge.service.as_secs_f64(),
        );
        one(
            "promises",
            "gauge",
            "Refused callers that were told a time and are still expected.",
            &gauge.promises,
        );
        one("returning_ratio", "gauge", "The share of refused callers believed to return.", &gauge.returning);
        one("forwards_total", "counter", "Calls to the provider.", &self.forwards);
        one("upstream_refusals_total", "counter", "Calls it refused for its quota.", &self.upstream_refusals);
        page.push_str("# HELP tenfold_gateway_requests_total Requests that have ended, by outcome.\n");
        page.push_str("# TYPE tenfold_gateway_requests_total counter\n");
        for (name, outcome) in Outcome::ALL {
            let count = self.outcomes[outcome as usize];
            let _ = writeln!(page, "tenfold_gateway_requests_total{{outcome=\"{name}\"}} {count}");
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_has_its_own_line() {
        let mut counts = Counts::default();
        for (n, (_, outcome)) in (1..).zip(Outcome::ALL) {
            (0..n).for_each(|_| counts.add(outcome));
        }
        let page = counts.render(&Gauge { waiting: 7, ..Gauge::default() });
        for (n, (name, _)) in (1..).zip(Outcome::ALL) {
            let line = format!("tenfold_gateway_requests_total{{outcome=\"{name}\"}} {n}\n");
            assert!(page.contains(&line), "{line} in {page}");
        }
        assert!(page.contains("\ntenfold_gateway_queue_requests 7\n"));
        assert!(Outcome::ALL.is_sorted());
    }
}
