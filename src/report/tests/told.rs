//! What callers were told of when to come back, and that they all came at once.

use super::*;
use crate::observe::{Attempt, Fraction, Hint, HintSet, Record, Says};
use crate::workload::{OnRefusal, Signs, stream};

fn shed(seq: u64, change: impl FnOnce(&mut Record)) -> Record {
    let mut record = record(seq, 5_000, 1, Outcome::Shed);
    change(&mut record);
    record
}

fn hint(header: &str, says: Says, text: &str) -> Hint {
    Hint { header: header.to_owned(), says, text: text.to_owned() }
}

fn set(hint: Hint) -> HintSet {
    HintSet::from_iter([hint])
}

/// As in bug-ops/zeph#6496 and urllib3/urllib3#2861 (what was sent, by its text), openai/openai-python#937 (a vendor's
/// header in place of `Retry-After`), openai/openai-python#1102 (two headers that promise two times) and
/// CortexLM/cortex-code#407 (the rule by which such headers are read).
#[test]
fn what_was_told_otherwise_is_in_every_form() {
    let plan = smoke().plan();
    let mut measures = healthy(&plan);
    let seconds = |secs| Says::Wait(Duration::from_secs(secs));
    for seq in 5_000..5_009 {
        let fine = [hint(Hint::MILLISECONDS, Says::Wait(Duration::from_millis(4_321)), "4321")];
        let tokens = "x-rate-limit-reset-tokens";
        let record = shed(seq, |record| match seq {
            5_000..5_003 => record.retry_after = Some(RetryAfter::Unreadable("-5".into())),
            5_003..5_005 => {
                let half = Fraction { wait: Duration::from_millis(1_500), text: "1.5".into() };
                record.retry_after = Some(RetryAfter::Fraction(Box::new(half)));
            }
            5_005 => {
                record.retry_after = Some(RetryAfter::After(Duration::from_secs(60)));
                record.hints = fine.iter().cloned().collect();
            }
            5_006 => (record.retry_after, record.hints) = (None, set(hint(tokens, seconds(55), "55"))),
            5_007 => (record.retry_after, record.hints) = (None, set(hint(tokens, Says::Nothing, "-1"))),
            _ => record.hints = set(hint("ratelimit-reset", Says::Unknown, "after lunch")),
        });
        arrive(&mut measures, &record);
    }
    let report = report(&plan, &measures, false);
    let told = &report.retry_after;
    assert_eq!((told.unparseable, told.fractional, told.missing, told.conflicting), (3, 2, 2, 1));
    let odd: Vec<_> = told
        .odd
        .each
        .iter()
        .chain(&told.fractions.each)
        .map(|part| (part.text.as_str(), part.count))
        .collect();
    assert_eq!(odd, [("-5", 3), ("1.5", 2)]);
    let tokens = told.hints.iter().find(|hint| hint.header == "x-rate-limit-reset-tokens").unwrap();
    assert_eq!((tokens.count, tokens.nothing, tokens.min_s, tokens.max_s), (2, 1, Some(55.0), Some(55.0)));
    for format in ["text", "markdown", "html"] {
        let text = rendered(&report, format, Style::default()).replace('\\', "");
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        for said in [
            "retry-after that cannot be read: `-5` 3 times",
            "retry-after with a fraction: `1.5` 2 times",
            "1 refusal promises two times, in retry-after and in retry-after-ms",
            "x-rate-limit-reset-tokens (2 times) says 55 s; nothing once",
            "ratelimit-reset (once) says `after lunch` once",
            "retry-after-ms (once) says 4.32 s",
            "from 1,000,000,000 on is a moment since 1970",
        ] {
            assert!(text.contains(said), "{format}: {said}: {text}");
        }
    }
    let json: serde_json::Value = serde_json::from_str(&rendered(&report, "json", Style::default())).unwrap();
    assert_eq!(json["retry_after"]["hints"][0]["unknown"]["each"][0]["text"], "after lunch");
}

/// As in openclaw/openclaw#68543 and gojek/heimdall#21: a hundred refused at once and told two seconds come back in the
/// same instant where nothing spreads them, never early where something does, and the report shows it either way.
#[test]
fn a_second_wave_is_seen_by_the_tenth_of_a_second() {
    for (jitter, together) in [("0%", 100), ("25%", 20)] {
        let mut sketch = smoke();
        sketch.requests[0]["on_refusal"] =
            serde_json::json!({ "retry": { "attempts": 2, "jitter": jitter } });
        let plan = sketch.plan();
        let OnRefusal::Retry(retry) = plan.requests.classes()[0].on_refusal else { panic!("they retry") };
        let mut measures = Measures::new(&plan);
        let told = Some(Duration::from_secs(2));
        let signs = Signs { status: Some(503), refused: true, told, ..Signs::default() };
        for seq in 0..100 {
            let mut first = record(seq, 10_000, 0, Outcome::Shed);
            first.again = true;
            arrive(&mut measures, &first);
            let wait = retry.wait(0, &signs, stream::draw(7, stream::RETRIES, seq, 0)).unwrap();
            let due = first.ended + wait;
            let mut back = record(seq, 12_000, 50, Outcome::Completed);
            (back.attempt, back.due, back.first_due) = (Attempt { seq, nth: 1 }, due, first.due);
            measures.due(back.attempt, due);
            measures.record(&back);
        }
        let report = report(&plan, &measures, false);
        let window = &report.windows[12];
        assert_eq!(window.again_tenths.iter().sum::<u32>(), 100, "none earlier, none later: {window:?}");
        assert_eq!(report.windows[10].offered_tenths[0], 100);
        assert!(window.again_tenths[5..].iter().all(|n| *n == 0), "within half a second");
        let wave = report.retry_after.wave.unwrap();
        assert!((wave.width_s - 0.1).abs() < 1e-9);
        if jitter == "0%" {
            assert!(wave.again == together && (wave.from_s - 12.0).abs() < 1e-9, "{wave:?}");
            let text = rendered(&report, "text", Style::default());
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                text.contains("at most 100 came again within 100 ms, at 12 s, beside 0 arrivals"),
                "{text}"
            );
            assert!(rendered(&report, "html", Style::default()).contains("Due together"));
        } else {
            assert!((together..40).contains(&wave.again), "spread over five tenths: {wave:?}");
        }
    }
}

/// As in nats-io/nats.rs#875: a report says what its timer can.
#[test]
fn the_generator_says_what_it_is() {
    let plan = smoke().plan();
    let mut report = report(&plan, &healthy(&plan), false);
    report.run.generator = Some(GeneratorPart {
        sender: "hyper".into(),
        scheduling: "real-time".into(),
        timer_resolution_ns: 1,
        grain_us: Some(200),
    });
    for format in ["text", "html"] {
        let text = rendered(&report, format, Style::default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = "by hyper (real-time; timer of 1 ns, one wake-up for all due within 200 µs)";
        assert!(text.contains(said), "{format}: {text}");
    }
}
