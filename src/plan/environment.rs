//! `${NAME}` and `${NAME:-default}` in the values of a plan.
//!
//! The lookup is handed in. What came from the environment may be a secret: the tree a report shows is the one before
//! substitution, and messages about a substituted value show its name instead.

use crate::units::{Fault, Faults, Node, Value};

/// The longest text a value may have once its variables are in.
const LONGEST: usize = 64 << 10;

/// A value of fewer bytes is no secret, and is hidden only where a message quotes it whole: a `5` stands in many places.
const SHORT: usize = 4;

/// Looks a variable up by its name.
pub type Lookup<'e> = &'e dyn Fn(&str) -> Option<String>;

/// What was put in for what, so that it can be taken out of messages.
#[derive(Debug, Default)]
pub(super) struct Secrets(Vec<(String, String)>);

impl Secrets {
    /// The fault with every substituted value written as the variable it came from.
    pub(super) fn hide(&self, mut fault: Fault) -> Fault {
        for (shown, value) in &self.0 {
            if value.len() < SHORT {
                fault.message = fault.message.replace(&format!("`{value}`"), &format!("`{shown}`"));
            } else {
                fault.message = fault.message.replace(value.as_str(), shown);
                fault.path = fault.path.replace(value.as_str(), shown);
            }
        }
        fault
    }
}

/// `tree` with every variable replaced. `$${` stands for a plain `${`. Keys are left alone.
pub(super) fn substitute(tree: &Node, lookup: Lookup<'_>, faults: &Faults) -> (Node, Secrets) {
    let mut walk = Walk { lookup, faults, secrets: Secrets::default() };
    let node = walk.node(tree, "");
    // longer values first, so that one that contains another is hidden whole
    walk.secrets.0.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
    (node, walk.secrets)
}

struct Walk<'e> {
    lookup: Lookup<'e>,
    faults: &'e Faults,
    secrets: Secrets,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, path: &str) -> Node {
        let under = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let value = match &node.value {
            Value::Null => Value::Null,
            Value::Text { text, plain } if text.contains("${") => match self.text(text) {
                Ok(text) => Value::Text { text, plain: *plain },
                Err(message) => {
                    self.faults.add(node.place.clone(), path, message);
                    node.value.clone()
                }
            },
            Value::Text { .. } => node.value.clone(),
            Value::List(items) => Value::List(
                items.iter().enumerate().map(|(i, item)| self.node(item, &under(&i.to_string()))).collect(),
            ),
            Value::Map(entries) => Value::Map(
                entries.iter().map(|(key, node)| (key.clone(), self.node(node, &under(&key.text)))).collect(),
            ),
        };
        Node { place: node.place.clone(), value }
    }

    fn text(&mut self, text: &str) -> Result<String, String> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let before = &rest[..at];
            rest = &rest[at + 2..];
            if let Some(escaped) = before.strip_suffix('$') {
                out.push_str(escaped);
                out.push_str("${");
                continue;
            }
            out.push_str(before);
            let Some(end) = rest.find('}') else {
                return Err("`${` is not closed: write ${NAME}, or $${ for the signs themselves".to_owned());
            };
            out.push_str(&self.variable(&rest[..end])?);
            rest = &rest[end + 1..];
            if out.len() > LONGEST {
                return Err(format!("the value is longer than {LONGEST} bytes once its variables are in"));
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    /// The value of what stands between the braces.
    fn variable(&mut self, inner: &str) -> Result<String, String> {
        let (name, default) =
            inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        let tidy = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !tidy {
            return Err(format!("`${{{inner}}}` names no variable: write ${{NAME}} or ${{NAME:-default}}"));
        }
        match ((self.lookup)(name).filter(|value| !value.is_empty()), default) {
            (Some(value), _) => {
                self.secrets.0.push((format!("${{{name}}}"), value.clone()));
                Ok(value)
            }
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(format!(
                "the environment has no `{name}`, or an empty one: set it, or write ${{{name}:-default}} for a value of its own"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::yaml;
    use crate::units::Place;

    fn run(text: &str) -> (Vec<String>, Vec<Fault>) {
        let faults = Faults::default();
        let lookup = |name: &str| (name == "KEY").then(|| "s3cret".to_owned());
        let tree = yaml::read(text).unwrap();
        let (tree, secrets) = substitute(&tree, &lookup, &faults);
        let Value::Map(entries) = tree.value else { panic!("a map") };
        let texts = entries.into_iter().map(|(_, node)| match node.value {
            Value::Text { text, .. } => text,
            other => panic!("{other:?}"),
        });
        (texts.collect(), faults.into_sorted().into_iter().map(|f| secrets.hide(f)).collect())
    }

    #[test]
    fn variables_defaults_and_escapes() {
        let (texts, faults) = run(
            "a: Bearer ${KEY}\nb: ${NO:-x y}\nc: $${KEY}\nd: ${KEY:-other}${NO:-}\ne: \"${KEY}\"\nf: $5 }\n",
        );
        assert_eq!(texts, ["Bearer s3cret", "x y", "${KEY}", "s3cret", "s3cret", "$5 }"]);
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn an_unset_or_broken_variable_is_a_fault_with_its_place() {
        let (_, faults) = run("a: ${NO}\nb: ${KEY\nc: ${1X}\n");
        let said: Vec<_> = faults.iter().map(|f| format!("{} {}: {}", f.place, f.path, f.message)).collect();
        assert!(said[0].starts_with("1:4 a: the environment has no `NO`"), "{said:?}");
        assert!(said[1].starts_with("2:4 b: `${` is not closed"), "{said:?}");
        assert!(said[2].contains("names no variable"), "{said:?}");
    }

    #[test]
    fn a_message_never_shows_a_value_from_the_environment() {
        let tree = yaml::read("rate: ${KEY}\n").unwrap();
        let (_, secrets) = substitute(&tree, &|_| Some("s3cret".into()), &Faults::default());
        let fault = Fault {
            place: Place::File { line: 1, column: 1 },
            path: "rate".into(),
            message: "`s3cret` is no rate".into(),
        };
        assert_eq!(secrets.hide(fault).message, "`${KEY}` is no rate");
    }
}
