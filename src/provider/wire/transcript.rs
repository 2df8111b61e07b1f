use super::sse::Reader;
use super::{Api, Said};
use crate::units::Tokens;

/// What has been heard of a streamed answer. It keeps counts, and of the text nothing.
#[derive(Debug)]
pub struct Transcript {
    api: &'static dyn Api,
    reader: Reader,
    /// Whether anything came at all.
    begun: bool,
    events: u64,
    pieces: u64,
    used: Option<Tokens>,
    finished: bool,
    end: bool,
    error: Option<String>,
    /// The end was marked otherwise than by the API's last event, or was not marked off.
    loose: bool,
    unreadable: bool,
}

/// How a streamed answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// Its content came, and its end.
    Whole {
        /// Something in its form was not as the API has it: no last event, none that was marked off, or bytes that are
        /// no text.
        flawed: bool,
    },
    /// Its end came, and nothing before it.
    Hollow,
    /// It broke off with an error, inside a success.
    Error,
    /// It ended without its end.
    Cut,
    /// Nothing came.
    Empty,
    /// What came was no stream of this API.
    Garbage,
}

impl Transcript {
    /// Nothing has been heard yet of an answer in the form of `api`.
    pub fn new(api: &'static dyn Api) -> Self {
        Self {
            api,
            reader: Reader::new(),
            begun: false,
            events: 0,
            pieces: 0,
            used: None,
            finished: false,
            end: false,
            error: None,
            loose: false,
            unreadable: false,
        }
    }

    /// Takes the next bytes. Gives how many pieces of content came with them. What follows the end, or an error, is not
    /// heard.
    pub fn feed(&mut self, bytes: &[u8]) -> u64 {
        if self.is_over() {
            return 0;
        }
        self.begun |= !bytes.is_empty();
        let (mut reader, before) = (std::mem::take(&mut self.reader), self.pieces);
        let fed = reader.feed(bytes, |event| {
            let said = self.api.said(&event);
            self.hear(said);
        });
        self.unreadable = fed.is_err();
        self.reader = reader;
        self.pieces - before
    }

    /// Nothing more comes. Gives how many pieces of content came without being marked off.
    pub fn finish(&mut self) -> u64 {
        if self.is_over() {
            return 0;
        }
        let (mut reader, before) = (std::mem::take(&mut self.reader), self.pieces);
        let ended = reader.finish(|event| {
            let said = self.api.said(&event);
            self.hear(said);
        });
        // whose content is whole, and only its end is missing, has said all
        self.loose = !self.end && self.finished || matches!(ended, Ok(true));
        self.reader = reader;
        self.pieces - before
    }

    fn hear(&mut self, said: Said) {
        if self.has_ended() {
            return;
        }
        let Said { content, used, finished, end, error } = said;
        let known = content || finished || end || error.is_some() || used.is_some();
        self.events += u64::from(known);
        self.pieces += u64::from(content);
        self.used = used.or(self.used);
        self.finished |= finished;
        self.end = end;
        self.error = error;
    }

    /// Whether its last event has come: the end, or an error.
    pub const fn has_ended(&self) -> bool {
        self.end || self.error.is_some()
    }

    /// Whether what follows is of no consequence: the last event has come, or something that cannot be read.
    pub const fn is_over(&self) -> bool {
        self.has_ended() || self.unreadable
    }

    /// Pieces of content so far. A provider need not send its tokens one by one.
    pub const fn pieces(&self) -> u64 {
        self.pieces
    }

    /// Tokens it says it used, prompt and answer together, if it has said so.
    pub const fn used(&self) -> Option<Tokens> {
        self.used
    }

    /// Whether another event can follow here without being mixed up with one that has begun.
    pub fn is_between_events(&self) -> bool {
        !self.reader.is_midway()
    }

    /// How it ended, after [`Self::finish`], or once it is over.
    pub fn close(&self) -> Close {
        let garbled = self.reader.garbled() > 0;
        if self.error.is_some() {
            Close::Error
        } else if self.end || self.finished {
            if self.pieces == 0 { Close::Hollow } else { Close::Whole { flawed: self.loose || garbled } }
        } else if self.unreadable || self.begun && self.events == 0 {
            Close::Garbage
        } else if self.begun {
            Close::Cut
        } else {
            Close::Empty
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::{APIS, Frames, Made};
    use super::*;
    use crate::provider::Limits;
    use crate::provider::wire::openai::OpenAi;

    fn frames(api: &dyn Api, usage: bool) -> Frames {
        let (per_minute, remaining) = (Tokens::new(500), Tokens::new(100));
        let limits = Limits { per_minute, remaining, reset: Duration::ZERO, requests: None };
        let (prompt, output, unix) = (Tokens::new(4), Tokens::new(3), Duration::from_secs(1_790_000_000));
        api.frames(&Made { id: "1", model: "m", prompt, output, limits: &limits, unix }, usage)
    }

    /// How it ended, pieces and tokens used.
    fn heard(api: &'static dyn Api, text: &str) -> (Close, u64, Option<u64>) {
        let mut transcript = Transcript::new(api);
        let pieces = transcript.feed(text.as_bytes()) + transcript.finish();
        assert_eq!(pieces, transcript.pieces());
        (transcript.close(), pieces, transcript.used().map(Tokens::get))
    }

    #[test]
    fn a_whole_answer_is_told_from_one_that_is_not() {
        let whole = |flawed| Close::Whole { flawed };
        for api in APIS.iter().copied() {
            let Frames { opening, token, closing, error } = frames(api, true);
            let body = format!("{opening}{token}{token}{token}");
            assert_eq!(heard(api, &format!("{body}{closing}")), (whole(false), 3, Some(7)), "{}", api.name());
            let twice = format!("{body}{closing}{token}{error}");
            assert_eq!(heard(api, &twice), (whole(false), 3, Some(7)), "nothing counts after the end");
            // as in Growth-Circle/cadis#2547: a stream that ends early, or holds no event, is not complete
            assert_eq!(heard(api, &body), (Close::Cut, 3, None));
            assert_eq!(heard(api, ""), (Close::Empty, 0, None));
            assert_eq!(heard(api, &opening).1, 0);
            assert_eq!(heard(api, "<html>\n\nno\n\n"), (Close::Garbage, 0, None));
            assert_eq!(heard(api, &"x".repeat(3 << 20)), (Close::Garbage, 0, None));
            // as in anthropics/anthropic-sdk-python#1258: an overload inside a stream has the status 200
            assert_eq!(heard(api, &format!("{opening}{token}{error}")), (Close::Error, 1, None));
            assert_eq!(heard(api, &format!("{opening}{closing}")), (Close::Hollow, 0, Some(7)));
            let cut = closing.trim_end();
            assert_eq!(
                heard(api, &format!("{body}{cut}")),
                (whole(true), 3, Some(7)),
                "its last line is open"
            );
        }
    }

    /// As in kubernetes-sigs/inference-perf#189 and vllm-project/production-stack#873.
    #[test]
    fn usage_is_none_where_it_is_not_told_and_a_missing_mark_of_the_end_is_a_flaw() {
        let Frames { opening, token, closing, .. } = frames(&OpenAi, false);
        let all = format!("{opening}{token}{closing}");
        assert_eq!(heard(&OpenAi, &all), (Close::Whole { flawed: false }, 1, None));
        let unmarked = all.replace("data: [DONE]\n\n", "");
        assert_ne!(all, unmarked);
        assert_eq!(heard(&OpenAi, &unmarked), (Close::Whole { flawed: true }, 1, None));
        let garbled = [token.as_bytes(), b"data: \xff\n\n", closing.as_bytes()].concat();
        let mut transcript = Transcript::new(&OpenAi);
        transcript.feed(&garbled);
        assert_eq!(transcript.close(), Close::Whole { flawed: true });
    }

    proptest! {
        #[test]
        fn in_whatever_pieces_it_comes_it_is_the_same(cuts in prop::collection::vec(1usize..90, 1..40), end in 0usize..2_000) {
            for api in APIS.iter().copied() {
                let Frames { opening, token, closing, .. } = frames(api, true);
                let whole = format!("{opening}{token}{token}{closing}");
                let text = &whole[..end.min(whole.len())];
                let (mut transcript, mut rest) = (Transcript::new(api), text.as_bytes());
                for cut in cuts.iter().cycle() {
                    if rest.is_empty() { break }
                    let (piece, after) = rest.split_at((*cut).min(rest.len()));
                    transcript.feed(piece);
                    rest = after;
                }
                transcript.finish();
                let seen = (transcript.close(), transcript.pieces(), transcript.used().map(Tokens::get));
                prop_assert_eq!(seen, heard(api, text));
            }
        }
    }
}
