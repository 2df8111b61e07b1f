//! The part of the schema that describes who calls, when, and with what.

use serde_json::{Value, json};

use super::{flag, form, list, named, names_to, object, one_of, whole, word};
use crate::workload::arrivals;

pub(super) fn schema() -> Value {
    let names: Vec<_> = arrivals::ALL.iter().map(|kind| kind.name).collect();
    let phase = object(
        &["name", "rate", "for"],
        "a stretch of the run with one rate",
        [
            ("name", word("its name, unique in the plan")),
            ("rate", form("rate", "callers arriving")),
            ("for", form("duration", "how long it lasts")),
            ("event", flag("true for the overload that is rehearsed")),
        ],
    );
    object(
        &["arrivals", "phases"],
        "the offered load",
        [
            ("seed", whole("what every stream of random numbers is derived from")),
            ("arrivals", one_of("how callers are spaced", &names, settings())),
            (
                "late",
                one_of(
                    "what lateness of the harness does to a request",
                    &["drop_after", "send"],
                    json!({ "drop_after": form("duration", "later than this it is not sent") }),
                ),
            ),
            ("phases", list(phase, "the phases in order")),
        ],
    )
}

pub(super) fn class() -> Value {
    let prompt = object(
        &["tokens"],
        "the prompt",
        [
            ("tokens", whole("blank-separated words")),
            ("bytes", form("size", "its length; default 6 bytes a token")),
        ],
    );
    let output =
        object(&["tokens"], "the answer", [("tokens", whole("tokens it has; default `max_tokens`"))]);
    object(
        &["name", "prompt", "max_tokens", "deadline"],
        "a class of requests",
        [
            ("name", word("its name, unique in the plan")),
            ("weight", whole("its part of all arrivals, relative to the others")),
            ("tenant", word("on whose behalf it is sent")),
            ("tier", whole("0 is the most important")),
            ("prompt", prompt),
            ("max_tokens", whole("the most tokens the answer may have")),
            ("output", output),
            ("stream", json!({ "const": false, "description": "answers come whole" })),
            ("deadline", form("duration", "how long after its due time an answer is of use")),
            ("patience", form("duration", "how long its caller waits; default the deadline")),
            (
                "on_refusal",
                one_of("what a refused caller does", &["give_up", "retry"], json!({ "retry": retry() })),
            ),
        ],
    )
}

/// The settings of those arrival processes that have some.
fn settings() -> Value {
    let factors =
        || list(json!({ "type": "number", "minimum": 0 }), "what the rate is multiplied by, in turn");
    json!({
        "gamma": object(&["cv"], "random gaps", [
            ("cv", json!({ "type": "number", "minimum": 0.01, "maximum": 10,
                "description": "the standard deviation of a gap over its mean; 1 is poisson" })),
        ]),
        "on_off": object(&["on", "off"], "bursts, and nobody between them", [
            ("on", form("duration", "how long a burst lasts")),
            ("off", form("duration", "how long nobody comes")),
            ("lengths", named("whether the lengths are exact or exponential means", &["fixed", "random"])),
        ]),
        "oscillating": object(&[], "a rate that swings", [
            ("every", form("duration", "how long a factor holds")),
            ("factors", factors()),
        ]),
        "ramp": object(&[], "a rate that changes evenly", [
            ("start", word("the rate the first phase begins with, also 0/s; default its own")),
        ]),
        "rounds": object(&[], "callers in rounds", [
            ("every", form("duration", "how long a round is")),
            ("factors", names_to(factors(), "by class, what its rate is multiplied by, round by round")),
        ]),
    })
}

fn retry() -> Value {
    object(
        &["attempts"],
        "tries again by a rule",
        [
            ("attempts", whole("attempts in all, the first one included")),
            ("backoff", form("duration", "the wait before the second; it doubles each time")),
            ("longest", form("duration", "the longest such wait")),
            ("jitter", form("share", "a wait is shortened by up to this share")),
            ("honour", word("what it does with a Retry-After: true, false, or the longest it waits")),
            ("on_timeout", flag("whether it tries again when its patience has ended")),
            ("budget", form("share", "retries as a share of first attempts, over all callers of the class")),
        ],
    )
}
