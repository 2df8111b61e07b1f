//! `/metrics`: the machine's state and what became of requests, in Prometheus' text form.

use std::fmt::{Display, Write};

use crate::admission::{Expiry, Gauge};

/// What became of a request, as it is counted here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// Answered by the provider with success, to the end.
    Completed,
    /// Its idempotency key was used with another body.
    Conflict,
    /// The same operation already runs, and its answer could not be given.
    DuplicateActive,
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
    /// Given the answer of another request of the same operation.
    Replayed,
    /// Refused for scarcity.
    Shed,
    /// Refused because the gateway is going down.
    Stopping,
    /// Refused because its tenant is over a limit of its own.
    Throttled,
}

/// How a call to the provider ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallEnd {
    /// With success, to the end.
    Answered,
    /// It broke off.
    Broken,
    /// The provider said it was overloaded (503, 529).
    Busy,
    /// Its caller left, or the gateway gave it up.
    Cancelled,
    /// The provider found the request wrong (4xx), or answered with a redirect.
    ClientError,
    /// No connection came about.
    Connect,
    /// The provider refused it for its quota (429).
    Refused,
    /// Another 5xx.
    ServerError,
    /// Its deadline came first.
    Timeout,
}

impl Outcome {
    /// All of them, sorted by name.
    const ALL: [(&'static str, Self); 13] = [
        ("completed", Self::Completed),
        ("conflict", Self::Conflict),
        ("duplicate_active", Self::DuplicateActive),
        ("expired", Self::Expired),
        ("failed", Self::Failed),
        ("left", Self::Left),
        ("malformed", Self::Malformed),
        ("never_fits", Self::NeverFits),
        ("not_found", Self::NotFound),
        ("replayed", Self::Replayed),
        ("shed", Self::Shed),
        ("stopping", Self::Stopping),
        ("throttled", Self::Throttled),
    ];
}

impl CallEnd {
    /// All of them, sorted by name.
    const ALL: [(&'static str, Self); 9] = [
        ("answered", Self::Answered),
        ("broken", Self::Broken),
        ("busy", Self::Busy),
        ("cancelled", Self::Cancelled),
        ("client_error", Self::ClientError),
        ("connect", Self::Connect),
        ("refused", Self::Refused),
        ("server_error", Self::ServerError),
        ("timeout", Self::Timeout),
    ];
}

/// Why admitted requests were dropped, sorted by name.
const EXPIRIES: [(&str, Expiry); 4] = [
    ("deadline", Expiry::Deadline),
    ("delay", Expiry::Delay),
    ("evicted", Expiry::Evicted),
    ("upstream", Expiry::Upstream),
];

/// What was counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    outcomes: [u64; Outcome::ALL.len()],
    ends: [u64; CallEnd::ALL.len()],
    expiries: [u64; EXPIRIES.len()],
    /// Calls to the provider.
    pub(crate) forwards: u64,
}

/// What the shell itself holds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Holdings {
    /// Requests that wait for the answer of another.
    pub(crate) attached: usize,
    /// Answers kept for duplicates.
    pub(crate) kept: usize,
}

impl Counts {
    /// One more request ended so.
    pub(crate) const fn add(&mut self, outcome: Outcome) {
        self.outcomes[outcome as usize] += 1;
    }

    /// One more call ended so.
    pub(crate) const fn call(&mut self, end: CallEnd) {
        self.ends[end as usize] += 1;
    }

    /// One more admitted request was dropped.
    pub(crate) const fn expired(&mut self, why: Expiry) {
        self.expiries[why as usize] += 1;
    }

    /// The whole page.
    pub(crate) fn render(&self, gauge: &Gauge, holdings: Holdings) -> String {
        let mut page = String::with_capacity(6_144);
        gauges(&mut page, gauge, holdings);
        one(&mut page, "forwards_total", "counter", "Calls to the provider.", &self.forwards);
        let refused = self.ends[CallEnd::Refused as usize];
        one(&mut page, "upstream_refusals_total", "counter", "Calls it refused for its quota.", &refused);
        let ends = CallEnd::ALL.map(|(name, end)| (name, self.ends[end as usize]));
        several(
            &mut page,
            "upstream_calls_total",
            "Calls to the provider that have ended, by how.",
            "end",
            ends,
        );
        let expiries = EXPIRIES.map(|(name, why)| (name, self.expiries[why as usize]));
        several(&mut page, "expired_total", "Admitted requests that were dropped, by why.", "why", expiries);
        let outcomes = Outcome::ALL.map(|(name, outcome)| (name, self.outcomes[outcome as usize]));
        several(&mut page, "requests_total", "Requests that have ended, by outcome.", "outcome", outcomes);
        page
    }
}

fn gauges(page: &mut String, gauge: &Gauge, holdings: Holdings) {
    let mut one = |name: &str, about: &str, value: &dyn Display| one(page, name, "gauge", about, value);
    one("queue_requests", "Requests waiting.", &gauge.waiting);
    one("queue_tokens", "Tokens reserved by those that wait.", &gauge.waiting_tokens);
    one("queue_bytes", "Bytes of their bodies.", &gauge.waiting_bytes.get());
    one("in_flight_requests", "Requests at the provider, calls of unknown end among them.", &gauge.in_flight);
    one(
        "unknown_requests",
        "Calls whose end nobody knows: their tokens stay held for a while.",
        &gauge.unknown,
    );
    one("held_tokens", "Tokens held for requests at the provider.", &gauge.held);
    one("level_tokens", "Tokens that could be spent at once.", &gauge.level);
    one("service_seconds", "The service time that is reckoned with.", &gauge.service.as_secs_f64());
    one("promises", "Refused callers that were told a time and are still expected.", &gauge.promises);
    one("returning_ratio", "The share of refused callers believed to return.", &gauge.returning);
    one("attached_requests", "Requests that wait for the answer of another.", &holdings.attached);
    one("kept_answers", "Answers kept for duplicates.", &holdings.kept);
}

// writing to a string cannot fail

fn head(page: &mut String, name: &str, kind: &str, about: &str) {
    let _ = writeln!(page, "# HELP tenfold_gateway_{name} {about}");
    let _ = writeln!(page, "# TYPE tenfold_gateway_{name} {kind}");
}

fn one(page: &mut String, name: &str, kind: &str, about: &str, value: &dyn Display) {
    head(page, name, kind, about);
    let _ = writeln!(page, "tenfold_gateway_{name} {value}");
}

fn several<const N: usize>(
    page: &mut String,
    name: &str,
    about: &str,
    label: &str,
    counts: [(&str, u64); N],
) {
    head(page, name, "counter", about);
    for (value, count) in counts {
        let _ = writeln!(page, "tenfold_gateway_{name}{{{label}=\"{value}\"}} {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_end_has_its_own_line() {
        let mut counts = Counts::default();
        for (n, (_, outcome)) in (1..).zip(Outcome::ALL) {
            (0..n).for_each(|_| counts.add(outcome));
        }
        for (n, (_, end)) in (1..).zip(CallEnd::ALL) {
            (0..n).for_each(|_| counts.call(end));
        }
        for (n, (_, why)) in (1..).zip(EXPIRIES) {
            (0..n).for_each(|_| counts.expired(why));
        }
        let page =
            counts.render(&Gauge { waiting: 7, ..Gauge::default() }, Holdings { attached: 3, kept: 2 });
        let line = |name: &str, label: &str, value: &str, n: u64| {
            let line = format!("\ntenfold_gateway_{name}{{{label}=\"{value}\"}} {n}\n");
            assert!(page.contains(&line), "{line} in {page}");
        };
        (1..).zip(Outcome::ALL).for_each(|(n, (name, _))| line("requests_total", "outcome", name, n));
        (1..).zip(CallEnd::ALL).for_each(|(n, (name, _))| line("upstream_calls_total", "end", name, n));
        (1..).zip(EXPIRIES).for_each(|(n, (name, _))| line("expired_total", "why", name, n));
        assert!(page.contains("\ntenfold_gateway_queue_requests 7\n"));
        assert!(page.contains("\ntenfold_gateway_attached_requests 3\n"));
        assert!(Outcome::ALL.is_sorted() && CallEnd::ALL.is_sorted());
    }
}
