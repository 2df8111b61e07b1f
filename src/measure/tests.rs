use super::testing::{arrive, depth, gauge, healthy, record, smoke};
use super::*;
use std::time::Duration;

use crate::observe::{Attempt, Gauge, Outcome, Record};
use crate::units::{Moment, Tokens};

#[test]
fn the_sum_is_exact_in_every_window_and_a_lost_request_shows() {
    let mut measures = healthy(&smoke().plan());
    assert_eq!(measures.offered, 16 + 960 + 64);
    assert!(measures.sums_are_exact());
    measures.due(Attempt { seq: 9_999, nth: 0 }, Moment::from_secs(3));
    assert!(!measures.sums_are_exact());
}

#[test]
fn two_halves_of_a_run_add_to_the_whole_in_either_order() {
    let plan = smoke().plan();
    let (mut whole, mut a, mut b) = (Measures::new(&plan), Measures::new(&plan), Measures::new(&plan));
    for seq in 0..400u64 {
        let outcome = Outcome::ALL[(seq % 9) as usize];
        let mut record = record(seq, seq * 47, 3 + seq % 5, outcome);
        record.depth_met = depth(seq % 40);
        let vital = Vital::Ping { at: record.due, took: (seq % 7 > 0).then_some(Duration::from_micros(seq)) };
        for (measures, chosen) in [(&mut whole, true), (&mut a, seq % 3 == 0), (&mut b, seq % 3 != 0)] {
            if chosen {
                arrive(measures, &record);
            }
        }
        whole.vital(vital.clone());
        a.vital(vital);
    }
    let (mut ab, mut ba) = (a.clone(), b.clone());
    ab.add(&b);
    ba.add(&a);
    assert_eq!(ab, whole);
    assert_eq!(ba, whole);
    let before = whole.clone();
    whole.add(&Measures::new(&plan));
    assert_eq!(whole, before, "a new one is the zero");
}

#[test]
fn the_onset_is_the_shed_that_was_sent_first_not_the_one_that_ended_first() {
    let mut measures = Measures::new(&smoke().plan());
    let shed = |seq, due_ms, took_ms, met| {
        let mut record = record(seq, due_ms, took_ms, Outcome::Shed);
        record.depth_met = depth(met);
        record
    };
    for record in
        [shed(3, 1_900, 1, 2), shed(80, 2_840, 1, 38), shed(79, 2_830, 40, 37), shed(900, 15_000, 1, 3)]
    {
        arrive(&mut measures, &record);
    }
    let onset = measures.onset.unwrap();
    assert_eq!((onset.attempt.seq, onset.depth_met, onset.hold), (79, depth(37), Tokens::new(1_200)));
    assert_eq!(measures.refusals.before_event, 1, "arrival 3 was refused on a quiet day");
    assert_eq!(measures.refusals.after_drain, 0, "nobody has seen the depth come back");
}

#[test]
fn the_backlog_is_drained_when_the_depth_is_back_and_no_ghost_is_left() {
    let mut measures = Measures::new(&smoke().plan());
    let at = Moment::from_millis;
    measures.stand(at(500), &gauge(2));
    measures.stand(at(1_000), &gauge(0));
    measures.stand(at(6_000), &gauge(37));
    measures.stand(at(15_000), &Gauge { ghosts: 1, ..gauge(30) });
    let full = measures.depths.at_event_end.unwrap();
    assert_eq!(full.depth.requests, 37, "what stood there when the event ended");
    measures.stand(at(18_000), &Gauge { ghosts: 1, ..gauge(2) });
    assert_eq!(measures.depths.drained, None, "a ghost is left");
    measures.stand(at(19_000), &gauge(2));
    measures.stand(at(20_000), &gauge(5));
    assert_eq!(measures.depths.drained, Some(at(19_000)), "two requests stood there before the event");
    arrive(&mut measures, &record(1, 19_500, 1, Outcome::Shed));
    assert_eq!(measures.refusals.after_drain, 1);
}

#[test]
fn the_mean_depth_is_weighted_by_time_and_spread_over_the_windows_it_lasts() {
    let mut measures = Measures::new(&smoke().plan());
    measures.stand(Moment::from_millis(500), &gauge(10));
    measures.stand(Moment::from_millis(2_250), &gauge(0));
    let mean: Vec<_> = measures.windows.iter().map(|window| window.depth_time / 1_000_000).collect();
    assert_eq!(mean, [5_000, 10_000, 2_500]);
    assert!(measures.windows.iter().all(|window| window.depth_max == depth(10)));
}

/// A caller five times a second, a server that takes one second for each, one at a time: from the due time the
/// latency grows for as long as the run goes on, and the server itself is as fast as ever.
#[test]
fn latency_from_the_due_time_grows_while_the_server_keeps_its_pace() {
    let mut measures = Measures::new(&smoke().plan());
    for seq in 0..150u64 {
        let due = Moment::from_millis(seq * 200);
        let ended = Moment::from_secs(seq + 1);
        let record = Record { due, first_due: due, ended, ..record(seq, 0, 0, Outcome::Completed) };
        let sent = Some(ended - Duration::from_secs(1));
        arrive(&mut measures, &Record { sent, ..record });
    }
    let due = measures.latencies.from_due(Outcome::Completed);
    let close = |got: f64, want: f64| assert!((got / want - 1.0).abs() < 2e-3, "{got} instead of {want}");
    let at = |q| due.quantile(q).unwrap().as_secs_f64();
    close(due.mean().unwrap() / 1e6, 60.6);
    close(at(0.5), 60.2);
    close(at(0.95), 114.6);
    close(at(0.99), 119.4);
    close(at(1.0), 120.2);
    close(measures.latencies.from_sent(Outcome::Completed).quantile(1.0).unwrap().as_secs_f64(), 1.0);
}

#[test]
fn the_busiest_second_is_told_as_planned_and_as_sent() {
    let mut measures = Measures::new(&smoke().plan());
    for seq in 0..200u64 {
        let record = record(seq, seq * 20, 1, Outcome::Completed);
        // the second second's requests go out 900 ms late, on top of the third's
        let late = if (50..100).contains(&seq) { 990 } else { 0 };
        let sent = Some(record.due + Duration::from_millis(late));
        let ended = record.ended + Duration::from_millis(late);
        arrive(&mut measures, &Record { sent, ended, ..record });
    }
    let (planned, sent) = measures.busiest();
    assert!((planned - 50.0).abs() < 1e-9, "{planned}");
    assert!((sent - 99.0).abs() < 1e-9, "{sent}");
}

#[test]
fn the_rate_reached_is_never_above_the_planned_one_nor_a_nonsense() {
    let mut measures = Measures::new(&smoke().plan());
    assert_eq!(measures.achieved(), None);
    arrive(&mut measures, &record(0, 0, 1, Outcome::Completed));
    assert_eq!(measures.achieved(), None, "one arrival has no rate");
    for seq in 1..100 {
        arrive(&mut measures, &record(seq, seq * 10, 1, Outcome::Completed));
    }
    assert_eq!(measures.achieved(), Some(1.0));
    for seq in 100..200 {
        arrive(&mut measures, &record(seq, seq * 10, 0, Outcome::Unsent));
    }
    let reached = measures.achieved().unwrap();
    assert!(reached > 0.99, "what was sent was sent at the planned rate: {reached}");
    assert_eq!(measures.arrivals.get(Outcome::Unsent), 100);
}

#[test]
fn probes_count_apart_and_never_as_arrivals() {
    let measures = healthy(&smoke().plan());
    let returned = measures.returns.inside.returned + measures.returns.after.returned;
    assert!(measures.returns.inside.returned > 20, "{:?}", measures.returns);
    assert_eq!(measures.attempts.total(), measures.offered + returned);
    assert_eq!(measures.returns.inside.kept + measures.returns.after.kept, returned);
}

/// A stretch in which we could not ask is no silence of the target.
#[test]
fn pings_that_could_not_be_sent_say_nothing_of_the_target() {
    let mut measures = Measures::new(&smoke().plan());
    let at = Moment::from_secs;
    let answered = Some(Duration::from_millis(1));
    measures.vital(Vital::Ping { at: at(1), took: answered });
    (2..9).for_each(|second| measures.vital(Vital::NoPing { at: at(second) }));
    measures.vital(Vital::Ping { at: at(9), took: answered });
    let pings = &measures.vitals.pings;
    assert_eq!((pings.longest_silence, pings.lost), (Duration::from_secs(1), 0));
}

#[test]
fn what_a_server_sends_is_kept_in_bounded_number() {
    let mut measures = Measures::new(&smoke().plan());
    for seq in 0..6_000u64 {
        let mut record = record(seq, 3_000, 1, Outcome::Shed);
        record.shape = Err(format!("no header number {seq}"));
        record.retry_after = Some(crate::observe::RetryAfter::After(Duration::from_secs(seq)));
        arrive(&mut measures, &record);
    }
    assert_eq!((measures.refusals.unshapely, measures.refusals.faults.iter().count()), (6_000, 20));
    // one by one to 2,047, then by two, and by four
    assert_eq!(measures.refusals.distinct(), 2_048 + 1_024 + 476);
    assert_eq!(measures.examples.of(Trouble::Unshapely).len(), 20);
}
