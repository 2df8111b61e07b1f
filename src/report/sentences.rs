//! What every form says in the same words.

use super::{AddressPart, CheckPart, Distribution, HintPart, Report, TextPart, TextsPart};
use crate::check::words::{number, seconds, thousands, times};
use crate::check::{RunVerdict, Verdict};
use crate::units::Bytes;

/// The verdict in capitals.
pub(super) const fn verdict(verdict: RunVerdict) -> &'static str {
    match verdict {
        RunVerdict::Passed => "PASSED",
        RunVerdict::Failed => "FAILED",
        RunVerdict::Inconclusive => "INCONCLUSIVE",
        RunVerdict::Invalid => "INVALID",
        RunVerdict::Interrupted => "INTERRUPTED",
    }
}

/// The sign before a check.
pub(super) const fn sign(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "✓",
        Verdict::Fail => "✗",
        Verdict::NoData => "?",
        Verdict::NotApplicable => "–",
    }
}

/// What was tried at which scale, how long it took, with which seed.
pub(super) fn title(report: &Report) -> String {
    let (plan, run) = (&report.plan, &report.run);
    format!("{} · {} · seed {}", tried(report), seconds(run.took_s), plan.seed)
}

/// The plan, its scale and the target.
pub(super) fn tried(report: &Report) -> String {
    let plan = &report.plan;
    let scale = if plan.scale == "1" { String::new() } else { format!(" at {} scale", plan.scale) };
    format!("{}{scale} against {}", plan.name, report.run.target)
}

/// What of the target a reader must not miss.
pub(super) fn warning(report: &Report) -> Option<String> {
    let faults = &report.plan.target.faults;
    let faulty = (!faults.is_empty()).then(|| {
        format!(
            "this gateway was made faulty on purpose (target.embedded.faults): {}; what fails here says nothing of a \
             healthy one",
            faults.join(", ")
        )
    });
    let unknown = report.run.insecure.then(|| {
        "any certificate was taken (target.request.insecure), so nobody vouches for who answered".to_owned()
    });
    let all: Vec<_> = faulty.into_iter().chain(unknown).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// How the target's name was looked up, and which of its addresses answered.
pub(super) fn name(report: &Report) -> Option<String> {
    let name = report.run.name.as_ref()?;
    let when = match name.every_s {
        None => "pinned to its addresses at the start".to_owned(),
        Some(every) => format!("looked up {}, every {} at most", times(name.lookups), seconds(every)),
    };
    let answers = |part: &AddressPart| format!("{} answered {}", part.address, thousands(part.answers));
    let shown: Vec<_> = name.addresses.iter().map(answers).collect();
    Some(format!("{} {when}: {}", name.host, shown.join(", ")))
}

/// Why an invalid run is one.
pub(super) fn our_fault(report: &Report) -> String {
    format!("our fault, not the gateway's: {}", report.validity.reasons.join("; "))
}

/// What was offered against what is served.
pub(super) fn offered(report: &Report) -> String {
    let (forecast, load) = (&report.forecast.rehearsal, &report.load);
    format!(
        "{}/min offered for {} against {}/min served: {} times capacity",
        number(forecast.offered_per_min),
        seconds(load.event_s),
        number(forecast.serviceable_per_min),
        number(forecast.load_ratio),
    )
}

/// What the run itself did.
pub(super) fn own(report: &Report) -> String {
    let validity = &report.validity;
    let count = |count: u64, what: &str| match count {
        0 => format!("nothing {what}"),
        n => format!("{} {what}", thousands(n)),
    };
    let state = if validity.reasons.is_empty() { ": the run is valid" } else { "" };
    let lag = validity
        .lag_p99_us
        .map_or_else(|| "no lag known".to_owned(), |us| format!("lag p99 {}", seconds(us as f64 / 1e6)));
    format!("{lag}, {}, {}{state}", count(validity.unsent, "unsent"), count(validity.unjoined, "unjoined"))
}

/// The busiest second, and what sent it.
pub(super) fn busiest(report: &Report) -> String {
    let load = &report.load;
    let by = report.run.generator.as_ref().map_or_else(String::new, |by| {
        let grain = by.grain_us.map_or_else(String::new, |us| {
            format!(", one wake-up for all due within {}", seconds(us as f64 / 1e6))
        });
        format!(", by {} ({}; timer of {} ns{grain})", by.sender, by.scheduling, by.timer_resolution_ns)
    });
    format!(
        "busiest second {} due, {} sent{by}",
        number(load.busiest_planned_per_s),
        number(load.busiest_sent_per_s)
    )
}

/// The sum of all outcomes.
pub(super) fn requests(report: &Report) -> String {
    let t = &report.totals;
    let outcomes = [
        (t.shed, "shed"),
        (t.completed, "completed"),
        (t.throttled, "throttled"),
        (t.expired, "expired"),
        (t.late, "late"),
        (t.abandoned, "abandoned"),
        (t.failed, "failed"),
        (t.unsent, "unsent"),
        (t.unfinished, "unfinished"),
    ];
    let some: Vec<_> = outcomes
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{} {word}", thousands(*n)))
        .collect();
    let none: Vec<_> = outcomes.iter().filter(|(n, _)| *n == 0).map(|(_, word)| *word).collect();
    let sum = if some.is_empty() { "0".to_owned() } else { some.join(" + ") };
    let rest = if none.is_empty() { String::new() } else { format!("; 0 {}", none.join(", ")) };
    format!("{} offered = {sum}{rest}", thousands(t.offered))
}

/// Failed attempts, one sentence a cause.
pub(super) fn failures(report: &Report) -> impl Iterator<Item = String> {
    report.failures.iter().map(|failure| {
        let (first, last) = (seconds(failure.first_s), seconds(failure.last_s));
        let when = if failure.count == 1 { format!("at {first}") } else { format!("from {first} to {last}") };
        let read = match failure.read_bytes {
            0 => String::new(),
            bytes => format!(", after {} of their bodies", Bytes::new(bytes)),
        };
        format!("{} failed: {}, {when}{read}", thousands(failure.count), failure.cause)
    })
}

/// Attempts, what they are of the arrivals, and how many came again at once; `None` where nobody tries again by itself.
pub(super) fn attempts(report: &Report) -> Option<String> {
    let t = &report.totals;
    let retries = report.plan.unusual.keys().any(|key| key.ends_with(".on_refusal"));
    // reports of older versions say no more than how many there were
    let each = t.amplification.or_else(|| (t.offered > 0).then(|| t.attempts as f64 / t.offered as f64));
    each.filter(|_| retries).map(|each| {
        let wave = report.retry_after.wave.map_or_else(String::new, |wave| {
            format!(
                "; at most {} came again within {}, at {}, beside {} arrivals",
                thousands(wave.again),
                seconds(wave.width_s),
                seconds(wave.from_s),
                thousands(wave.offered)
            )
        });
        format!(
            "{} attempts in all; {each:.2} for each arrival, probes and copies aside{wave}",
            thousands(t.attempts)
        )
    })
}

/// What of when to come back was told in another form, or by other headers than `Retry-After`.
pub(super) fn told(report: &Report) -> Vec<String> {
    let told = &report.retry_after;
    let texts = |all: &TextsPart| {
        let text = |part: &TextPart| format!("`{}` {}", part.text, times(part.count));
        let others = (all.others > 0).then(|| format!("others {}", times(all.others)));
        all.each.iter().map(text).chain(others).collect::<Vec<_>>().join(", ")
    };
    let odd = [("that cannot be read", &told.odd), ("with a fraction", &told.fractions)];
    let odd = odd.into_iter().filter(|(_, all)| !all.each.is_empty());
    let odd = odd.map(|(what, all)| format!("Retry-After {what}: {}", texts(all)));
    let conflicting = (told.conflicting > 0).then(|| {
        let count = thousands(told.conflicting);
        let they = if told.conflicting == 1 { "refusal promises" } else { "refusals promise" };
        format!("{count} {they} two times, in Retry-After and in retry-after-ms")
    });
    let hint = |hint: &HintPart| {
        let waits = match (hint.min_s, hint.median_s, hint.max_s) {
            (Some(least), Some(median), Some(most)) => {
                let (least, most) = (seconds(least), seconds(most));
                let span = format!("{least} to {most}, {} in the median", seconds(median));
                Some(if least == most { least } else { span })
            }
            _ => None,
        };
        let count = |count: u64, what: &str| (count > 0).then(|| format!("{what} {}", times(count)));
        let parts = [
            waits,
            count(hint.past, "a moment that had passed"),
            count(hint.nothing, "nothing"),
            (!hint.unknown.each.is_empty()).then(|| texts(&hint.unknown)),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        format!("{} ({}) says {}", hint.header, times(hint.count), parts.join("; "))
    };
    let rule = (!told.hints.is_empty()).then(|| {
        "such headers are read so: 1m30s is a duration, a whole number from 1,000,000,000 on is a moment since 1970 (from \
         1,000,000,000,000 on in milliseconds), a smaller one seconds (in retry-after-ms milliseconds), \
         and -1 says that there is no limit"
            .to_owned()
    });
    let others =
        (told.other_hints > 0).then(|| format!("other such headers came {}", times(told.other_hints)));
    odd.chain(conflicting).chain(told.hints.iter().map(hint)).chain(others).chain(rule).collect()
}

/// What the target says of itself next to what was seen, one sentence a gauge.
pub(super) fn said(report: &Report) -> Vec<String> {
    let Some(said) = &report.said else { return Vec::new() };
    let size = |bytes: u64| Bytes::new(bytes).to_string();
    let depth = said.queue_depth_requests.map(|depth| {
        format!(
            "the target says that at most {} waited (seen at the same instants: {}), {} in the mean (seen: {}); at most {} apart",
            thousands(depth.said_peak),
            thousands(depth.seen_peak),
            number(depth.said_mean),
            number(depth.seen_mean),
            thousands(depth.most_apart)
        )
    });
    let memory = said.memory_bytes.map(|memory| {
        format!(
            "the target says that it used at most {} (seen: {}); at most {} apart",
            size(memory.said_peak),
            size(memory.seen_peak),
            size(memory.most_apart)
        )
    });
    let lost = (said.lost > 0).then(|| {
        let all = said.pages + said.lost;
        format!(
            "{} of {} pages of its metrics did not come, or said nothing",
            thousands(said.lost),
            thousands(all)
        )
    });
    [depth, memory, lost].into_iter().flatten().collect()
}

/// How long answers in time took, if there were any.
pub(super) fn latency(report: &Report) -> Option<String> {
    let completed = report.latency.by_outcome.get("completed")?;
    let pair = |from: &Distribution| {
        let time = |us: Option<u64>| seconds(us.unwrap_or(0) as f64 / 1e6);
        format!("{} median, {} p99", time(from.p50_us), time(from.p99_us))
    };
    let mut text = format!(
        "completed after {} from their due time; {} from sending",
        pair(&completed.from_due),
        pair(&completed.from_sent)
    );
    let of_all = &report.latency.of_all;
    if of_all.count > 0 {
        text = format!("{text}; of all {} callers", thousands(of_all.count));
        for (name, us) in [("p50", of_all.p50_us), ("p90", of_all.p90_us), ("p99", of_all.p99_us)] {
            // where one is not reached, none after it is
            let Some(us) = us else {
                text = format!("{text}, {name} not reached");
                break;
            };
            text = format!("{text}, {name} {}", seconds(us as f64 / 1e6));
        }
    }
    Some(text)
}

/// When streamed answers began to speak, and how evenly they went on, if any came whole.
pub(super) fn streams(report: &Report) -> Option<String> {
    let streams = report.streams.as_ref().filter(|streams| streams.whole > 0)?;
    let time = |us: Option<u64>| seconds(us.unwrap_or(0) as f64 / 1e6);
    let (first, gap) = (&streams.first_token.from_sent, &streams.token_gap);
    let mut text = format!(
        "first token after {} median, {} p99 from sending; then {} median, {} p99 from token to token",
        time(first.p50_us),
        time(first.p99_us),
        time(gap.p50_us),
        time(gap.p99_us)
    );
    for (count, what) in [
        (streams.flawed, "not in the API's form to the end"),
        (streams.without_usage, "without a word of what they used"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {} {what}", thousands(count)));
        }
    }
    Some(text)
}

/// What a check found, with what its verdict means.
pub(super) fn found(check: &CheckPart) -> String {
    match check.verdict {
        Verdict::NoData if check.tolerated => format!("no data, which the plan allows: {}", check.because),
        Verdict::NoData => format!("no data: {}", check.because),
        Verdict::NotApplicable => format!("not applicable: {}", check.because),
        Verdict::Pass | Verdict::Fail => check.because.clone(),
    }
}

/// Where the evidence of the `n`th check lies.
pub(super) fn evidence(n: usize, check: &CheckPart) -> String {
    let ids: Vec<_> = check.examples.iter().take(3).map(|seq| format!("{seq:06}")).collect();
    let more = if check.examples.len() > 3 { " …" } else { "" };
    match ids.is_empty() {
        true => format!("evidence: report.json at /checks/{n} and /windows"),
        false => format!("evidence: ids {}{more} in report.json at /checks/{n}/examples", ids.join(", ")),
    }
}

/// How many checks came to what: `12 passed, 1 failed`.
pub(super) fn tally(report: &Report) -> String {
    let words = [
        (Verdict::Fail, "failed"),
        (Verdict::NoData, "without data"),
        (Verdict::Pass, "passed"),
        (Verdict::NotApplicable, "not applicable"),
    ];
    let count = |verdict| report.checks.iter().filter(|check| check.verdict == verdict).count();
    let some = words.iter().map(|(verdict, word)| (count(*verdict), word)).filter(|(n, _)| *n > 0);
    let some: Vec<_> = some.map(|(n, word)| format!("{n} {word}")).collect();
    if some.is_empty() { "no checks".to_owned() } else { some.join(", ") }
}

/// A number with its unit: `1.1 ms`, `21.4 MB`, `99.7 %`.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    match unit {
        "share" => crate::check::words::percent(value),
        "s" => seconds(value),
        "ms" => seconds(value / 1e3),
        "bytes" if value >= 0.0 => Bytes::new(value as u64).to_string(),
        "" => number(value),
        "requests/s" => format!("{}/s", number(value)),
        unit => format!("{} {unit}", number(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_never_without_its_unit() {
        assert_eq!(quantity(0.997, "share"), "99.7 %");
        assert_eq!(quantity(1.1, "ms"), "1.1 ms");
        assert_eq!(quantity(21_400_000.0, "bytes"), "21.4 MB");
        assert_eq!(quantity(3.456, "requests/s"), "3.46/s");
        assert_eq!(quantity(37.0, "requests"), "37 requests");
    }

    #[test]
    fn attempts_are_told_apart_where_callers_try_again() {
        use crate::measure::testing::{healthy, smoke};
        let plan = smoke().plan();
        let mut report = super::super::tests::report(&plan, &healthy(&plan), false);
        assert_eq!(attempts(&report), None);
        report.plan.unusual.insert("requests.ask.on_refusal".into(), "Retry".into());
        (report.totals.attempts, report.totals.amplification) = (1_500, Some(1.5));
        report.retry_after.wave = None;
        assert_eq!(
            attempts(&report).unwrap(),
            "1,500 attempts in all; 1.50 for each arrival, probes and copies aside"
        );
    }
}
