use std::fmt;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In the file, both counted from 1.
    File {
        /// Line.
        line: u32,
        /// Column, in characters.
        column: u32,
    },
    /// By an override; its text, such as `--set load.seed=11`.
    Override(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { line, column } => write!(f, "{line}:{column}"),
            Self::Override(text) => f.write_str(text),
        }
    }
}

/// A key of a map and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// The key as written.
    pub text: String,
    /// Where.
    pub place: Place,
}

/// A value of a configuration file before anyone has given it a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where the value begins.
    pub place: Place,
    /// What stands there.
    pub value: Value,
}

/// The four shapes of a [`Node`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing, `null` or `~`.
    Null,
    /// A scalar exactly as written: `1.10` stays `1.10`, `no` stays `no`.
    Text {
        /// The text, without quotes.
        text: String,
        /// True if it was written without quotes.
        plain: bool,
    },
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in written order. Duplicate keys are still here: the reader reports them.
    Map(Vec<(Key, Node)>),
}

impl Value {
    /// What this is, for messages: "a list", "nothing".
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Text { .. } => "a single value",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

impl Node {
    /// A plain scalar, as an override or a default gives it.
    pub fn text(text: impl Into<String>, place: Place) -> Self {
        Self { place, value: Value::Text { text: text.into(), plain: true } }
    }

    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(k, _)| k.text == key).map(|(_, node)| node),
            Value::Null | Value::Text { .. } | Value::List(_) => None,
        }
    }
}
