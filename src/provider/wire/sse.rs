//! Server-sent events as they come over the wire, in pieces of any size (WHATWG HTML, 9.2).

use std::borrow::Cow;

/// The longest line that is read, in bytes.
const LONGEST: usize = 1 << 20;

/// What an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// Its name; empty if it has none.
    pub name: &'a str,
    /// Its data, lines with `\n` between.
    pub data: &'a str,
}

/// A line was longer than any event of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of the stream is longer than {LONGEST} bytes")]
pub struct TooLong;

/// Puts the pieces together. It keeps the present line and the present event, and nothing more.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// The last byte was a carriage return: a line feed right after it belongs to the same end of a line.
    after_return: bool,
    begun: bool,
    garbled: u64,
}

impl Reader {
    /// Nothing has come yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece, and hands each event that is whole to `each`. What is not UTF-8 is replaced.
    ///
    /// # Errors
    /// If a line is too long to be of any use; the rest of the stream is then not to be read.
    pub fn feed(&mut self, piece: &[u8], mut each: impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        let mut rest = piece;
        if self.after_return && !rest.is_empty() {
            self.after_return = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            self.take(&rest[..end])?;
            let returned = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if returned {
                match rest.split_first() {
                    Some((b'\n', after)) => rest = after,
                    Some(_) => {}
                    None => self.after_return = true,
                }
            }
            self.end_line(&mut each)?;
        }
        self.take(rest)
    }

    /// Nothing more comes. An event that lacks the empty line after it, as some servers leave their last, is handed to
    /// `each` all the same; gives whether there was one.
    ///
    /// # Errors
    /// As [`Self::feed`].
    pub fn finish(&mut self, mut each: impl FnMut(Event<'_>)) -> Result<bool, TooLong> {
        if !self.line.is_empty() {
            self.end_line(&mut each)?;
        }
        let pending = self.has_data;
        if pending {
            self.end_line(&mut each)?;
        }
        Ok(pending)
    }

    /// Lines that were no UTF-8.
    pub const fn garbled(&self) -> u64 {
        self.garbled
    }

    /// Whether something has come that is no whole event yet.
    pub fn is_midway(&self) -> bool {
        !self.line.is_empty() || self.has_data
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + bytes.len() > LONGEST {
            return Err(TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, each: &mut impl FnMut(Event<'_>)) -> Result<(), TooLong> {
        let line = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&line);
        // what was replaced is a copy
        self.garbled += u64::from(matches!(text, Cow::Owned(_)));
        let mut text = &*text;
        if !std::mem::replace(&mut self.begun, true) {
            text = text.strip_prefix('\u{feff}').unwrap_or(text);
        }
        if text.is_empty() {
            if self.has_data {
                each(Event { name: &self.name, data: &self.data });
            }
            self.name.clear();
            self.data.clear();
            self.has_data = false;
        } else {
            let (field, value) = text.split_once(':').unwrap_or((text, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => {
                    self.name.clear();
                    self.name.push_str(value);
                }
                "data" => {
                    if self.data.len() + value.len() > LONGEST {
                        return Err(TooLong);
                    }
                    if std::mem::replace(&mut self.has_data, true) {
                        self.data.push('\n');
                    }
                    self.data.push_str(value);
                }
                // comments, ids, retry times, and what nobody knows
                _ => {}
            }
        }
        // the buffer is used again
        self.line = line;
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<(String, String)>, bool) {
        let (mut reader, mut seen) = (Reader::new(), Vec::new());
        for piece in pieces {
            reader.feed(piece, |event| seen.push((event.name.to_owned(), event.data.to_owned()))).unwrap();
        }
        (seen, reader.is_midway())
    }

    fn whole(text: &str) -> Vec<(String, String)> {
        all(std::iter::once(text.as_bytes())).0
    }

    #[test]
    fn events_comments_and_every_end_of_a_line_are_understood() {
        let plain = |data: &str| (String::new(), data.to_owned());
        assert_eq!(whole("data: a\n\ndata:b\n\n"), [plain("a"), plain("b")]);
        assert_eq!(
            whole("\u{feff}data: a\r\n\r\ndata: b\r\rdata: c\n\n"),
            [plain("a"), plain("b"), plain("c")]
        );
        assert_eq!(whole(": ping\n\nid: 7\nretry: 5\n\n"), []);
        assert_eq!(whole("data: a\ndata\ndata:  b\n\n"), [plain("a\n\n b")]);
        assert_eq!(whole("event: error\ndata: {}\n\n"), [("error".to_owned(), "{}".to_owned())]);
        assert_eq!(whole("event: lost\n\ndata: x\n\n"), [plain("x")], "a name without data is forgotten");
        assert_eq!(all([&b"data: a\n\ndata: b\n"[..]].into_iter()), (vec![plain("a")], true));
    }

    /// As in rexxars/eventsource-parser#17: CR and LF that come in different pieces are one end of a line.
    #[test]
    fn a_return_and_a_feed_in_two_pieces_end_one_line() {
        let once = vec![(String::new(), "X\nY\nZ".to_owned())];
        let pieces = ["data: X\r\n", "data: Y\r", "\n", "data: Z\r\n", "\r\n"];
        let with = |skip: usize| {
            let kept = pieces.iter().enumerate().filter(move |(n, _)| *n != skip);
            all(kept.map(|(_, piece)| piece.as_bytes()))
        };
        assert_eq!((with(9), with(2)), ((once.clone(), false), (once, false)));
    }

    /// As in api7/aisix#111: a character that comes in two pieces is one, and a byte that is no text is counted.
    #[test]
    fn a_character_in_two_pieces_is_one() {
        let heard = |pieces: &[&[u8]]| {
            let (mut reader, mut data) = (Reader::new(), Vec::new());
            for piece in pieces {
                reader.feed(piece, |event| data.push(event.data.to_owned())).unwrap();
            }
            (data, reader.garbled())
        };
        assert_eq!(
            heard(&[b"data: \xe4\xbd\xa0\xe5", b"\xa5\xbd\n\n"]),
            (vec!["\u{4f60}\u{597d}".to_owned()], 0)
        );
        assert_eq!(heard(&[b"data: a\xff\n\n"]), (vec!["a\u{fffd}".to_owned()], 1));
    }

    /// As in anomalyco/opencode#40454: the standard drops a last event without its empty line, and servers send such.
    #[test]
    fn a_last_event_without_its_empty_line_is_heard_at_the_end() {
        for (text, last) in [("data: a\n\ndata: [DONE]", Some("[DONE]")), ("data: a\n\ndata: b\n", Some("b"))]
        {
            let (mut reader, mut data) = (Reader::new(), Vec::new());
            reader.feed(text.as_bytes(), |event| data.push(event.data.to_owned())).unwrap();
            assert_eq!(data, ["a"]);
            let pending = reader.finish(|event| data.push(event.data.to_owned())).unwrap();
            assert_eq!((pending, data.get(1).map(String::as_str)), (true, last));
            assert!(!reader.is_midway() && !reader.finish(|_| panic!("once")).unwrap());
        }
        let mut reader = Reader::new();
        reader.feed(b"data: a\n\nevent: x\n: c", |_| ()).unwrap();
        assert!(!reader.finish(|_| panic!("there is no data")).unwrap());
    }

    #[test]
    fn an_endless_line_is_given_up() {
        let mut reader = Reader::new();
        let piece = vec![b'x'; 300_000];
        let fed: Vec<_> = (0..4).map(|_| reader.feed(&piece, |_| ())).collect();
        assert_eq!(fed, [Ok(()), Ok(()), Ok(()), Err(TooLong)]);
        let mut reader = Reader::new();
        let line = format!("data: {}\n", "x".repeat(600_000));
        assert_eq!(reader.feed(line.as_bytes(), |_| ()), Ok(()));
        assert_eq!(reader.feed(line.as_bytes(), |_| ()), Err(TooLong), "nor an endless event");
    }

    proptest! {
        #[test]
        fn the_pieces_do_not_matter(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("data: é"), Just("data"), Just(""), Just(": c"), Just("event: e"), Just("\u{0}:x"), Just("data:y")
                ],
                0..30,
            ),
            ends in proptest::collection::vec(prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], 30),
            cuts in proptest::collection::vec(1..5usize, 1..200),
        ) {
            let text: String = lines.iter().zip(&ends).map(|(line, end)| format!("{line}{end}")).collect();
            let (mut rest, mut pieces) = (text.as_bytes(), Vec::new());
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            prop_assert_eq!(all(pieces.into_iter()), all(std::iter::once(text.as_bytes())));
        }
    }
}
