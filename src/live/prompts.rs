//! The texts of prompts: made once, before the load, so that the first n words of a text are a prompt of n tokens.
//!
//! Counted in words, any letters will do. Counted by a tokenizer, each word is one of its tokens with the blank before
//! it: what splits a text into pieces splits it there, so the count of a prompt is the number of its words, whoever
//! counts. A text is counted as a whole before it is used.

use std::sync::OnceLock;

use bpe_openai::Tokenizer;
use bytes::Bytes;

use super::LiveError;
use crate::provider::Count;
use crate::provider::wire::openai;
use crate::units::Tokens;
use crate::workload::Class;

/// Words of one length that are taken in turn.
const TURN: usize = 61;
/// The longest word looked for.
const LONGEST: usize = 24;

/// A text of which the first so many words are a prompt.
#[derive(Debug, Clone)]
pub(super) struct Text {
    bytes: Bytes,
    words: u64,
}

impl Text {
    /// The text of the longest prompt of `class`, counted by `count`.
    ///
    /// # Errors
    ///
    /// If a tokenizer has no words of the length that is asked for.
    pub(super) fn new(class: &Class, count: Count) -> Result<Self, LiveError> {
        let (words, bytes) = (class.prompt.most().get(), class.most_bytes().get());
        let text = match tokenizer(count) {
            None => openai::prompt(words, bytes),
            Some((tokenizer, vocabulary)) => of_tokens(tokenizer, vocabulary, words, bytes)
                .map_err(|why| LiveError::Request(format!("requests.{}.prompt: {why}", class.name)))?,
        };
        Ok(Self { bytes: text.into(), words: words.max(1) })
    }

    /// A prompt of so many tokens: a slice, nothing is copied.
    pub(super) fn first(&self, tokens: Tokens) -> Bytes {
        let words = u128::from(tokens.get().min(self.words));
        let end = (self.bytes.len() as u128 + 1) * words / u128::from(self.words);
        self.bytes.slice(..usize::try_from(end).unwrap_or(usize::MAX).saturating_sub(1).min(self.bytes.len()))
    }
}

/// A tokenizer and the words made of its tokens, which are looked for once.
fn tokenizer(count: Count) -> Option<(&'static Tokenizer, &'static Vocabulary)> {
    static WORDS: [OnceLock<Vocabulary>; 2] = [OnceLock::new(), OnceLock::new()];
    let (tokenizer, words) = match count {
        Count::Words => return None,
        Count::Cl100kBase => (bpe_openai::cl100k_base(), &WORDS[0]),
        Count::O200kBase => (bpe_openai::o200k_base(), &WORDS[1]),
    };
    Some((tokenizer, words.get_or_init(|| vocabulary(tokenizer))))
}

/// A text of exactly `words` tokens in `bytes` bytes, each with the blank before it a word.
fn of_tokens(
    tokenizer: &Tokenizer,
    vocabulary: &Vocabulary,
    words: u64,
    bytes: u64,
) -> Result<String, String> {
    let mut missing = None;
    let text = openai::prompt_of(words, bytes, |nth, letters, text| {
        let of_length = vocabulary.get(letters).map(Vec::as_slice).unwrap_or_default();
        match of_length.get(usize::try_from(nth).unwrap_or(0) % of_length.len().max(1)) {
            Some(word) => text.push_str(word),
            None => missing = missing.or(Some(letters)),
        }
    });
    if let Some(letters) = missing {
        let most = vocabulary.iter().rposition(|words| !words.is_empty()).unwrap_or(0);
        return Err(format!(
            "its tokenizer has no tokens of {letters} letters: give it 2 to {} bytes a token (prompt.bytes)",
            most + 1
        ));
    }
    let counted = tokenizer.count(text.as_str()) as u64;
    if counted != words {
        return Err(format!("a text of {words} tokens was counted as {counted}"));
    }
    Ok(text)
}

/// By their number of letters: words that are one token each, with a blank before them and without.
type Vocabulary = Vec<Vec<String>>;

fn vocabulary(tokenizer: &Tokenizer) -> Vocabulary {
    let mut by_length = vec![Vec::new(); LONGEST + 1];
    for id in 0..u32::try_from(tokenizer.bpe.num_tokens()).unwrap_or(0) {
        let bytes = tokenizer.bpe.decode_tokens(&[id]);
        let Some(word) = bytes.strip_prefix(b" ").and_then(|word| std::str::from_utf8(word).ok()) else {
            continue;
        };
        let plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
        let Some(row) = by_length.get_mut(word.len()).filter(|row| plain && row.len() < TURN) else {
            continue;
        };
        if tokenizer.count(word) == 1 && tokenizer.count(format!(" {word}").as_str()) == 1 {
            row.push(word.to_owned());
        }
    }
    by_length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing;
    use crate::units::Bytes as Size;
    use crate::workload::Size as Length;

    fn class(tokens: u64, bytes: u64) -> Class {
        let plan = testing::plan("http://127.0.0.1:1");
        let class = plan.requests.classes()[0].clone();
        Class { prompt: Length::fixed(Tokens::new(tokens)), bytes: Size::new(bytes), ..class }
    }

    #[test]
    fn a_prompt_counted_in_words_has_its_words_and_bytes() {
        for (tokens, bytes) in [(1, 5), (800, 6_000), (3_000, 40_000)] {
            let class = class(tokens, bytes);
            let text = Text::new(&class, Count::Words).unwrap();
            for n in [1, tokens / 3 + 1, tokens] {
                let prompt = text.first(Tokens::new(n));
                assert_eq!(prompt.split(|b| *b == b' ').count() as u64, n, "{tokens} in {bytes}");
                assert_eq!(prompt.len() as u64, class.bytes_of(Tokens::new(n)).get(), "{tokens} in {bytes}");
                assert!(!prompt.ends_with(b" "));
            }
            assert_eq!(text.first(Tokens::new(tokens)).len() as u64, bytes);
        }
    }

    /// The count of every beginning, by the real tokenizers: it is the number of its words.
    #[test]
    fn a_prompt_counted_by_a_tokenizer_has_its_tokens() {
        for count in [Count::Cl100kBase, Count::O200kBase] {
            let (tokenizer, _) = tokenizer(count).unwrap();
            for (tokens, bytes) in [(800, 6_000), (1_500, 6_500), (700, 7_000), (6_000, 40_000)] {
                let text = Text::new(&class(tokens, bytes), count).unwrap();
                assert_eq!(text.bytes.len() as u64, bytes);
                for n in (1..=tokens).step_by(if tokens > 2_000 { 997 } else { 37 }) {
                    let prompt = text.first(Tokens::new(n));
                    assert_eq!(tokenizer.count(std::str::from_utf8(&prompt).unwrap()) as u64, n, "{count:?}");
                }
            }
            let why = Text::new(&class(10, 400), count).unwrap_err().to_string();
            assert!(why.contains("requests.ask.prompt") && why.contains("bytes a token"), "{why}");
        }
    }
}
