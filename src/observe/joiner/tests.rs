use super::*;
use crate::observe::{Answer, HintSet, Reason};
use crate::plan::testing;

const HOLD: u64 = 1_200;

fn attempt(seq: u64) -> Attempt {
    Attempt { seq, nth: 0 }
}

/// A joiner over a class with hold 1,200, a deadline and a patience of 4.5 s, and what it has said so far.
struct Bench {
    joiner: Joiner,
    ended: Vec<Record>,
}

impl Bench {
    fn new() -> Self {
        Self { joiner: Joiner::new(&testing::plan()), ended: Vec::new() }
    }

    fn see(&mut self, sighting: &Sighting) {
        self.joiner.see(sighting, &mut self.ended);
    }

    fn send(&mut self, seq: u64, ms: u64) {
        let (attempt, at) = (attempt(seq), Moment::from_millis(ms));
        self.see(&Sighting::Due { attempt, at, class: ClassId(0), hold: Tokens::new(1_200), probe: false });
        self.see(&Sighting::Sent { attempt, at });
    }

    fn provider(&mut self, seq: u64, ms: u64, until: u64) {
        let refused = until == ms;
        let charged = Tokens::new(if refused { 0 } else { HOLD });
        self.see(&Sighting::AtProvider {
            attempt: attempt(seq),
            at: Moment::from_millis(ms),
            until: Moment::from_millis(until),
            charged,
            refused,
            faulty: false,
            budget: None,
        });
    }

    fn answer(&mut self, seq: u64, ms: u64, status: u16, reason: Option<Reason>) -> &Record {
        let answer = Answer {
            status,
            retry_after: None,
            hints: HintSet::NONE,
            should_retry: None,
            reason,
            usable: status == 200,
            marked: true,
            shape: Ok(()),
            streamed: None,
        };
        self.see(&Sighting::Answered { attempt: attempt(seq), at: Moment::from_millis(ms), answer });
        self.ended.last().unwrap()
    }

    fn leave(&mut self, seq: u64, ms: u64) -> &Record {
        self.see(&Sighting::Left { attempt: attempt(seq), at: Moment::from_millis(ms) });
        self.ended.last().unwrap()
    }
}

/// Tokens that were spared since this was last asked.
fn spared(bench: &mut Bench) -> Tokens {
    bench.joiner.take_spared().iter().map(|spared| spared.tokens).sum()
}

/// This machine ran out of memory while it wrote, or while it read the answer: not sent, whatever had been said before.
#[test]
fn what_our_own_machine_could_not_go_through_with_was_not_sent() {
    let mut bench = Bench::new();
    bench.send(0, 10);
    bench.provider(0, 20, 1_020);
    let (attempt, at) = (attempt(0), Moment::from_millis(30));
    bench.see(&Sighting::Unsent { attempt, at, why: crate::observe::Unsent::Exhausted });
    let record = bench.ended.last().unwrap();
    assert_eq!((record.outcome, record.broken, record.status), (Outcome::Unsent, None, None));
    assert_eq!((record.charged.get(), record.wasted), (HOLD, Tokens::ZERO), "nobody's fault but ours");
    let gauge = bench.joiner.gauge();
    assert_eq!((gauge.outstanding, gauge.depth.requests, gauge.ghosts), (0, 0, 1));
}

#[test]
fn an_id_is_in_one_state_at_a_time() {
    let mut bench = Bench::new();
    bench.send(0, 0);
    bench.send(1, 10);
    assert_eq!(bench.joiner.gauge().depth, Depth { requests: 2, tokens: Tokens::new(2 * HOLD) });
    bench.provider(0, 20, 1_020);
    assert_eq!(bench.joiner.gauge().depth.requests, 1);
    assert_eq!((bench.joiner.gauge().at_provider, bench.joiner.gauge().outstanding), (1, 2));
    let record = bench.answer(0, 1_021, 200, None);
    assert_eq!(record.outcome, Outcome::Completed);
    assert_eq!((record.charged, record.wasted), (Tokens::new(HOLD), Tokens::ZERO));
    assert_eq!((bench.joiner.gauge().at_provider, bench.joiner.gauge().outstanding), (0, 1));
    bench.send(2, 1_030);
    let record = bench.answer(2, 1_031, 503, None);
    assert_eq!((record.outcome, record.depth_met.requests), (Outcome::Shed, 1), "itself not counted");
}

#[test]
fn refusals_are_told_apart_by_status_time_and_reason() {
    let mut bench = Bench::new();
    let cases = [
        (50, 503, None, Outcome::Shed),
        (150, 503, None, Outcome::Expired),
        (150, 503, Some(Reason::Shed), Outcome::Shed),
        (50, 503, Some(Reason::Expired), Outcome::Expired),
        (50, 429, None, Outcome::Throttled),
        (50, 413, Some(Reason::NeverFits), Outcome::Failed),
        (50, 500, None, Outcome::Failed),
        (50, 302, None, Outcome::Failed),
        (4_500, 200, None, Outcome::Completed),
        (4_501, 200, None, Outcome::Late),
    ];
    for (i, (after, status, reason, expected)) in cases.into_iter().enumerate() {
        let (seq, start) = (i as u64, i as u64 * 10_000);
        bench.send(seq, start);
        assert_eq!(bench.answer(seq, start + after, status, reason).outcome, expected, "case {i}");
    }
}

#[test]
fn a_caller_who_leaves_while_the_provider_works_leaves_a_ghost_and_waste() {
    let mut bench = Bench::new();
    bench.send(0, 0);
    bench.provider(0, 4_000, 5_000);
    let record = bench.leave(0, 4_500);
    assert_eq!((record.outcome, record.wasted), (Outcome::Abandoned, Tokens::new(HOLD)));
    assert_eq!((bench.joiner.gauge().at_provider, bench.joiner.gauge().ghosts), (0, 1));
    bench.joiner.advance(Moment::from_millis(5_000));
    assert_eq!(bench.joiner.gauge().ghosts, 0);
}

#[test]
fn a_call_after_the_caller_left_is_a_ghost_of_its_own() {
    let mut bench = Bench::new();
    bench.send(0, 0);
    assert_eq!(bench.leave(0, 4_500).wasted, Tokens::ZERO);
    assert_eq!(bench.joiner.gauge().depth, Depth::default());
    bench.provider(0, 6_000, 7_000);
    let ghosts = bench.joiner.take_ghosts();
    assert_eq!(
        (ghosts.len(), ghosts[0].charged, ghosts[0].outcome),
        (1, Tokens::new(HOLD), Outcome::Abandoned)
    );
    assert_eq!(bench.joiner.gauge().ghosts, 1);
    bench.provider(9, 6_500, 7_000);
    assert_eq!(bench.joiner.strays(), 1, "never sent");
}

#[test]
fn a_refusal_by_the_provider_leaves_the_request_in_the_gateway() {
    let mut bench = Bench::new();
    bench.send(0, 0);
    bench.provider(0, 5, 5);
    assert_eq!(bench.joiner.gauge().depth.requests, 1);
    bench.provider(0, 1_000, 2_000);
    let record = bench.answer(0, 2_001, 200, None);
    assert_eq!((record.upstream_attempts, record.upstream_refusals), (2, 1));
}

#[test]
fn what_is_open_at_the_end_is_unfinished_and_the_sum_is_exact() {
    let mut bench = Bench::new();
    bench.send(0, 0);
    bench.send(1, 1);
    bench.provider(1, 2, 5_000);
    let (attempt, at) = (attempt(2), Moment::from_millis(3));
    bench.see(&Sighting::Due { attempt, at, class: ClassId(0), hold: Tokens::new(1_200), probe: false });
    bench.joiner.finish(Moment::from_millis(10), &mut bench.ended);
    let outcomes: Vec<_> = bench.ended.iter().map(|r| (r.outcome, r.sent.is_some())).collect();
    assert_eq!(
        outcomes,
        [(Outcome::Unfinished, true), (Outcome::Unfinished, true), (Outcome::Unfinished, false)]
    );
    assert_eq!(bench.joiner.gauge().outstanding, 0);
}

/// As in envoyproxy/envoy#15168: a full circuit breaker and a broken upstream answer with the same status; the mark of
/// the first tells them apart.
#[test]
fn a_refusal_without_its_mark_is_a_failure() {
    let mut bench = Bench::new();
    for seq in 0..25 {
        let (attempt, at) = (attempt(seq), Moment::from_millis(seq * 10 + 1));
        bench.send(seq, seq * 10);
        let answer = Answer {
            status: 503,
            retry_after: None,
            hints: HintSet::NONE,
            should_retry: None,
            reason: None,
            usable: false,
            marked: seq < 21,
            shape: Ok(()),
            streamed: None,
        };
        bench.see(&Sighting::Answered { attempt, at, answer });
    }
    let count = |outcome| bench.ended.iter().filter(|r| r.outcome == outcome).count();
    assert_eq!((count(Outcome::Shed), count(Outcome::Failed)), (21, 4));
}

impl Bench {
    fn cut(&mut self, seq: u64, ms: u64, spent: u64) {
        let (at, spent) = (Moment::from_millis(ms), Tokens::new(spent));
        self.see(&Sighting::CutOff { attempt: attempt(seq), at, spent });
    }

    fn read(&mut self, seq: u64, ms: u64, first: Option<u64>, gaps: u32) {
        let mut kept = Box::<crate::observe::Gaps>::default();
        kept.push(Duration::from_millis(20), gaps);
        let (at, first) = (Moment::from_millis(ms), first.map(Moment::from_millis));
        self.see(&Sighting::Tokens { attempt: attempt(seq), at, first, gaps: kept });
    }
}

#[test]
fn what_was_read_of_a_stream_is_known_however_it_ends() {
    let mut bench = Bench::new();
    bench.send(0, 0);
    bench.read(0, 400, Some(100), 15);
    bench.read(0, 500, None, 5);
    let whole = bench.answer(0, 520, 200, None);
    assert_eq!((whole.first_token, whole.tokens), (Some(Moment::from_millis(100)), 21));
    bench.send(1, 1_000);
    bench.read(1, 1_200, Some(1_150), 2);
    let left = bench.leave(1, 1_300);
    assert_eq!(
        (left.outcome, left.first_token, left.tokens),
        (Outcome::Abandoned, Some(Moment::from_millis(1_150)), 3)
    );
    bench.read(1, 1_310, None, 2);
    bench.send(2, 2_000);
    assert_eq!(bench.leave(2, 2_300).first_token, None, "nothing came");
}

#[test]
fn a_call_that_is_cut_off_wastes_what_was_made_until_then() {
    let mut bench = Bench::new();
    // the caller leaves, and the provider sees it a moment later
    bench.send(0, 0);
    bench.provider(0, 10, 2_000);
    assert_eq!(bench.leave(0, 500).wasted, Tokens::new(HOLD), "all of it, as far as is known then");
    assert_eq!(bench.joiner.gauge().ghosts, 1);
    bench.cut(0, 501, 900);
    assert_eq!((spared(&mut bench), bench.joiner.gauge().ghosts), (Tokens::new(HOLD - 900), 0));
    bench.cut(0, 502, 900);
    assert_eq!(spared(&mut bench), Tokens::ZERO, "once");
    // the gateway gives it up first
    bench.send(1, 1_000);
    bench.provider(1, 1_010, 3_000);
    bench.cut(1, 1_400, 850);
    assert_eq!((bench.joiner.gauge().at_provider, bench.joiner.next_end()), (0, None));
    let given_up = bench.answer(1, 1_401, 504, None);
    assert_eq!((given_up.outcome, given_up.wasted), (Outcome::Failed, Tokens::new(850)));
    // a ghost: it came to the provider after its caller had left
    bench.send(2, 2_000);
    bench.leave(2, 2_100);
    bench.provider(2, 2_200, 4_000);
    assert_eq!(bench.joiner.take_ghosts().len(), 1);
    bench.cut(2, 2_300, 801);
    assert_eq!((spared(&mut bench), bench.joiner.gauge().ghosts), (Tokens::new(HOLD - 801), 0));
    // one that has ended by itself was not cut off
    bench.send(3, 5_000);
    bench.provider(3, 5_010, 5_100);
    bench.leave(3, 5_200);
    bench.cut(3, 5_300, 1);
    assert_eq!((spared(&mut bench), bench.joiner.gauge().ghosts), (Tokens::ZERO, 0));
}
