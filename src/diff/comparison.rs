use serde::Serialize;

use super::judge::{self, Call, Row};
use super::{CheckRow, Difference, Flip, LEVEL, Method, RANKS_FROM, Side, comparable, flips};

/// The form of the keys of a comparison in JSON.
pub const SCHEMA: &str = "tenfold.diff/1";

/// What a comparison comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A measure is worse by more than chance and tolerance, or a check broke.
    Regressed,
    /// The plans differ in what must agree.
    NotComparable,
    /// One side lacks what the other has.
    Incomplete,
    /// Something is better, and nothing worse.
    Improved,
    /// Nothing changed by more than chance and tolerance.
    Unchanged,
    /// No check flipped, and there are too few runs to tell more.
    CannotTell,
}

impl Verdict {
    /// The exit code that tells it.
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Improved | Self::Unchanged | Self::CannotTell => 0,
            Self::Regressed => 1,
            Self::NotComparable | Self::Incomplete => 5,
        }
    }
}

/// Two builds side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// What it all comes to.
    pub verdict: Verdict,
    /// The plan's name.
    pub plan: String,
    /// The old build.
    pub base: About,
    /// The new one.
    pub new: About,
    /// True if runs were compared pair by pair of one seed.
    pub paired: bool,
    /// Keys that differ and must not, those that were allowed left out.
    pub differences: Vec<Difference>,
    /// The measures; none if the sides are not comparable.
    pub rows: Vec<Row>,
    /// The checks; none if the sides are not comparable.
    pub checks: Vec<CheckRow>,
    /// What else is to be said, in words.
    pub notes: Vec<String>,
}

/// A side in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct About {
    /// What it was called on the command line.
    pub label: String,
    /// How many runs.
    pub runs: usize,
    /// What was tried.
    pub target: String,
    /// The version of the tool that wrote its reports.
    pub version: String,
}

impl About {
    fn of(side: &Side) -> Self {
        let first = side.runs.first();
        Self {
            label: side.label.clone(),
            runs: side.runs.len(),
            target: first.map(|run| run.target.clone()).unwrap_or_default(),
            version: first.map(|run| run.version.clone()).unwrap_or_default(),
        }
    }
}

impl Comparison {
    /// Compares `new` with `base`. `allowed` names keys, measures and checks that may differ or be missing.
    pub fn of(base: &Side, new: &Side, allowed: &[String]) -> Self {
        let is_allowed = |key: &str| allowed.iter().any(|allowed| comparable::names(allowed, key));
        let (let_pass, differences): (Vec<_>, Vec<_>) =
            comparable::differences(base, new).into_iter().partition(|found| is_allowed(&found.key));
        let mut comparison = Self {
            schema: SCHEMA,
            verdict: Verdict::NotComparable,
            plan: base.runs.first().map(|run| run.plan.clone()).unwrap_or_default(),
            base: About::of(base),
            new: About::of(new),
            paired: false,
            differences,
            rows: Vec::new(),
            checks: Vec::new(),
            notes: let_pass.iter().map(allowed_note).collect(),
        };
        if comparison.differences.is_empty() {
            comparison.rows = judge::rows(base, new);
            comparison.checks = flips::rows(base, new);
            comparison.paired = comparison.rows.iter().any(|row| row.method == Method::SignedRank);
            comparison.notes.extend(comparison.remarks(base, new));
            comparison.verdict = comparison.judged(&is_allowed);
        }
        let useless = |name: &&String| {
            !comparison.has(name) && !let_pass.iter().any(|d| comparable::names(name, &d.key))
        };
        let unused: Vec<_> = allowed
            .iter()
            .filter(useless)
            .map(|name| format!("--allow {name}: nothing of that name differs"))
            .collect();
        comparison.notes.extend(unused);
        comparison
    }

    /// Whether `name` names a key that differs, or a measure or check that one side lacks.
    fn has(&self, name: &str) -> bool {
        let rows = self.rows.iter().filter(|row| is_missing(row.call)).map(|row| row.measure);
        let checks =
            self.checks.iter().filter(|row| row.call == Flip::MissingInNew).map(|row| row.id.as_str());
        rows.chain(checks).any(|key| comparable::names(name, key))
    }

    fn judged(&self, is_allowed: &dyn Fn(&str) -> bool) -> Verdict {
        let any = |call: Call| self.rows.iter().any(|row| row.call == call);
        let flipped = |flip: Flip| self.checks.iter().any(|row| row.call == flip);
        let lacks = self.rows.iter().any(|row| row.call == Call::MissingInNew && !is_allowed(row.measure))
            || self.checks.iter().any(|row| row.call == Flip::MissingInNew && !is_allowed(&row.id));
        match () {
            () if any(Call::Worse) || flipped(Flip::Broke) => Verdict::Regressed,
            () if lacks => Verdict::Incomplete,
            () if any(Call::Better) || flipped(Flip::Mended) => Verdict::Improved,
            () if any(Call::CannotTell) => Verdict::CannotTell,
            () => Verdict::Unchanged,
        }
    }

    /// What the reader should know of how this was judged.
    fn remarks(&self, base: &Side, new: &Side) -> Vec<String> {
        let mut notes = Vec::new();
        let fewest = base.runs.len().min(new.runs.len());
        if fewest < RANKS_FROM {
            notes.push(format!(
                "n={fewest}: with fewer than {RANKS_FROM} runs a side nothing is said of chance from run to run (`tenfold run --repeat 5` makes five)"
            ));
        } else if let Some(row) =
            self.rows.iter().find(|row| row.method != Method::None && row.call == Call::CannotTell)
        {
            let family = self.rows.iter().filter(|row| row.method != Method::None).count();
            notes.push(format!(
                "{} and {} runs cannot reach {} % among {family} measures, whatever they show: one run more a side, or fewer measures (`diff: {{ {}: off }}` in the plan)",
                row.base.values.len(), row.new.values.len(), LEVEL * 100.0, row.measure
            ));
        }
        if self.rows.iter().any(|row| row.method == Method::Blocks) {
            notes.push("judged by blocks of windows: that knows the noise within a run, not from one run to the next".to_owned());
        }
        let differ = |what: fn(&super::Run) -> String| {
            let mut all: Vec<String> = base.runs.iter().chain(&new.runs).map(what).collect();
            all.sort();
            all.dedup();
            (all.len() > 1).then(|| all.join(", "))
        };
        if let Some(versions) = differ(|run| run.version.clone()) {
            notes.push(format!("written by different versions of tenfold: {versions}"));
        }
        let tolerances =
            |side: &Side| side.runs.first().map(|run| run.tolerances.clone()).unwrap_or_default();
        if tolerances(base) != tolerances(new) {
            notes.push("the plans tolerate different changes (diff): the new one's hold".to_owned());
        }
        for row in self.rows.iter().filter(|row| row.base.median.is_some() && row.new.median.is_some()) {
            for (side, sample) in [("old", &row.base), ("new", &row.new)] {
                if sample.values.len() < sample.runs {
                    notes.push(format!(
                        "{}: only {} of {} {side} runs have a number",
                        row.measure,
                        sample.values.len(),
                        sample.runs
                    ));
                }
            }
        }
        notes
    }
}

fn is_missing(call: Call) -> bool {
    matches!(call, Call::MissingInNew | Call::MissingInBase)
}

fn allowed_note(found: &Difference) -> String {
    match &found.within {
        Some(side) => format!(
            "{} differs within {side} ({} and {}), which is allowed",
            found.key, found.base, found.new
        ),
        None => format!("{} differs ({} and {}), which is allowed", found.key, found.base, found.new),
    }
}
