use std::io;

use super::{Style, plain};

/// The widest line.
pub(super) const WIDTH: usize = 100;

/// The colours there are. None is ever the only sign.
#[derive(Debug, Clone, Copy)]
pub(super) enum Colour {
    Green,
    Red,
    Yellow,
    Grey,
    None,
}

impl Colour {
    const fn code(self) -> &'static str {
        match self {
            Self::Green => "32",
            Self::Red => "31",
            Self::Yellow => "33",
            Self::Grey => "90",
            Self::None => "",
        }
    }
}

/// Writes lines of at most [`WIDTH`] columns, escaped.
pub(super) struct Lines<'w> {
    out: &'w mut dyn io::Write,
    style: Style,
}

impl<'w> Lines<'w> {
    pub(super) fn new(out: &'w mut dyn io::Write, style: Style) -> Self {
        Self { out, style }
    }

    pub(super) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// `head` at the left, coloured and padded to `indent`, then `text`, wrapped and indented alike.
    pub(super) fn item(&mut self, head: &str, colour: Colour, indent: usize, text: &str) -> io::Result<()> {
        let head = plain(head);
        let gap = indent.saturating_sub(head.chars().count()).max(1);
        let start = head.chars().count() + gap;
        let text = plain(text);
        let mut lines = wrap(&text, start, indent).into_iter();
        write!(self.out, "{}", self.dressed(&head, colour))?;
        match lines.next().filter(|line| !line.is_empty()) {
            Some(first) => writeln!(self.out, "{:gap$}{first}", "")?,
            None => writeln!(self.out)?,
        }
        lines.try_for_each(|line| writeln!(self.out, "{:indent$}{line}", ""))
    }

    /// `head`, coloured, and `text` after a blank, both as they are: their maker has escaped and padded them.
    pub(super) fn raw(&mut self, head: &str, colour: Colour, text: &str) -> io::Result<()> {
        let line = format!("{} {text}", self.dressed(head, colour));
        writeln!(self.out, "{}", line.trim_end())
    }

    fn dressed(&self, text: &str, colour: Colour) -> String {
        match (self.style.colour, colour.code()) {
            (true, code) if !code.is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            _ => text.to_owned(),
        }
    }
}

/// Units that stay on the line of their number.
const UNITS: &[&str] = &["%", "s", "ms", "µs", "min", "h", "B", "kB", "MB", "GB"];

/// Breaks `text` at blanks, but not between a number and its unit: the first line begins at column `start`, the others
/// at `indent`. A word longer than a line keeps a line of its own.
fn wrap(text: &str, start: usize, indent: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let bare = word.trim_end_matches([',', ';', ':', '.', ')']);
        match words
            .last_mut()
            .filter(|last| UNITS.contains(&bare) && last.ends_with(|c: char| c.is_ascii_digit()))
        {
            Some(last) => last.extend([" ", word]),
            None => words.push(word.to_owned()),
        }
    }
    let mut lines = vec![String::new()];
    let mut column = start;
    for word in &words {
        let width = word.chars().count();
        let line = lines.last_mut().expect("there is always a last line");
        if !line.is_empty() && column + 1 + width > WIDTH {
            lines.push(word.clone());
            column = indent + width;
        } else {
            if !line.is_empty() {
                line.push(' ');
                column += 1;
            }
            line.push_str(word);
            column += width;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_before_the_hundredth_column_and_hang_under_their_text() {
        let mut out = Vec::new();
        let text = "word ".repeat(60);
        Lines::new(&mut out, Style::default()).item("  head", Colour::Red, 20, text.trim()).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert!(out.lines().count() > 3 && out.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(
            out.lines()
                .skip(1)
                .all(|line| line.starts_with(&" ".repeat(20)) && !line.starts_with(&" ".repeat(21)))
        );
        assert!(!out.contains('\u{1b}'), "no colour unless asked");
        assert_eq!(wrap("takes 25 s, or 80 %", WIDTH - 9, 0), ["takes", "25 s, or 80 %"]);
    }
}
