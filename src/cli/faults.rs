//! How the faults of a plan are shown: one a line, with file, line and column, and their number at the end.

use std::fmt::Write;

use crate::units::{Fault, Place};

/// The lines for `faults` of the file called `file`: `plans/x.yaml:3:5: requests.0.deadline: …`.
pub fn render(file: &str, faults: &[Fault]) -> String {
    let mut out = lines(file, "", faults);
    let count = match faults.len() {
        1 => "1 fault".to_owned(),
        n => format!("{n} faults"),
    };
    // writing to a text cannot fail
    let _ = writeln!(out, "{count} in {}", tame(file));
    out
}

/// The lines for what is allowed but probably not meant.
pub fn render_warnings(file: &str, warnings: &[Fault]) -> String {
    lines(file, "warning: ", warnings)
}

fn lines(file: &str, kind: &str, faults: &[Fault]) -> String {
    let file = tame(file);
    let line = |fault: &Fault| {
        let place = match &fault.place {
            Place::File { .. } => format!(":{}", fault.place),
            Place::Override(_) => format!(": {}", fault.place),
        };
        let path = if fault.path.is_empty() { String::new() } else { format!("{}: ", fault.path) };
        let told = format!("{place}: {kind}{path}{}", fault.message);
        format!("{file}{}\n", tame(&told))
    };
    faults.iter().map(line).collect()
}

/// The text with control characters written out: a plan must not be able to move a terminal's cursor.
pub fn tame(text: &str) -> String {
    let unsafe_sign =
        |c: char| c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().flat_map(|c| if unsafe_sign(c) { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_a_line_with_its_place_and_nothing_moves_the_cursor() {
        let fault =
            |place, path: &str, message: &str| Fault { place, path: path.into(), message: message.into() };
        let faults = [
            fault(Place::File { line: 3, column: 5 }, "requests.0.deadline", "`\u{1b}[2J` is no duration"),
            fault(Place::Override("--set a=b".into()), "a", "unknown key `a`"),
            fault(Place::File { line: 1, column: 1 }, "", "the file is empty"),
        ];
        let expected = "p.yaml:3:5: requests.0.deadline: `\\u{1b}[2J` is no duration\n\
                        p.yaml: --set a=b: a: unknown key `a`\n\
                        p.yaml:1:1: the file is empty\n\
                        3 faults in p.yaml\n";
        assert_eq!(render("p.yaml", &faults), expected);
        assert!(render("p.yaml", &faults[..1]).ends_with("1 fault in p.yaml\n"));
        assert!(render_warnings("p.yaml", &faults[..1]).contains(": warning: requests.0.deadline: "));
    }
}
