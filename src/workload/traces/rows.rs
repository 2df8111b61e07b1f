use std::fmt;
use std::io::BufRead;
use std::time::Duration;

use super::lines::Lines;
use super::row::{Columns, Written};
use super::{Layout, Spec, Zero};

/// The most rows that are kept: 128 MB of them.
const MOST_KEPT: usize = 8_000_000;
/// The most rows that are looked at.
const MOST_ROWS: u64 = 1_000_000_000;
/// The longest a trace is, in the time of its recording: a year.
const LONGEST: i128 = 366 * 86_400 * 1_000_000_000;

/// A request of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Nanoseconds from the beginning of the window, at the plan's speed.
    pub at: u64,
    /// Tokens of its prompt.
    pub prompt: u32,
    /// Tokens of its answer.
    pub output: u32,
}

/// The rows of a window of a trace, in order of time; never empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    rows: Vec<Row>,
    survey: Survey,
}

/// What was found in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Survey {
    /// Rows in the file.
    pub in_file: u64,
    /// From its first row to its last.
    pub file_lasts: Duration,
    /// Rows in the window, those without tokens included.
    pub in_window: u64,
    /// Of these, rows without tokens.
    pub without_tokens: u64,
    /// The length of the window, in the time of its recording.
    pub window_lasts: Duration,
    /// The most rows in one second of the window at the plan's speed, seconds counted from its beginning.
    pub busiest_second: u64,
    /// Seconds, counted so, to the last row, in which there is none.
    pub empty_seconds: u64,
    /// The shortest time between two rows there; `None` of one row.
    pub shortest_gap: Option<Duration>,
    /// The longest.
    pub longest_gap: Duration,
    /// Tokens of its prompts.
    pub prompt: Sum,
    /// Tokens of its answers.
    pub output: Sum,
    /// A number that two traces share only if their rows are the same: FNV-1a, 64 bits.
    pub fingerprint: u64,
}

/// Tokens of several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// All of them.
    pub total: u64,
    /// The fewest in a row.
    pub least: u32,
    /// The most.
    pub most: u32,
}

impl Sum {
    fn take(&mut self, tokens: u32) {
        self.least = if self.total == 0 { tokens } else { self.least.min(tokens) };
        self.most = self.most.max(tokens);
        self.total += u64::from(tokens);
    }
}

/// What is wrong with a trace, and on which line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The line, from 1; 0 where it is the whole.
    pub line: u64,
    /// What is wrong; a lower-case fragment.
    pub message: String,
}

impl Wrong {
    pub(super) fn at(line: u64, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "line {line}: {}", self.message),
        }
    }
}

impl Rows {
    /// Reads a trace to its end and keeps what lies in the window.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, with its line.
    pub fn read(spec: &Spec, from: &mut dyn BufRead) -> Result<Self, Wrong> {
        let mut lines = Lines::new(from);
        let columns = match spec.layout {
            Layout::Csv => match lines.next()? {
                Some(header) => Columns::find(spec, header)?,
                None => return Err(Wrong::at(0, "it is empty")),
            },
            Layout::JsonLines => Columns::named(spec),
        };
        let mut sieve = Sieve::new(spec);
        while let Some(line) = lines.next()? {
            let line = line.to_owned();
            let number = lines.number;
            if line.trim().is_empty() {
                // an empty line at the end is none; elsewhere a row is missing
                let blank = || Wrong::at(number, "an empty line stands between rows");
                while let Some(rest) = lines.next()? {
                    if !rest.trim().is_empty() {
                        return Err(blank());
                    }
                }
                break;
            }
            let row = columns.read(number, &line).map_err(|mut wrong| {
                if lines.open_ended {
                    wrong.message.push_str("; the file ends within this line: is it whole?");
                }
                wrong
            })?;
            sieve.take(number, row)?;
        }
        sieve.finish()
    }

    /// All of them.
    pub fn all(&self) -> &[Row] {
        &self.rows
    }

    /// What was found in the whole.
    pub const fn survey(&self) -> &Survey {
        &self.survey
    }

    /// The place of the first row at or after `at`.
    pub fn from(&self, at: Duration) -> usize {
        self.rows.partition_point(|row| u128::from(row.at) < at.as_nanos())
    }

    /// How many rows lie in a stretch of `lasts` from `at` on.
    pub fn count(&self, at: Duration, lasts: Duration) -> u64 {
        (self.from(at.saturating_add(lasts)) - self.from(at)) as u64
    }

    /// The length of the window at the plan's speed, in whole seconds: to its end, or past its last row.
    pub fn lasts(&self, spec: &Spec) -> Duration {
        match spec.to {
            Some(to) => spec.speed.divide(to - spec.from),
            None => Duration::from_secs(self.rows.last().map_or(0, |row| row.at / 1_000_000_000) + 1),
        }
    }
}

/// Takes in row after row.
struct Sieve<'s> {
    spec: &'s Spec,
    first: Option<i128>,
    last: i128,
    rows: Vec<Row>,
    survey: Survey,
    /// The second that is being counted, and its rows.
    second: (u64, u64),
}

impl<'s> Sieve<'s> {
    fn new(spec: &'s Spec) -> Self {
        let survey = Survey { fingerprint: 0xCBF2_9CE4_8422_2325, ..Survey::default() };
        Self { spec, first: None, last: 0, rows: Vec::new(), survey, second: (0, 0) }
    }

    fn take(&mut self, line: u64, row: Written) -> Result<(), Wrong> {
        let first = *self.first.get_or_insert(row.at);
        let since = row.at - first;
        if row.at < self.last && self.survey.in_file > 0 {
            let back = Duration::from_nanos(u64::try_from(self.last - row.at).unwrap_or(u64::MAX));
            let message = format!("it is {back:?} earlier than the row before: sort the file by time");
            return Err(Wrong::at(line, message));
        }
        if since > LONGEST {
            return Err(Wrong::at(
                line,
                "it comes more than a year after the first row: are the times in another unit?",
            ));
        }
        self.last = row.at;
        self.survey.in_file += 1;
        if self.survey.in_file > MOST_ROWS {
            return Err(Wrong::at(line, format!("a trace has at most {MOST_ROWS} rows")));
        }
        let since = Duration::from_nanos(u64::try_from(since).unwrap_or(u64::MAX));
        self.survey.file_lasts = since;
        if since < self.spec.from || self.spec.to.is_some_and(|to| since >= to) {
            return Ok(());
        }
        self.keep(line, since, row)
    }

    fn keep(&mut self, line: u64, since: Duration, row: Written) -> Result<(), Wrong> {
        self.survey.in_window += 1;
        if row.prompt == 0 || row.output == 0 {
            self.survey.without_tokens += 1;
            match self.spec.zero {
                Zero::Drop => return Ok(()),
                Zero::One => {}
                Zero::Refuse => {
                    let what = if row.prompt == 0 { "a prompt" } else { "an answer" };
                    let message = format!("{what} of no tokens (zero_tokens: drop or one would allow it)");
                    return Err(Wrong::at(line, message));
                }
            }
        }
        if self.rows.len() == MOST_KEPT {
            let message = format!("more than {MOST_KEPT} rows lie in the window: narrow it (from, to)");
            return Err(Wrong::at(line, message));
        }
        let at = self.spec.speed.divide(since - self.spec.from);
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        let small = |tokens: u64| u32::try_from(tokens.max(1)).unwrap_or(u32::MAX);
        let row = Row { at, prompt: small(row.prompt), output: small(row.output) };
        self.count(row);
        self.rows.push(row);
        Ok(())
    }

    fn count(&mut self, row: Row) {
        let survey = &mut self.survey;
        let second = row.at / 1_000_000_000;
        let (counted, rows) = self.second;
        // the first is not counted while it has no row
        let next = counted + u64::from(rows > 0);
        survey.empty_seconds += second.saturating_sub(next);
        self.second = if counted == second { (second, rows + 1) } else { (second, 1) };
        survey.busiest_second = survey.busiest_second.max(self.second.1);
        if let Some(before) = self.rows.last() {
            let gap = Duration::from_nanos(row.at - before.at);
            survey.longest_gap = survey.longest_gap.max(gap);
            survey.shortest_gap = Some(survey.shortest_gap.map_or(gap, |shortest| shortest.min(gap)));
        }
        survey.prompt.take(row.prompt);
        survey.output.take(row.output);
        let bytes = [row.at, u64::from(row.prompt), u64::from(row.output)];
        for byte in bytes.into_iter().flat_map(u64::to_le_bytes) {
            survey.fingerprint = (survey.fingerprint ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }

    fn finish(mut self) -> Result<Rows, Wrong> {
        let Survey { in_file, in_window, without_tokens, file_lasts, .. } = self.survey;
        if in_file == 0 {
            return Err(Wrong::at(0, "there is no row in it"));
        }
        if self.rows.is_empty() {
            return Err(Wrong::at(
                0,
                format!(
                    "no row is left of {in_file}: {in_window} lie in the window, {without_tokens} of them without tokens; \
                     the file lasts {file_lasts:?}"
                ),
            ));
        }
        let end = self.spec.to.unwrap_or(file_lasts).min(file_lasts);
        self.survey.window_lasts = end.saturating_sub(self.spec.from);
        self.rows.shrink_to_fit();
        Ok(Rows { rows: self.rows, survey: self.survey })
    }
}
