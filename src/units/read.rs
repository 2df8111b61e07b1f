use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use super::{Bytes, Node, Place, Rate, Ratio, Share, Tokens, Value, parse_duration};

/// One thing that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where it stands.
    pub place: Place,
    /// The path of the key, as `--set` would address it: `requests.0.deadline`.
    pub path: String,
    /// What is wrong and the way out; a lower-case fragment.
    pub message: String,
}

/// Collects faults, so that all of a file's are shown at once.
#[derive(Debug, Default)]
pub struct Faults(RefCell<Vec<Fault>>);

impl Faults {
    /// Adds one.
    pub fn add(&self, place: Place, path: impl Into<String>, message: impl Into<String>) {
        self.0.borrow_mut().push(Fault { place, path: path.into(), message: message.into() });
    }

    /// True if nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// What was collected, in the order of the file; overrides last.
    pub fn into_sorted(self) -> Vec<Fault> {
        let mut faults = self.0.into_inner();
        faults.sort_by_key(|fault| match &fault.place {
            Place::File { line, column } => (*line, *column),
            Place::Override(_) => (u32::MAX, u32::MAX),
        });
        faults
    }
}

/// A type that can be read from a node. `None` means that a fault was reported.
pub trait Read: Sized {
    /// Reads the value at `reader`.
    fn read(reader: &Reader<'_>) -> Option<Self>;
}

/// A node, the path that led to it, and the list its faults go to.
#[derive(Debug, Clone)]
pub struct Reader<'n> {
    node: &'n Node,
    path: String,
    faults: &'n Faults,
}

impl<'n> Reader<'n> {
    /// Reads the whole tree at `node`.
    pub const fn root(node: &'n Node, faults: &'n Faults) -> Self {
        Self { node, path: String::new(), faults }
    }

    /// The node itself.
    pub const fn node(&self) -> &'n Node {
        self.node
    }

    /// The path that leads here, `requests.0.deadline`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Reports that this value is wrong.
    pub fn fault(&self, message: impl Into<String>) {
        self.faults.add(self.node.place.clone(), self.path.as_str(), message);
    }

    /// The scalar here, or a fault that says `what` belongs here.
    pub fn scalar(&self, what: &str) -> Option<&'n str> {
        match &self.node.value {
            Value::Text { text, .. } => Some(text),
            other => {
                self.fault(format!("{what} belongs here, not {}", other.kind()));
                None
            }
        }
    }

    /// Reads the scalar here with `parse`, whose message becomes the fault.
    pub fn parse<T>(&self, what: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        parse(self.scalar(what)?).map_err(|message| self.fault(message)).ok()
    }

    /// The elements of the list here.
    pub fn list(&self) -> Option<Vec<Self>> {
        match &self.node.value {
            Value::List(items) => {
                Some(items.iter().enumerate().map(|(i, item)| self.child(&i.to_string(), item)).collect())
            }
            other => {
                self.fault(format!("a list belongs here, not {}", other.kind()));
                None
            }
        }
    }

    /// The keys of the map here. Duplicate keys are reported now, unknown ones when the map reader goes.
    pub fn map(&self) -> Option<MapReader<'n>> {
        let Value::Map(entries) = &self.node.value else {
            self.fault(format!("a map belongs here, not {}", self.node.value.kind()));
            return None;
        };
        let mut seen: BTreeMap<&str, &Place> = BTreeMap::new();
        for (key, _) in entries {
            let Some(first) = seen.get(key.text.as_str()) else {
                seen.insert(&key.text, &key.place);
                continue;
            };
            let path = join(&self.path, &key.text);
            let message = format!("duplicate key `{}`, first at {first}: write it once", key.text);
            self.faults.add(key.place.clone(), path, message);
        }
        Some(MapReader { map: self.clone(), asked: Vec::new() })
    }

    /// One of several named things: `poisson`, or `{ gamma: { cv: 2 } }`. Gives the name and, in the second form,
    /// what stands under it. `known` is listed when the name is not in it.
    pub fn one_of(&self, what: &str, known: &[&'static str]) -> Option<(&'static str, Option<Self>)> {
        let (name, inner) = match &self.node.value {
            Value::Text { text, .. } => (text.as_str(), None),
            Value::Map(entries) if entries.len() == 1 => {
                let (key, node) = &entries[0];
                (key.text.as_str(), Some(self.child(&key.text, node)))
            }
            Value::Map(entries) => {
                let names: Vec<_> = entries.iter().map(|(key, _)| key.text.as_str()).collect();
                self.fault(format!("one {what} belongs here, not {}: {}", names.len(), names.join(", ")));
                return None;
            }
            other => {
                self.fault(format!(
                    "the name of a {what} belongs here, not {} ({})",
                    other.kind(),
                    known_list(known)
                ));
                return None;
            }
        };
        let Some(found) = known.iter().find(|k| **k == name) else {
            let guess = nearest(name, known).map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
            self.fault(format!("unknown {what} `{name}` ({guess}{})", known_list(known)));
            return None;
        };
        Some((found, inner))
    }

    fn child(&self, name: &str, node: &'n Node) -> Self {
        Self { node, path: join(&self.path, name), faults: self.faults }
    }
}

/// A map being read. Every key that is asked for is known; the others are reported when this goes out of scope.
#[derive(Debug)]
pub struct MapReader<'n> {
    map: Reader<'n>,
    asked: Vec<&'static str>,
}

impl<'n> MapReader<'n> {
    /// The map itself, to report a fault that concerns several keys.
    pub const fn here(&self) -> &Reader<'n> {
        &self.map
    }

    /// The reader of `key` if it is there.
    pub fn reader(&mut self, key: &'static str) -> Option<Reader<'n>> {
        self.asked.push(key);
        let node = self.map.node.get(key)?;
        Some(self.map.child(key, node))
    }

    /// The value of an optional `key`; `None` if it is absent (or bad, and then reported).
    pub fn get<T: Read>(&mut self, key: &'static str) -> Option<T> {
        self.reader(key).and_then(|r| T::read(&r))
    }

    /// The value of `key`, or `default` if it is absent. `None` only if it is bad.
    pub fn or<T: Read>(&mut self, key: &'static str, default: T) -> Option<T> {
        self.reader(key).map_or(Some(default), |r| T::read(&r))
    }

    /// The value of a required `key`; its absence is reported.
    pub fn need<T: Read>(&mut self, key: &'static str) -> Option<T> {
        match self.reader(key) {
            Some(reader) => T::read(&reader),
            None => {
                self.map.fault(format!("`{key}` is missing"));
                None
            }
        }
    }

    /// Takes every key not asked for yet as known, with its reader: for maps whose keys are names.
    pub fn rest(&mut self) -> Vec<(String, Reader<'n>)> {
        let Value::Map(entries) = &self.map.node.value else { return Vec::new() };
        let open: Vec<_> =
            entries.iter().filter(|(key, _)| !self.asked.contains(&key.text.as_str())).collect();
        self.asked.push("*");
        open.into_iter().map(|(key, node)| (key.text.clone(), self.map.child(&key.text, node))).collect()
    }
}

impl Drop for MapReader<'_> {
    fn drop(&mut self) {
        let Value::Map(entries) = &self.map.node.value else { return };
        if self.asked.contains(&"*") {
            return;
        }
        let mut known = self.asked.clone();
        known.sort_unstable();
        known.dedup();
        for (key, _) in entries.iter().filter(|(key, _)| !self.asked.contains(&key.text.as_str())) {
            let guess =
                nearest(&key.text, &known).map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
            let message = format!("unknown key `{}` ({guess}{})", key.text, known_list(&known));
            self.map.faults.add(key.place.clone(), join(&self.map.path, &key.text), message);
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn known_list(known: &[&str]) -> String {
    format!("known: {}", known.join(", "))
}

/// The entry of `known` that `name` was probably meant to be: at most a third of its letters differ.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let limit = (name.chars().count() / 3).clamp(1, 3);
    known
        .iter()
        .map(|k| (distance(name, k), *k))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, k)| k)
}

/// Edit distance with swaps of neighbours counted once (optimal string alignment), on at most 64 letters.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

macro_rules! read_by_parse {
    ($($what:literal $type:ty = $parse:expr;)*) => {
        $(impl Read for $type {
            fn read(reader: &Reader<'_>) -> Option<Self> {
                reader.parse($what, $parse)
            }
        })*
    };
}

read_by_parse! {
    "a token count" Tokens = Tokens::parse;
    "a size" Bytes = Bytes::parse;
    "a rate" Rate = Rate::parse;
    "a ratio" Ratio = Ratio::parse;
    "a share" Share = Share::parse;
    "a duration" Duration = parse_duration;
    "a whole number" u64 = whole;
    "a whole number" u32 = |text| whole(text).and_then(|n| u32::try_from(n).map_err(|_| format!("`{text}` is too large")));
    "a small whole number" u8 = |text| whole(text).and_then(|n| u8::try_from(n).map_err(|_| format!("`{text}` is too large")));
    "a status code" u16 = |text| whole(text).and_then(|n| u16::try_from(n).map_err(|_| format!("`{text}` is too large")));
    "true or false" bool = |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("`{other}` is neither `true` nor `false`")),
    };
    "a text" String = |text| Ok(text.to_owned());
}

fn whole(text: &str) -> Result<u64, String> {
    Tokens::parse(text).map(Tokens::get).map_err(|_| format!("`{text}` is no whole number"))
}

impl<T: Read> Read for Vec<T> {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let items: Vec<_> = reader.list()?.iter().map(T::read).collect();
        items.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Key;

    fn map(entries: &[(&str, &str)]) -> Node {
        let place = |line| Place::File { line, column: 1 };
        let entries = entries.iter().zip(1..).map(|((key, text), line)| {
            (Key { text: (*key).into(), place: place(line) }, Node::text(*text, place(line)))
        });
        Node { place: place(1), value: Value::Map(entries.collect()) }
    }

    #[test]
    fn all_faults_are_collected_with_their_places() {
        let node = map(&[("rtae", "1/s"), ("for", "20"), ("for", "1s")]);
        let faults = Faults::default();
        {
            let mut reader = Reader::root(&node, &faults).map().unwrap();
            assert_eq!(reader.need::<Rate>("rate"), None);
            assert_eq!(reader.need::<Duration>("for"), None);
        }
        let found: Vec<String> = faults
            .into_sorted()
            .into_iter()
            .map(|f| format!("{} {}: {}", f.place, f.path, f.message))
            .collect();
        assert_eq!(found.len(), 4, "{found:#?}");
        assert!(found.iter().any(|f| f.contains("1:1") && f.contains("did you mean `rate`")), "{found:#?}");
        assert!(found.iter().any(|f| f.starts_with("2:1 for") && f.contains("no unit")), "{found:#?}");
        assert!(
            found.iter().any(|f| f.starts_with("3:1") && f.contains("duplicate key `for`")),
            "{found:#?}"
        );
    }

    #[test]
    fn the_nearest_name_is_offered_only_when_it_is_near() {
        assert_eq!(nearest("nmae", &["name", "about"]), Some("name"));
        assert_eq!(nearest("duraton", &["duration", "rate"]), Some("duration"));
        assert_eq!(nearest("zzz", &["name", "about"]), None);
    }

    #[test]
    fn words_are_not_booleans_or_numbers() {
        let faults = Faults::default();
        let read = |text: &str| {
            let node = Node::text(text, Place::File { line: 1, column: 1 });
            let reader = Reader::root(&node, &faults);
            (bool::read(&reader), String::read(&reader))
        };
        assert_eq!(read("yes"), (None, Some("yes".into())));
        assert_eq!(read("true"), (Some(true), Some("true".into())));
        assert_eq!(read("1.10").1, Some("1.10".into()));
    }
}
