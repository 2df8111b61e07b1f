//! One row a measure: both sides' numbers, what changed, and whether that is more than chance.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measure::Quantile;
use super::{
    ALL, Better, LEVEL, Measure, RANKS_FROM, Run, Side, Unit, blocks, holm, interval, median, rank, seen,
};
use crate::measure::Hist;
use crate::plan::{MEASURES, Tolerance, is_judged};

/// A measure on both sides.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The measure's name.
    pub measure: &'static str,
    /// The unit of every number of this row.
    pub unit: Unit,
    /// Which way is up.
    pub better: Better,
    /// The old runs.
    pub base: Sample,
    /// The new runs.
    pub new: Sample,
    /// What lies between them, if both have a number.
    pub change: Option<Change>,
    /// What it is judged by, if it is.
    pub method: Method,
    /// How likely such a change is by chance alone, corrected for the number of measures judged.
    pub p_holm: Option<f64>,
    /// The smallest change that would have been called in four comparisons of five.
    pub could_see: Option<f64>,
    /// How much it may change.
    pub tolerance: Tolerance,
    /// What it comes to.
    pub call: Call,
}

/// A measure in the runs of a side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Runs.
    pub runs: usize,
    /// The numbers of those that have one, in the order of the runs.
    pub values: Vec<f64>,
    /// Their median.
    pub median: Option<f64>,
    /// Of a quantile: where it lies with 95 % over all requests of all runs, if they were independent.
    pub interval: Option<(f64, f64)>,
}

/// What lies between two sides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// New less old: of the medians, or the median over pairs.
    pub amount: f64,
    /// The same over the old; `None` where the old is 0.
    pub share: Option<f64>,
}

/// What a row is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Exact ranks of unpaired runs.
    MannWhitney,
    /// Exact signed ranks of pairs of one seed.
    SignedRank,
    /// A bootstrap over blocks of windows.
    Blocks,
    /// Nothing: too few runs, nothing that varies, or not judged.
    None,
}

/// What a row comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Changed for the better.
    Better,
    /// Changed for the worse: a regression.
    Worse,
    /// Changed, which is neither.
    Changed,
    /// More than chance, but within the tolerance.
    Tolerated,
    /// No more than chance.
    Same,
    /// No result of so few runs could have been called.
    CannotTell,
    /// Shown, not judged.
    Told,
    /// The new runs have no number.
    MissingInNew,
    /// The old runs have none.
    MissingInBase,
    /// Neither has.
    NoData,
}

/// Every measure of both sides, judged.
pub(super) fn rows(base: &Side, new: &Side) -> Vec<Row> {
    let tolerances = new.runs.first().map(|run| &run.tolerances);
    let none = BTreeMap::new();
    let tolerances = tolerances.unwrap_or(&none);
    let paired = pairs(base, new);
    let mut rows: Vec<Row> = ALL.iter().map(|measure| draft(measure, base, new, tolerances)).collect();
    for row in &mut rows {
        row.method = method(row, base, new);
    }
    let family: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].method != Method::None).collect();
    let level = LEVEL / family.len().max(1) as f64;
    if let Some(pairs) = paired.as_ref().filter(|pairs| rank::least_signed_rank(pairs.len()) <= level) {
        for i in &family {
            let row = &mut rows[*i];
            if row.method == Method::MannWhitney && row.is_complete() {
                row.pair(pairs);
            }
        }
    }
    let raw: Vec<f64> = family.iter().map(|i| p(&rows[*i], base, new, paired.as_deref())).collect();
    for (i, p) in family.iter().zip(holm::holm(&raw)) {
        rows[*i].judge(p, level, paired.as_deref());
    }
    rows
}

/// The places of runs of one seed, if both sides have the same seeds and each seed once.
pub(super) fn pairs(base: &Side, new: &Side) -> Option<Vec<(usize, usize)>> {
    let places = |side: &Side| -> BTreeMap<u64, usize> {
        side.runs.iter().enumerate().map(|(place, run)| (run.seed, place)).collect()
    };
    let (old, fresh) = (places(base), places(new));
    let once = old.len() == base.runs.len() && fresh.len() == new.runs.len();
    (once && old.len() > 1 && old.keys().eq(fresh.keys()))
        .then(|| old.values().copied().zip(fresh.values().copied()).collect())
}

fn draft(measure: &Measure, base: &Side, new: &Side, tolerances: &BTreeMap<String, Tolerance>) -> Row {
    let (base, new) = (Sample::of(measure, &base.runs), Sample::of(measure, &new.runs));
    let listed = MEASURES.iter().find(|known| known.known.id == measure.name);
    let judged = listed.is_some_and(|known| is_judged(known, tolerances));
    let named = tolerances.get(measure.name).copied().unwrap_or(measure.tolerance);
    let same = base.sorted() == new.sorted();
    Row {
        measure: measure.name,
        unit: measure.unit,
        better: measure.better,
        change: base.median.zip(new.median).map(|(old, fresh)| Change::of(fresh - old, old)),
        method: Method::None,
        p_holm: None,
        could_see: None,
        tolerance: if judged { named } else { Tolerance::Off },
        call: match (base.median, new.median) {
            (None, None) => Call::NoData,
            (Some(_), None) => Call::MissingInNew,
            (None, Some(_)) => Call::MissingInBase,
            (Some(_), Some(_)) if !judged => Call::Told,
            (Some(_), Some(_)) if same => Call::Same,
            (Some(_), Some(_)) => Call::CannotTell,
        },
        base,
        new,
    }
}

/// What a row can be judged by. One in which nothing varies is left out of the family: its p is 1 whatever happens.
fn method(row: &Row, base: &Side, new: &Side) -> Method {
    let mut all = row.base.values.iter().chain(&row.new.values);
    let first = all.next();
    let varies = all.any(|value| first.is_some_and(|first| value.total_cmp(first).is_ne()));
    if !matches!(row.call, Call::Same | Call::CannotTell) || !varies {
        return Method::None;
    }
    if row.base.values.len().min(row.new.values.len()) >= RANKS_FROM {
        return Method::MannWhitney;
    }
    match series(row, base, new) {
        Some(p) if p <= 1.0 => Method::Blocks,
        _ => Method::None,
    }
}

/// The p of a bootstrap over the windows of both sides, where the measure has windows and the runs are long enough.
fn series(row: &Row, base: &Side, new: &Side) -> Option<f64> {
    let series = ALL.iter().find(|measure| measure.name == row.measure)?.series?;
    let of = |side: &'_ Side| side.runs.iter().filter_map(series).cloned().collect::<Vec<_>>();
    let (old, fresh) = (of(base), of(new));
    blocks::p(&old.iter().collect::<Vec<_>>(), &fresh.iter().collect::<Vec<_>>())
}

fn p(row: &Row, base: &Side, new: &Side, pairs: Option<&[(usize, usize)]>) -> f64 {
    match row.method {
        Method::MannWhitney => rank::mann_whitney(&row.base.values, &row.new.values),
        Method::SignedRank => rank::signed_rank(&row.differences(pairs.unwrap_or_default())),
        Method::Blocks => series(row, base, new).unwrap_or(1.0),
        Method::None => 1.0,
    }
}

impl Row {
    /// Whether every run of both sides has a number, so that places of runs are places of numbers.
    fn is_complete(&self) -> bool {
        self.base.values.len() == self.base.runs && self.new.values.len() == self.new.runs
    }

    fn differences(&self, pairs: &[(usize, usize)]) -> Vec<f64> {
        pairs.iter().map(|(old, fresh)| self.new.values[*fresh] - self.base.values[*old]).collect()
    }

    /// Judges it by pairs.
    fn pair(&mut self, pairs: &[(usize, usize)]) {
        self.method = Method::SignedRank;
        if let Some((amount, old)) = median(self.differences(pairs)).zip(self.base.median) {
            self.change = Some(Change::of(amount, old));
        }
    }

    fn judge(&mut self, p: f64, level: f64, pairs: Option<&[(usize, usize)]>) {
        let (old, fresh) = (&self.base.values, &self.new.values);
        let (able, could_see) = match self.method {
            Method::MannWhitney => {
                let factor = seen::unpaired(old.len(), fresh.len(), level);
                (factor.is_some(), factor.map(|factor| factor * pooled(old, fresh)))
            }
            Method::SignedRank => {
                let differences = self.differences(pairs.unwrap_or_default());
                let factor = seen::paired(differences.len(), level);
                (factor.is_some(), factor.map(|factor| factor * variance(&differences).sqrt()))
            }
            Method::Blocks | Method::None => (true, None),
        };
        self.p_holm = Some(p);
        self.could_see = could_see;
        let Some(change) = self.change else { return };
        self.call = match () {
            () if !able && p > LEVEL => Call::CannotTell,
            () if p > LEVEL => Call::Same,
            () if !beyond(change, self.tolerance, self.unit) => Call::Tolerated,
            () => match (self.better, change.amount > 0.0) {
                (Better::Neutral, _) => Call::Changed,
                (Better::More, true) | (Better::Less, false) => Call::Better,
                (Better::More, false) | (Better::Less, true) => Call::Worse,
            },
        };
    }
}

/// Whether a change is more than is tolerated.
fn beyond(change: Change, tolerance: Tolerance, unit: Unit) -> bool {
    let amount = change.amount.abs();
    match tolerance {
        Tolerance::Off => false,
        Tolerance::Amount(most) => amount > most,
        Tolerance::Share(most) if unit == Unit::Share => amount > most,
        Tolerance::Share(most) => change.share.map_or(amount > 0.0, |share| share.abs() > most),
    }
}

impl Change {
    fn of(amount: f64, old: f64) -> Self {
        let share = amount / old.abs();
        Self { amount, share: share.is_finite().then_some(share) }
    }
}

impl Sample {
    fn of(measure: &Measure, runs: &[Run]) -> Self {
        let values: Vec<f64> = runs.iter().filter_map(|run| measure.of(run)).collect();
        let interval = measure.quantile.and_then(|quantile| all_requests(quantile, runs));
        Self { runs: runs.len(), median: median(values.clone()), values, interval }
    }

    fn sorted(&self) -> Vec<u64> {
        let mut bits: Vec<u64> = self.values.iter().map(|value| value.to_bits()).collect();
        bits.sort_unstable();
        bits
    }
}

/// The interval of a quantile over the requests of all runs, in seconds.
fn all_requests((hist, quantile): Quantile, runs: &[Run]) -> Option<(f64, f64)> {
    let mut all = Hist::default();
    runs.iter().for_each(|run| all.add(hist(run)));
    interval::of(&all, quantile).map(|(low, high)| (low as f64 / 1e6, high as f64 / 1e6))
}

/// The variance of a sample; 0 of fewer than two.
fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64
}

/// The standard deviation from run to run, both sides taken together.
fn pooled(old: &[f64], fresh: &[f64]) -> f64 {
    let free = |values: &[f64]| values.len().saturating_sub(1) as f64;
    let sum = free(old) * variance(old) + free(fresh) * variance(fresh);
    (sum / (free(old) + free(fresh)).max(1.0)).sqrt()
}
