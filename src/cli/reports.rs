//! Reports from files: one, a list, or all in a directory.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::diff::{MOST_RUNS, Side};
use crate::report::{self, MOST_BYTES, Report};

/// The name a report has in a directory.
const NAME: &str = "report.json";
/// How deep directories are searched.
const DEPTH: u32 = 8;

/// The runs `arg` names: a file, a directory, or several of either with commas between.
///
/// # Errors
/// In words that name the file, what is wrong with it, and the way out.
pub(super) fn side(arg: &str) -> Result<Side, String> {
    let mut files = Vec::new();
    // a name that holds a comma and is there is meant as it stands
    let whole = Path::new(arg).exists();
    let parts: Vec<&str> = if whole { vec![arg] } else { arg.split(',').map(str::trim).collect() };
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        let path = Path::new(part);
        if path.is_dir() {
            let before = files.len();
            search(path, DEPTH, &mut files)?;
            if files.len() == before {
                return Err(format!("{part}: no {NAME} in this directory"));
            }
        } else {
            files.push(path.to_owned());
        }
    }
    if files.is_empty() {
        return Err(format!("`{arg}` names no report: give a file, a directory, or a list with commas"));
    }
    let mut seen = BTreeSet::new();
    // one run counted twice would look like two that agree
    files.retain(|file| seen.insert(file.canonicalize().unwrap_or_else(|_| file.clone())));
    if files.len() > MOST_RUNS {
        return Err(format!(
            "`{arg}` names {} reports; {MOST_RUNS} a side is the most: give fewer",
            files.len()
        ));
    }
    let run = |file: &PathBuf| {
        let name = file.display().to_string();
        read(file)?.to_run(&name).map_err(|why| format!("{name}: {why}"))
    };
    Ok(Side { label: label(arg), runs: files.iter().map(run).collect::<Result<_, _>>()? })
}

/// The report in `file`.
pub(super) fn read(file: &Path) -> Result<Report, String> {
    let name = file.display();
    let open = fs::File::open(file).map_err(|e| format!("{name}: the report cannot be read: {e}"))?;
    read_from(&name.to_string(), open)
}

/// The report that `source`, called `name`, gives.
pub(super) fn read_from(name: &str, source: impl Read) -> Result<Report, String> {
    let mut bytes = Vec::new();
    // one byte more than is allowed shows that there are too many, however many there are
    let got = source.take(MOST_BYTES + 1).read_to_end(&mut bytes);
    got.map_err(|e| format!("{name}: the report cannot be read: {e}"))?;
    report::read(&bytes).map_err(|error| match error.place {
        Some((line, column)) => format!("{name}:{line}:{column}: {error}"),
        None => format!("{name}: {error}"),
    })
}

/// Every [`NAME`] under `dir`, in the order of their paths. Links to directories are not followed.
fn search(dir: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let cannot = |e: std::io::Error| format!("{}: the directory cannot be read: {e}", dir.display());
    let mut entries: Vec<_> = fs::read_dir(dir).map_err(cannot)?.collect::<Result<_, _>>().map_err(cannot)?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir && depth > 0 {
            search(&entry.path(), depth - 1, found)?;
        } else if !is_dir && entry.file_name() == NAME {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// What a side is called: the argument, its end where it is long.
fn label(arg: &str) -> String {
    const MOST: usize = 40;
    let tidy = arg.trim_end_matches('/');
    let tidy = tidy.strip_suffix(NAME).map_or(tidy, |dir| dir.trim_end_matches('/'));
    let tidy = if tidy.is_empty() { arg } else { tidy };
    let count = tidy.chars().count();
    if count <= MOST {
        return tidy.to_owned();
    }
    let end: String = tidy.chars().skip(count - MOST + 1).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../../fixtures/golden/passed.json");

    #[test]
    fn a_file_that_is_no_report_gets_one_clear_message_with_its_place() {
        let said = |text: &str| read_from("x.json", text.as_bytes()).unwrap_err();
        assert!(read_from("x.json", GOOD.as_bytes()).is_ok());
        assert!(said(&GOOD[..500]).starts_with("x.json:"), "{}", said(&GOOD[..500]));
        assert!(said("{\"results\": []}").starts_with("x.json: it is no report"));
        let deep = format!("{{\"schema\": \"tenfold.report/1\", \"run\": {}", "[".repeat(100_000));
        assert!(said(&deep).starts_with("x.json:"), "and the stack holds");
    }

    #[test]
    fn a_side_is_a_file_a_directory_or_a_list() {
        let dir = tempfile::tempdir().unwrap();
        let put = |place: &str| {
            let folder = dir.path().join(place);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(NAME), GOOD).unwrap();
            folder.join(NAME).display().to_string()
        };
        let (a, b) = (put("smoke/1"), put("smoke/2"));
        let root = dir.path().display().to_string();
        let runs = |arg: &str| side(arg).map(|side| side.runs.len());
        assert_eq!(runs(&a), Ok(1));
        assert_eq!(runs(&root), Ok(2));
        assert_eq!(runs(&format!("{a},{b}")), Ok(2));
        assert_eq!(runs(&format!("{a}, {a},{root}")), Ok(2), "one run is counted once");
        let none = tempfile::tempdir().unwrap();
        assert!(runs(&none.path().display().to_string()).unwrap_err().contains("no report.json"));
        assert!(runs(&format!("{a}x")).unwrap_err().contains("cannot be read"));
        assert!(runs(",").unwrap_err().contains("names no report"));
    }

    #[test]
    fn labels_are_short_and_keep_their_end() {
        assert_eq!(label("reports/smoke/1/report.json"), "reports/smoke/1");
        assert_eq!(label("main/"), "main");
        assert_eq!(label("report.json"), "report.json");
        let long = label(&"a/".repeat(60));
        assert!(long.chars().count() == 40 && long.starts_with('…'));
    }
}
