//! What refused callers are told follows the state of the queue.
//!
//! Kendall's tau-b between what was announced and what the declared strategy should have said (see
//! [`super::predicted`]), over those phases of the plan in which the latter varies: its interquartile range is at
//! least a fifth of its median, and at least five seconds, since whole seconds spread by a tenth, and a book kept by
//! the second, tell no finer. Where the queue stands at its bound an honest answer may be constant, and nothing is
//! judged. It holds where tau-b is at least 0.5 and the lower end of its 95 % interval is above nothing. Refusals for
//! entitlement follow a limit of their own and are left out.

use super::kendall::{Kendall, Point, kendall};
use super::predicted::Predicted;
use super::{Finding, Kind, Scene, Standard, words};
use crate::measure::Telling;

pub(super) const KIND: Kind = Kind {
    id: "retry_after.follows_state",
    about: "announced waits rise and fall with what the declared strategy should say",
    limit: Standard::Part(0.5),
    unit: "tau-b",
    judge,
};

/// The most refusals that are looked at: a random sample of all.
const MOST: usize = 1_000;
/// Fewer say nothing.
const LEAST: usize = 20;

fn judge(scene: &Scene<'_>) -> Finding {
    let limit = scene.part(&KIND);
    let draft = KIND.draft(format!(
        "where the predicted wait varies, what is announced goes with it: Kendall's tau-b at least {}",
        words::number(limit)
    ));
    let measures = scene.measures;
    let draft = match scene.told_a_crowd(draft) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    if scene.nobody_heeds() {
        return draft.not_applicable("no caller comes back as told");
    }
    let predicted = Predicted::of(scene);
    let scarce = measures.told.tellings().filter(|(_, telling)| !telling.throttled);
    let sample: Vec<_> =
        scarce.take(MOST).map(|(seq, telling)| (seq, point(scene, &predicted, &telling))).collect();
    if sample.len() < LEAST {
        return draft.no_data(format!("only {} refusals for scarcity announced a time", sample.len()));
    }
    let varying: Vec<_> =
        phases(&sample).filter(|(_, (low, median, high))| varies(*low, *median, *high)).collect();
    let Some((_, (low, _, high))) = varying.iter().max_by_key(|(_, (low, _, high))| high - low) else {
        return draft.not_applicable(format!(
            "the predicted wait stood still ({}), and so may what is announced",
            spread_of(&sample)
        ));
    };
    let chosen: Vec<_> = sample
        .iter()
        .filter(|(_, point)| varying.iter().any(|(phase, _)| *phase == point.group))
        .copied()
        .collect();
    let points: Vec<_> = chosen.iter().map(|(_, point)| *point).collect();
    let Some(Kendall { tau, at_least }) = kendall(&points).filter(|_| points.len() >= LEAST) else {
        return draft.no_data(format!("only {} refusals where the predicted wait varied", points.len()));
    };
    let said = |of: fn(&Point) -> u64| {
        let (least, most) =
            (points.iter().map(of).min().unwrap_or(0), points.iter().map(of).max().unwrap_or(0));
        if least == most { format!("always {least} s") } else { format!("{least} s to {most} s") }
    };
    let because = format!(
        "tau-b {} (at least {}, {} refusals): predicted {low} s to {high} s for the middle half, announced {}",
        words::signed(tau),
        words::signed(at_least),
        points.len(),
        said(|point| point.x)
    );
    let finding = draft.judged(tau >= limit && at_least > 0.0, tau, limit, because);
    finding.showing(furthest(chosen))
}

fn point(scene: &Scene<'_>, predicted: &Predicted<'_>, telling: &Telling) -> Point {
    let phases = &scene.measures.frame.phases;
    let group = phases.iter().position(|phase| phase.span.contains(telling.at)).unwrap_or(phases.len());
    let x = telling.announced.as_secs() + u64::from(telling.announced.subsec_nanos() > 0);
    Point { group, x, y: predicted.seconds(telling) }
}

/// The quartiles of the predicted wait in each phase.
fn phases(sample: &[(u64, Point)]) -> impl Iterator<Item = (usize, (u64, u64, u64))> {
    let mut by_phase = std::collections::BTreeMap::<usize, Vec<u64>>::new();
    sample.iter().for_each(|(_, point)| by_phase.entry(point.group).or_default().push(point.y));
    by_phase.into_iter().map(|(phase, mut waits)| {
        waits.sort_unstable();
        let at = |quarter: usize| waits[(waits.len() - 1) * quarter / 4];
        (phase, (at(1), at(2), at(3)))
    })
}

const fn varies(low: u64, median: u64, high: u64) -> bool {
    high - low >= 5 && (high - low) * 5 >= median
}

fn spread_of(sample: &[(u64, Point)]) -> String {
    let waits = || sample.iter().map(|(_, point)| point.y);
    match (waits().min(), waits().max()) {
        (Some(least), Some(most)) if least < most => format!("{least} s to {most} s"),
        (Some(only), _) => format!("{only} s"),
        _ => "none".to_owned(),
    }
}

/// The callers whose announced waits are furthest from what they should have been.
fn furthest(mut chosen: Vec<(u64, Point)>) -> Vec<u64> {
    chosen.sort_by_key(|(seq, point)| (std::cmp::Reverse(point.x.abs_diff(point.y)), *seq));
    let mut seqs: Vec<_> = chosen.into_iter().take(20).map(|(seq, _)| seq).collect();
    seqs.sort_unstable();
    seqs
}
