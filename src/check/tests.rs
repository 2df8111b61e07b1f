use serde_json::json;

use super::*;
use crate::measure::Vital;
use crate::measure::testing::{arrive, depth, gauge, healthy, healthy_telling, record, smoke};
use crate::observe::{Fraction, Hint, Outcome, RetryAfter, Says};
use crate::plan::{MemoryFrom, MemorySource, TargetKind};
use crate::units::{Moment, Share, Tokens};

mod promises;
mod told;
mod verdicts;

/// What one way to break a healthy run does to it.
type Spoil = fn(&mut Plan, &mut Measures);

/// One way in which we are at fault ourselves.
type OurFault = fn(&mut Measures);

/// What a check says of a run with sockets.
fn judged(plan: &Plan, measures: &Measures, id: &str) -> Finding {
    found(plan, measures, true, id)
}

/// What a check says of a run in virtual time.
fn simulated(plan: &Plan, measures: &Measures, id: &str) -> Finding {
    found(plan, measures, false, id)
}

fn found(plan: &Plan, measures: &Measures, live: bool, id: &str) -> Finding {
    let forecast = Forecast::of(plan);
    let scene = Scene { live, ..Scene::live(plan, &forecast, measures) };
    find(id).unwrap_or_else(|| panic!("{id}")).judge(&scene)
}

fn judgement(plan: &Plan, measures: &Measures, interrupted: bool) -> Judgement {
    let forecast = Forecast::of(plan);
    Judgement::of(&Scene::live(plan, &forecast, measures), interrupted)
}

fn each_shed(measures: &mut Measures, seqs: std::ops::Range<u64>, change: fn(&mut crate::observe::Record)) {
    for seq in seqs {
        let mut record = record(seq, 5_000, 1, Outcome::Shed);
        record.depth_met = depth(37);
        change(&mut record);
        arrive(measures, &record);
    }
}

/// The smoke plan, some of whose requests are sent twice, and a healthy run of it.
fn doubled() -> (Plan, Measures) {
    let mut sketch = smoke();
    sketch.requests[0]["duplicates"] = json!("5%");
    let plan = sketch.plan();
    let mut measures = healthy(&plan);
    measures.doubles.whole = 50;
    (plan, measures)
}

/// Checks that do not apply to the smoke plan; their own tests have plans for them.
const ELSEWHERE: &[&str] = &["fairness.tokens", "tiers.order"];

fn half() -> RetryAfter {
    RetryAfter::Fraction(Box::new(Fraction { wait: Duration::from_millis(6_500), text: "6.5".into() }))
}

/// For each check, one way (or more) to break a healthy run that it must see.
const BROKEN: &[(&str, Spoil)] = &[
    ("accounting.complete", |_, m| {
        m.due(crate::observe::Attempt { seq: 99_999, nth: 0 }, Moment::from_secs(4))
    }),
    ("accounting.complete", |_, m| m.close(Moment::from_secs(25), &gauge(2), 0)),
    ("target.alive", |_, m| {
        m.vital(Vital::TargetEnded { at: Moment::from_secs(9), how: "signal: 9".into() })
    }),
    ("target.alive", |_, m| {
        (126..130).for_each(|i| m.vital(Vital::Ping { at: Moment::from_millis(i * 200), took: None }))
    }),
    ("shedding.onset", |_, m| m.onset = None),
    ("shedding.onset", |_, m| m.onset.as_mut().unwrap().depth_met = depth(34)),
    ("shedding.onset", |_, m| m.onset.as_mut().unwrap().depth_met = depth(41)),
    ("shedding.onset", |_, m| m.onset.as_mut().unwrap().sent = Moment::from_millis(3_200)),
    ("shedding.onset", |plan, _| plan.load.phases[1].rate = crate::units::Rate::per_minute(600).unwrap()),
    ("shedding.boundary", |_, m| each_shed(m, 5_000..5_020, |r| r.depth_met = depth(30))),
    ("shedding.boundary", |_, m| {
        for seq in 5_000..5_020 {
            let mut beyond = record(seq, 5_000, 2_900, Outcome::Completed);
            beyond.depth_met = depth(52);
            arrive(m, &beyond);
        }
    }),
    ("limits.separate", |_, m| arrive(m, &record(5_000, 5_000, 1, Outcome::Throttled))),
    ("shedding.fast", |_, m| each_shed(m, 5_000..5_400, |r| r.ended = r.due + Duration::from_millis(40))),
    ("shedding.free", |_, m| each_shed(m, 5_000..5_001, |r| r.charged = Tokens::new(1_200))),
    ("shedding.shape", |_, m| each_shed(m, 5_000..5_001, |r| r.shape = Err("no content-type".into()))),
    ("retry_after.present", |_, m| each_shed(m, 5_000..5_001, |r| r.retry_after = None)),
    ("retry_after.parseable", |_, m| {
        each_shed(m, 5_000..5_001, |r| r.retry_after = Some(RetryAfter::Unreadable("soon".into())));
    }),
    ("retry_after.parseable", |_, m| {
        each_shed(m, 5_000..5_001, |r| {
            r.retry_after = Some(half());
        });
    }),
    ("retry_after.honoured", |_, m| {
        for seq in 0..40 {
            let mut record = record(seq, 5_000, 1, Outcome::Shed);
            (record.attempt.nth, record.probe) = (1, true);
            m.record(&record);
        }
    }),
    ("retry_after.follows_state", |plan, m| *m = healthy_telling(plan, |_| 7)),
    ("retry_after.calibrated", |_, m| {
        for second in 3..14 {
            let mut record = record(9_000 + second, second * 1_000, 1, Outcome::Shed);
            (record.attempt.nth, record.probe) = (1, true);
            m.record(&record);
        }
    }),
    ("retry_after.no_echo", |plan, m| *m = healthy_telling(plan, |into| 30 - into)),
    ("retry_after.usable", |_, m| {
        each_shed(m, 5_000..5_001, |r| r.retry_after = Some(RetryAfter::After(Duration::from_secs(61))));
    }),
    ("retry_after.usable", |_, m| {
        each_shed(m, 5_000..5_001, |r| {
            // a wait that is too long besides, and says so: what contradicts it is no better for that
            r.should_retry = Some(false);
            let (header, says) = (Hint::MILLISECONDS.to_owned(), Says::Wait(Duration::from_millis(4_321)));
            r.hints = [Hint { header, says, text: "4321".into() }].into_iter().collect();
            r.retry_after = Some(RetryAfter::After(Duration::from_secs(60)));
        });
    }),
    ("memory.ceiling", |_, m| {
        m.vital(Vital::TargetMemory { at: Moment::from_secs(9), bytes: Bytes::new(99_000_000) })
    }),
    ("memory.plateau", |_, m| {
        for second in 3..14u64 {
            let bytes = Bytes::new(14_000_000 + second * 400_000);
            m.vital(Vital::TargetMemory { at: Moment::from_secs(second), bytes });
        }
    }),
    ("backlog.drain", |_, m| m.depths.drained = Some(Moment::from_secs(75))),
    ("backlog.drain", |_, m| (m.depths.drained, m.end) = (None, Moment::from_secs(80))),
    ("duplicates.single_call", |_, m| m.doubles.called_again = 1),
    ("recovery.complete", |_, m| arrive(m, &record(9_000, 21_500, 5_000, Outcome::Late))),
    ("accounting.complete", |_, m| {
        m.held = Some(crate::measure::Holds { requests: 2, tokens: Tokens::new(2_400) })
    }),
    ("goodput.floor", |_, m| *m = m_without_completions(m)),
    ("waste.none", |_, m| {
        served_after_wait(m, |r| (r.charged, r.wasted) = (Tokens::new(9_000), Tokens::new(9_000)));
    }),
    ("deadline.propagated", |_, m| served_after_wait(m, |r| r.untold = true)),
    ("deadline.propagated", |_, m| served_after_wait(m, |r| r.overtold = Duration::from_secs(2))),
    ("retries.bounded", |_, m| served_after_wait(m, |r| r.upstream_attempts = 6)),
    ("retries.bounded", |_, m| m.upstream.repeated = m.upstream.forwards / 2),
    ("retries.bounded", |_, m| served_after_wait(m, |r| r.attempt.nth = 1)),
    ("quota.respected", |_, m| m.upstream.refused = m.upstream.forwards / 50),
    ("quiet.no_false_shed", |_, m| arrive(m, &record(7_000, 500, 1, Outcome::Shed))),
    ("quiet.no_false_shed", |_, m| arrive(m, &record(7_000, 21_500, 1, Outcome::Expired))),
];

fn served_after_wait(measures: &mut Measures, change: fn(&mut crate::observe::Record)) {
    let mut record = record(9_000, 5_000, 3_000, Outcome::Completed);
    change(&mut record);
    arrive(measures, &record);
}

fn m_without_completions(measures: &Measures) -> Measures {
    let mut poor = Measures::new(&smoke().plan());
    for seq in 0..measures.offered {
        let mut late = record(seq, seq * 20, 5_000, Outcome::Late);
        late.depth_met = depth(1);
        arrive(&mut poor, &late);
    }
    poor
}

#[test]
fn every_check_passes_a_healthy_run() {
    let (plan, measures) = doubled();
    for kind in ALL.iter().filter(|kind| !ELSEWHERE.contains(&kind.id)) {
        let finding = judged(&plan, &measures, kind.id);
        assert_eq!(finding.verdict, Verdict::Pass, "{}: {}", kind.id, finding.because);
        assert!(finding.measured.is_some() && finding.expected.is_some(), "{}: numbers are missing", kind.id);
    }
    let judgement = judgement(&plan, &measures, false);
    assert_eq!(judgement.verdict, RunVerdict::Passed, "{:?}", judgement.validity);
}

#[test]
fn every_check_fails_the_run_that_breaks_it() {
    for kind in ALL {
        let broken = BROKEN.iter().any(|(id, _)| *id == kind.id) || ELSEWHERE.contains(&kind.id);
        assert!(broken, "{} has no way to fail", kind.id);
    }
    for (n, (id, spoil)) in BROKEN.iter().enumerate() {
        let (mut plan, mut measures) = doubled();
        spoil(&mut plan, &mut measures);
        let finding = judged(&plan, &measures, id);
        assert_eq!(finding.verdict, Verdict::Fail, "{id} (case {n}): {}", finding.because);
        assert!(!finding.promised.is_empty() && !finding.because.is_empty());
    }
}

#[test]
fn no_check_passes_without_data() {
    for sketch in [smoke(), {
        let mut quiet = smoke();
        quiet.phases[1].0 = "600/min";
        quiet
    }] {
        let plan = sketch.plan();
        for kind in ALL {
            let finding = judged(&plan, &Measures::new(&plan), kind.id);
            assert!(
                matches!(finding.verdict, Verdict::NoData | Verdict::NotApplicable),
                "{}: {finding:?}",
                kind.id
            );
            assert!(finding.measured.is_none(), "{}: a number from nothing", kind.id);
        }
        let judgement = judgement(&plan, &Measures::new(&plan), false);
        assert_eq!((judgement.verdict, judgement.verdict.exit_code()), (RunVerdict::Invalid, 3));
    }
}

/// As in grafana/k6#1346: a check on what never happened is neither passed nor failed.
#[test]
fn zero_sheds_in_an_overload_are_missing_data_and_on_a_quiet_day_nothing_to_judge() {
    let plan = smoke().plan();
    let mut nobody = Measures::new(&plan);
    (0..500).for_each(|seq| arrive(&mut nobody, &record(seq, seq * 20, 50, Outcome::Completed)));
    nobody.close(Moment::from_secs(25), &gauge(0), 0);
    let ids =
        ["shedding.fast", "shedding.free", "shedding.shape", "retry_after.present", "retry_after.honoured"];
    for id in ids {
        assert_eq!(judged(&plan, &nobody, id).verdict, Verdict::NoData, "{id}");
    }
    let mut quiet = smoke();
    quiet.phases[1].0 = "600/min";
    for id in ids {
        assert_eq!(judged(&quiet.plan(), &nobody, id).verdict, Verdict::NotApplicable, "{id}");
    }
}

#[test]
fn an_allowed_lack_of_data_moves_no_exit_code_and_another_does() {
    let mut plan = smoke().plan();
    let mut measures = healthy(&plan);
    measures.returns = crate::measure::Returns::default();
    assert_eq!(judgement(&plan, &measures, false).verdict, RunVerdict::Inconclusive);
    let allow = CheckOverride { allow_no_data: true, ..CheckOverride::default() };
    plan.checks.insert("retry_after.honoured".into(), allow);
    let judgement = judgement(&plan, &measures, false);
    assert_eq!(judgement.verdict, RunVerdict::Passed);
    assert!(judgement.findings.iter().any(|f| f.verdict == Verdict::NoData && f.tolerated));
}

#[test]
fn a_plan_may_move_a_limit_or_turn_a_check_off() {
    let mut plan = smoke().plan();
    let measures = healthy(&plan);
    let set = |limit| CheckOverride { limit: Some(limit), ..CheckOverride::default() };
    plan.checks.insert("goodput.floor".into(), set(Limit::Part(Share::new(1.0).unwrap())));
    plan.checks.insert("memory.ceiling".into(), set(Limit::Size(Bytes::new(11_000_000))));
    plan.checks.insert("shedding.free".into(), CheckOverride { off: true, ..CheckOverride::default() });
    assert_eq!(judged(&plan, &measures, "memory.ceiling").verdict, Verdict::Fail);
    assert_eq!(judged(&plan, &measures, "goodput.floor").expected, Some(1_200_000.0 / 60.0 / 1_200.0));
    assert_eq!(judged(&plan, &measures, "shedding.free").verdict, Verdict::NotApplicable);
    assert!(faults(&plan.checks).is_empty());
    plan.checks.insert("shedding.fast".into(), set(Limit::Count(3)));
    plan.checks.insert("shedding.fats".into(), CheckOverride::default());
    let faults = faults(&plan.checks).join("\n");
    assert!(
        faults.contains("its limit is a time") && faults.contains("did you mean `shedding.fast`"),
        "{faults}"
    );
}

#[test]
fn interrupted_comes_before_invalid_before_failed_before_no_data() {
    let mut plan = smoke().plan();
    let mut measures = healthy(&plan);
    let verdict = |plan: &Plan, measures: &Measures, stop| {
        let judgement = judgement(plan, measures, stop);
        let passed = judgement.findings.iter().filter(|f| f.verdict == Verdict::Pass).count();
        (judgement.verdict, passed > 0)
    };
    measures.returns = crate::measure::Returns::default();
    assert_eq!(verdict(&plan, &measures, false), (RunVerdict::Inconclusive, true));
    measures.upstream.refused = measures.upstream.forwards;
    assert_eq!(verdict(&plan, &measures, false), (RunVerdict::Failed, true));
    plan.validity.lag_p99 = Some(Duration::ZERO);
    (0..100).for_each(|_| measures.lag.record(Duration::from_millis(41)));
    assert_eq!(verdict(&plan, &measures, false), (RunVerdict::Invalid, false));
    assert_eq!(verdict(&plan, &measures, true), (RunVerdict::Interrupted, false));
    assert_eq!(RunVerdict::Interrupted.exit_code(), 130);
}

#[test]
fn every_fault_of_ours_makes_the_run_invalid() {
    let plan = smoke().plan();
    let spoils: [(&str, OurFault); 7] = [
        ("lag p99", |m| (0..500).for_each(|_| m.lag.record(Duration::from_millis(41)))),
        ("not sent in time", |m| {
            (0..10).for_each(|i| arrive(m, &record(8_000 + i, 4_000, 0, Outcome::Unsent)))
        }),
        ("one side only", |m| m.unjoined = 200),
        ("stood still", |m| m.vital(Vital::GeneratorStuck { at: Moment::from_secs(5) })),
        ("no port, descriptor or memory left for 1 requests", |m| m.unsent.exhausted = 1),
        ("stopped answering", |m| m.vital(Vital::ProviderSilent { at: Moment::from_secs(5) })),
        ("the clock was set", |m| m.vital(Vital::ClockStep { at: Moment::from_secs(5), seconds: -30.0 })),
    ];
    for (says, spoil) in spoils {
        let mut measures = healthy(&plan);
        spoil(&mut measures);
        let judgement = judgement(&plan, &measures, false);
        assert_eq!(judgement.verdict, RunVerdict::Invalid, "{says}");
        assert!(
            judgement.validity.reasons.iter().any(|reason| reason.contains(says)),
            "{:?}",
            judgement.validity
        );
    }
}

#[test]
fn a_foreign_target_has_a_ceiling_only_where_the_plan_names_one() {
    let mut plan = smoke().plan();
    let measures = healthy(&plan);
    plan.target.kind = TargetKind::Url { url: "http://127.0.0.1:1".into(), policy: None };
    assert_eq!(judged(&plan, &measures, "memory.ceiling").verdict, Verdict::NotApplicable);
    plan.target.memory =
        Some(MemorySource { from: MemoryFrom::Pid(1), ceiling: Some(Bytes::new(12_000_000)) });
    assert_eq!(judged(&plan, &measures, "memory.ceiling").verdict, Verdict::Fail);
}

#[test]
fn in_virtual_time_sockets_and_memory_do_not_apply() {
    let plan = smoke().plan();
    let measures = healthy(&plan);
    for id in ["target.alive", "shedding.fast", "memory.ceiling", "memory.plateau"] {
        assert_eq!(simulated(&plan, &measures, id).verdict, Verdict::NotApplicable, "{id}");
    }
    assert_eq!(simulated(&plan, &measures, "shedding.onset").verdict, Verdict::Pass);
}

#[test]
fn the_first_shed_may_meet_either_neighbour_of_the_bound() {
    let plan = smoke().plan();
    for (met, passes) in [(36, false), (37, true), (38, true), (39, false)] {
        let mut measures = healthy(&plan);
        measures.onset.as_mut().unwrap().depth_met = depth(met);
        let finding = simulated(&plan, &measures, "shedding.onset");
        assert_eq!(finding.verdict == Verdict::Pass, passes, "{met}: {}", finding.because);
        assert!(finding.because.contains("predicted 37 or 38"), "{}", finding.because);
        assert_eq!(finding.measured, Some(met as f64));
    }
}

#[test]
fn ids_are_unique_and_the_table_reads_as_json() {
    let ids: std::collections::BTreeSet<_> = ALL.iter().map(|kind| kind.id).collect();
    assert_eq!(ids.len(), ALL.len());
    assert_eq!(json!(Verdict::NoData), json!("no_data"));
}
