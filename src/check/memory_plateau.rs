//! Memory stands still while the queue stands at its bound: nothing is left behind by the requests that come and go.
//!
//! From the forecast onset (or, where the mix changes or deadlines differ, from when all have filled their places) to the
//! end of the event the target's memory is set against the requests that had come in
//! until then, second by second. The seconds are gathered into at most 24 blocks, of each of which the median counts;
//! the slope is that of Theil and Sen (the median of the slopes of all pairs), and its 95 % interval that of Sen (1968),
//! from the variance of Kendall's statistic. Of the growth at the lower end 256 KiB are an allocator's, which takes
//! memory by the piece, and 100 bytes for each refused caller are the promises that a gateway with appointments keeps,
//! as many as it keeps at most. What is left, over the requests, must be under the limit.
//!
//! So a run of N requests sees a leak of (limit + (slope − lower end) + allowance/N) bytes a request, which the sentence
//! says: with a limit of 50 bytes, and memory that is otherwise even, 100 bytes take 5,300 requests; 210,000 where
//! promises are kept; 1 kB takes 280.

use std::time::Duration;

use super::{Finding, Kind, Scene, Standard, words};
use crate::admission::MOST_PROMISES;
use crate::plan::{Plan, TargetKind};
use crate::units::{Bytes, Moment};
use crate::workload::Span;

pub(super) const KIND: Kind = Kind {
    id: "memory.plateau",
    about: "memory does not grow with the requests that come while the queue stands at its bound",
    limit: Standard::SizeOf(Bytes::new(50)),
    unit: "bytes",
    judge,
};

/// Windows there must be in the steady part for a slope to mean anything.
const FEWEST: usize = 8;
/// Blocks at most.
const BLOCKS: usize = 24;
/// What an allocator takes from the system at once.
const PIECE: f64 = 262_144.0;
/// What a gateway keeps of a caller it has told a time.
const PER_PROMISE: f64 = 100.0;
/// The quantile of a 95 % interval.
const Z: f64 = 1.96;

fn judge(scene: &Scene<'_>) -> Finding {
    let limit = scene.size_of(&KIND);
    let draft = KIND.draft(format!(
        "while the queue stands at its bound memory grows by at most {limit} for each request that comes"
    ));
    if !scene.live {
        return draft.not_applicable("in virtual time nothing uses memory");
    }
    let target = &scene.plan.target;
    if matches!(target.kind, TargetKind::Url { .. }) && target.memory.is_none() {
        return draft.not_applicable("the plan names no place to read its memory (`target.memory`)");
    }
    if scene.plan.policy().is_none_or(|policy| policy.bound.name() == "none") {
        return draft.not_applicable("nothing says that its queue has a bound");
    }
    let frame = &scene.measures.frame;
    let Some((event, onset)) = frame.event.zip(scene.forecast.onset) else {
        return draft.not_applicable("its queue is not forecast to reach its bound");
    };
    let from = event.start + Duration::try_from_secs_f64(onset.after_s).unwrap_or(Duration::MAX);
    let from = from.max(settled(scene.plan, event)) + filling(scene.plan);
    if frame.whole_windows(from, event.end) < FEWEST {
        return draft.not_applicable(format!(
            "its queue stands at its bound for {}, too short for a slope",
            words::seconds(event.end.since(from).as_secs_f64())
        ));
    }
    let points = points(scene, from, event.end);
    if points.len() < FEWEST {
        return draft.no_data("its memory was not read while the queue stood at its bound");
    }
    let requests = points.last().map_or(0.0, |last| last.0) - points.first().map_or(0.0, |first| first.0);
    let Some(slope) = Slope::of(&blocks(&points)).filter(|_| requests >= 1.0) else {
        return draft.no_data("nothing came in while the queue stood at its bound");
    };
    let allowed = PIECE + promises(scene, from, event.end);
    let sure = slope.least - allowed / requests;
    let limit = limit.get() as f64;
    let sees = limit + (slope.median - slope.least) + allowed / requests;
    let because = format!(
        "{} a request over {} requests, at least {} with 95 % confidence (limit {}); a leak of {} or more would be seen",
        bytes(slope.median),
        words::thousands(requests as u64),
        bytes(sure),
        bytes(limit),
        bytes(sees)
    );
    draft.judged(sure <= limit, slope.median, limit, because)
}

/// When callers of another mix, with bodies of another size, have taken the places of those before them.
fn settled(plan: &Plan, event: Span) -> Moment {
    let phases: Vec<_> = plan.load.spans().filter(|(_, span)| event.contains(span.start)).collect();
    let changed = phases
        .windows(2)
        .filter(|pair| pair[0].0.mix != pair[1].0.mix)
        .map(|pair| pair[1].1.start)
        .next_back();
    let longest = plan.requests.classes().iter().map(|class| class.deadline).max().unwrap_or_default();
    changed.map_or(event.start, |at| at + longest)
}

/// How much later than those of the shortest deadline, who are refused first, those of the longest have filled their part.
fn filling(plan: &Plan) -> Duration {
    let deadlines = || plan.requests.classes().iter().map(|class| class.deadline);
    let longest = deadlines().max().unwrap_or_default();
    if plan.policy().is_some_and(|policy| policy.share.separate()) {
        // a lane whose tenant sends little more than its share takes long
        return longest;
    }
    longest.saturating_sub(deadlines().min().unwrap_or_default())
}

/// `12 bytes`, `-3 bytes`, `1,024 bytes`
fn bytes(value: f64) -> String {
    let sign = if value <= -0.5 { "-" } else { "" };
    format!("{sign}{} bytes", words::thousands(value.abs().round() as u64))
}

/// Requests that had come due by the end of each window, and the most memory in it.
fn points(scene: &Scene<'_>, from: Moment, to: Moment) -> Vec<(f64, f64)> {
    let mut came = 0;
    scene
        .measures
        .windows
        .within(&scene.measures.frame, from, to)
        .filter_map(|window| {
            came += window.attempts;
            let memory = window.target_memory.get();
            (memory > 0).then_some((came as f64, memory as f64))
        })
        .collect()
}

/// What a gateway with appointments may keep of those it refuses.
fn promises(scene: &Scene<'_>, from: Moment, to: Moment) -> f64 {
    let keeps = scene.plan.policy().is_some_and(|policy| policy.retry_after.reserve().is_some());
    let windows = scene.measures.windows.within(&scene.measures.frame, from, to);
    let refused: u64 = windows.map(|window| window.refusals).sum();
    if keeps { PER_PROMISE * refused.min(MOST_PROMISES as u64) as f64 } else { 0.0 }
}

/// At most [`BLOCKS`] stretches of nearly as many points each, as the medians of both.
fn blocks(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let size = points.len().div_ceil(BLOCKS).max(1);
    let middle = |block: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| median(block.iter().map(of).collect());
    points.chunks(size).map(|block| (middle(block, |p| p.0), middle(block, |p| p.1))).collect()
}

/// The middle one, or the mean of the two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[half],
        _ => (values[half - 1] + values[half]) / 2.0,
    }
}

/// A slope by Theil and Sen.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slope {
    median: f64,
    /// The lower end of its 95 % interval.
    least: f64,
}

impl Slope {
    /// Of points in order; `None` where no two differ in what they are set against.
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        let pairs = points.iter().enumerate().flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (a, b)));
        let mut slopes: Vec<f64> =
            pairs.filter(|(a, b)| b.0 > a.0).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
        slopes.sort_by(f64::total_cmp);
        let n = points.len() as f64;
        let spread = Z * (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
        let rank = ((slopes.len() as f64 - spread) / 2.0).max(0.0) as usize;
        Some(Self { least: *slopes.get(rank)?, median: median(slopes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that a run of 60 s shows, with `leak` bytes left behind by each of 100 requests a second.
    fn run(leak: f64, noise: impl Fn(usize) -> f64) -> Slope {
        let points: Vec<_> = (0..60)
            .map(|second| {
                let came = 100.0 * (second + 1) as f64;
                (came, 2e7 + leak * came + noise(second))
            })
            .collect();
        Slope::of(&blocks(&points)).unwrap()
    }

    #[test]
    fn a_leak_is_the_slope_and_a_step_is_none() {
        let even = run(100.0, |_| 0.0);
        assert!((even.median - 100.0).abs() < 1e-6 && (even.least - 100.0).abs() < 1e-6, "{even:?}");
        assert_eq!(run(0.0, |_| 0.0), Slope { median: 0.0, least: 0.0 });
        // an allocator that takes a megabyte more, once
        for at in [5, 30, 50] {
            let step = run(0.0, |second| if second >= at { 1e6 } else { 0.0 });
            assert!(step.least <= 0.0, "{step:?}");
        }
    }

    #[test]
    fn a_leak_is_found_under_noise_and_noise_alone_is_no_leak() {
        // a fixed sequence without a trend, 100 kB either way
        let noise = |second: usize| ((second * 7_919) % 61) as f64 / 60.0 * 2e5 - 1e5;
        let (with, without) = (run(1_000.0, noise), run(0.0, noise));
        assert!(with.least > 900.0 && with.median < 1_100.0, "{with:?}");
        assert!(without.least < 10.0, "{without:?}");
    }

    #[test]
    fn an_outlier_moves_nothing() {
        let spiked = run(0.0, |second| if second == 40 { 5e8 } else { 0.0 });
        assert_eq!((spiked.median, spiked.least), (0.0, 0.0));
        assert_eq!(Slope::of(&[(1.0, 2.0), (1.0, 9.0)]), None);
        assert!((median(vec![4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-12);
    }
}
