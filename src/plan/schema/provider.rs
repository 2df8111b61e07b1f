//! The part of the schema that describes the provider.

use serde_json::{Value, json};

use super::{form, list, named, object, one_of, whole, word};
use crate::provider::wire::APIS;

pub(super) fn schema() -> Value {
    let slots = object(
        &["count"],
        "answers worked on at once",
        [("count", whole("how many")), ("queue", whole("how many may wait for one; default any number"))],
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
            ("quota", quota()),
            ("service", service()),
            ("slots", slots),
            ("faults", list(fault(), "when less is served than usual")),
        ],
    )
}

fn quota() -> Value {
    let window = one_of(
        "how the window moves",
        &["bucket", "fixed", "sliding"],
        json!({ "fixed": form("duration", "its period"), "sliding": form("duration", "its period") }),
    );
    object(
        &["tokens_per_minute"],
        "what may be used",
        [
            ("tokens_per_minute", whole("tokens a minute in the long run")),
            ("requests_per_minute", whole("requests a minute in the long run; default any number")),
            ("burst", form("duration", "how much of the rates at once, of a bucket; default 1s")),
            ("window", window),
            (
                "sub_windows",
                list(
                    form("duration", "a span"),
                    "shorter spans in which no more than their part may be used",
                ),
            ),
            ("charge", named("what a request is charged", &["actual", "reservation"])),
            ("accounts", list(word("a key"), "keys with this quota each; default one account for all")),
        ],
    )
}

fn service() -> Value {
    let lognormal =
        object(&["cv"], "with a normal logarithm", [("cv", word("the standard deviation over the mean"))]);
    let law = one_of(
        "how times spread around that",
        &["exponential", "fixed", "lognormal"],
        json!({ "lognormal": lognormal }),
    );
    let strain = object(
        &["above", "each"],
        "how much slower it is with many at once",
        [
            ("above", whole("so many at once are no strain")),
            ("each", form("share", "what each beyond that adds to the usual time")),
        ],
    );
    object(
        &["first_token"],
        "how long an answer takes",
        [
            ("first_token", form("duration", "until the first token")),
            ("per_token", form("duration", "for each token of the answer")),
            ("law", law),
            ("strain", strain),
        ],
    )
}

fn fault() -> Value {
    let errors = object(
        &["status"],
        "calls get an error at once",
        [
            ("status", whole("400 to 599")),
            ("share", form("share", "the part of the calls; default all")),
            ("retry_after", form("duration", "what its Retry-After says; default no such header")),
        ],
    );
    let latency = object(
        &[],
        "answers take longer",
        [("times", form("ratio", "so many times as long")), ("plus", form("duration", "longer by this"))],
    );
    object(
        &["at", "for"],
        "a time in which the provider is not as usual: one of the things that can be wrong",
        [
            ("at", form("duration", "when it begins, from the beginning of the run")),
            ("for", form("duration", "how long it lasts")),
            ("capacity", form("ratio", "the quota, as a part of the usual one")),
            ("cuts", form("share", "the part of the answers that break off")),
            ("errors", errors),
            ("garbage", form("share", "the part of the answers that are none of the API")),
            ("latency", latency),
            ("resets", form("share", "the part of the calls whose connection is reset")),
            ("stalls", form("share", "the part of the answers that never come")),
        ],
    )
}
