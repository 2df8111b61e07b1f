//! `--log`: a row for each request, both sides of it, as CSV (RFC 4180).
//!
//! Rows are handed over where a request ends, off the path of sending, and are written by a thread of their own. The
//! hand-over never waits: where the disk is slower than the load, rows are lost and counted, and memory stays flat.
//! What a server sent is written out: no control character, no formula (a spreadsheet runs what begins with `=`).

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};

use crate::measure::Closed;
use crate::observe::{Attempt, Ghost, Outcome, Record, RetryAfter};
use crate::plan::Plan;
use crate::units::Moment;
use crate::workload::ClassId;

/// Rows that wait to be written, at most.
const WAITING: usize = 16_384;
/// Characters of a text that are kept.
const TEXT: usize = 200;

/// The columns in their order, each with what it holds. Times are seconds from the start of the load of their run.
pub const COLUMNS: &[(&str, &str)] = &[
    ("run", "which run of `--repeat`, from 1"),
    ("seq", "the arrival's number"),
    ("nth", "0 for its first attempt, 1 for its return"),
    ("class", "the name of its class"),
    ("probe", "1 if it is a refused caller that came back exactly as told"),
    ("due_s", "when it was due"),
    ("sent_s", "when it was written; empty if it was not"),
    ("lag_us", "how late that was, in microseconds"),
    ("depth_met_requests", "requests in the gateway when it was sent"),
    ("depth_met_tokens", "their tokens"),
    ("at_provider_s", "when it first reached the provider; empty if it did not"),
    ("upstream_attempts", "how often it did"),
    ("upstream_refusals", "how often the provider refused it"),
    ("ended_s", "when it ended for its caller"),
    ("latency_us", "from due to ended, in microseconds"),
    (
        "outcome",
        "what became of it; `ghost` is a call that reached the provider after its caller's row was written",
    ),
    ("status", "the HTTP status; empty without an answer"),
    ("retry_after", "seconds a refusal announced, or what it said instead"),
    ("broken", "why there was no whole answer"),
    ("shape", "what a refusal's form lacks"),
    ("charged_tokens", "tokens the provider took for it"),
    ("wasted_tokens", "of these, for an answer nobody was waiting for"),
];

/// What goes to the writer.
#[derive(Debug)]
enum Note {
    Request(u32, Box<Record>),
    Ghost(u32, Ghost),
    End,
}

/// A log that is being written.
#[derive(Debug)]
pub struct LogFile {
    notes: SyncSender<Note>,
    lost: Arc<AtomicU64>,
    writer: JoinHandle<io::Result<u64>>,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Rows in the file.
    pub rows: u64,
    /// Rows that are not, since the disk was too slow.
    pub lost: u64,
}

/// Where one run notes its requests.
#[derive(Debug, Clone)]
pub struct Log {
    notes: SyncSender<Note>,
    lost: Arc<AtomicU64>,
    run: u32,
}

impl LogFile {
    /// Opens `path` for the runs of `plan` and writes the names of the columns.
    ///
    /// # Errors
    /// If the file cannot be written, or no thread be started.
    pub fn open(path: &Path, plan: &Plan) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 16, File::create(path)?);
        let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
        writeln!(out, "{}", names.join(","))?;
        // a full disk shows before the load, not after it
        out.flush()?;
        let classes: Vec<String> = plan.requests.classes().iter().map(|class| text(&class.name)).collect();
        let (notes, coming) = mpsc::sync_channel(WAITING);
        let writer =
            thread::Builder::new().name("log".into()).spawn(move || write(&coming, &classes, out))?;
        Ok(Self { notes, lost: Arc::default(), writer })
    }

    /// Where the `run`-th run notes its requests.
    pub fn of_run(&self, run: u32) -> Log {
        Log { notes: self.notes.clone(), lost: Arc::clone(&self.lost), run }
    }

    /// Writes what waits, and ends.
    ///
    /// # Errors
    /// If a row could not be written: the disk is full, say.
    pub fn close(self) -> io::Result<Written> {
        // a writer that has died is found by joining it
        let _ = self.notes.send(Note::End);
        let rows = self.writer.join().map_err(|_| io::Error::other("its thread panicked"))??;
        Ok(Written { rows, lost: self.lost.load(Ordering::Relaxed) })
    }
}

impl Log {
    /// Notes what has ended. Never waits.
    pub(super) fn note(&self, closed: Closed<'_>) {
        let note = match closed {
            Closed::Request(record) => Note::Request(self.run, Box::new(record.clone())),
            Closed::Ghost(ghost) => Note::Ghost(self.run, *ghost),
        };
        if self.notes.try_send(note).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes rows until the end is said. After the first error the others are taken in all the same, so that nobody waits.
fn write(coming: &Receiver<Note>, classes: &[String], mut out: impl Write) -> io::Result<u64> {
    let (mut rows, mut line, mut broken) = (0, String::new(), None);
    for note in coming {
        line.clear();
        // writing to a text cannot fail
        let _ = match note {
            Note::Request(run, record) => request(&mut line, run, &record, classes),
            Note::Ghost(run, ghost) => ghostly(&mut line, run, &ghost, classes),
            Note::End => break,
        };
        if broken.is_none() {
            match out.write_all(line.as_bytes()) {
                Ok(()) => rows += 1,
                Err(e) => broken = Some(e),
            }
        }
    }
    match broken {
        Some(e) => Err(e),
        None => out.flush().map(|()| rows),
    }
}

fn request(line: &mut String, run: u32, record: &Record, classes: &[String]) -> std::fmt::Result {
    let Record { attempt: Attempt { seq, nth }, class: ClassId(class), .. } = *record;
    let class = classes.get(usize::from(class)).map_or("", String::as_str);
    write!(line, "{run},{seq},{nth},{class},{},{},", u8::from(record.probe), seconds(Some(record.due)))?;
    let lag = record.lag().map(|lag| lag.as_micros().to_string()).unwrap_or_default();
    write!(line, "{},{lag},", seconds(record.sent))?;
    write!(line, "{},{},", record.depth_met.requests, record.depth_met.tokens.get())?;
    write!(
        line,
        "{},{},{},",
        seconds(record.at_provider),
        record.upstream_attempts,
        record.upstream_refusals
    )?;
    let unsent = record.outcome == Outcome::Unsent;
    let latency = if unsent { String::new() } else { record.latency().as_micros().to_string() };
    write!(line, "{},{latency},{},", seconds(Some(record.ended)), record.outcome.name())?;
    let status = record.status.map(|status| status.to_string()).unwrap_or_default();
    let told = match &record.retry_after {
        Some(RetryAfter::After(span)) => span.as_secs().to_string(),
        Some(other) => other.odd().map(text).unwrap_or_default(),
        None => String::new(),
    };
    let broken = record.broken.map_or("", |why| why.words());
    let shape = record.shape.as_ref().err().map(|lacks| text(lacks)).unwrap_or_default();
    let tokens = (record.charged.get(), record.wasted.get());
    writeln!(line, "{status},{told},{broken},{shape},{},{}", tokens.0, tokens.1)
}

fn ghostly(line: &mut String, run: u32, ghost: &Ghost, classes: &[String]) -> std::fmt::Result {
    let Attempt { seq, nth } = ghost.attempt;
    let class = classes.get(usize::from(ghost.class.0)).map_or("", String::as_str);
    let (due, at, refused) = (seconds(Some(ghost.due)), seconds(Some(ghost.at)), u8::from(ghost.refused));
    let charged = ghost.charged.get();
    writeln!(line, "{run},{seq},{nth},{class},0,{due},,,,,{at},1,{refused},,,ghost,,,,,{charged},{charged}")
}

/// Seconds to the microsecond; empty of nothing.
fn seconds(at: Option<Moment>) -> String {
    at.map(|at| {
        let micros = at.as_nanos() / 1_000;
        format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    })
    .unwrap_or_default()
}

/// A text as a field: cut, its control characters written out, quoted where it must be. What a spreadsheet would take
/// for a formula gets an apostrophe in front.
fn text(said: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
    };
    let mut field = String::new();
    if said.starts_with(['=', '+', '-', '@']) {
        field.push('\'');
    }
    for c in said.chars().take(TEXT) {
        match c {
            '"' => field.push_str("\"\""),
            c if steers(c) => field.extend(c.escape_unicode()),
            c => field.push(c),
        }
    }
    if field.contains(['"', ',']) { format!("\"{field}\"") } else { field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::testing::{depth, record, smoke};
    use crate::units::Tokens;

    fn refusal(seq: u64, said: &str) -> Record {
        let mut refused = record(seq, 1_500, 1, Outcome::Shed);
        (refused.depth_met, refused.sent) = (depth(37), Some(Moment::from_nanos(1_500_250_000)));
        refused.retry_after = Some(RetryAfter::Unreadable(said.into()));
        refused
    }

    fn logged(notes: &dyn Fn(&Log)) -> (Vec<String>, Written) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        let file = LogFile::open(&path, &smoke().plan()).unwrap();
        notes(&file.of_run(3));
        let written = file.close().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        (text.lines().map(str::to_owned).collect(), written)
    }

    #[test]
    fn a_row_holds_both_sides_and_as_many_fields_as_there_are_columns() {
        let (lines, written) = logged(&|log| {
            log.note(Closed::Request(&record(7, 2_000, 900, Outcome::Completed)));
            log.note(Closed::Request(&refusal(8, "soon")));
            log.note(Closed::Request(&record(9, 2_100, 0, Outcome::Unsent)));
            log.note(Closed::Ghost(&Ghost {
                attempt: Attempt { seq: 8, nth: 0 },
                class: ClassId(0),
                due: Moment::from_millis(1_500),
                at: Moment::from_millis(1_600),
                outcome: Outcome::Shed,
                charged: Tokens::new(1_200),
                refused: false,
            }));
        });
        assert_eq!(written, Written { rows: 4, lost: 0 });
        assert!(lines.iter().all(|line| line.split(',').count() == COLUMNS.len()), "{lines:#?}");
        assert_eq!(
            lines[1],
            "3,7,0,ask,0,2.000000,2.000000,0,0,0,2.000000,1,0,2.900000,900000,completed,200,,,,1200,0"
        );
        assert_eq!(
            lines[2],
            "3,8,0,ask,0,1.500000,1.500250,250,37,44400,,0,0,1.501000,1000,shed,503,soon,,,0,0"
        );
        assert!(lines[3].contains(",2.100000,,,") && lines[3].contains(",,unsent,,"), "{}", lines[3]);
        assert_eq!(lines[4], "3,8,0,ask,0,1.500000,,,,,1.600000,1,0,,,ghost,,,,,1200,1200");
    }

    #[test]
    fn nothing_a_server_sends_breaks_a_row_or_is_a_formula() {
        assert_eq!(text("=cmd|' /C calc'!A0"), "'=cmd|' /C calc'!A0");
        assert_eq!(text("-1\r\n7,8"), "\"'-1\\u{d}\\u{a}7,8\"");
        assert_eq!(text("say \"when\""), "\"say \"\"when\"\"\"");
        assert_eq!(text("\u{1b}[2J\u{202e}"), "\\u{1b}[2J\\u{202e}");
        assert_eq!(text(&"x".repeat(5_000)).len(), TEXT);
        let (lines, _) = logged(&|log| log.note(Closed::Request(&refusal(1, "a\nb"))));
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn rows_that_cannot_wait_are_lost_and_counted() {
        let (notes, coming) = mpsc::sync_channel(2);
        let log = Log { notes, lost: Arc::default(), run: 1 };
        (0..5).for_each(|seq| log.note(Closed::Request(&record(seq, 0, 1, Outcome::Completed))));
        assert_eq!(log.lost.load(Ordering::Relaxed), 3);
        drop(coming);
    }

    #[test]
    fn a_disk_that_is_full_is_told_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (notes, coming) = mpsc::sync_channel(8);
        for seq in 0..3 {
            notes.send(Note::Request(1, Box::new(record(seq, 0, 1, Outcome::Completed)))).unwrap();
        }
        notes.send(Note::End).unwrap();
        assert_eq!(write(&coming, &[], Full).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(LogFile::open(Path::new("/no/such/dir/x.csv"), &smoke().plan()).is_err());
    }
}
