//! What a plan may say about the comparison of two builds: which measures are judged, and how much each may change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Known;
use crate::units::{Bytes, Reader, Share, nearest, parse_duration};

/// The most measures that can be judged. With five runs a side the smallest p an exact test can give is 2 in 252;
/// Holm's correction over seven would make it 5.6 %, and nothing could ever be called a change.
pub const MOST_JUDGED: usize = 6;

/// Every measure a plan can name, sorted.
pub const MEASURES: &[Measured] = &[
    measured("attempts.ratio", "requests on the wire over arrivals", Amounts::None, false),
    measured("charged.tokens", "tokens the provider charged", Amounts::Number, false),
    measured("completed.p50", "median latency of answers in time, from their due time", Amounts::Time, false),
    measured("completed.p99", "99th percentile of the same", Amounts::Time, false),
    measured("completed.share", "answers in time, of all arrivals", Amounts::None, false),
    measured("drain", "time until the backlog was gone after the event", Amounts::Time, true),
    measured("first_token.p50", "median time from due to the first token of a stream", Amounts::Time, false),
    measured("first_token.p99", "99th percentile of the same", Amounts::Time, false),
    measured("goodput", "answers in time a second of the event", Amounts::None, true),
    measured("lag.p99", "how late requests were sent: our own doing", Amounts::Time, false),
    measured("memory.peak", "the most memory the target had", Amounts::Size, true),
    measured("onset.after", "time from the event's start to the first shed", Amounts::Time, false),
    measured("onset.depth", "queue depth the first shed met", Amounts::Number, true),
    measured("refusal.p50", "median latency of refusals", Amounts::Time, false),
    measured("refusal.p99", "99th percentile of the same", Amounts::Time, true),
    measured(
        "retry_after.kept",
        "refused callers served when told, of all that came back",
        Amounts::None,
        true,
    ),
    measured("retry_after.median", "the time refused callers were told to wait", Amounts::Time, false),
    measured("shed.share", "refused for scarcity, of all arrivals", Amounts::None, false),
    measured("token_gap.p99", "99th percentile of the times from token to token", Amounts::Time, false),
    measured("wasted.tokens", "tokens for answers nobody was waiting for", Amounts::Number, false),
];

const fn measured(name: &'static str, about: &'static str, amounts: Amounts, judged: bool) -> Measured {
    Measured { known: Known { id: name, about }, amounts, judged }
}

/// An entry of [`MEASURES`].
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Its name, stable, and one line for `tenfold list`.
    pub known: Known,
    /// What a tolerance that is no share looks like.
    pub amounts: Amounts,
    /// Whether it is judged where the plan does not say.
    pub judged: bool,
}

/// The form of a tolerance that is no share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amounts {
    /// A share is the only form.
    None,
    /// `3`
    Number,
    /// `1MB`
    Size,
    /// `1ms`
    Time,
}

/// How much a measure may get worse, or better, before that counts as a change.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// This part of the old value; of a measure that is a share itself, so many hundredths of the whole.
    Share(f64),
    /// This much in the unit of the measure: seconds, bytes, or a plain number.
    Amount(f64),
    /// Whatever it does: it is shown, not judged.
    Off,
}

/// Reads the map `diff`: name of a measure to tolerance.
pub(super) fn read(reader: &Reader<'_>) -> Option<BTreeMap<String, Tolerance>> {
    let names: Vec<&'static str> = MEASURES.iter().map(|measure| measure.known.id).collect();
    let mut out = BTreeMap::new();
    for (name, entry) in reader.map()?.rest() {
        match MEASURES.iter().find(|measure| measure.known.id == name) {
            Some(measure) => out.extend(tolerance(measure, &entry).map(|tolerance| (name, tolerance))),
            None => {
                let guess =
                    nearest(&name, &names).map(|n| format!("did you mean `{n}`? ")).unwrap_or_default();
                entry.fault(format!("unknown measure `{name}` ({guess}known: {})", names.join(", ")));
            }
        }
    }
    let judged = MEASURES.iter().filter(|measure| is_judged(measure, &out)).count();
    if judged > MOST_JUDGED {
        reader.fault(format!(
            "{judged} measures would be judged, and at most {MOST_JUDGED} can be: beyond that, five runs a side show nothing; turn others off (`drain: off`)"
        ));
    }
    Some(out)
}

/// Whether a measure is judged under the tolerances of a plan.
pub fn is_judged(measure: &Measured, tolerances: &BTreeMap<String, Tolerance>) -> bool {
    tolerances.get(measure.known.id).map_or(measure.judged, |tolerance| *tolerance != Tolerance::Off)
}

fn tolerance(measure: &Measured, reader: &Reader<'_>) -> Option<Tolerance> {
    reader.parse("a tolerance", |text| {
        if text == "off" || text == "false" {
            return Ok(Tolerance::Off);
        }
        let share = || Share::parse(text).ok().map(|share| Tolerance::Share(share.get()));
        let (amount, form) = match measure.amounts {
            Amounts::None => (None, "5%"),
            Amounts::Number => (text.parse::<u32>().ok().map(f64::from), "5% or 3"),
            Amounts::Size => (Bytes::parse(text).ok().map(|bytes| bytes.get() as f64), "5% or 1MB"),
            Amounts::Time => (parse_duration(text).ok().map(|span| span.as_secs_f64()), "5% or 20ms"),
        };
        amount.map(Tolerance::Amount).or_else(share).ok_or_else(|| {
            format!("`{text}` is no tolerance of `{}` (write {form}, or off)", measure.known.id)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::yaml;
    use crate::units::Faults;

    fn told(text: &str) -> Result<BTreeMap<String, Tolerance>, Vec<String>> {
        let (tree, faults) = (yaml::read(text).unwrap(), Faults::default());
        let read = read(&Reader::root(&tree, &faults));
        let faults: Vec<_> = faults.into_sorted().into_iter().map(|fault| fault.message).collect();
        if faults.is_empty() { Ok(read.unwrap()) } else { Err(faults) }
    }

    #[test]
    fn the_table_is_sorted_and_judges_no_more_than_can_be() {
        assert!(MEASURES.windows(2).all(|pair| pair[0].known.id < pair[1].known.id));
        assert_eq!(MEASURES.iter().filter(|measure| measure.judged).count(), MOST_JUDGED);
    }

    #[test]
    fn a_tolerance_takes_the_form_of_its_measure() {
        let read =
            told("goodput: 2%\nrefusal.p99: 1ms\nmemory.peak: 1MB\nonset.depth: 3\ndrain: off\n").unwrap();
        assert_eq!(read["goodput"], Tolerance::Share(0.02));
        assert_eq!(read["refusal.p99"], Tolerance::Amount(0.001));
        assert_eq!(read["memory.peak"], Tolerance::Amount(1e6));
        assert_eq!(read["onset.depth"], Tolerance::Amount(3.0));
        assert_eq!(read["drain"], Tolerance::Off);
        for wrong in ["goodput: 1ms", "refusal.p99: 1MB", "drain: 3", "memory.peak: -1%", "goodput: ''"] {
            assert!(told(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_measure_is_named_with_the_nearest_and_a_seventh_is_refused() {
        let said = told("godput: 2%\n").unwrap_err();
        assert!(said[0].contains("did you mean `goodput`?"), "{said:?}");
        let said = told("completed.p99: 5%\n").unwrap_err();
        assert!(said[0].contains("7 measures would be judged"), "{said:?}");
        assert!(told("completed.p99: 5%\ndrain: off\n").is_ok());
    }
}
