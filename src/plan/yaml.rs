//! YAML text to [`Node`]s with exact places.
//!
//! A scalar keeps the text it was written with (`1.10`, `500_000`, `no`, `1:30`): what it means is for the typed
//! readers to say. Size, nesting, nodes and what aliases unfold to are bounded, so that no text of a few kilobytes
//! can fill the memory.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_yaml::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy, Options};
use serde_yaml::{Error, Location, Spanned};

use crate::units::{Fault, Key, Node, Place, Value};

/// The largest file that is read, in bytes.
pub const MOST_BYTES: usize = 1 << 20;
/// The deepest nesting of lists and maps.
const MOST_DEPTH: usize = 40;
/// The most values in one file, aliases unfolded.
const MOST_NODES: usize = 20_000;

/// Reads one YAML document. The fault has the place of what cannot be read.
pub fn read(text: &str) -> Result<Node, Fault> {
    let node = read_value(text)?;
    if node.value == Value::Null {
        return Err(fault(1, 1, "the file is empty: a plan begins with `tenfold: 1`"));
    }
    Ok(node)
}

/// Reads one YAML value, which may be nothing: `5`, `{ constant: 1s }`.
pub(super) fn read_value(text: &str) -> Result<Node, Fault> {
    // a byte order mark is no part of the text; without it places count from the first letter
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > MOST_BYTES {
        let message = format!("the file has {} bytes; a plan has at most {MOST_BYTES}", text.len());
        return Err(fault(1, 1, message));
    }
    if let Some(place) = tab_in_indent(text) {
        return Err(Fault {
            place,
            path: String::new(),
            message: "a tab indents this line: use spaces".into(),
        });
    }
    let parsed: Spanned<Raw> =
        serde_yaml::from_str_with_options(text, options()).map_err(|error| explain(&error, text))?;
    Ok(Source(text).node(parsed))
}

/// The bytes of a file as text; the fault has the place of the first byte that is no UTF-8.
pub fn decode(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |rest| rest.chars().count()) + 1;
        fault(small(line as u64), small(column as u64), "this byte is no UTF-8: save the file as UTF-8 text")
    })
}

fn options() -> Options {
    serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_depth: MOST_DEPTH,
            flow_nesting_limit: MOST_DEPTH,
            max_nodes: MOST_NODES,
            max_events: 4 * MOST_NODES,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_merge_keys: 1_000,
            max_recorded_anchor_events: 4 * MOST_NODES,
            max_recorded_anchor_bytes: 4 * MOST_BYTES,
            max_total_scalar_bytes: 4 * MOST_BYTES,
        },
        alias_limits: serde_yaml::alias_limits! {
            max_total_replayed_events: 4 * MOST_NODES,
        },
        // the typed readers report duplicates, each with its place
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        null_as_string: true,
        ignore_binary_tag_for_string: true,
        with_snippet: false,
    }
}

/// The first tab that stands where only spaces may indent.
fn tab_in_indent(text: &str) -> Option<Place> {
    text.lines().zip(1..).find_map(|(line, number)| {
        let indent = line.len() - line.trim_start().len();
        let column = line[..indent].chars().position(|c| c == '\t')? + 1;
        (indent < line.len()).then(|| Place::File { line: number, column: small(column as u64) })
    })
}

fn fault(line: u32, column: u32, message: impl Into<String>) -> Fault {
    Fault { place: Place::File { line, column }, path: String::new(), message: message.into() }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// A parser's error in our words: its first line, and the limit if it is one of ours.
fn explain(error: &Error, text: &str) -> Fault {
    let error = error.without_snippet();
    let (line, column) = match error.location().filter(|at| *at != Location::UNKNOWN) {
        Some(at) => (small(at.line()).max(1), small(at.column()).max(1)),
        None if text.trim().is_empty() => (1, 1),
        None => (small(text.lines().count() as u64).max(1), 1),
    };
    let mut cause = error;
    while let Error::AliasError { error, .. } | Error::WithSnippet { error, .. } = cause {
        cause = error;
    }
    let said = cause.to_string();
    let said = said.lines().next().unwrap_or_default().split(" at line ").next().unwrap_or_default();
    let said: String = said.chars().take(300).collect();
    let message = match cause {
        Error::MultipleDocuments { .. } => "a second document begins here: a file holds one plan".to_owned(),
        Error::Eof { .. } => "the file is empty: a plan begins with `tenfold: 1`".to_owned(),
        Error::UnknownAnchor { .. } => "this alias names no anchor that stands before it".to_owned(),
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => limits(),
        _ if said.contains("recursion limit") || said.contains("nesting") || said.contains("too deep") => {
            limits()
        }
        _ => format!("this is no YAML: {}", uncapitalised(&said)),
    };
    fault(line, column, message)
}

fn limits() -> String {
    format!(
        "this nests too deep or unfolds to too much: a plan has at most {MOST_DEPTH} levels, and {MOST_NODES} values with its aliases unfolded"
    )
}

fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

/// What the parser hands out, before the text of numbers is looked up in the source.
enum Raw {
    Null,
    /// A text, quoted or not.
    Text(String),
    /// A number or boolean: its text stands in the source.
    Plain,
    List(Vec<Spanned<Self>>),
    Map(Vec<(Spanned<String>, Spanned<Self>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Raw, E> {
        Ok(Raw::Plain)
    }

    fn visit_str<E>(self, text: &str) -> Result<Raw, E> {
        Ok(Raw::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Raw, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Raw::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Raw, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key::<Spanned<String>>()? {
            let value = entries.next_value()?;
            if map.len() == MOST_NODES {
                return Err(A::Error::custom("too many keys"));
            }
            map.push((key, value));
        }
        Ok(Raw::Map(map))
    }
}

fn plain(text: &str) -> Value {
    Value::Text { text: text.to_owned(), plain: true }
}

/// The text that was parsed.
struct Source<'t>(&'t str);

impl Source<'_> {
    /// Values that came by an alias have the place of the anchor: that is where they are written.
    fn node(&self, raw: Spanned<Raw>) -> Node {
        let place = self.place(&raw.defined, &raw.referenced);
        let written = self.slice(&raw.defined);
        let value = match raw.value {
            Raw::Null => Value::Null,
            Raw::Text(text) => match written {
                Some(written) if written.starts_with(['"', '\'']) => Value::Text { text, plain: false },
                // the parser spells numbers out of range its own way: `1e400` comes as `.inf`
                Some(written) if matches!(text.as_str(), ".inf" | "-.inf" | ".nan") => plain(written.trim()),
                _ => Value::Text { plain: !text.contains('\n'), text },
            },
            Raw::Plain => plain(written.unwrap_or_default().trim()),
            Raw::List(items) => Value::List(items.into_iter().map(|item| self.node(item)).collect()),
            Raw::Map(entries) => Value::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| {
                        let place = self.place(&key.defined, &key.referenced);
                        (Key { text: key.value, place }, self.node(value))
                    })
                    .collect(),
            ),
        };
        Node { place, value }
    }

    fn place(&self, defined: &Location, referenced: &Location) -> Place {
        let at = if *defined == Location::UNKNOWN { referenced } else { defined };
        Place::File { line: small(at.line()).max(1), column: small(at.column()).max(1) }
    }

    fn slice(&self, at: &Location) -> Option<&str> {
        let span = at.span();
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let end = start.checked_add(usize::try_from(span.byte_len()?).ok()?)?;
        self.0.get(start..end)
    }
}

#[cfg(test)]
mod tests;
