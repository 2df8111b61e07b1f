//! The part of the schema that describes who calls, when, and with what.

use serde_json::{Value, json};

use super::{flag, form, list, named, names_to, object, one_of, whole, word};
use crate::workload::{arrivals, retry, sizes, traces};

pub(super) fn schema() -> Value {
    let names: Vec<_> = arrivals::ALL.iter().map(|kind| kind.name).collect();
    let phase = object(
        &["name", "for"],
        "a stretch of the run with one rate",
        [
            ("name", word("its name, unique in the plan")),
            ("rate", form("rate", "callers arriving; a trace has its own")),
            ("for", form("duration", "how long it lasts")),
            ("event", flag("true for the overload that is rehearsed")),
            ("mix", names_to(whole("its weight"), "weights of classes, where they are not the usual ones")),
        ],
    );
    object(
        &["arrivals"],
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
            ("phases", list(phase, "the phases in order; a trace without them is one phase")),
        ],
    )
}

pub(super) fn class() -> Value {
    let prompt = object(
        &["tokens"],
        "the prompt",
        [
            ("tokens", size("as `provider.count` counts")),
            ("bytes", form("size", "its length, of one of mean size; default 6 bytes a token")),
        ],
    );
    let output = object(&["tokens"], "the answer", [("tokens", size("tokens it has; default `max_tokens`"))]);
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
            ("stream", flag("whether its answer comes token by token; default false")),
            ("deadline", form("duration", "how long after its due time an answer is of use")),
            ("patience", form("duration", "how long its caller waits; default the deadline")),
            (
                "on_refusal",
                one_of("what a refused caller does", &["give_up", "retry"], json!({ "retry": retry() })),
            ),
            (
                "duplicates",
                form("share", "the share that is sent twice under one idempotency key; default none"),
            ),
            (
                "clock",
                json!({ "type": "object", "description": "how far its callers' clocks are off: one of these",
                    "properties": {
                        "ahead": form("duration", "they show a time so much later"),
                        "behind": form("duration", "they show a time so much earlier"),
                    },
                    "minProperties": 1, "maxProperties": 1, "additionalProperties": false }),
            ),
        ],
    )
}

/// A size: a number, the word `trace`, or a distribution.
fn size(description: &str) -> Value {
    json!({ "$ref": "#/$defs/sizes", "description": description })
}

/// The form of a size, which holds others.
pub(super) fn size_form() -> Value {
    let part = object(
        &["size"],
        "one of several distributions",
        [("weight", whole("its part of all, relative to the others")), ("size", size("its sizes"))],
    );
    let seen = list(form("tokens", ""), "sizes that were seen");
    let weighted = object(
        &["values"],
        "sizes that were seen, with their weights",
        [("values", seen.clone()), ("weights", list(whole("how often"), "a weight for each"))],
    );
    let lognormal = object(
        &["median", "sigma"],
        "short ones mostly, some very long",
        [
            ("median", whole("half of them are longer")),
            (
                "sigma",
                json!({ "type": "number", "minimum": 0, "maximum": 4,
                "description": "the standard deviation of the logarithm" }),
            ),
            ("least", whole("the shortest; default 1")),
            ("most", whole("the longest; default what one in a thousand exceeds")),
        ],
    );
    let uniform = object(
        &["from", "to"],
        "every number of a range alike",
        [("from", whole("the least")), ("to", whole("the most"))],
    );
    let properties = json!({
        "empirical": { "anyOf": [seen, weighted] },
        "fixed": whole("always the same"),
        "lognormal": lognormal,
        "mixture": list(part, "one of several by weight"),
        "trace": true,
        "uniform": uniform,
    });
    let names: Vec<_> = sizes::ALL.iter().map(|kind| kind.name).collect();
    json!({ "anyOf": [
        { "$ref": "#/$defs/tokens" },
        { "enum": names },
        { "type": "object", "properties": properties, "minProperties": 1, "maxProperties": 1,
          "additionalProperties": false },
    ]})
}

/// The keys of a trace.
fn trace() -> Value {
    let names: Vec<_> = traces::ALL.iter().map(|format| format.name).collect();
    let columns = object(
        &["time", "prompt", "output"],
        "the names of the columns of a `csv`",
        [
            ("time", word("when a request came")),
            ("prompt", word("the tokens of its prompt")),
            ("output", word("the tokens of its answer")),
        ],
    );
    object(
        &["file", "format"],
        "callers as they came somewhere",
        [
            ("file", json!({ "type": "string", "description": "the file, from the folder of the plan" })),
            ("format", json!({ "enum": names, "description": "how it is written" })),
            ("columns", columns),
            ("clock", named("how the times of a `csv` are written", &["date", "milliseconds", "seconds"])),
            ("from", form("duration", "where the window begins, from the first row on")),
            ("to", form("duration", "where it ends")),
            ("speed", form("ratio", "so many times as fast")),
            ("rate", form("ratio", "so many times as many rows")),
            ("zero_tokens", named("what becomes of rows without tokens", &["drop", "one", "refuse"])),
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
        "trace": trace(),
        "rounds": object(&[], "callers in rounds", [
            ("every", form("duration", "how long a round is")),
            ("factors", names_to(factors(), "by class, what its rate is multiplied by, round by round")),
        ]),
    })
}

fn retry() -> Value {
    let sdks: Vec<_> = retry::ALL.iter().map(|sdk| sdk.name).collect();
    object(
        &[],
        "tries again by a rule, or as an SDK does",
        [
            ("like", named("as this SDK does, instead of a rule", &sdks)),
            ("attempts", whole("attempts in all, the first one included")),
            ("backoff", form("duration", "the wait before the second; it doubles each time")),
            ("longest", form("duration", "the longest such wait")),
            (
                "jitter",
                form(
                    "share",
                    "a wait of its own is shortened by up to this share, one it was told lengthened",
                ),
            ),
            ("honour", word("what it does with a Retry-After: true, false, or the longest it waits")),
            ("on_timeout", flag("whether it tries again when its patience has ended")),
            ("budget", form("share", "retries as a share of first attempts, over all callers of the class")),
        ],
    )
}
