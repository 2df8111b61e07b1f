use std::io::BufRead;

use super::Wrong;

/// The longest line: a Mooncake row of a prompt of a million tokens has 20 kB of hashes.
const MOST_BYTES: usize = 1 << 18;

/// The lines of a file, one at a time and none of any length.
pub(super) struct Lines<'r> {
    from: &'r mut dyn BufRead,
    line: Vec<u8>,
    /// The number of the line that was read last, from 1.
    pub(super) number: u64,
    /// Whether that line had no end: the file may be cut off there.
    pub(super) open_ended: bool,
}

impl<'r> Lines<'r> {
    pub(super) fn new(from: &'r mut dyn BufRead) -> Self {
        Self { from, line: Vec::new(), number: 0, open_ended: false }
    }

    /// The next line without its end (LF or CR LF), nor the byte order mark some programs write before the first.
    pub(super) fn next(&mut self) -> Result<Option<&str>, Wrong> {
        self.line.clear();
        self.number += 1;
        loop {
            let chunk = self
                .from
                .fill_buf()
                .map_err(|e| Wrong::at(self.number, format!("it cannot be read: {e}")))?;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let take = end.map_or(chunk.len(), |at| at + 1);
            let over = chunk.is_empty();
            self.line.extend_from_slice(&chunk[..take]);
            self.from.consume(take);
            if self.line.len() > MOST_BYTES {
                return Err(Wrong::at(
                    self.number,
                    format!("it is longer than {MOST_BYTES} bytes: is this a trace?"),
                ));
            }
            if over || end.is_some() {
                break;
            }
        }
        if self.line.is_empty() {
            return Ok(None);
        }
        self.open_ended = self.line.pop_if(|last| *last == b'\n').is_none();
        let _ = self.line.pop_if(|last| *last == b'\r');
        let text = self.text()?;
        Ok(Some(if self.number == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text }))
    }

    fn text(&self) -> Result<&str, Wrong> {
        std::str::from_utf8(&self.line).map_err(|_| {
            let wide = self.number == 1
                && (self.line.starts_with(&[0xFF, 0xFE]) || self.line.starts_with(&[0xFE, 0xFF]));
            let what = if wide { "it is UTF-16, not UTF-8: save it as UTF-8" } else { "it is not UTF-8" };
            Wrong::at(self.number, what)
        })
    }
}
