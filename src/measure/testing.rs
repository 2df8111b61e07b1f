//! Plans and records by hand, for the tests of this layer and of those after it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::{Measures, Vital};
use crate::admission::{self, Budgets};
use crate::observe::{Answer, Attempt, Depth, Gauge, HintSet, Outcome, Record, RetryAfter, Sighting};
use crate::plan::{
    DeadlineForm, DeadlineHeader, Embedded, Expect, Plan, Refusal, Rehearsal, Target, TargetKind,
    TargetRequest, Validity,
};
use crate::provider;
use crate::units::{Bytes, Faults, Key, Moment, Node, Place, Ratio, Read, Reader, Share, Tokens, Value};
use crate::workload::{ClassId, Load, Mix, Probes};

fn node(value: &Json) -> Node {
    let place = Place::Override("test".into());
    let value = match value {
        Json::Null => Value::Null,
        Json::String(text) => Value::Text { text: text.clone(), plain: true },
        Json::Array(items) => Value::List(items.iter().map(node).collect()),
        Json::Object(map) => {
            let entry =
                |(text, value)| (Key { text: String::clone(text), place: place.clone() }, node(value));
            Value::Map(map.iter().map(entry).collect())
        }
        other => Value::Text { text: other.to_string(), plain: true },
    };
    Node { place, value }
}

fn read<T>(value: &Json, read: impl FnOnce(&Reader<'_>) -> Option<T>) -> T {
    let (node, faults) = (node(value), Faults::default());
    let read = read(&Reader::root(&node, &faults));
    read.unwrap_or_else(|| panic!("{:?}", faults.into_sorted()))
}

/// What differs between the plans of these tests.
pub(crate) struct Sketch {
    pub(crate) name: &'static str,
    pub(crate) arrivals: &'static str,
    pub(crate) phases: [(&'static str, &'static str); 3],
    pub(crate) quota: &'static str,
    pub(crate) requests: Json,
    pub(crate) service: [&'static str; 2],
    pub(crate) policy: Json,
}

/// `plans/smoke.yaml`, as the issue gives it.
pub(crate) fn smoke() -> Sketch {
    Sketch {
        name: "smoke",
        arrivals: "constant",
        phases: [("480/min", "2s"), ("4800/min", "12s"), ("480/min", "8s")],
        quota: "1_200_000",
        requests: json!([request("ask", 1, "6kB", "4500ms")]),
        service: ["200ms", "2ms"],
        policy: json!({ "service": { "start": "1s" }, "margin": "500ms" }),
    }
}

/// The plan of the flash promotion.
pub(crate) fn flash() -> Sketch {
    Sketch {
        name: "flash-promotion",
        arrivals: "constant",
        phases: [("200/min", "5m"), ("2000/min", "40m"), ("200/min", "10m")],
        quota: "500_000",
        requests: json!([request("ask", 1, "6kB", "25s")]),
        service: ["600ms", "6ms"],
        policy: json!({ "service": { "start": "3s" }, "margin": "500ms" }),
    }
}

/// A class of 800 tokens asked and 400 answered.
pub(crate) fn request(name: &str, weight: u32, bytes: &str, deadline: &str) -> Json {
    json!({ "name": name, "weight": weight, "prompt": { "tokens": 800, "bytes": bytes }, "max_tokens": 400,
        "deadline": deadline })
}

impl Sketch {
    pub(crate) fn plan(&self) -> Plan {
        let names = ["before", "promotion", "after"];
        let phases: Vec<_> = names
            .iter()
            .zip(self.phases)
            .map(|(name, (rate, lasts))| json!({ "name": name, "rate": rate, "for": lasts, "event": *name == "promotion" }))
            .collect();
        let load = json!({ "seed": 7, "arrivals": self.arrivals, "phases": phases });
        let provider = json!({
            "quota": { "tokens_per_minute": self.quota },
            "service": { "first_token": self.service[0], "per_token": self.service[1] },
        });
        let provider = read(&provider, provider::Config::read);
        let standard = Budgets::of_tokens(provider.quota.tokens, Duration::from_millis(900));
        let admission = read(&self.policy, |r| admission::Config::read(&mut r.map()?, Some(standard)));
        Plan {
            name: self.name.into(),
            about: "A plan of the tests.".into(),
            load: read(&load, Load::read),
            requests: read(&self.requests, Mix::read),
            provider,
            target: target(TargetKind::Embedded(Embedded { admission, own_budgets: false })),
            rehearsal: None,
            scale: Ratio::ONE,
            probes: Probes::default(),
            expect: expect(),
            validity: Validity {
                lag_p99: None,
                unsent: Share::new(0.001).unwrap(),
                unjoined: Share::new(0.01).unwrap(),
                achieved: Share::new(0.995).unwrap(),
            },
            abort_when: Vec::new(),
            max_outstanding: 20_000,
            checks: BTreeMap::new(),
            variants: Vec::new(),
            levers: Vec::new(),
            diff: BTreeMap::new(),
        }
    }

    /// The plan, rehearsed at one half in 20, 60 and 50 seconds.
    pub(crate) fn rehearsed(&self) -> Plan {
        let lasts = [("before", 20), ("promotion", 60), ("after", 50)];
        let phases =
            lasts.iter().map(|(name, secs)| ((*name).to_owned(), Duration::from_secs(*secs))).collect();
        let rehearsal = Rehearsal { scale: Ratio::new(1, 2).unwrap(), phases };
        Plan { rehearsal: Some(rehearsal), ..self.plan() }.rehearsed()
    }
}

fn target(kind: TargetKind) -> Target {
    Target {
        kind,
        request: TargetRequest {
            path: "/v1/chat/completions".into(),
            model: "rehearsal".into(),
            headers: BTreeMap::from([("authorization".into(), "Bearer a-secret".into())]),
            ca_file: None,
            insecure: false,
            health: "/healthz".into(),
            transport: crate::plan::Transport::default(),
        },
        deadline: DeadlineHeader { header: "x-request-timeout-ms".into(), form: DeadlineForm::RemainingMs },
        memory: None,
        metrics: None,
    }
}

fn expect() -> Expect {
    Expect {
        refusal: Refusal {
            shed: vec![503],
            throttled: vec![429],
            fast_within: Duration::from_millis(100),
            instead: Vec::new(),
            marked_by: BTreeMap::new(),
            headers: BTreeMap::new(),
            body: BTreeMap::new(),
        },
    }
}

/// An attempt of arrival `seq` due at `due_ms`, sent at once, that ended `took_ms` later.
pub(crate) fn record(seq: u64, due_ms: u64, took_ms: u64, outcome: Outcome) -> Record {
    let refused = matches!(outcome, Outcome::Shed | Outcome::Throttled);
    let served = matches!(outcome, Outcome::Completed | Outcome::Late);
    let due = Moment::from_millis(due_ms);
    Record {
        attempt: Attempt { seq, nth: 0 },
        class: ClassId(0),
        hold: Tokens::new(1_200),
        probe: false,
        again: false,
        first_due: due,
        due,
        sent: (outcome != Outcome::Unsent).then_some(due),
        depth_met: Depth::default(),
        at_provider: served.then_some(due),
        upstream_attempts: u32::from(served),
        upstream_refusals: 0,
        untold: false,
        overtold: Duration::ZERO,
        ended: Moment::from_millis(due_ms + took_ms),
        outcome,
        status: if served { Some(200) } else { refused.then_some(503) },
        reason: None,
        retry_after: refused.then_some(RetryAfter::After(Duration::from_secs(7))),
        hints: HintSet::NONE,
        should_retry: None,
        broken: None,
        read: 0,
        shape: Ok(()),
        first_token: None,
        tokens: 0,
        streamed: None,
        charged: Tokens::new(if served { 1_200 } else { 0 }),
        wasted: Tokens::ZERO,
    }
}

/// Takes in an arrival and what became of it.
pub(crate) fn arrive(measures: &mut Measures, record: &Record) {
    measures.due(record.attempt, record.due);
    measures.record(record);
}

/// A depth of so many requests of 1,200 tokens.
pub(crate) fn depth(requests: u64) -> Depth {
    Depth { requests, tokens: Tokens::new(1_200 * requests) }
}

/// So many requests in the gateway, nothing else.
pub(crate) fn gauge(requests: u64) -> Gauge {
    Gauge { depth: depth(requests), at_provider: 0, ghosts: 0, outstanding: requests }
}

/// A run of the smoke plan as a healthy gateway answers it: one in every five arrivals of the event is served, the
/// others are shed at depth 37, and one in every twelve of those comes back after seven seconds and is served.
pub(crate) fn healthy(plan: &Plan) -> Measures {
    healthy_telling(plan, |into| 2 + into / 2)
}

/// The same, and who is refused so many seconds into the event is `told` so many.
pub(crate) fn healthy_telling(plan: &Plan, told: fn(u64) -> u64) -> Measures {
    let mut measures = Measures::new(plan);
    for tick in 0..3 {
        measures.vital(Vital::TargetMemory { at: Moment::ZERO, bytes: Bytes::new(10_000_000 + tick) });
    }
    let event = plan.load.event().expect("the smoke plan has an event");
    let (mut refused, mut stood) = (0u64, 0);
    let mut returns = Vec::new();
    for arrival in crate::workload::Schedule::new(&plan.load, &plan.requests) {
        let ms = arrival.due.as_nanos() / 1_000_000;
        let into = arrival.due.since(event.start);
        let inside = event.contains(arrival.due);
        let full = inside && into >= Duration::from_millis(837);
        let shed = full && arrival.seq % 24 < 19;
        stood = if full {
            37
        } else if inside {
            into.as_millis() as u64 / 22
        } else {
            0
        };
        let mut record = record(
            arrival.seq,
            ms,
            if shed { 1 } else { 2_900 },
            if shed { Outcome::Shed } else { Outcome::Completed },
        );
        record.depth_met = depth(stood);
        if shed {
            record.retry_after = Some(RetryAfter::After(Duration::from_secs(told(into.as_secs()))));
            if refused % 12 == 0 {
                returns.push((arrival.seq, ms + 2_250));
            }
            refused += 1;
        }
        arrive(&mut measures, &record);
        measures.stand(arrival.due, &gauge(stood));
    }
    for (seq, due_ms) in returns {
        let mut record = record(seq, due_ms, 3_500, Outcome::Completed);
        record.attempt.nth = 1;
        record.probe = true;
        measures.due(record.attempt, record.due);
        measures.record(&record);
    }
    for tick in 0..125u64 {
        let at = Moment::from_millis(tick * 200);
        measures.vital(Vital::Ping { at, took: Some(Duration::from_micros(600)) });
        measures.vital(Vital::TargetMemory { at, bytes: Bytes::new(14_000_000) });
        measures.vital(Vital::OwnMemory { at, bytes: Bytes::new(30_000_000) });
    }
    assert_eq!(stood, 0, "the last phase is quiet");
    measures.close(Moment::from_secs(25), &gauge(0), 0);
    measures.held = Some(super::Holds::default());
    measures
}

/// The four sightings of a request that is sent and answered with `status`.
pub(crate) fn sightings(seq: u64, due_ms: u64, took_ms: u64, status: u16) -> Vec<Sighting> {
    let attempt = Attempt { seq, nth: 0 };
    let (at, end) = (Moment::from_millis(due_ms), Moment::from_millis(due_ms + took_ms));
    let answer = Answer {
        status,
        retry_after: None,
        hints: HintSet::NONE,
        should_retry: None,
        reason: None,
        usable: status == 200,
        marked: true,
        shape: Ok(()),
        streamed: None,
    };
    vec![
        Sighting::Due { attempt, at, class: ClassId(0), hold: Tokens::new(1_200), probe: false },
        Sighting::Sent { attempt, at },
        Sighting::Answered { attempt, at: end, answer },
    ]
}
