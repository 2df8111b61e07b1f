use serde_json::Value;

use super::{Layout, Spec, Wrong};
use crate::workload::sizes;

/// A row as it is written: its time, and its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) at: i128,
    pub(super) prompt: u64,
    pub(super) output: u64,
}

/// Where the three columns stand.
pub(super) struct Columns<'s> {
    spec: &'s Spec,
    /// By their number, and how many there are; none in JSON.
    places: Option<([usize; 3], usize)>,
}

impl<'s> Columns<'s> {
    /// Finds the columns in the first line; `None` where rows name their own.
    pub(super) fn find(spec: &'s Spec, header: &str) -> Result<Self, Wrong> {
        let names = fields(header).ok_or_else(|| Wrong::at(1, "a quote is never closed"))?;
        let place = |wanted: &String| {
            let same = |name: &String| name.trim().eq_ignore_ascii_case(wanted.trim());
            if names.iter().filter(|name| same(name)).count() > 1 {
                return Err(Wrong::at(
                    1,
                    format!("there is more than one column `{}`", shown(wanted.trim())),
                ));
            }
            names.iter().position(same).ok_or_else(|| {
                let shown: Vec<String> = names.iter().take(20).map(|name| shown(name.trim())).collect();
                Wrong::at(1, format!("there is no column `{wanted}`: it has {}", shown.join(", ")))
            })
        };
        let [time, prompt, output] = &spec.columns;
        Ok(Self { spec, places: Some(([place(time)?, place(prompt)?, place(output)?], names.len())) })
    }

    /// Rows that name their own columns.
    pub(super) const fn named(spec: &'s Spec) -> Self {
        Self { spec, places: None }
    }

    /// Reads the row on line `number`.
    pub(super) fn read(&self, number: u64, line: &str) -> Result<Written, Wrong> {
        match (self.spec.layout, self.places) {
            (Layout::Csv, Some((places, count))) => self.csv(number, line, places, count),
            _ => self.json(number, line),
        }
    }

    fn csv(&self, number: u64, line: &str, places: [usize; 3], count: usize) -> Result<Written, Wrong> {
        let fields = fields(line).ok_or_else(|| Wrong::at(number, "a quote is never closed"))?;
        if fields.len() != count {
            let message = format!("{} fields, where the first line names {count}", fields.len());
            return Err(Wrong::at(number, message));
        }
        let [time, prompt, output] = places.map(|at| fields[at].trim());
        self.row(number, time, prompt, output)
    }

    fn json(&self, number: u64, line: &str) -> Result<Written, Wrong> {
        let row: Value = serde_json::from_str(line)
            .map_err(|e| Wrong::at(number, format!("no JSON object (column {})", e.column())))?;
        let member = |name: &String| match row.get(name) {
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(Wrong::at(number, format!("`{name}` is no number"))),
            None => Err(Wrong::at(number, format!("there is no `{name}`"))),
        };
        let [time, prompt, output] = &self.spec.columns;
        self.row(number, &member(time)?, &member(prompt)?, &member(output)?)
    }

    fn row(&self, number: u64, time: &str, prompt: &str, output: &str) -> Result<Written, Wrong> {
        let [time_name, prompt_name, output_name] = &self.spec.columns;
        let at = self.spec.clock.read_time(time).ok_or_else(|| {
            let form = self.spec.clock.form();
            Wrong::at(number, format!("`{time_name}` is `{}`, not {form}", shown(time)))
        })?;
        let count = |name: &str, text: &str| {
            tokens(text).ok_or_else(|| {
                let most = sizes::MOST;
                Wrong::at(number, format!("`{name}` is `{}`, no number of tokens up to {most}", shown(text)))
            })
        };
        Ok(Written { at, prompt: count(prompt_name, prompt)?, output: count(output_name, output)? })
    }
}

/// A number of tokens. Programs that fill gaps write whole numbers as `4808.0`.
fn tokens(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = !whole.is_empty() && whole.len() <= 8 && whole.bytes().all(|b| b.is_ascii_digit());
    let tokens: u64 =
        if digits && part.bytes().all(|b| b == b'0') { whole.parse().ok()? } else { return None };
    (tokens <= sizes::MOST).then_some(tokens)
}

/// The fields of a line (RFC 4180); `None` if a quote is never closed.
fn fields(line: &str) -> Option<Vec<String>> {
    if !line.contains('"') {
        return Some(line.split(',').map(str::to_owned).collect());
    }
    let (mut all, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '"' if quoted && signs.peek() == Some(&'"') => {
                field.push('"');
                signs.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field)),
            sign => field.push(sign),
        }
    }
    all.push(field);
    (!quoted).then_some(all)
}

/// The beginning of a text, fit for a message: what cannot be shown is escaped.
fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        out.push('…');
    }
    out
}
