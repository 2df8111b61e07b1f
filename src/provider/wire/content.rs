use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A message's content, of which nothing is kept but the number of blank-separated words in its texts. Images, audio
/// and the like count none.
#[derive(Debug, Default)]
pub(super) struct Content {
    pub(super) words: u64,
}

/// A part of a content that is a list.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    text: Content,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl<'de> Visitor<'de> for Words {
            type Value = Content;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message's text or list of parts")
            }
            fn visit_str<E>(self, text: &str) -> Result<Content, E> {
                Ok(Content { words: text.split_ascii_whitespace().count() as u64 })
            }
            fn visit_unit<E>(self) -> Result<Content, E> {
                Ok(Content::default())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
                let mut words = 0u64;
                while let Some(part) = parts.next_element::<Part>()? {
                    words = words.saturating_add(part.text.words);
                }
                Ok(Content { words })
            }
        }
        deserializer.deserialize_any(Words)
    }
}

/// One message of a conversation.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    /// Its text: a string, or a list of parts.
    #[serde(default)]
    content: Content,
}

/// The words of a conversation.
pub(super) fn words(messages: &[Message]) -> u64 {
    messages.iter().fold(0, |sum, message| sum.saturating_add(message.content.words))
}
