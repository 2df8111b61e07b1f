//! The part of the schema that describes what a gateway decides by.

use serde_json::{Value, json};

use super::{flag, form, list, object, one_of, whole, word};
use crate::admission::faults::Amount;
use crate::admission::{bounds, faults, orders, retry_after, shares};

pub(super) fn policy(description: &str) -> Value {
    let names = |all: Vec<&'static str>| all;
    let strategies = names(retry_after::ALL.iter().map(|kind| kind.name).collect());
    let marks = object(
        &[],
        "how many must wait for it to change",
        [("high", whole("from here on the newest first")), ("low", whole("until so few wait"))],
    );
    let orders = names(orders::ALL.iter().map(|kind| kind.name).collect());
    let shares = names(shares::ALL.iter().map(|kind| kind.name).collect());
    let quantum =
        object(&[], "how much a turn gives", [("quantum", form("tokens", "tokens for a weight of 1"))]);
    object(
        &["service"],
        description,
        [
            ("bound", bound()),
            ("order", one_of("who is served next", &orders, json!({ "adaptive_lifo": marks }))),
            ("when_full", one_of("who gives way", &["evict_oldest", "refuse_newest"], json!({}))),
            ("recheck", flag("whether a request is tested again before it is forwarded")),
            ("codel", codel()),
            ("service", service()),
            ("margin", form("duration", "kept in reserve of a caller's time; default 500ms")),
            ("budgets", budgets()),
            ("tenants", list(tenant(), "those on whose behalf requests come")),
            ("share", one_of("how tenants share what is served", &shares, json!({ "drr": quantum }))),
            ("tiers", tiers()),
            (
                "duplicates",
                one_of("what happens to a request whose operation runs", &["attach", "tell"], json!({})),
            ),
            (
                "cancel",
                flag("whether the request of a caller who leaves is dropped; false can be simulated only"),
            ),
            ("keep", keep()),
            ("upstream", upstream()),
            (
                "replicas",
                whole("machines behind one address, each with its part of budgets and bounds; default 1"),
            ),
            ("faults", list(fault(), "what is wrong with it on purpose")),
            ("retry_after", one_of("what a refused caller is told", &strategies, strategy_settings())),
            (
                "give_up_above",
                form("duration", "longer waits are marked with `x-should-retry: false`; default 60s"),
            ),
        ],
    )
}

/// A fault's name, or its name and how much of it there is.
fn fault() -> Value {
    let names: Vec<_> = faults::ALL.iter().map(|kind| kind.name).collect();
    let amounts = faults::ALL.iter().map(|kind| {
        let amount = match kind.usual {
            // it is there or not
            Amount::Whole => json!(false),
            Amount::Part(_) => form("share", kind.about),
            Amount::Time(_) => form("duration", kind.about),
            Amount::Size(_) => form("size", kind.about),
            Amount::Count(_) => whole(kind.about),
        };
        (kind.name.to_owned(), amount)
    });
    one_of("one fault", &names, Value::Object(amounts.collect()))
}

fn bound() -> Value {
    let names: Vec<_> = bounds::ALL.iter().map(|kind| kind.name).collect();
    let settings = json!({
        "bytes": form("size", "bytes of bodies that may wait"),
        "requests": whole("requests that may wait"),
        "seconds": form("duration", "work that may wait, as a time"),
        "tokens": form("tokens", "tokens that may wait"),
    });
    let mut bound = one_of("how much may wait; of a list the smallest", &names, settings);
    if let Some(forms) = bound["anyOf"].as_array_mut() {
        forms.push(json!({ "type": "array", "minItems": 1 }));
    }
    bound
}

fn service() -> Value {
    object(
        &["start"],
        "what an answer is believed to take",
        [
            ("start", form("duration", "before any was seen")),
            (
                "quantile",
                json!({ "type": ["string", "number"], "description": "which of those seen: p99 or 0.99" }),
            ),
        ],
    )
}

fn window(description: &str) -> Value {
    let settings = json!({
        "fixed": form("duration", "its period"),
        "round": form("duration", "its period"),
        "sliding": form("duration", "its period"),
    });
    one_of(description, &["bucket", "fixed", "round", "sliding"], settings)
}

fn budgets() -> Value {
    object(
        &[],
        "what may be spent; default the provider's quota, its burst less 100 ms",
        [
            ("tokens_per_minute", whole("tokens a minute in the long run")),
            ("requests_per_minute", whole("requests a minute in the long run")),
            ("concurrent", whole("calls at the provider at once")),
            ("burst", form("duration", "how much of the rate at once, in a bucket")),
            ("window", window("how the windows move")),
        ],
    )
}

fn tenant() -> Value {
    object(
        &["name"],
        "one of those on whose behalf requests come",
        [
            ("name", word("as the header names it")),
            ("weight", whole("its part of what is served while others wait too")),
            ("tokens_per_minute", whole("its own tokens")),
            ("requests", form("rate", "its own requests")),
            ("usual", form("rate", "its usual requests; times `ceiling` they are its limit")),
            ("ceiling", form("ratio", "what of its usual rate it may reach")),
            ("burst", form("duration", "how much of its limits at once, in a bucket")),
            ("window", window("how its windows move")),
            ("counts", one_of("which requests count against its limits", &["admitted", "passed"], json!({}))),
        ],
    )
}

fn tiers() -> Value {
    object(
        &[],
        "how tiers are served",
        [
            ("strict", flag("whether a more important tier is served first")),
            ("evict", flag("whether a less important one gives way to a newcomer that would be refused")),
        ],
    )
}

fn codel() -> Value {
    object(
        &["target", "interval"],
        "drop by how long requests waited (controlled delay)",
        [
            ("target", form("duration", "the wait aimed at")),
            ("interval", form("duration", "how often it is judged")),
        ],
    )
}

fn keep() -> Value {
    object(
        &[],
        "what is kept of operations that have ended",
        [
            ("number", whole("answers at most")),
            ("bytes", form("size", "bytes of answers at most")),
            ("age", form("duration", "how old at most")),
        ],
    )
}

fn upstream() -> Value {
    object(
        &[],
        "how calls to the provider are repeated",
        [
            ("attempts", whole("calls for one request at most")),
            ("backoff", form("duration", "the rest before the first repetition; it doubles")),
            ("longest", form("duration", "the longest rest")),
            ("budget", form("share", "repetitions after failures, as a part of first calls")),
            ("lease", form("duration", "how long the hold of a call whose end is unknown is kept")),
        ],
    )
}

fn strategy_settings() -> Value {
    let returning = object(
        &[],
        "the share of refused callers that come back",
        [
            ("start", form("share", "before anyone was refused")),
            ("learn", flag("learn it from those who do")),
        ],
    );
    let appointment = object(
        &[],
        "a time at which capacity is kept",
        [
            ("reserve", form("share", "the part of the bound kept for those who return")),
            ("returning", returning),
        ],
    );
    json!({ "appointment": appointment, "constant": form("duration", "the same for everyone") })
}
