//! The part of the schema that describes the provider.

use serde_json::Value;

use super::{form, list, named, object, whole, word};
use crate::provider::wire::APIS;

pub(super) fn schema() -> Value {
    let quota = object(
        &["tokens_per_minute"],
        "what may be used",
        [
            ("tokens_per_minute", whole("tokens a minute in the long run")),
            ("burst", form("duration", "how much of the rate at once; default 1s")),
            ("window", named("how the window moves", &["bucket"])),
            ("charge", named("what a request is charged", &["reservation"])),
        ],
    );
    let service = object(
        &["first_token"],
        "how long an answer takes",
        [
            ("first_token", form("duration", "until the first token")),
            ("per_token", form("duration", "for each token of the answer")),
            ("law", named("how times spread around that", &["exponential", "fixed"])),
        ],
    );
    let slots = object(
        &["count"],
        "answers worked on at once",
        [("count", whole("how many")), ("queue", whole("how many may wait for one; default any number"))],
    );
    let fault = object(
        &["at", "for", "capacity"],
        "a time in which less is served",
        [
            ("at", form("duration", "when it begins, from the beginning of the run")),
            ("for", form("duration", "how long it lasts")),
            ("capacity", form("ratio", "the quota, as a part of the usual one")),
        ],
    );
    object(
        &["quota", "service"],
        "the provider behind the gateway, which tenfold plays",
        [
            ("listen", word("address to listen on; default 127.0.0.1:0, a free port")),
            ("advertise", word("the URL the gateway shall call, where it differs")),
            (
                "engine",
                named(
                    "the shell that serves it; stream also gives streamed answers",
                    &["stream", "wiremock"],
                ),
            ),
            ("api", named("the wire format", &APIS.iter().map(|api| api.name()).collect::<Vec<_>>())),
            ("count", named("how both sides count tokens", &["cl100k_base", "o200k_base", "words"])),
            ("quota", quota),
            ("service", service),
            ("slots", slots),
            ("faults", list(fault, "when less is served than usual")),
        ],
    )
}
