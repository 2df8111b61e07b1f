//! What of a report is compared with another: its numbers, and the keys of its plan by their paths.

use std::collections::BTreeMap;

use super::plan_part::{PhasePart, ProviderPart, RequestPart};
use super::{CheckPart, Distribution, PlanPart, Report, WindowPart};
use crate::diff::{Checked, Run, Series};
use crate::measure::Hist;

impl Report {
    /// What of it is compared; `name` is the file it came from.
    ///
    /// # Errors
    /// If a histogram is none, or the outcomes do not add up: then someone has edited it. In words.
    pub fn to_run(&self, name: &str) -> Result<Run, String> {
        self.adds_up()?;
        let (totals, told) = (&self.totals, &self.retry_after);
        let completed = self.latency.by_outcome.get("completed").map(|latency| &latency.from_due);
        let probes = [told.probes.inside, told.probes.after];
        let sum = |of: fn(&super::ProbePart) -> u64| probes.iter().map(of).fold(0, u64::saturating_add);
        Ok(Run {
            name: name.to_owned(),
            plan: self.plan.name.clone(),
            seed: self.plan.seed,
            version: self.run.version.clone(),
            target: self.run.target.clone(),
            verdict: self.verdict,
            keys: self.keys(),
            own: own(&self.plan),
            tolerances: self.plan.diff.iter().map(|(name, most)| (name.clone(), most.get())).collect(),
            offered: totals.offered,
            shed: totals.shed,
            completed: totals.completed,
            attempts: totals.attempts,
            goodput_per_s: totals.goodput_per_s,
            charged_tokens: totals.charged_tokens,
            wasted_tokens: totals.wasted_tokens,
            onset: self.onset.map(|onset| (onset.depth_requests, onset.after_s)),
            drain_s: self.drain.after_s,
            memory_peak_bytes: self.memory.peak_bytes,
            probes: (sum(|probe| probe.returned), sum(|probe| probe.kept)),
            told_median_s: told.median_s,
            completed_us: match completed {
                Some(distribution) => hist("latency.by_outcome.completed.from_due", distribution)?,
                None => Hist::default(),
            },
            refusal_us: hist("latency.refusal", &self.latency.refusal)?,
            first_token_us: match &self.streams {
                Some(streams) => hist("streams.first_token.from_due", &streams.first_token.from_due)?,
                None => Hist::default(),
            },
            token_gap_us: match &self.streams {
                Some(streams) => hist("streams.token_gap", &streams.token_gap)?,
                None => Hist::default(),
            },
            lag_us: hist("latency.lag", &self.latency.lag)?,
            goodput: self.steady_goodput(),
            checks: self.checks.iter().map(checked).collect(),
        })
    }

    /// The keys of its plan, and how it was evaluated: virtual time is as good as sockets, but not the same.
    fn keys(&self) -> BTreeMap<String, String> {
        let mut keys = keys(&self.plan);
        keys.insert("run.simulated".to_owned(), self.run.simulated.to_string());
        keys
    }

    fn adds_up(&self) -> Result<(), String> {
        let t = &self.totals;
        let outcomes = [
            t.unsent,
            t.shed,
            t.throttled,
            t.expired,
            t.completed,
            t.late,
            t.abandoned,
            t.failed,
            t.unfinished,
        ];
        let sum = outcomes.iter().try_fold(0u64, |sum, n| sum.checked_add(*n));
        if sum == Some(t.offered) {
            return Ok(());
        }
        Err("totals: the outcomes do not add up to `offered`, so it was edited or is broken".to_owned())
    }

    /// Goodput by window, from one drain of the queue's bound into the event to the event's end; a block is two such
    /// drains, so that what one block begins with the next has forgotten.
    fn steady_goodput(&self) -> Option<Series> {
        let bound = self.forecast.rehearsal.queue_bound.effective.seconds;
        let before = self.plan.phases.iter().take_while(|phase| !phase.event);
        let starts: f64 = before.map(|phase| phase.lasts_s).sum();
        let lasts: f64 = self.plan.phases.iter().filter(|phase| phase.event).map(|phase| phase.lasts_s).sum();
        let width = self.windows.first()?.width_s;
        let sound = width.is_finite() && width > 0.0 && bound.is_finite() && bound > 0.0;
        let inside = |window: &&WindowPart| {
            window.from_s >= starts + bound && window.from_s + window.width_s <= starts + lasts
        };
        let values = self.windows.iter().filter(inside).map(|window| window.goodput as f64 / width);
        sound.then(|| Series { values: values.collect(), block: (2.0 * bound / width).ceil() as usize })
    }
}

fn hist(key: &str, distribution: &Distribution) -> Result<Hist, String> {
    Hist::from_base64(&distribution.hdr).ok_or_else(|| format!("{key}.hdr: no HdrHistogram (V2, base64)"))
}

fn checked(check: &CheckPart) -> Checked {
    Checked {
        id: check.id.clone(),
        verdict: check.verdict,
        measured: check.measured,
        unit: check.unit.clone(),
        tolerated: check.tolerated,
    }
}

/// What the runs of one side have in common.
fn own(plan: &PlanPart) -> BTreeMap<String, String> {
    let policy = plan.target.policy.as_ref().map(ToString::to_string);
    let policy = policy.map(|policy| ("target.policy".to_owned(), policy));
    [("target.kind".to_owned(), plan.target.kind.clone())].into_iter().chain(policy).collect()
}

/// The keys of a plan that two runs must have in common, by the paths a plan has them under.
///
/// Each part is taken to pieces: a key that is new in the report has to be compared here, or left out on purpose.
fn keys(plan: &PlanPart) -> BTreeMap<String, String> {
    let PlanPart {
        // of no consequence to what is measured; several seeds are several runs; what is tried may differ
        name: _,
        about: _,
        seed: _,
        target: _,
        diff: _,
        // its rows are in `unusual` by their fingerprint
        trace: _,
        scale,
        arrivals,
        phases,
        requests,
        provider,
        probes_every,
        probes_late_by_s,
        drop_after_s,
        unusual,
        refusal,
        checks,
    } = plan;
    let mut keys = Keys::default();
    keys.add("load.arrivals", arrivals);
    keys.add("load.late", drop_after_s.map_or_else(|| "send".to_owned(), |s| format!("drop_after {s} s")));
    phases.iter().for_each(|phase| keys.phase(phase));
    requests.iter().for_each(|class| keys.class(class));
    keys.provider(provider);
    keys.add("rehearsal.scale", scale);
    keys.add("rehearsal.probes.every", probes_every);
    keys.add("rehearsal.probes.late_by", format!("{probes_late_by_s} s"));
    keys.add("expect.refusal.shed", format!("{:?}", refusal.shed));
    keys.add("expect.refusal.throttled", format!("{:?}", refusal.throttled));
    keys.add("expect.refusal.fast_within", format!("{} s", refusal.fast_within_s));
    unusual.iter().for_each(|(key, value)| keys.add(key, value));
    for (id, change) in checks {
        keys.add(&format!("checks.{id}.limit"), change.limit.as_deref().unwrap_or("its own"));
        keys.add(&format!("checks.{id}.allow_no_data"), change.allow_no_data);
        keys.add(&format!("checks.{id}.off"), change.off);
    }
    keys.0
}

#[derive(Default)]
struct Keys(BTreeMap<String, String>);

impl Keys {
    fn add(&mut self, key: &str, value: impl ToString) {
        self.0.insert(key.to_owned(), value.to_string());
    }

    fn phase(&mut self, phase: &PhasePart) {
        let PhasePart { name, rate_per_min, lasts_s, event } = phase;
        let at = format!("load.phases.{name}");
        self.add(&format!("{at}.rate"), format!("{rate_per_min}/min"));
        self.add(&format!("{at}.for"), format!("{lasts_s} s"));
        self.add(&format!("{at}.event"), event);
    }

    fn class(&mut self, class: &RequestPart) {
        let RequestPart {
            name,
            weight,
            tenant,
            tier,
            prompt_tokens,
            prompt_bytes,
            max_tokens,
            output_tokens,
            deadline_s,
            patience_s,
        } = class;
        let at = format!("requests.{name}");
        self.add(&format!("{at}.weight"), weight);
        self.add(&format!("{at}.tenant"), tenant);
        self.add(&format!("{at}.tier"), tier);
        self.add(&format!("{at}.prompt.tokens"), prompt_tokens);
        self.add(&format!("{at}.prompt.bytes"), prompt_bytes);
        self.add(&format!("{at}.max_tokens"), max_tokens);
        self.add(&format!("{at}.output.tokens"), output_tokens);
        self.add(&format!("{at}.deadline"), format!("{deadline_s} s"));
        self.add(&format!("{at}.patience"), format!("{patience_s} s"));
    }

    fn provider(&mut self, provider: &ProviderPart) {
        let ProviderPart { tokens_per_min, burst_s, first_token_s, per_token_s } = provider;
        self.add("provider.quota.tokens_per_minute", tokens_per_min);
        self.add("provider.quota.burst", format!("{burst_s} s"));
        self.add("provider.service.first_token", format!("{first_token_s} s"));
        self.add("provider.service.per_token", format!("{per_token_s} s"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::report;
    use super::*;
    use crate::measure::testing::{healthy, smoke};

    fn healthy_report() -> Report {
        let plan = smoke().plan();
        report(&plan, &healthy(&plan), false)
    }

    /// As in serde-rs/json#202 and #842: what has no number is null, and is read back as such.
    #[test]
    fn a_report_without_answers_goes_there_and_back() {
        let plan = smoke().plan();
        let empty = report(&plan, &crate::measure::Measures::new(&plan), false);
        let text = serde_json::to_string(&empty).unwrap();
        let back: Report = serde_json::from_str(&text).unwrap();
        let run = back.to_run("x").unwrap();
        assert_eq!((run.onset, run.drain_s, run.told_median_s), (None, None, None));
        assert_eq!((run.completed_us.count(), run.probes), (0, (0, 0)));
        let numbers = crate::diff::ALL.iter().filter_map(|measure| measure.of(&run).map(|_| measure.name));
        assert_eq!(numbers.collect::<Vec<_>>(), ["charged.tokens", "wasted.tokens"]);
    }

    #[test]
    fn the_numbers_and_the_steady_part_come_over() {
        let report = healthy_report();
        let run = report.to_run("x").unwrap();
        assert_eq!(run.completed_us.count(), report.latency.by_outcome["completed"].from_due.count);
        assert_eq!(run.memory_peak_bytes, Some(14_000_000));
        let steady = run.goodput.unwrap();
        // the event lasts from second 2 to 14, and its queue drains in 2.25
        assert_eq!((steady.values.len(), steady.block), (9, 5));
        let keys: Vec<_> = run.keys.keys().map(String::as_str).collect();
        for key in
            ["load.phases.promotion.rate", "requests.ask.deadline", "provider.quota.burst", "rehearsal.scale"]
        {
            assert!(keys.contains(&key), "{keys:?}");
        }
        assert!(run.own["target.policy"].contains("bound"));
    }

    #[test]
    fn a_report_that_was_edited_is_found_out() {
        let mut report = healthy_report();
        report.totals.shed += 1;
        assert!(report.to_run("x").unwrap_err().contains("do not add up"));
        let mut report = healthy_report();
        report.latency.refusal.hdr.truncate(9);
        assert!(report.to_run("x").unwrap_err().starts_with("latency.refusal.hdr:"));
        let mut report = healthy_report();
        report.forecast.rehearsal.queue_bound.effective.seconds = -1.0;
        assert_eq!(report.to_run("x").unwrap().goodput, None);
    }
}
