use std::fmt::Debug;
use std::time::Duration;

use super::sse::Event;
use super::{anthropic, openai};
use crate::provider::Limits;
use crate::units::{Read, Reader, Tokens};

/// Every API that is spoken, sorted by name.
pub const ALL: &[&dyn Api] = &[&anthropic::Anthropic, &openai::OpenAi];

/// An API of a provider: how requests, answers and errors look. It keeps no state and decides nothing.
pub trait Api: Debug + Send + Sync {
    /// Its name in a plan.
    fn name(&self) -> &'static str;
    /// One line for `tenfold list`.
    fn about(&self) -> &'static str;
    /// Where it answers.
    fn path(&self) -> &'static str;
    /// Headers that every request carries.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    /// What a request's body asks for.
    ///
    /// # Errors
    /// What is wrong with it, in words, if it is no request at all.
    fn read(&self, body: &[u8]) -> Result<Asked, String>;
    /// A request's body: `text` as the only message of user `user`. If it asks for a stream, then for one that says what
    /// it used.
    fn request(&self, model: &str, text: &str, max_output: Tokens, user: &str, stream: bool) -> String;
    /// The body of a whole answer.
    fn answer(&self, made: &Made<'_>) -> String;
    /// The headers of an answer, whole or streamed, besides the content type.
    fn headers_of_answer(&self, made: &Made<'_>) -> Vec<(&'static str, String)>;
    /// Whether a body is a whole answer with something in it. An error member in a success is none.
    fn has_text(&self, body: &[u8]) -> bool;
    /// Tokens a whole answer says it used, prompt and answer together; `None` if it does not say.
    fn used(&self, body: &[u8]) -> Option<Tokens>;
    /// The same answer in pieces, as server-sent events; with what it used only `if usage` was asked for, where the API
    /// leaves that to the caller.
    fn frames(&self, made: &Made<'_>, usage: bool) -> Frames;
    /// What an event of a streamed answer says.
    fn said(&self, event: &Event<'_>) -> Said;
    /// The event that ends a streamed answer whose time is up before it is whole.
    fn out_of_time(&self) -> String;
    /// How the provider says that it does not answer. `unix` is the present instant on the wall clock, since 1970.
    fn error(&self, trouble: &Trouble<'_>, unix: Duration) -> Told;
}

impl PartialEq for dyn Api {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// The API that a plan names.
impl Read for &'static dyn Api {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let names: Vec<_> = ALL.iter().map(|api| api.name()).collect();
        match reader.one_of("API", &names)? {
            (name, None) => ALL.iter().copied().find(|api| api.name() == name),
            (name, Some(inner)) => {
                inner.fault(format!("`{name}` has no settings"));
                None
            }
        }
    }
}

/// What a request asks for, as far as it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which model.
    pub model: Option<String>,
    /// Whether there is a message to answer.
    pub has_messages: bool,
    /// Tokens of the prompt, counted as blank-separated words.
    pub prompt: Tokens,
    /// The most tokens of the answer.
    pub max_output: Option<Tokens>,
    /// The field that stands in, or should.
    pub max_output_field: &'static str,
    /// Who asks, for the provider's own records.
    pub user: Option<String>,
    /// Whether the answer is to be streamed.
    pub stream: bool,
    /// Whether a streamed answer shall say what it used.
    pub stream_usage: bool,
}

/// An answer that was made.
#[derive(Debug, Clone, Copy)]
pub struct Made<'a> {
    /// Its number, as text.
    pub id: &'a str,
    /// The model that was asked for.
    pub model: &'a str,
    /// Tokens of the prompt.
    pub prompt: Tokens,
    /// Tokens of the answer, as many words.
    pub output: Tokens,
    /// The quota after it.
    pub limits: &'a Limits,
    /// The present instant on the wall clock, since 1970.
    pub unix: Duration,
}

/// A streamed answer in pieces, each one or more whole events. The tokens of an answer are all alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// Comes first.
    pub opening: String,
    /// Comes once for each token.
    pub token: String,
    /// Comes last.
    pub closing: String,
    /// Comes instead of the rest, if the answer breaks off with an error.
    pub error: String,
}

/// What an event of a streamed answer says; nothing of consequence by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// A piece of the answer's content.
    pub content: bool,
    /// What the answer used, prompt and answer together. Of several the last counts.
    pub used: Option<Tokens>,
    /// The content is all there.
    pub finished: bool,
    /// The answer has ended in order: nothing follows.
    pub end: bool,
    /// It breaks off: an error, inside a success.
    pub error: Option<String>,
}

impl Said {
    pub(super) fn error(why: impl Into<String>) -> Self {
        Self { error: Some(why.into()), ..Self::default() }
    }
}

/// Why the provider does not answer.
#[derive(Debug, Clone, Copy)]
pub enum Trouble<'a> {
    /// The body is no request.
    NotJson(&'a str),
    /// A field that must be there is not.
    Missing(&'static str),
    /// A field is wrong.
    Invalid(&'static str, &'a str),
    /// The quota is spent.
    Quota {
        /// The model that was asked for.
        model: &'a str,
        /// What the request would take.
        wanted: Tokens,
        /// The quota, untouched.
        limits: &'a Limits,
        /// Until it would fit; `None` if nothing is said of it.
        retry_after: Option<Duration>,
    },
    /// It asks for more than the quota can ever grant at once.
    TooLarge {
        /// The model that was asked for.
        model: &'a str,
        /// What the request would take.
        wanted: Tokens,
        /// The most that can be granted.
        most: Tokens,
    },
    /// Nobody has this key.
    UnknownKey,
    /// Something is wrong with the provider.
    Failing {
        /// The status it says so with.
        status: u16,
        /// When to come again; `None` if nothing is said of it.
        retry_after: Option<Duration>,
    },
    /// There is nothing at this path.
    NotFound {
        /// How it was asked.
        method: &'a str,
        /// For what.
        path: &'a str,
    },
}

/// An error as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Its status.
    pub status: u16,
    /// Its headers besides the content type.
    pub headers: Vec<(&'static str, String)>,
    /// Its body, in JSON.
    pub body: String,
}

impl Told {
    pub(super) const fn new(status: u16, body: String) -> Self {
        Self { status, headers: Vec::new(), body }
    }
}

/// An event as it goes over the wire.
pub(super) fn event(name: Option<&str>, data: &serde_json::Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}

/// As many words as an answer has tokens.
pub(super) fn words(output: Tokens) -> String {
    let mut text = "word ".repeat(usize::try_from(output.get()).unwrap_or(0));
    text.pop();
    text
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::sse;
    use super::*;

    const LIMITS: Limits = Limits {
        per_minute: Tokens::new(500_000),
        remaining: Tokens::new(1_200),
        reset: Duration::from_millis(840),
        requests: None,
    };

    /// Errors of every kind.
    fn troubles() -> [Trouble<'static>; 6] {
        let (model, wanted) = ("m", Tokens::new(1_200));
        [
            Trouble::NotJson("expected value at line 1 column 1"),
            Trouble::Missing("model"),
            Trouble::Invalid("messages", "it is empty"),
            Trouble::Quota {
                model,
                wanted,
                limits: &LIMITS,
                retry_after: Some(Duration::from_millis(1_500)),
            },
            Trouble::TooLarge { model, wanted, most: Tokens::new(1_000) },
            Trouble::NotFound { method: "GET", path: "/v1/x" },
        ]
    }

    #[test]
    fn the_table_is_sorted_and_each_reads_what_it_writes() {
        assert!(ALL.windows(2).all(|pair| pair[0].name() < pair[1].name()));
        for api in ALL {
            let streamed = api.request("rehearsal", "a b c", Tokens::new(7), "tenfold-1", true);
            let streamed = api.read(streamed.as_bytes()).unwrap();
            assert!(streamed.stream && streamed.stream_usage, "{}", api.name());
            let body = api.request("rehearsal", "a b c", Tokens::new(7), "tenfold-1", false);
            let asked = api.read(body.as_bytes()).unwrap();
            assert_eq!(asked.model.as_deref(), Some("rehearsal"));
            assert_eq!(asked.user.as_deref(), Some("tenfold-1"));
            assert!(asked.has_messages && !asked.stream);
            assert_eq!((asked.prompt, asked.max_output), (Tokens::new(3), Some(Tokens::new(7))));
            let made = Made {
                id: "1",
                model: "rehearsal",
                prompt: Tokens::new(3),
                output: Tokens::new(7),
                limits: &LIMITS,
                unix: Duration::from_secs(1_790_000_000),
            };
            let answer = api.answer(&made);
            assert_eq!(api.used(answer.as_bytes()), Some(Tokens::new(10)), "{}", api.name());
            assert!(api.has_text(answer.as_bytes()) && !api.has_text(&answer.as_bytes()[..answer.len() - 1]));
            let empty = api.answer(&Made { output: Tokens::ZERO, ..made });
            for none in [empty.as_str(), "", "{}", "null", r#"{"error":{"message":"no"}}"#] {
                assert!(!api.has_text(none.as_bytes()), "{} {none}", api.name());
            }
            assert_eq!(answer.matches("word").count(), 7, "{}", api.name());
        }
    }

    #[test]
    fn a_streamed_answer_is_read_as_it_was_written() {
        let made = Made {
            id: "1",
            model: "m",
            prompt: Tokens::new(3),
            output: Tokens::new(2),
            limits: &LIMITS,
            unix: Duration::from_secs(1_790_000_000),
        };
        for api in ALL {
            let frames = api.frames(&made, true);
            let heard = |text: &str| {
                let (mut reader, mut heard) = (sse::Reader::new(), Vec::new());
                reader.feed(text.as_bytes(), |event| heard.push(api.said(&event))).unwrap();
                assert!(!reader.is_midway(), "{}: every piece is whole events", api.name());
                heard
            };
            let opening = heard(&frames.opening);
            assert!(
                opening.iter().all(|said| *said == Said::default()),
                "{}: nothing is said yet",
                api.name()
            );
            assert_eq!(heard(&frames.token), [Said { content: true, ..Said::default() }]);
            let last = heard(&frames.closing);
            assert_eq!(last.last(), Some(&Said { end: true, ..Said::default() }), "{}", api.name());
            assert!(last.iter().any(|said| said.finished) && last.iter().all(|said| !said.content));
            assert!(last.iter().any(|said| said.used == Some(Tokens::new(5))), "{}: {last:?}", api.name());
            for broken in [frames.error, api.out_of_time()] {
                assert!(matches!(&heard(&broken)[..], [Said { error: Some(why), .. }] if !why.is_empty()));
            }
            for odd in ["", "[", "null", "[]", "{}", "7", "[DONE", r#"{"choices":[]}"#, r#"{"type":7}"#] {
                for name in ["", "message_stop2", "message_delta"] {
                    assert_eq!(api.said(&Event { name, data: odd }), Said::default(), "{} {odd}", api.name());
                }
            }
        }
    }

    #[test]
    fn every_trouble_has_a_status_and_a_body_in_json() {
        for api in ALL {
            let told = troubles().map(|trouble| api.error(&trouble, Duration::from_secs(1_790_000_000)));
            assert_eq!(told.each_ref().map(|told| told.status), [400, 400, 400, 429, 429, 404]);
            for told in &told {
                let body: Value = serde_json::from_str(&told.body).unwrap();
                assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
                assert!(body["error"]["type"].is_string());
            }
            let header =
                |name: &str| told[3].headers.iter().find(|(key, _)| *key == name).map(|(_, v)| v.as_str());
            assert_eq!(header("retry-after"), Some("2"), "in whole seconds, rounded up");
            assert!(told[4].headers.iter().all(|(name, _)| !name.starts_with("retry-after")));
        }
    }

    #[test]
    fn hostile_bodies_are_refused_and_never_a_panic() {
        let deep = format!("{}{}", r#"{"messages":"#, "[".repeat(100_000));
        for api in ALL {
            for body in
                ["", "{", "[]", "null", "\u{0}", r#"{"max_tokens":-1}"#, r#"{"max_tokens":1e400}"#, &deep]
            {
                assert!(api.read(body.as_bytes()).is_err(), "{} {body:.20}", api.name());
            }
            assert!(api.read(&[0xff, 0xfe]).is_err());
            assert!(!api.read(b"{}").unwrap().has_messages);
        }
    }
}
