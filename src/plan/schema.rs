//! The JSON Schema (draft 2020-12) of a plan, for editors. It knows keys, forms and units; what must hold between
//! parts is for [`super::parse()`]. A test asks the readers for the keys they know and holds the two together.

use serde_json::{Map, Value, json};

use super::{CHECKS, MEASURES, levers};

mod load;
mod policy;
mod provider;
mod target;

/// The schema of a plan.
pub fn plan() -> Value {
    let mut schema = object(
        &["tenfold", "name", "load", "requests", "provider", "target"],
        "a tenfold plan",
        [
            ("tenfold", json!({ "const": 1, "description": "the version of the plan format" })),
            ("name", text("what reports are filed under", "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")),
            ("about", json!({ "type": "string", "description": "what the plan is for" })),
            ("load", load::schema()),
            ("requests", list(load::class(), "the mix of requests")),
            ("provider", provider::schema()),
            ("target", target::schema()),
            ("rehearsal", rehearsal()),
            ("expect", expect()),
            ("validity", validity()),
            ("abort_when", list(abort_rule(), "rules that end a run early")),
            ("max_outstanding", whole("the most requests open at once")),
            ("checks", checks()),
            ("variants", list(variant(), "named changes of the plan, for simulations")),
            ("levers", list(lever(), "what could be done about the event, for the forecast")),
            ("diff", diff()),
        ],
    );
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tenfold plan",
        "$defs": definitions(),
    });
    if let (Value::Object(schema), Value::Object(head)) = (&mut schema, head) {
        schema.extend(head);
    }
    schema
}

/// Forms that many keys share. A text may also name a variable.
fn definitions() -> Value {
    let form = |description: &str, pattern: &str| json!({ "type": "string", "description": description, "pattern": format!("{pattern}|\\$\\{{") });
    let tokens = form("tokens: 500_000, 500k or 1.2M", "^[0-9][0-9_.]*[kM]?$");
    json!({
        "duration": form("a duration: 300ms, 25s, 1m30s or 2h", "^([0-9][0-9_.]*(h|m|s|ms|us|µs))+$"),
        "rate": form("a rate: 33.3/s or 2000/min", "^[0-9][0-9_.]*k? */ *[a-z0-9]+$"),
        "size": form("a size: 6kB, 6KiB or 512B", "^[0-9][0-9_.]* *([kMG]|[KMG]i)?B$"),
        "tokens": { "anyOf": [{ "type": "integer", "minimum": 0 }, tokens] },
        "sizes": load::size_form(),
        "share": { "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            form("a share: 5% or 0.05", "^[0-9][0-9.]*%?$"),
        ]},
        "ratio": { "anyOf": [
            { "type": "number", "exclusiveMinimum": 0 },
            form("a ratio: 1/2 or 0.5", "^[0-9][0-9_.]*( */ *[0-9]+)?$"),
        ]},
    })
}

fn object<const N: usize>(required: &[&str], description: &str, properties: [(&str, Value); N]) -> Value {
    let properties: Map<String, Value> =
        properties.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    json!({
        "type": "object",
        "description": description,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn list(items: Value, description: &str) -> Value {
    json!({ "type": "array", "description": description, "items": items })
}

fn names_to(values: Value, description: &str) -> Value {
    json!({ "type": "object", "description": description, "additionalProperties": values })
}

fn form(name: &str, description: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}"), "description": description })
}

fn text(description: &str, pattern: &str) -> Value {
    json!({ "type": ["string", "number"], "description": description, "pattern": pattern })
}

fn word(description: &str) -> Value {
    json!({ "type": ["string", "number", "boolean"], "description": description })
}

fn whole(description: &str) -> Value {
    form("tokens", description)
}

fn flag(description: &str) -> Value {
    json!({ "type": "boolean", "description": description })
}

fn named(description: &str, names: &[&str]) -> Value {
    json!({ "enum": names, "description": description })
}

/// One of several things: a name alone, or a map of one name to its settings.
fn one_of(description: &str, names: &[&str], settings: Value) -> Value {
    let mut properties: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!(true))).collect();
    if let Value::Object(settings) = settings {
        properties.extend(settings);
    }
    json!({ "description": description, "anyOf": [
        { "enum": names },
        { "type": "object", "properties": properties, "minProperties": 1, "maxProperties": 1, "additionalProperties": false },
    ]})
}

fn rehearsal() -> Value {
    let probes = object(
        &[],
        "which refused callers come back exactly as told",
        [
            ("every", whole("one in so many; 0 for none")),
            ("late_by", form("duration", "how long after the announced instant")),
        ],
    );
    object(
        &[],
        "how the event is shrunk",
        [
            ("scale", form("ratio", "offered rates, quotas and budgets times this")),
            (
                "phases",
                names_to(form("duration", "its length"), "lengths of phases by name; the others keep theirs"),
            ),
            ("probes", probes),
        ],
    )
}

fn expect() -> Value {
    let statuses =
        |description: &str| list(json!({ "type": "integer", "minimum": 400, "maximum": 599 }), description);
    let wanted = || word("`present`, or the exact text");
    let refusal = object(
        &[],
        "the designed form of a refusal",
        [
            ("shed", statuses("statuses of a refusal for scarcity; default 503")),
            ("throttled", statuses("statuses of a refusal for entitlement; default 429")),
            ("fast_within", form("duration", "a refusal later than this was admitted first")),
            ("instead", statuses("statuses that come instead: refusals all the same, in the wrong form")),
            ("marked_by", names_to(wanted(), "headers without which the same status is a failure")),
            ("headers", names_to(wanted(), "headers it must have")),
            ("body", names_to(wanted(), "members its JSON body must have, by JSON pointer")),
        ],
    );
    object(&[], "what answers should look like", [("refusal", refusal)])
}

fn validity() -> Value {
    let lag = json!({ "anyOf": [{ "const": "auto" }, { "$ref": "#/$defs/duration" }],
        "description": "the most lag at the 99th percentile; auto: half the shortest mean gap" });
    object(
        &[],
        "when the run itself is no good",
        [
            ("lag_p99", lag),
            ("unsent", form("share", "the largest share of unsent requests")),
            ("unjoined", form("share", "the largest share seen on one side only")),
            ("achieved", form("share", "the least achieved over planned rate")),
        ],
    )
}

fn abort_rule() -> Value {
    object(
        &["goodput_below", "for"],
        "ends the run early, to spare the target",
        [
            ("goodput_below", form("share", "goodput below this share of what is offered")),
            ("for", form("duration", "for this long")),
            ("after", form("duration", "but not before this much of the run has passed")),
        ],
    )
}

fn lever() -> Value {
    let quota = json!({ "anyOf": [{ "$ref": "#/$defs/tokens" },
        { "type": "string", "pattern": "^\\+[0-9][0-9_./ ]*%?$|\\$\\{" }] });
    let tokens = json!({ "anyOf": [{ "$ref": "#/$defs/tokens" }, { "$ref": "#/$defs/share" }] });
    let amount = |name: &str| match name {
        "more_quota" => quota.clone(),
        "shed_tier" => whole(""),
        "shrink_tokens" => tokens.clone(),
        _ => form("share", ""),
    };
    let kinds = levers::ALL.iter().map(|kind| {
        let mut schema = amount(kind.name);
        schema["description"] = json!(format!("{}: {}", kind.about, kind.example));
        (kind.name.to_owned(), schema)
    });
    let mut lever = object(
        &["name"],
        "something that could be done; beside its name it has one other key",
        [("name", word("what people call it, unique in the plan"))],
    );
    if let Some(properties) = lever["properties"].as_object_mut() {
        properties.extend(kinds);
    }
    lever["minProperties"] = json!(2);
    lever["maxProperties"] = json!(2);
    lever
}

fn checks() -> Value {
    let change = || {
        object(
            &[],
            "what the plan changes of it",
            [
                ("limit", word("another limit, in the unit of the check: 20ms, 90%, 64MiB or 3")),
                ("allow_no_data", flag("whether a lack of data is all right")),
                ("off", flag("whether it is not judged at all")),
            ],
        )
    };
    let properties: Map<String, Value> = CHECKS
        .iter()
        .map(|check| {
            let mut schema = change();
            schema["description"] = json!(check.about);
            (check.id.to_owned(), schema)
        })
        .collect();
    json!({ "type": "object", "description": "changes of checks, by id", "properties": properties, "additionalProperties": false })
}

fn variant() -> Value {
    let set = names_to(json!({}), "paths and what is set there");
    object(&["name"], "the plan with some keys changed", [("name", word("its name, unique")), ("set", set)])
}

fn diff() -> Value {
    let tolerance = |measure: &super::Measured| (measure.known.id.to_owned(), word(measure.known.about));
    let properties: Map<String, Value> = MEASURES.iter().map(tolerance).collect();
    json!({ "type": "object", "description": "how much a measure may change from build to build: 5%, an amount, or off",
        "properties": properties, "additionalProperties": false })
}

#[cfg(test)]
mod tests;
