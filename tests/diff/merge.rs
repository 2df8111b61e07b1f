//! Parts of a run add up to the whole, to the bit, however it is taken apart.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tenfold::measure::{Closed, Fold, Measures};
use tenfold::observe::{Attempt, Depth, Gauge, Ghost, Record, Sighting};
use tenfold::plan::{self, Plan};
use tenfold::simulate;
use tenfold::units::{Moment, Tokens};

/// What a run consists of.
#[derive(Debug, Clone)]
enum Part {
    Due(Attempt, Moment),
    Request(Box<Record>),
    Ghost(Ghost),
}

/// A run of callers who leave in the queue, answers that come late, and refusals: everything that is counted.
fn overload() -> Plan {
    let sets = [
        "load.arrivals=poisson",
        "target.embedded.bound={requests: 90}",
        "target.embedded.recheck=false",
        "requests.0.deadline=4s",
        "requests.0.patience=4500ms",
        "rehearsal={probes: {every: 3}}",
    ];
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    plan::parse(include_str!("../../plans/smoke.yaml"), &sets, &|_| None).unwrap().plan
}

/// The parts of a run of `plan`, and what it came to as a whole.
fn parts(plan: &Plan) -> (Vec<Part>, Measures) {
    let all = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&all);
    let mut fold = Fold::new(plan).telling(move |closed| {
        told.lock().unwrap().push(match closed {
            Closed::Request(record) => Part::Request(Box::new(record.clone())),
            Closed::Ghost(ghost) => Part::Ghost(*ghost),
        });
    });
    let ended = simulate::run(plan, plan.policy().unwrap(), &mut |sighting| {
        if let Sighting::Due { attempt, at, .. } = sighting {
            all.lock().unwrap().push(Part::Due(attempt, at));
        }
        fold.see(sighting);
    });
    let whole = fold.finish(ended.at);
    let parts = all.lock().unwrap().clone();
    (parts, whole)
}

fn folded<'p>(plan: &Plan, parts: impl Iterator<Item = &'p Part>) -> Measures {
    let mut measures = Measures::new(plan);
    for part in parts {
        match part {
            Part::Due(attempt, at) => measures.due(*attempt, *at),
            Part::Request(record) => measures.record(record),
            Part::Ghost(ghost) => measures.ghost(ghost),
        }
    }
    measures
}

#[test]
fn however_a_run_is_dealt_out_its_parts_add_to_the_whole() {
    let plan = overload();
    let (parts, run) = parts(&plan);
    let whole = folded(&plan, parts.iter());
    let Measures { arrivals, upstream, refusals, .. } = &run;
    assert!(arrivals.total() > 900 && refusals.refused > 300, "{arrivals:?}, {} refused", refusals.refused);
    assert!(upstream.wasted > Tokens::ZERO, "{upstream:?}");
    // what the run itself counted, it counted from these very parts
    assert_eq!((&whole.arrivals, &whole.attempts), (&run.arrivals, &run.attempts));
    assert_eq!((&whole.latencies, &whole.lag), (&run.latencies, &run.lag));
    assert_eq!(whole.refusals.latency.to_base64(), run.refusals.latency.to_base64());
    proptest!(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() }, |(shards in 2usize..6, salt in any::<u64>())| {
        let shard = |i: usize| ((i as u64 ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as usize % shards;
        let mut sides: Vec<Measures> = (0..shards)
            .map(|n| folded(&plan, parts.iter().enumerate().filter(|(i, _)| shard(*i) == n).map(|(_, part)| part)))
            .collect();
        let mut there = Measures::new(&plan);
        sides.iter().for_each(|side| there.add(side));
        prop_assert_eq!(&there, &whole);
        sides.reverse();
        let mut back = Measures::new(&plan);
        sides.iter().for_each(|side| back.add(side));
        prop_assert_eq!(&back, &whole);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    /// Depth is noted where both sides of all requests are seen; it can be taken apart in time.
    #[test]
    fn however_a_run_is_cut_in_time_its_windows_add_to_the_whole(
        stands in prop::collection::vec((0u64..25_000, 0u64..50), 1..60),
        cut in 0u64..25_000,
    ) {
        let plan = overload();
        let mut stands = stands;
        stands.sort_unstable();
        let gauge = |requests| Gauge {
            depth: Depth { requests, tokens: Tokens::new(requests * 1_200) },
            outstanding: requests,
            ..Gauge::default()
        };
        let (mut whole, mut before, mut after) =
            (Measures::new(&plan), Measures::new(&plan), Measures::new(&plan));
        let at = Moment::from_millis;
        stands.iter().for_each(|(ms, depth)| whole.stand(at(*ms), &gauge(*depth)));
        let (early, late): (Vec<_>, Vec<_>) = stands.iter().partition(|(ms, _)| *ms < cut);
        early.iter().for_each(|(ms, depth)| before.stand(at(*ms), &gauge(*depth)));
        let at_cut = gauge(early.last().map_or(0, |(_, depth)| *depth));
        if let Some((last, _)) = late.last() {
            before.stand(at(cut), &at_cut);
            after.stand(at(cut), &at_cut);
            prop_assert!(*last >= cut);
        }
        late.iter().for_each(|(ms, depth)| after.stand(at(*ms), &gauge(*depth)));
        let (mut there, mut back) = (before.clone(), after.clone());
        there.add(&after);
        back.add(&before);
        prop_assert_eq!(&there.windows, &whole.windows);
        prop_assert_eq!(&back.windows, &whole.windows);
        prop_assert_eq!(there.depths.peak, whole.depths.peak);
    }
}
