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
            ("ready", word("the URL that answers once it is up")),
            ("url", word("the base URL to send to; default that of `ready`")),
            ("env", names_to(word("a value"), "its environment, besides ours and TENFOLD_PROVIDER_URL")),
        ],
    );
    let memory = object(
        &["pid"],
        "how memory is read where the target is no child of ours",
        [
            ("pid", whole("the process; its children count too")),
            ("ceiling", form("size", "what it may reach")),
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
            ("policy", policy("what a `spawn` or `url` target is believed to do")),
            ("request", request()),
            ("deadline", deadline),
            ("memory", memory),
        ],
    );
    schema["oneOf"] =
        json!([{ "required": ["embedded"] }, { "required": ["spawn"] }, { "required": ["url"] }]);
    schema
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
