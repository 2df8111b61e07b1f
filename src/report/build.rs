use std::time::Duration;

use super::{
    CheckPart, ClassPart, Distribution, DrainPart, FailurePart, Forecasts, GaugedPart, GeneratorPart,
    HintPart, Latency, LatencyPart, LoadPart, MemoryPart, NamePart, OfAll, OnsetPart, PlanPart, ProbePart,
    ProbesPart, RawRefusal, Report, RetryAfterPart, ReturnPart, RunPart, SCHEMA, SaidPart, StreamsPart,
    TextPart, TextsPart, Totals, UnsentPart, ValidityPart, WavePart, WindowPart,
};
use crate::check::{Judgement, Validity};
use crate::forecast::Forecast;
use crate::measure::{
    Cause, Gauged, Hinted, Hints, Hist, Measures, Memory, Often, Returned, Tally, Texts, Window,
};
use crate::observe::Outcome;
use crate::plan::Plan;
use crate::units::Moment;

/// What the shell knows of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunHeader {
    /// Its id, unique among the runs of a plan.
    pub id: String,
    /// True of a run in virtual time.
    pub simulated: bool,
    /// When it began, RFC 3339 in UTC; empty in virtual time.
    pub started: String,
    /// How long it took.
    pub took: Duration,
    /// What was tried, in words: `the embedded gateway`.
    pub target: String,
    /// How the target's name was looked up, if it has one.
    pub name: Option<NamePart>,
    /// What sent the load; nothing in virtual time.
    pub generator: Option<GeneratorPart>,
    /// Why it ended before its time, if it did.
    pub ended_early: Option<String>,
    /// Where the report will be, for the last line.
    pub path: Option<String>,
}

/// What a report is made of.
#[derive(Debug)]
pub struct Inputs<'a> {
    /// Which run.
    pub header: RunHeader,
    /// The plan as it was run.
    pub plan: &'a Plan,
    /// The forecast for the event as written.
    pub event: &'a Forecast,
    /// The forecast for what was run.
    pub rehearsal: &'a Forecast,
    /// What was measured.
    pub measures: &'a Measures,
    /// What it comes to.
    pub judgement: &'a Judgement,
    /// Raw refusals, as evidence.
    pub refusals: Vec<RawRefusal>,
}

impl Report {
    /// The report of a run.
    pub fn of(inputs: Inputs<'_>) -> Self {
        let Inputs { header, plan, event, rehearsal, measures, judgement, refusals } = inputs;
        let (planned, sent) = measures.busiest();
        Self {
            schema: SCHEMA.to_owned(),
            verdict: judgement.verdict,
            run: RunPart {
                id: header.id,
                simulated: header.simulated,
                insecure: !header.simulated && plan.target.takes_any_certificate(),
                name: header.name,
                generator: header.generator,
                started: header.started,
                took_s: header.took.as_secs_f64(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                target: header.target,
                ended_early: header.ended_early,
                path: header.path,
            },
            plan: PlanPart::of(plan),
            forecast: Forecasts { event: event.clone(), rehearsal: rehearsal.clone() },
            validity: validity(&judgement.validity),
            load: LoadPart {
                event_s: rehearsal.basis.lasts.as_secs_f64(),
                busiest_planned_per_s: planned,
                busiest_sent_per_s: sent,
            },
            totals: totals(measures),
            failures: failures(measures),
            classes: classes(plan, measures),
            onset: onset(measures),
            drain: drain(measures),
            memory: memory(rehearsal, measures, judgement),
            said: said(measures),
            retry_after: retry_after(measures),
            latency: latency(measures),
            streams: streams(plan, measures),
            windows: windows(measures),
            checks: checks(judgement),
            refusals,
        }
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

fn validity(validity: &Validity) -> ValidityPart {
    ValidityPart {
        lag_p99_us: validity.lag_p99.map(micros),
        lag_limit_us: micros(validity.lag_limit),
        sent_late: validity.sent_late,
        unsent: validity.unsent,
        unsent_share: validity.unsent_share,
        unsent_by: UnsentPart {
            late: validity.unsent_by.late,
            outstanding: validity.unsent_by.outstanding,
            exhausted: validity.unsent_by.exhausted,
        },
        unjoined: validity.unjoined,
        unjoined_share: validity.unjoined_share,
        achieved_ratio: validity.achieved,
        reasons: validity.reasons.clone(),
    }
}

fn failures(measures: &Measures) -> Vec<FailurePart> {
    let part = |(cause, often): (Cause, Often)| FailurePart {
        cause: cause.to_string(),
        count: often.count,
        first_s: often.first.as_secs_f64(),
        last_s: often.last.as_secs_f64(),
        read_bytes: often.read,
    };
    measures.failures.iter().map(part).collect()
}

fn totals(measures: &Measures) -> Totals {
    let of = |outcome| measures.arrivals.get(outcome);
    let (from, to) =
        measures.frame.event.map_or((Moment::ZERO, Moment::NEVER), |event| (event.start, event.end));
    let (good, answers, count) = measures
        .windows
        .within(&measures.frame, from, to)
        .fold((0u64, 0u64, 0u32), |(good, answers, count), window| {
            (good + window.goodput, answers + window.answers, count + 1)
        });
    let seconds = (measures.frame.width * count).as_secs_f64();
    Totals {
        offered: measures.offered,
        unsent: of(Outcome::Unsent),
        shed: of(Outcome::Shed),
        throttled: of(Outcome::Throttled),
        expired: of(Outcome::Expired),
        completed: of(Outcome::Completed),
        late: of(Outcome::Late),
        abandoned: of(Outcome::Abandoned),
        failed: of(Outcome::Failed),
        unfinished: of(Outcome::Unfinished),
        attempts: measures.attempts.total(),
        amplification: measures.amplification(),
        goodput_per_s: if count > 0 { good as f64 / seconds } else { 0.0 },
        answers_per_s: if count > 0 { answers as f64 / seconds } else { 0.0 },
        forwarded: measures.upstream.forwards,
        refused_upstream: measures.upstream.refused,
        charged_tokens: measures.upstream.charged.get(),
        wasted_tokens: measures.upstream.wasted.get(),
    }
}

fn classes(plan: &Plan, measures: &Measures) -> Vec<ClassPart> {
    let part = |(class, counts): (&crate::workload::Class, &crate::measure::PerClass)| ClassPart {
        name: class.name.clone(),
        offered: counts.arrivals.total(),
        refused: counts.arrivals.refused(),
        goodput: counts.goodput,
    };
    plan.requests.classes().iter().zip(&measures.classes).map(part).collect()
}

fn onset(measures: &Measures) -> Option<OnsetPart> {
    let (onset, event) = measures.onset.zip(measures.frame.event)?;
    Some(OnsetPart {
        at_s: onset.sent.as_secs_f64(),
        after_s: onset.sent.since(event.start).as_secs_f64(),
        depth_requests: onset.depth_met.requests,
        depth_tokens: onset.depth_met.tokens.get(),
        hold_tokens: onset.hold.get(),
        seq: onset.attempt.seq,
    })
}

fn drain(measures: &Measures) -> DrainPart {
    let depths = &measures.depths;
    let after = depths.drained.zip(measures.frame.event).map(|(drained, event)| drained.since(event.end));
    DrainPart {
        level_before_requests: depths.level_before(),
        depth_at_end_requests: depths.at_event_end.map(|gauge| gauge.depth.requests),
        after_s: after.map(|span| span.as_secs_f64()),
        peak_requests: depths.peak.requests,
    }
}

fn memory(forecast: &Forecast, measures: &Measures, judgement: &Judgement) -> MemoryPart {
    let vitals = &measures.vitals;
    let peak = |memory: &Memory| (memory.samples > 0).then(|| memory.peak.get());
    let judged = judgement.findings.iter().find(|finding| finding.check == "memory.ceiling");
    let forecast = vitals.target.baseline.map(|baseline| forecast.ceiling(baseline).get());
    MemoryPart {
        baseline_bytes: vitals.target.baseline.map(crate::units::Bytes::get),
        peak_bytes: peak(&vitals.target),
        ceiling_bytes: judged.and_then(|finding| finding.expected).map(|bytes| bytes as u64).or(forecast),
        own_baseline_bytes: vitals.own.baseline.map(crate::units::Bytes::get),
        own_peak_bytes: peak(&vitals.own),
    }
}

fn said(measures: &Measures) -> Option<SaidPart> {
    let said = &measures.vitals.said;
    let gauged = |gauged: &Gauged| {
        Some(GaugedPart {
            samples: gauged.samples,
            said_peak: gauged.said_peak,
            seen_peak: gauged.seen_peak,
            said_mean: gauged.said_mean()?,
            seen_mean: gauged.seen_mean()?,
            most_apart: gauged.most_apart,
        })
    };
    (said.pages + said.lost > 0).then(|| SaidPart {
        pages: said.pages,
        lost: said.lost,
        queue_depth_requests: gauged(&said.queue_depth),
        memory_bytes: gauged(&said.memory),
    })
}

fn retry_after(measures: &Measures) -> RetryAfterPart {
    let (refusals, returns) = (&measures.refusals, &measures.returns);
    let probe = |tally: &Tally| ProbePart {
        returned: tally.returned,
        kept: tally.kept,
        at_least_share: tally.at_least(),
    };
    let (busiest_told, busiest_back) = measures.waits.busiest();
    RetryAfterPart {
        announced: refusals.announced.count(),
        missing: refusals.missing,
        unparseable: refusals.unreadable,
        min_s: refusals.announced.min(),
        median_s: refusals.announced.number_at(0.5),
        max_s: refusals.announced.max(),
        distinct: refusals.distinct() as u64,
        overlong: refusals.overlong,
        marked: refusals.marked,
        fractional: refusals.fractional,
        odd: counted(&refusals.odd),
        fractions: counted(&refusals.fractions),
        conflicting: refusals.hints.conflicting,
        hints: hints(&refusals.hints),
        other_hints: refusals.hints.others,
        wave: wave(measures),
        busiest_told,
        busiest_back,
        probes: ProbesPart {
            inside: probe(&returns.inside),
            after: probe(&returns.after),
            censored: returns.censored,
        },
        fresh_share: measures.waits.fresh_share(&measures.frame),
        returned: returned(measures),
    }
}

/// Texts of a server, most frequent first.
fn counted(texts: &Texts) -> TextsPart {
    let mut parts: Vec<_> =
        texts.iter().map(|(text, count)| TextPart { text: text.to_owned(), count }).collect();
    parts.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.text.cmp(&b.text)));
    TextsPart { each: parts, others: texts.others() }
}

fn hints(hints: &Hints) -> Vec<HintPart> {
    let part = |(header, hinted): (&str, &Hinted)| {
        let millis = |of: Option<u64>| of.map(|millis| millis as f64 / 1e3);
        HintPart {
            header: header.to_owned(),
            count: hinted.count(),
            min_s: millis(hinted.waits.min()),
            median_s: millis(hinted.waits.number_at(0.5)),
            max_s: millis(hinted.waits.max()),
            past: hinted.past,
            nothing: hinted.nothing,
            unknown: counted(&hinted.unknown),
        }
    };
    hints.iter().map(part).collect()
}

/// The tenth of a window in which most callers came again, if any did.
fn wave(measures: &Measures) -> Option<WavePart> {
    let tenths = measures.windows.iter().enumerate().flat_map(|(i, window)| {
        let [first, again] = &window.tenths;
        first.iter().zip(again).enumerate().map(move |(n, (first, again))| (i, n as u32, *first, *again))
    });
    let width = measures.frame.width / 10;
    // the first of several that are alike
    let (i, n, first, again) = tenths.rev().max_by_key(|(.., again)| *again).filter(|(.., n)| *n > 0)?;
    Some(WavePart {
        from_s: (measures.frame.begins(i) + width * n).as_secs_f64(),
        width_s: width.as_secs_f64(),
        again: u64::from(again),
        offered: u64::from(first),
    })
}

/// The most returned callers a report shows.
const MOST_RETURNED: usize = 400;

/// Some returned callers, in the order they were refused in.
fn returned(measures: &Measures) -> Vec<ReturnPart> {
    let part = |returned: Returned| ReturnPart {
        seq: returned.seq,
        announced_s: returned.announced.as_secs_f64(),
        waited_s: returned.waited.as_secs_f64(),
        kept: returned.kept,
    };
    let mut parts: Vec<_> = measures.told.returned().take(MOST_RETURNED).map(part).collect();
    parts.sort_by_key(|part| part.seq);
    parts
}

fn distribution(hist: &Hist) -> Distribution {
    Distribution {
        count: hist.count(),
        mean_us: hist.mean(),
        p50_us: hist.number_at(0.5),
        p90_us: hist.number_at(0.9),
        p99_us: hist.number_at(0.99),
        max_us: hist.max(),
        hdr: hist.to_base64(),
    }
}

fn latency(measures: &Measures) -> LatencyPart {
    let latencies = &measures.latencies;
    let by_outcome = Outcome::ALL.into_iter().filter(|outcome| latencies.from_due(*outcome).count() > 0);
    let both = |outcome: Outcome| Latency {
        from_due: distribution(latencies.from_due(outcome)),
        from_sent: distribution(latencies.from_sent(outcome)),
    };
    let callers = measures.arrivals.total();
    let within = |quantile| {
        let span = latencies.of_all(quantile, callers)?;
        u64::try_from(span.as_micros()).ok()
    };
    LatencyPart {
        of_all: OfAll { count: callers, p50_us: within(0.5), p90_us: within(0.9), p99_us: within(0.99) },
        by_outcome: by_outcome.map(|outcome| (outcome.name().to_owned(), both(outcome))).collect(),
        refusal: distribution(&measures.refusals.latency),
        ping: distribution(&measures.vitals.pings.took),
        lag: distribution(&measures.lag),
    }
}

fn streams(plan: &Plan, measures: &Measures) -> Option<StreamsPart> {
    let of = &measures.streams;
    plan.requests.classes().iter().any(|class| class.stream).then(|| StreamsPart {
        first_token: Latency {
            from_due: distribution(&of.first_from_due),
            from_sent: distribution(&of.first_from_sent),
        },
        token_gap: distribution(&of.gaps),
        read_tokens: of.tokens,
        whole: of.whole,
        flawed: of.flawed,
        without_usage: of.without_usage,
        used_tokens: of.used.get(),
    })
}

fn windows(measures: &Measures) -> Vec<WindowPart> {
    let width = measures.frame.width;
    let part = |(i, window): (usize, &Window)| {
        let of = |outcome| window.arrivals.get(outcome);
        let known = |bytes: crate::units::Bytes| (bytes.get() > 0).then(|| bytes.get());
        let mean = |total: u128| total as f64 / width.as_nanos() as f64;
        let [first, again] = &window.tenths;
        WindowPart {
            from_s: measures.frame.begins(i).as_secs_f64(),
            width_s: width.as_secs_f64(),
            offered: window.offered,
            unsent: of(Outcome::Unsent),
            shed: of(Outcome::Shed),
            throttled: of(Outcome::Throttled),
            expired: of(Outcome::Expired),
            completed: of(Outcome::Completed),
            late: of(Outcome::Late),
            abandoned: of(Outcome::Abandoned),
            failed: of(Outcome::Failed),
            unfinished: of(Outcome::Unfinished),
            attempts: window.attempts,
            goodput: window.goodput,
            sent: window.sent,
            achieved_ratio: (window.offered > 0).then(|| window.sent as f64 / window.offered as f64),
            offered_tenths: first.to_vec(),
            again_tenths: if again.iter().any(|n| *n > 0) { again.to_vec() } else { Vec::new() },
            lag_p50_us: window.lags.at(0.5).map(micros),
            lag_p99_us: window.lags.at(0.99).map(micros),
            lag_max_us: micros(window.lags.most()),
            depth_max_requests: window.depth_max.requests,
            depth_max_tokens: window.depth_max.tokens.get(),
            depth_mean_requests: mean(window.depth_time),
            depth_mean_tokens: mean(window.token_time),
            at_provider_max_requests: window.at_provider_max,
            ghosts_max_requests: window.ghosts_max,
            ping_p50_us: window.pings.get(window.pings.len() / 2).map(|micros| u64::from(*micros)),
            ping_max_us: window.pings.first().map(|micros| u64::from(*micros)),
            pings_lost: window.pings_lost,
            target_bytes: known(window.target_memory),
            own_bytes: known(window.own_memory),
        }
    };
    measures.windows.iter().enumerate().map(part).collect()
}

fn checks(judgement: &Judgement) -> Vec<CheckPart> {
    let part = |finding: &crate::check::Finding| CheckPart {
        id: finding.check.to_owned(),
        verdict: finding.verdict,
        measured: finding.measured,
        expected: finding.expected,
        unit: finding.unit.to_owned(),
        because: finding.because.clone(),
        promised: finding.promised.clone(),
        tolerated: finding.tolerated,
        examples: finding.examples.clone(),
    };
    judgement.findings.iter().map(part).collect()
}
