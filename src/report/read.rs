use serde::Deserialize;
use serde_json::Value;
use serde_json::error::{Category, Error};

use super::{Report, SCHEMA};

/// The largest file that is read as a report: several times what the longest run writes.
pub const MOST_BYTES: u64 = 64 << 20;

/// Why a file is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unreadable {
    /// The line and the column, both from 1, where there is one.
    pub place: Option<(usize, usize)>,
    /// What is wrong, and the way out.
    pub message: String,
}

/// The key that says what a file is.
#[derive(Deserialize)]
struct Head {
    schema: Option<Value>,
}

/// Reads what [`super::find`]`("json")` writes.
///
/// # Errors
///
/// One message: the text is no JSON or was cut, it is something else, a newer version wrote it, or a key is missing or
/// has another form.
pub fn read(text: &[u8]) -> Result<Report, Unreadable> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    if text.len() as u64 > MOST_BYTES {
        return Err(bare(format!("it is larger than {} MiB, which no report is", MOST_BYTES >> 20)));
    }
    if text.trim_ascii().is_empty() {
        return Err(bare("it is empty: was the run ended before its report was written?".to_owned()));
    }
    if text.trim_ascii_start().starts_with(b"[") {
        return Err(bare(format!(
            "it is no report but a list; a report is an object whose `schema` is `{SCHEMA}`"
        )));
    }
    let head: Head = serde_json::from_slice(text).map_err(|error| told(&error))?;
    match head.schema.as_ref().and_then(Value::as_str) {
        Some(SCHEMA) => serde_json::from_slice(text).map_err(|error| told(&error)),
        Some(other) if version(other).is_some_and(|version| version > version_of(SCHEMA)) => Err(bare(
            format!("a newer tenfold wrote it (`{other}`); this one reads `{SCHEMA}`: update tenfold"),
        )),
        Some(other) => {
            Err(bare(format!("it is a `{other}`, not a `{SCHEMA}`: name the report.json of a run")))
        }
        None => Err(bare(format!(
            "it is no report: its `schema` is not `{SCHEMA}`; name the report.json of a run"
        ))),
    }
}

/// The version at the end of a schema's name, of reports only.
fn version(schema: &str) -> Option<u64> {
    schema.strip_prefix("tenfold.report/")?.parse().ok()
}

fn version_of(schema: &str) -> u64 {
    version(schema).unwrap_or(0)
}

fn bare(message: String) -> Unreadable {
    Unreadable { place: None, message }
}

fn told(error: &Error) -> Unreadable {
    let whole = error.to_string();
    // the place is told apart
    let what = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(what, _)| what);
    let message = match error.classify() {
        Category::Eof => "it ends in the middle: was it cut, or is it still being written?".to_owned(),
        Category::Syntax => format!("it is no JSON: {what}"),
        Category::Data | Category::Io => format!("it is not as a report is written: {what}"),
    };
    let place = (error.line() > 0).then(|| (error.line(), error.column()));
    Unreadable { place, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSED: &str = include_str!("../../fixtures/golden/passed.json");

    fn said(text: &str) -> String {
        let error = read(text.as_bytes()).unwrap_err();
        match error.place {
            Some((line, column)) => format!("{line}:{column}: {}", error.message),
            None => error.message,
        }
    }

    #[test]
    fn what_is_no_report_is_told_in_one_message() {
        assert!(said("  \n").starts_with("it is empty"));
        assert_eq!(said("{\n  \"schema\": nan}"), "2:14: it is no JSON: expected ident");
        assert_eq!(said("<html>"), "1:1: it is no JSON: expected value");
        assert!(said("[1, 2]").starts_with("it is no report but a list"));
        assert!(said("{}").starts_with("it is no report: its `schema` is not `tenfold.report/1`"));
        assert!(said("{\"schema\": 1}").starts_with("it is no report"));
        assert!(said("{\"schema\": \"tenfold.forecast/1\"}").starts_with("it is a `tenfold.forecast/1`"));
        assert!(said("{\"schema\": \"tenfold.report/2\"}").contains("update tenfold"));
        assert!(said(&"{\"a\":".repeat(100_000)).contains("it ends in the middle"));
    }

    #[test]
    fn a_report_cut_anywhere_says_so() {
        for end in [20, 500, PASSED.len() / 2, PASSED.len() - 3] {
            let said = said(&PASSED[..end]);
            assert!(said.contains("it ends in the middle"), "{end}: {said}");
        }
    }

    #[test]
    fn a_report_broken_by_hand_names_the_place_and_the_key() {
        let broken = |from: &str, to: &str| said(&PASSED.replacen(from, to, 1));
        let offered = broken("\"offered\": 1040", "\"offered\": -3");
        assert!(offered.contains("invalid value: integer `-3`, expected u64"), "{offered}");
        let line = PASSED.lines().position(|line| line.contains("\"offered\": 1040")).unwrap() + 1;
        assert!(offered.starts_with(&format!("{line}:")), "{offered}");
        let missing = broken("\"took_s\": 25.4,", "");
        assert!(missing.contains("missing field `took_s`"), "{missing}");
        let twice = broken("\"verdict\": \"passed\",", "\"verdict\": \"passed\", \"verdict\": \"failed\",");
        assert!(twice.contains("duplicate field `verdict`"), "{twice}");
        let verdict = broken("\"verdict\": \"passed\",", "\"verdict\": \"fine\",");
        assert!(verdict.contains("unknown variant `fine`"), "{verdict}");
        let null = broken("\"took_s\": 25.4", "\"took_s\": null");
        assert!(null.contains("invalid type: null"), "{null}");
    }

    #[test]
    fn a_report_is_read_back_whole_also_behind_a_byte_order_mark() {
        let report = read(PASSED.as_bytes()).unwrap();
        assert_eq!(read(format!("\u{feff}{PASSED}").as_bytes()).unwrap(), report);
        assert_eq!((report.totals.offered, report.checks.len()), (1_040, crate::check::ALL.len()));
    }
}
