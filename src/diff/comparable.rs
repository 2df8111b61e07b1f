//! Whether two sides may be compared at all, and if not, which keys of their plans differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{Run, Side};
use crate::check::RunVerdict;

/// A key in which runs differ that should not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its path: `load.phases.promotion.rate`.
    pub key: String,
    /// What it is in the first.
    pub base: String,
    /// What it is in the other.
    pub new: String,
    /// The side, if both are of one.
    pub within: Option<String>,
}

/// Every key in which the two sides differ, or the runs of one of them, sorted.
pub(super) fn differences(base: &Side, new: &Side) -> Vec<Difference> {
    let mut found = Vec::new();
    for side in [base, new] {
        let Some((first, others)) = side.runs.split_first() else { continue };
        for other in others {
            let add = |maps: [&BTreeMap<String, String>; 2], found: &mut Vec<Difference>| {
                for (key, base, new) in unlike(maps[0], maps[1]) {
                    if !found.iter().any(|seen: &Difference| seen.key == key && seen.within.is_some()) {
                        found.push(Difference { key, base, new, within: Some(side.label.clone()) });
                    }
                }
            };
            add([&first.keys, &other.keys], &mut found);
            add([&first.own, &other.own], &mut found);
        }
    }
    if let (Some(base), Some(new)) = (base.runs.first(), new.runs.first()) {
        let between = unlike(&base.keys, &new.keys);
        found.extend(between.map(|(key, base, new)| Difference { key, base, new, within: None }));
    }
    let spoiled = [base, new].map(|side| spoiled(&side.runs));
    if spoiled.iter().any(Option::is_some) {
        let [base, new] = spoiled.map(|said| said.unwrap_or_else(|| "valid".to_owned()));
        found.push(Difference { key: "validity".to_owned(), base, new, within: None });
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    found
}

fn unlike<'a>(
    base: &'a BTreeMap<String, String>,
    new: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (String, String, String)> + 'a {
    let keys: BTreeSet<&String> = base.keys().chain(new.keys()).collect();
    let told = |map: &BTreeMap<String, String>, key: &str| {
        map.get(key).cloned().unwrap_or_else(|| "absent".to_owned())
    };
    keys.into_iter()
        .filter(|key| base.get(*key) != new.get(*key))
        .map(move |key| (key.clone(), told(base, key), told(new, key)))
}

/// Runs that say nothing of the gateway, in words.
fn spoiled(runs: &[Run]) -> Option<String> {
    let count = |verdict| runs.iter().filter(|run| run.verdict == verdict).count();
    let words: Vec<_> = [RunVerdict::Invalid, RunVerdict::Interrupted]
        .into_iter()
        .map(|verdict| (count(verdict), verdict.name()))
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} of {} {name}", runs.len()))
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Whether `allowed` names `key`, or a part of the plan it belongs to.
pub(super) fn names(allowed: &str, key: &str) -> bool {
    key == allowed || key.strip_prefix(allowed).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{run, side};
    use super::*;

    #[test]
    fn differing_keys_are_named_by_path_with_both_values() {
        let mut other = run(1);
        other.keys.insert("load.phases.promotion.rate".into(), "1,000/min".into());
        other.keys.remove("checks.shedding.fast.limit");
        other.verdict = RunVerdict::Invalid;
        let found = differences(&side("old", vec![run(1)]), &side("new", vec![other]));
        let told: Vec<_> = found.iter().map(|d| (d.key.as_str(), d.base.as_str(), d.new.as_str())).collect();
        assert_eq!(
            told,
            [
                ("checks.shedding.fast.limit", "10 ms", "absent"),
                ("load.phases.promotion.rate", "2,000/min", "1,000/min"),
                ("validity", "valid", "1 of 1 invalid"),
            ]
        );
    }

    #[test]
    fn the_runs_of_a_side_are_of_one_target_and_the_sides_need_not_be() {
        let mut other = run(2);
        other.own.insert("target.kind".into(), "spawn".into());
        assert_eq!(differences(&side("old", vec![run(1)]), &side("new", vec![other.clone()])), []);
        let found = differences(&side("old", vec![run(1), other]), &side("new", vec![run(1)]));
        assert_eq!((found[0].key.as_str(), found[0].within.as_deref()), ("target.kind", Some("old")));
    }

    #[test]
    fn a_part_of_the_plan_can_be_allowed_as_a_whole() {
        assert!(names("load", "load.phases.a.rate") && names("load.phases.a.rate", "load.phases.a.rate"));
        assert!(!names("load.phases.a", "load.phases.ab.rate") && !names("", "load"));
    }
}
