use super::words;
use crate::check::words::number;
use crate::diff::{Call, CheckRow, Comparison, Flip, Method, Row, Tally, Verdict};
use crate::plan::Tolerance;

/// What a line means for the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Good,
    Bad,
    Unsure,
    Plain,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) base: String,
    pub(super) new: String,
    pub(super) change: String,
    pub(super) p: String,
    pub(super) kind: Kind,
}

/// A comparison in words.
#[derive(Debug)]
pub(super) struct Table {
    /// `REGRESSED`
    pub(super) verdict: &'static str,
    pub(super) kind: Kind,
    /// What was compared, and how.
    pub(super) title: String,
    /// Keys that differ: path, old, new.
    pub(super) differences: Vec<Line>,
    pub(super) judged: Vec<Line>,
    /// Checks that flipped or are missing.
    pub(super) checks: Vec<Line>,
    pub(super) told: Vec<Line>,
    pub(super) notes: Vec<String>,
}

impl Table {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let (verdict, kind) = match comparison.verdict {
            Verdict::Regressed => ("REGRESSED", Kind::Bad),
            Verdict::NotComparable => ("NOT COMPARABLE", Kind::Unsure),
            Verdict::Incomplete => ("INCOMPLETE", Kind::Unsure),
            Verdict::Improved => ("IMPROVED", Kind::Good),
            Verdict::Unchanged => ("UNCHANGED", Kind::Good),
            Verdict::CannotTell => ("CANNOT TELL", Kind::Unsure),
        };
        let is_told = |row: &&Row| row.tolerance == Tolerance::Off;
        let judged = comparison.rows.iter().filter(|row| !is_told(row)).map(line);
        // what neither side has, such as a first token where nothing is streamed, is no news
        let known = |row: &&Row| row.base.median.or(row.new.median).is_some();
        let told = comparison.rows.iter().filter(is_told).filter(known).map(line);
        let changed = |row: &&CheckRow| !matches!(row.call, Flip::Same | Flip::NoData);
        let mut notes: Vec<String> = same_checks(comparison).into_iter().collect();
        if comparison.verdict == Verdict::NotComparable {
            notes.push(
                "--allow KEY compares all the same; it may name a whole part, such as `load`".to_owned(),
            );
        }
        notes.extend_from_slice(&comparison.notes);
        if comparison.rows.iter().any(|row| row.call == Call::Told && row.new.interval.is_some()) {
            let text = "in brackets, where the new quantile lies with 95 % if requests were independent; those of one queue are not";
            notes.push(text.to_owned());
        }
        Self {
            verdict,
            kind,
            title: title(comparison),
            differences: comparison.differences.iter().map(difference).collect(),
            judged: judged.collect(),
            checks: comparison.checks.iter().filter(changed).map(check).collect(),
            told: told.collect(),
            notes,
        }
    }
}

fn title(comparison: &Comparison) -> String {
    let runs = |n: usize| if n == 1 { "1 run".to_owned() } else { format!("{n} runs") };
    let (base, new) = (&comparison.base, &comparison.new);
    let sides = if base.runs == new.runs {
        format!("{} a side", runs(new.runs))
    } else {
        format!("{} against {}", runs(new.runs), runs(base.runs))
    };
    let paired = if comparison.paired { ", paired by seed" } else { "" };
    format!("{} against {} · {} · {sides}{paired}", new.label, base.label, comparison.plan)
}

fn difference(found: &crate::diff::Difference) -> Line {
    let within = found.within.as_ref().map(|side| format!("within {side}")).unwrap_or_default();
    Line {
        name: found.key.clone(),
        base: found.base.clone(),
        new: found.new.clone(),
        change: within,
        p: String::new(),
        kind: Kind::Unsure,
    }
}

fn line(row: &Row) -> Line {
    let value = |sample: &crate::diff::Sample| {
        let Some(median) = sample.median else { return "no data".to_owned() };
        words::value(median, row.unit)
    };
    let changed = row.change.map(|change| words::change(change, row.unit)).unwrap_or_default();
    let (change, kind) = match row.call {
        Call::Better => (format!("{changed}  better"), Kind::Good),
        Call::Worse => (format!("{changed}  worse"), Kind::Bad),
        Call::Changed => (format!("{changed}  changed"), Kind::Unsure),
        Call::Tolerated => (format!("{changed}  tolerated"), Kind::Plain),
        Call::Same if row.method == Method::None => ("the same".to_owned(), Kind::Plain),
        Call::Same => ("~".to_owned(), Kind::Plain),
        Call::CannotTell => (format!("{changed}  cannot tell"), Kind::Unsure),
        Call::Told => (changed, Kind::Plain),
        Call::MissingInNew => ("missing in new".to_owned(), Kind::Unsure),
        Call::MissingInBase => ("not in base".to_owned(), Kind::Plain),
        Call::NoData => ("no data".to_owned(), Kind::Plain),
    };
    let seen = row.could_see.filter(|_| row.call == Call::Same);
    let p = match (seen, row.call) {
        (Some(seen), _) => format!("(could have seen {})", words::value(seen, row.unit)),
        (None, Call::Told) => interval(row).unwrap_or_default(),
        (None, _) => row.p_holm.map(words::p).unwrap_or_default(),
    };
    Line { name: row.measure.to_owned(), base: value(&row.base), new: value(&row.new), change, p, kind }
}

/// Where a quantile of the new runs lies with 95 %, if its requests were independent.
fn interval(row: &Row) -> Option<String> {
    let (low, high) = row.new.interval?;
    Some(format!("({} to {})", words::value(low, row.unit), words::value(high, row.unit)))
}

fn check(row: &CheckRow) -> Line {
    let (change, kind) = match row.call {
        Flip::Broke => ("broke", Kind::Bad),
        Flip::Mended => ("mended", Kind::Good),
        Flip::MissingInNew => ("missing in new", Kind::Unsure),
        Flip::MissingInBase => ("not in base", Kind::Plain),
        Flip::Same => ("the same", Kind::Plain),
        Flip::NoData => ("no data", Kind::Plain),
    };
    let side = |tally: &Tally| {
        let measured = tally.measured.map(|value| measured(value, &row.unit)).unwrap_or_default();
        let sign = match (tally.pass, tally.fail) {
            (0, 0) if tally.not_applicable > 0 => return "– not judged".to_owned(),
            (0, 0) => return "? no data".to_owned(),
            (_, 0) => "✓".to_owned(),
            (0, _) => "✗".to_owned(),
            (pass, _) => return format!("✓ {pass} of {}", tally.judged()),
        };
        format!("{sign} {measured}").trim_end().to_owned()
    };
    Line {
        name: row.id.clone(),
        base: side(&row.base),
        new: side(&row.new),
        change: change.to_owned(),
        p: String::new(),
        kind,
    }
}

fn measured(value: f64, unit: &str) -> String {
    match unit {
        "share" => words::value(value, crate::diff::Unit::Share),
        "bytes" => words::value(value, crate::diff::Unit::Bytes),
        "s" => words::value(value, crate::diff::Unit::Seconds),
        "ms" => words::value(value / 1e3, crate::diff::Unit::Seconds),
        "requests/s" => words::value(value, crate::diff::Unit::PerSecond),
        _ if value >= 0.0 => number(value),
        _ => String::new(),
    }
}

/// `12 checks came to the same, 2 of them failing`
fn same_checks(comparison: &Comparison) -> Option<String> {
    let count = |call: Flip| comparison.checks.iter().filter(|row| row.call == call).count();
    let failing = comparison
        .checks
        .iter()
        .filter(|row| row.call == Flip::Same && row.new.pass == 0 && row.new.fail > 0);
    let (same, none, failing) = (count(Flip::Same), count(Flip::NoData), failing.count());
    let checks = |n: usize| if n == 1 { "1 check".to_owned() } else { format!("{n} checks") };
    (same + none > 0).then(|| {
        let failing = if failing > 0 { format!(" ({failing} failing)") } else { String::new() };
        let none =
            if none > 0 { format!("; {} judged on neither side", checks(none)) } else { String::new() };
        format!("{} came to the same{failing}{none}", checks(same))
    })
}
