//! What is no answer flatters neither a latency nor a rate.

use super::*;

/// 600 callers a minute instead of 4,800: nobody need be refused.
fn quiet() -> Plan {
    let mut sketch = smoke();
    sketch.phases[1].0 = "600/min";
    sketch.plan()
}

/// As in ai-dynamo/aiperf#688: 25 answers and 5 refusals of 30. The refusals, quick as they are, are in no latency of
/// answers, and nine in ten of all callers never had one. A run in which one in six is refused without need is none
/// that passed (patibandlavenkatamanideep/memoryops-ai#147).
#[test]
fn quick_refusals_make_no_answer_quicker_and_of_all_callers_p90_is_not_reached() {
    let plan = quiet();
    let mut measures = Measures::new(&plan);
    for seq in 0..30 {
        let refused = seq % 6 == 5;
        let (took, outcome) = if refused { (1, Outcome::Throttled) } else { (200, Outcome::Completed) };
        arrive(&mut measures, &record(seq, seq * 50, took, outcome));
    }
    let report = report(&plan, &measures, false);
    let of = |outcome: &str| &report.latency.by_outcome[outcome].from_due;
    assert_eq!((of("completed").count, of("throttled").count), (25, 5));
    assert_eq!((of("completed").p50_us, of("throttled").p50_us), (Some(200_000), Some(1_000)));
    assert_eq!((report.totals.offered, report.totals.throttled), (30, 5));
    let of_all = report.latency.of_all;
    assert_eq!((of_all.count, of_all.p50_us, of_all.p90_us), (30, Some(200_000), None));
    let text = rendered(&report, "text", Style::default());
    let text: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("of all 30 callers, p50 ") && text.contains("p90 not reached"), "{text}");
    let refused = report.checks.iter().find(|check| check.id == "quiet.no_false_shed").unwrap();
    assert_eq!(refused.verdict, Verdict::Fail, "{}", refused.because);
}

/// As in aspnet/Benchmarks#320: errors are answers, and no goodput.
#[test]
fn errors_are_answers_under_another_name_and_no_goodput() {
    let plan = quiet();
    let mut measures = Measures::new(&plan);
    // 1,200 a second through the twelve seconds of the event
    for seq in 0..14_400 {
        let mut record = record(seq, 2_000 + seq * 5 / 6, 1, Outcome::Failed);
        record.status = Some(404);
        arrive(&mut measures, &record);
    }
    measures.close(Moment::from_secs(25), &Default::default(), 0);
    let report = report(&plan, &measures, false);
    assert_eq!((report.totals.goodput_per_s, report.totals.answers_per_s), (0.0, 1_200.0));
    assert_eq!((report.totals.failed, report.totals.completed), (14_400, 0));
    assert_eq!(report.failures[0].cause, "status 404");
    assert_ne!(report.verdict.exit_code(), 0);
    let floor = report.checks.iter().find(|check| check.id == "goodput.floor").unwrap();
    assert_eq!((floor.verdict, floor.measured), (Verdict::Fail, Some(0.0)));
}
