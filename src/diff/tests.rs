use super::testing::{five, run, side};
use super::*;
use crate::check::Verdict as Checked;
use crate::plan::Tolerance;

fn compare(base: &Side, new: &Side) -> Comparison {
    Comparison::of(base, new, &[])
}

fn row<'c>(comparison: &'c Comparison, name: &str) -> &'c Row {
    comparison.rows.iter().find(|row| row.measure == name).unwrap()
}

#[test]
fn the_same_run_twice_is_unchanged_and_claims_nothing_about_chance() {
    let one = side("a", vec![run(7)]);
    let comparison = compare(&one, &one);
    assert_eq!((comparison.verdict, comparison.verdict.exit_code()), (Verdict::Unchanged, 0));
    assert!(comparison.rows.iter().all(|row| row.p_holm.is_none()));
    assert!(comparison.notes[0].starts_with("n=1:"), "{:?}", comparison.notes);
}

#[test]
fn one_run_a_side_cannot_tell_unless_a_check_breaks() {
    let base = side("old", vec![run(7)]);
    let mut worse = run(7);
    worse.goodput_per_s = 1.0;
    let comparison = compare(&base, &side("new", vec![worse.clone()]));
    assert_eq!((comparison.verdict, comparison.verdict.exit_code()), (Verdict::CannotTell, 0));
    assert_eq!(row(&comparison, "goodput").call, Call::CannotTell);
    worse.checks[1].verdict = Checked::Fail;
    let comparison = compare(&base, &side("new", vec![worse]));
    assert_eq!((comparison.verdict, comparison.verdict.exit_code()), (Verdict::Regressed, 1));
}

#[test]
fn five_runs_a_side_tell_a_change_of_five_percent() {
    let comparison = compare(&five("old", 3.47), &five("new", 3.29));
    assert_eq!(comparison.verdict, Verdict::Regressed);
    let goodput = row(&comparison, "goodput");
    assert_eq!((goodput.call, goodput.method), (Call::Worse, Method::MannWhitney));
    let change = goodput.change.unwrap();
    assert!((change.share.unwrap() + 0.0517).abs() < 0.001, "{change:?}");
    assert!(goodput.could_see.unwrap() < 0.05, "{goodput:?}");
    assert_eq!(compare(&five("old", 3.29), &five("new", 3.47)).verdict, Verdict::Improved);
    assert_eq!(compare(&five("old", 3.47), &five("new", 3.471)).verdict, Verdict::Unchanged);
}

/// As in rsc/benchstat#7: 115, 114, 115, 115, 115 against 78.8 five times.
#[test]
fn a_clear_change_is_called_though_one_side_has_no_spread() {
    let of = |values: [f64; 5]| {
        let runs = values.iter().map(|value| Run { goodput_per_s: *value, ..run(1) });
        side("x", runs.collect())
    };
    let comparison = compare(&of([115.0, 114.0, 115.0, 115.0, 115.0]), &of([78.8; 5]));
    let goodput = row(&comparison, "goodput");
    assert_eq!(goodput.call, Call::Worse);
    assert!((goodput.change.unwrap().share.unwrap() + 0.3148).abs() < 1e-4);
}

#[test]
fn a_change_within_the_plans_tolerance_is_none() {
    let (base, mut new) = (five("old", 3.47), five("new", 3.29));
    new.runs.iter_mut().for_each(|run| {
        run.tolerances.insert("goodput".into(), Tolerance::Share(0.08));
    });
    let comparison = compare(&base, &new);
    assert_eq!((comparison.verdict, row(&comparison, "goodput").call), (Verdict::Unchanged, Call::Tolerated));
    assert!(
        comparison.notes.iter().any(|note| note.contains("the new one's hold")),
        "{:?}",
        comparison.notes
    );
    new.runs.iter_mut().for_each(|run| {
        run.tolerances.insert("goodput".into(), Tolerance::Off);
    });
    assert_eq!(row(&compare(&base, &new), "goodput").call, Call::Told);
}

/// As in joshuaswarren/remnic#467, spinnaker/kayenta#700 and golang/go#19565.
#[test]
fn what_is_missing_in_the_new_runs_is_neither_zero_nor_passed_over() {
    let base = side("old", vec![run(7)]);
    let mut lacking = run(7);
    lacking.memory_peak_bytes = None;
    let new = side("new", vec![lacking.clone()]);
    let comparison = compare(&base, &new);
    assert_eq!((comparison.verdict, comparison.verdict.exit_code()), (Verdict::Incomplete, 5));
    let memory = row(&comparison, "memory.peak");
    assert_eq!((memory.call, memory.change), (Call::MissingInNew, None));
    assert_eq!(row(&comparison, "goodput").change.unwrap().amount.to_bits(), 0.0f64.to_bits());
    assert_eq!(Comparison::of(&base, &new, &["memory.peak".into()]).verdict, Verdict::Unchanged);
    assert_eq!(row(&compare(&new, &base), "memory.peak").call, Call::MissingInBase);
    let both = compare(&new, &new);
    assert_eq!((row(&both, "memory.peak").call, both.verdict), (Call::NoData, Verdict::Unchanged));
    let mut one_check = run(7);
    one_check.checks.remove(1);
    assert_eq!(compare(&base, &side("new", vec![one_check])).verdict, Verdict::Incomplete);
}

#[test]
fn another_load_is_not_compared_unless_it_is_allowed_by_key() {
    let base = side("old", vec![run(7)]);
    let mut other = run(7);
    other.keys.insert("load.phases.promotion.rate".into(), "1,000/min".into());
    let new = side("new", vec![other]);
    let comparison = compare(&base, &new);
    assert_eq!((comparison.verdict, comparison.verdict.exit_code()), (Verdict::NotComparable, 5));
    assert_eq!(comparison.differences[0].key, "load.phases.promotion.rate");
    assert!(comparison.rows.is_empty() && comparison.checks.is_empty());
    for allowed in ["load.phases.promotion.rate", "load"] {
        let comparison = Comparison::of(&base, &new, &[allowed.into()]);
        assert_eq!(comparison.verdict, Verdict::Unchanged, "{allowed}");
        assert!(comparison.notes[0].contains("which is allowed"), "{:?}", comparison.notes);
    }
    let comparison = Comparison::of(&base, &base, &["laod".into()]);
    assert!(comparison.notes.iter().any(|note| note.contains("--allow laod")), "{:?}", comparison.notes);
}

#[test]
fn runs_of_the_same_seeds_are_paired_where_there_are_enough() {
    let of = |label, shift: f64, seeds: std::ops::Range<u64>| {
        // from seed to seed far more than from build to build
        let runs = seeds.map(|seed| Run { goodput_per_s: 3.0 + seed as f64 + shift, ..run(seed) });
        side(label, runs.collect())
    };
    let comparison = compare(&of("old", 0.0, 0..8), &of("new", -0.3, 0..8));
    assert!(comparison.paired);
    assert_eq!(
        (row(&comparison, "goodput").method, comparison.verdict),
        (Method::SignedRank, Verdict::Regressed)
    );
    let comparison = compare(&of("old", 0.0, 0..8), &of("new", -0.3, 100..108));
    assert!(!comparison.paired);
    assert!(judge::pairs(&of("old", 0.0, 0..1), &of("new", 0.0, 0..1)).is_none(), "one pair is none");
}

#[test]
fn four_runs_a_side_say_that_they_cannot_tell_among_several() {
    let four = |label, goodput: f64| {
        let runs = five(label, goodput)
            .runs
            .into_iter()
            .take(4)
            .enumerate()
            .map(|(i, run)| Run { drain_s: Some(40.0 + i as f64 * 0.1), ..run });
        side(label, runs.collect())
    };
    let comparison = compare(&four("old", 3.47), &four("new", 3.29));
    assert_eq!(row(&comparison, "goodput").call, Call::CannotTell);
    assert!(comparison.notes[0].contains("cannot reach 5 % among 2 measures"), "{:?}", comparison.notes);
    let alone = |side: &Side| {
        let runs = side.runs.iter().map(|run| Run { drain_s: Some(40.0), ..run.clone() });
        Side { label: side.label.clone(), runs: runs.collect() }
    };
    assert_eq!(compare(&alone(&four("old", 3.47)), &alone(&four("new", 3.29))).verdict, Verdict::Regressed);
}

#[test]
fn long_single_runs_are_compared_by_blocks_of_windows() {
    let long = |label, rate: f64| {
        let values = (0..2_400).map(|i| rate + f64::from(i * 7 % 5) * 0.2).collect();
        let run = Run { goodput_per_s: rate + 0.4, goodput: Some(Series { values, block: 43 }), ..run(7) };
        side(label, vec![run])
    };
    let comparison = compare(&long("old", 3.4), &long("new", 3.2));
    let goodput = row(&comparison, "goodput");
    assert_eq!((goodput.method, goodput.call), (Method::Blocks, Call::Worse));
    assert!(comparison.notes.iter().any(|note| note.contains("blocks of windows")));
}

#[test]
fn quantiles_carry_their_intervals() {
    let comparison = compare(&five("old", 3.47), &five("new", 3.47));
    let (low, high) = row(&comparison, "completed.p50").base.interval.unwrap();
    assert!(low <= 20.0 && 20.0 <= high, "{low} to {high}");
}
