use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character could steer a terminal, reorder what stands around it, or is none that a file may hold.
fn steers(c: char) -> bool {
    c.is_control()
        || u32::from(c) & 0xFFFE == 0xFFFE
        || matches!(c, '\u{61C}' | '\u{FDD0}'..='\u{FDEF}' | '\u{E0000}'..='\u{E007F}')
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

/// `text` without a character that could steer a terminal: such a one is shown as `\u{1b}`.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if steers(c) {
            // writing to a string cannot fail
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_a_server_sends_steers_the_terminal() {
        assert_eq!(plain("\u{1b}[2Jgone\r\n"), "\\u{1b}[2Jgone\\u{d}\\u{a}");
        assert_eq!(plain("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c");
        assert_eq!(plain("\u{fffe}\u{1ffff}"), "\\u{fffe}\\u{1ffff}");
        assert!(matches!(plain("Größe 5 µs · ✓"), Cow::Borrowed(_)));
    }
}
