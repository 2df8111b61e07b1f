//! The part of the schema that describes `target`.

use serde_json::{Value, json};

use super::policy::policy;
use super::{flag, form, list, named, names_to, object, whole, word};
use crate::plan::SenderKind;
use crate::provider::wire::DeadlineForm;

pub(super) fn schema() -> Value {
    let spawn = object(
        &["command", "ready"],
        "a command started for the run and ended with it",
        [
            ("command", list(word("a part of it"), "the program and its arguments")),
            (
                "ready",
                word("the URL that answers once it is up; port 0: one that is free, told to the command"),
            ),
            ("ready_within", form("duration", "how long it may take until it answers; default 30s")),
            (
                "config",
                word(
                    "a file that becomes its configuration, with ${TENFOLD_TARGET_PORT} and the like filled in",
                ),
            ),
            ("url", word("the base URL to send to; default that of `ready`")),
            ("env", names_to(word("a value"), "its environment, besides ours and what tenfold tells it")),
        ],
    );
    let deadline = object(
        &[],
        "how the caller's deadline travels",
        [
            ("header", word("the header's name; default x-request-timeout-ms")),
            (
                "form",
                named(
                    "how it is written",
                    &DeadlineForm::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
                ),
            ),
        ],
    );
    let mut schema = object(
        &[],
        "what is tried: one of embedded, spawn, url",
        [
            ("embedded", policy("the reference gateway, as a child process")),
            ("spawn", spawn),
            ("url", word("the address of something already running, without a path")),
            ("policy", believed()),
            ("request", request()),
            ("deadline", deadline),
            ("memory", memory()),
            ("metrics", metrics()),
        ],
    );
    schema["oneOf"] =
        json!([{ "required": ["embedded"] }, { "required": ["spawn"] }, { "required": ["url"] }]);
    schema
}

fn page() -> Value {
    word(
        "where metrics are read: a URL, or a path of the target; port 0: one that is free, told to a command",
    )
}

fn memory() -> Value {
    let metric = object(
        &["url", "name"],
        "a metric that says it, in bytes",
        [("url", page()), ("name", word("its name, perhaps with labels: resident_bytes{job=\"gateway\"}"))],
    );
    object(
        &[],
        "how the target's memory is read: pid, cgroup or metric; without one that of the process tenfold started",
        [
            ("pid", whole("the process; its children count too")),
            ("cgroup", word("the folder of a control group: /sys/fs/cgroup/gateway.slice")),
            ("metric", metric),
            ("ceiling", form("size", "what it may reach")),
        ],
    )
}

fn metrics() -> Value {
    object(
        &["url"],
        "what the target says of itself, in the text format of Prometheus; shown next to what is seen from outside",
        [
            ("url", page()),
            ("queue_depth", word("a gauge of the requests that wait in it, perhaps with labels")),
            ("memory", word("a gauge of its memory in bytes")),
        ],
    )
}

/// The keys of `embedded` but for its faults, and one of its own.
fn believed() -> Value {
    let mut policy = policy("what a `spawn` or `url` target is believed to do");
    if let Some(properties) = policy["properties"].as_object_mut() {
        properties.remove("faults");
    }
    policy["properties"]["slots"] = whole("the calls it makes at once, where nothing else limits it");
    policy
}

fn request() -> Value {
    object(
        &[],
        "how the target is called",
        [
            ("path", word("the path; default /v1/chat/completions")),
            ("model", word("the model asked for")),
            (
                "headers",
                names_to(
                    word("a value; ${NAME} keeps a secret out of the file"),
                    "headers added to each request",
                ),
            ),
            ("ca_file", word("certificates to trust besides the system's, in PEM")),
            ("insecure", flag("take any certificate")),
            ("health", word("the path of the ping")),
            ("http", json!({ "enum": [1.1, 2], "description": "the protocol; default 1.1" })),
            ("connections", whole("HTTP/2: the most connections; default as many as are needed")),
            ("streams", whole("HTTP/2: the most requests open at once on each connection; default 100")),
            (
                "lookup",
                word("when the target's name is looked up: `once`, or again at an interval; default 30s"),
            ),
            ("sender", named("what writes and reads", &SenderKind::ALL.map(|(name, _)| name))),
            (
                "source_addresses",
                list(word("an IP address"), "addresses of this machine that connections come from, in turn"),
            ),
        ],
    )
}
