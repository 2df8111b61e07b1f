use serde_json::{Map, Value as Json};

use crate::units::{Node, Value};

/// A plan as it was written, with its overrides, before variables were put in: what a report shows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The tree. Where a value came from the environment it still says `${NAME}`.
    pub tree: Node,
}

/// Maps whose values may be secrets even when they are written out.
const SECRET: &[&str] = &["target.request.headers", "target.spawn.env"];

/// What stands for a secret.
const HIDDEN: &str = "(hidden)";

impl Source {
    /// The plan as JSON, its scalars as texts exactly as written; values of headers and of the target's environment
    /// are hidden unless they name a variable. Reading the result as a plan gives the same plan, but for those.
    pub fn to_json(&self) -> Json {
        json(&self.tree, "")
    }
}

fn json(node: &Node, path: &str) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Text { text, .. } => Json::String(text.clone()),
        Value::List(items) => {
            Json::Array(items.iter().map(|item| json(item, &format!("{path}.*"))).collect())
        }
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, node)| {
                let hides = |node: &Node| match &node.value {
                    Value::Text { text, .. } => !only_variables(text),
                    _ => true,
                };
                let value = if SECRET.contains(&path) && hides(node) {
                    Json::String(HIDDEN.into())
                } else {
                    let under =
                        if path.is_empty() { key.text.clone() } else { format!("{path}.{}", key.text) };
                    json(node, &under)
                };
                (key.text.clone(), value)
            });
            Json::Object(entries.collect::<Map<_, _>>())
        }
    }
}

/// Whether a value is no more than a scheme of authorization and variables without defaults: `Bearer ${KEY}`.
fn only_variables(text: &str) -> bool {
    let rest = ["Bearer ", "Basic "].iter().find_map(|scheme| text.strip_prefix(scheme)).unwrap_or(text);
    rest.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::yaml;

    #[test]
    fn scalars_stay_as_written_and_secrets_do_not_come_out() {
        let text = "name: 1.10\nload: { phases: [{ rate: 500_000/h }] }\nabout:\ntarget:\n  request:\n    headers:\n      \
                    authorization: Bearer ${KEY}\n      x-key: sk-123\n      x-two: ${A:-sk-123}\n";
        let json = Source { tree: yaml::read(text).unwrap() }.to_json();
        assert_eq!(json["name"], "1.10");
        assert_eq!(json["load"]["phases"][0]["rate"], "500_000/h");
        assert_eq!(json["about"], Json::Null);
        assert_eq!(json["target"]["request"]["headers"]["authorization"], "Bearer ${KEY}");
        assert!(!json.to_string().contains("sk-123"), "{json}");
    }
}
