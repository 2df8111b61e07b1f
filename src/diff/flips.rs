//! Checks side by side: one that held and does not any more is a regression by itself.

use serde::Serialize;

use super::rank::choose;
use super::{LEVEL, RANKS_FROM, Side, median};
use crate::check::Verdict;

/// A check on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckRow {
    /// Its id.
    pub id: String,
    /// The unit of what was measured.
    pub unit: String,
    /// What it came to in the old runs.
    pub base: Tally,
    /// What it came to in the new ones.
    pub new: Tally,
    /// What that means.
    pub call: Flip,
}

/// What a check came to in the runs of a side.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Tally {
    /// Runs in which it held.
    pub pass: u32,
    /// Runs in which it did not.
    pub fail: u32,
    /// Runs in which it had no data, though it applies.
    pub no_data: u32,
    /// Runs in which it had none, and the plan says that is all right.
    pub tolerated: u32,
    /// Runs in which it does not apply.
    pub not_applicable: u32,
    /// The median of what was measured.
    pub measured: Option<f64>,
}

/// What became of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Flip {
    /// It held and does not any more: a regression.
    Broke,
    /// It did not hold and does now.
    Mended,
    /// It comes to the same, or differs by no more than chance does.
    Same,
    /// It was judged in the old runs and is not in the new ones.
    MissingInNew,
    /// The other way round.
    MissingInBase,
    /// It was judged in neither.
    NoData,
}

impl Tally {
    /// Of the check `id` in the runs of `side`.
    fn of(side: &Side, id: &str) -> Self {
        let mut tally = Self::default();
        let mut measured = Vec::new();
        for found in side.runs.iter().flat_map(|run| &run.checks).filter(|found| found.id == id) {
            match found.verdict {
                Verdict::Pass => tally.pass += 1,
                Verdict::Fail => tally.fail += 1,
                Verdict::NoData if found.tolerated => tally.tolerated += 1,
                Verdict::NoData => tally.no_data += 1,
                Verdict::NotApplicable => tally.not_applicable += 1,
            }
            measured.extend(found.measured);
        }
        tally.measured = median(measured);
        tally
    }

    /// Runs in which it was judged.
    pub const fn judged(&self) -> u32 {
        self.pass + self.fail
    }
}

/// Every check either side has, in the order of the reports.
pub(super) fn rows(base: &Side, new: &Side) -> Vec<CheckRow> {
    let mut ids: Vec<(&str, &str)> = Vec::new();
    for found in base.runs.iter().chain(&new.runs).flat_map(|run| &run.checks) {
        if !ids.iter().any(|(id, _)| *id == found.id) {
            ids.push((&found.id, &found.unit));
        }
    }
    ids.into_iter()
        .map(|(id, unit)| {
            let (base, new) = (Tally::of(base, id), Tally::of(new, id));
            CheckRow { id: id.to_owned(), unit: unit.to_owned(), base, new, call: flip(&base, &new) }
        })
        .collect()
}

fn flip(base: &Tally, new: &Tally) -> Flip {
    match (base.judged(), new.judged()) {
        (0, 0) => return Flip::NoData,
        (_, 0) if new.tolerated > 0 => return Flip::Same,
        (_, 0) => return Flip::MissingInNew,
        (0, _) => return Flip::MissingInBase,
        _ => {}
    }
    if !differ(base, new) {
        return Flip::Same;
    }
    // shares compared crosswise: no division, no rounding
    if base.pass * new.judged() > new.pass * base.judged() { Flip::Broke } else { Flip::Mended }
}

/// Whether two tallies differ by more than chance: by Fisher's exact test from four runs a side, and where all of one
/// side hold and none of the other below.
fn differ(base: &Tally, new: &Tally) -> bool {
    let few = base.judged().min(new.judged()) < RANKS_FROM as u32;
    if few {
        return (base.fail == 0 && new.pass == 0) || (base.pass == 0 && new.fail == 0);
    }
    fisher(base, new) <= LEVEL
}

/// The two-sided p of Fisher's exact test: of all tables with these sums, the part no likelier than this one.
fn fisher(base: &Tally, new: &Tally) -> f64 {
    let (n, m) = (base.judged() as usize, new.judged() as usize);
    let passed = (base.pass + new.pass) as usize;
    let ways = |in_base: usize| choose(n, in_base) * choose(m, passed - in_base);
    let seen = ways(base.pass as usize);
    let tables = passed.saturating_sub(m)..=n.min(passed);
    let (some, all) = tables.map(ways).fold((0.0, 0.0), |(some, all), way| {
        (if way <= seen * (1.0 + 1e-9) { some + way } else { some }, all + way)
    });
    some / all
}

#[cfg(test)]
mod tests {
    use super::super::testing::{run, side};
    use super::*;

    fn tally(pass: u32, fail: u32) -> Tally {
        Tally { pass, fail, ..Tally::default() }
    }

    #[test]
    fn a_check_that_held_and_does_not_any_more_is_a_regression() {
        assert_eq!(flip(&tally(1, 0), &tally(0, 1)), Flip::Broke);
        assert_eq!(flip(&tally(0, 1), &tally(1, 0)), Flip::Mended);
        assert_eq!(flip(&tally(5, 0), &tally(0, 5)), Flip::Broke);
        assert_eq!(flip(&tally(0, 2), &tally(0, 2)), Flip::Same);
        assert_eq!(flip(&tally(2, 1), &tally(0, 3)), Flip::Same, "three runs a side cannot tell");
    }

    /// A check that fails now and then says nothing by failing once more.
    #[test]
    fn a_check_that_wavers_does_not_flip() {
        assert_eq!(flip(&tally(5, 0), &tally(4, 1)), Flip::Same);
        assert_eq!(flip(&tally(4, 1), &tally(2, 3)), Flip::Same);
        assert!((fisher(&tally(5, 0), &tally(0, 5)) - 2.0 / 252.0).abs() < 1e-9);
        assert!((fisher(&tally(5, 0), &tally(1, 4)) - 12.0 / 252.0).abs() < 1e-9);
        assert!((fisher(&tally(3, 3), &tally(3, 3)) - 1.0).abs() < 1e-9);
    }

    /// As in joshuaswarren/remnic#467 and spinnaker/kayenta#700: what is missing is not zero, and two empty sides are
    /// not alike.
    #[test]
    fn a_check_without_data_is_missing_and_not_unchanged() {
        let none = Tally { no_data: 1, ..Tally::default() };
        assert_eq!(flip(&tally(1, 0), &none), Flip::MissingInNew);
        assert_eq!(flip(&tally(1, 0), &Tally::default()), Flip::MissingInNew);
        assert_eq!(flip(&tally(1, 0), &Tally { not_applicable: 1, ..Tally::default() }), Flip::MissingInNew);
        assert_eq!(flip(&none, &tally(1, 0)), Flip::MissingInBase);
        assert_eq!(flip(&none, &none), Flip::NoData);
        assert_eq!(flip(&tally(1, 0), &Tally { tolerated: 1, ..Tally::default() }), Flip::Same);
    }

    #[test]
    fn rows_are_joined_by_id_and_keep_their_order() {
        let mut new = run(1);
        new.checks.reverse();
        new.checks.remove(0);
        let rows = rows(&side("old", vec![run(1)]), &side("new", vec![new]));
        let told: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.call)).collect();
        assert_eq!(told, [("shedding.fast", Flip::Same), ("goodput.floor", Flip::MissingInNew)]);
    }
}
