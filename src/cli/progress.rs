//! How a run is doing, on stderr: a block redrawn at most four times a second, or a plain line every five seconds where
//! stderr is no terminal. It is shown snapshots, and is in the path of no request.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::complain;
use crate::forecast::Forecast;
use crate::measure::Snapshot;
use crate::plan::Plan;
use crate::units::{Bytes, Moment, Ratio, show_duration};

/// Redraws a second, at most.
const HZ: u8 = 4;
/// From one plain line to the next.
const PLAIN: Duration = Duration::from_secs(5);

/// The progress of one run.
#[derive(Debug)]
pub(super) struct Progress {
    view: View,
    terms: Terms,
    /// The first warning, once there is one.
    warned: Option<String>,
}

/// What the numbers of a run are compared with.
#[derive(Debug)]
struct Terms {
    /// The plan's name and scale.
    title: String,
    /// The queue's bound in requests, if one is declared.
    bound: Option<u64>,
    /// Tokens the provider serves a second.
    served: f64,
    /// What the target's memory may reach.
    ceiling: Bytes,
    /// The most lag a valid run has at the 99th percentile.
    lag_limit: Duration,
    /// The largest share a valid run leaves unsent.
    unsent_limit: f64,
}

#[derive(Debug)]
enum View {
    /// Nothing is shown.
    Quiet,
    /// A line now and then; when the next is due.
    Plain(Moment),
    /// A block: a bar and the lines under it.
    Drawn { bar: ProgressBar, lines: Vec<ProgressBar> },
}

impl Progress {
    /// The progress of `plan`, as it is rehearsed, for which `forecast` was made.
    pub(super) fn new(plan: &Plan, forecast: &Forecast, quiet: bool) -> Self {
        let scale =
            if plan.scale == Ratio::ONE { String::new() } else { format!(" · {} scale", plan.scale) };
        let declared = plan.policy().is_some_and(|policy| policy.bound.name() != "none");
        let terms = Terms {
            title: format!("{}{scale}", plan.name),
            bound: declared.then_some(forecast.queue_bound.effective.requests),
            served: plan.provider.quota.tokens.per_sec_f64(),
            ceiling: Bytes::new(forecast.memory.ceiling_bytes),
            lag_limit: plan.lag_limit(),
            unsent_limit: plan.validity.unsent.get(),
        };
        let view = if quiet {
            View::Quiet
        } else if std::io::stderr().is_terminal() {
            drawn(plan.load.end().since(Moment::ZERO))
        } else {
            View::Plain(Moment::ZERO + PLAIN)
        };
        Self { view, terms, warned: None }
    }

    /// Shows how things stand.
    pub(super) fn show(&mut self, now: &Snapshot) {
        let first = if self.warned.is_none() { self.terms.at_risk(now) } else { None };
        if let Some(warning) = &first {
            self.warned.clone_from(&first);
            if matches!(self.view, View::Plain(_)) {
                complain(&format!("warning: {warning}\n"));
            }
        }
        match &mut self.view {
            View::Quiet => {}
            View::Plain(next) => {
                if now.at >= *next {
                    complain(&format!("{}\n", self.terms.line(now)));
                    *next = now.at + PLAIN;
                }
            }
            View::Drawn { bar, lines } => {
                bar.set_position(millis(now.at.since(Moment::ZERO).min(now.lasts)));
                bar.set_prefix(format!("{} · {}", self.terms.title, phase(now)));
                let total = now.at.since(Moment::ZERO).min(now.lasts);
                bar.set_message(format!("total {}", remaining(total, now.lasts)));
                let warning = self.warned.iter().map(|warning| format!("warning: {warning}"));
                for (line, text) in lines.iter().zip(self.terms.block(now).into_iter().chain(warning)) {
                    line.set_message(text);
                }
            }
        }
    }

    /// Takes the block away: the result follows.
    pub(super) fn clear(&self) {
        if let View::Drawn { bar, lines } = &self.view {
            bar.finish_and_clear();
            lines.iter().for_each(ProgressBar::finish_and_clear);
        }
    }
}

fn drawn(lasts: Duration) -> View {
    let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(HZ));
    let style = |template| {
        // the templates are ours, and a test reads them
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
    };
    let bar = all.add(ProgressBar::new(millis(lasts)));
    bar.set_style(style(BAR).progress_chars("━╸━"));
    let line = || {
        let line = all.add(ProgressBar::new_spinner());
        line.set_style(style(LINE));
        line
    };
    View::Drawn { lines: vec![line(), line(), line()], bar }
}

/// The first line of the block.
const BAR: &str = " {prefix} {bar:28} {msg}";
/// The lines under it.
const LINE: &str = " {msg}";

impl Terms {
    /// The lines under the bar.
    fn block(&self, now: &Snapshot) -> [String; 2] {
        let bound = self.bound.map(|bound| format!(" of {bound}")).unwrap_or_default();
        let work = now.gauge.depth.tokens.get() as f64 / self.served;
        let sent = 100.0 - 100.0 * now.unsent as f64 / now.offered.max(1) as f64;
        let memory =
            now.memory.map_or_else(|| "-".to_owned(), |bytes| format!("{bytes} of {}", self.ceiling));
        let told = now.retry_after_s.map_or_else(|| "-".to_owned(), |secs| format!("{secs} s"));
        let probes = (
            now.probes.inside.returned + now.probes.after.returned,
            now.probes.inside.kept + now.probes.after.kept,
        );
        [
            format!(
                "offered {}   sent {sent:.1} %   lag p99 {}   in flight {}   queue {}{bound} · {work:.1} s of work",
                rate(now, now.recent.offered),
                lag(now),
                now.gauge.outstanding,
                now.gauge.depth.requests,
            ),
            format!(
                "goodput {}   shed {}   Retry-After {told}   memory {memory}   probes {} kept of {}",
                rate(now, now.recent.completions),
                rate(now, now.recent.refusals),
                probes.1,
                probes.0,
            ),
        ]
    }

    /// All of it on one line, shorter.
    fn line(&self, now: &Snapshot) -> String {
        let total = remaining(now.at.since(Moment::ZERO).min(now.lasts), now.lasts);
        format!(
            "{total}, {}: offered {}, goodput {}, shed {}, in flight {}, queue {}, lag p99 {}",
            phase(now),
            rate(now, now.recent.offered),
            rate(now, now.recent.completions),
            rate(now, now.recent.refusals),
            now.gauge.outstanding,
            now.gauge.depth.requests,
            lag(now),
        )
    }
}

/// How little must be seen before a share of it says anything.
const FEW: u64 = 100;
/// The part of a limit from which on a run is at risk.
const RISK: f64 = 0.8;

impl Terms {
    /// Why the run may turn out invalid, with the first reason only: our own fault, while something can be done.
    fn at_risk(&self, now: &Snapshot) -> Option<String> {
        if now.offered < FEW {
            return None;
        }
        let at = clock(now.at.since(Moment::ZERO));
        let lag = now.lag_p99.filter(|lag| lag.as_secs_f64() >= RISK * self.lag_limit.as_secs_f64());
        if let Some(lag) = lag {
            return Some(format!(
                "at {at} lag p99 was {}, the limit is {}: this machine may be too slow or too busy for the run to be valid",
                show_duration(lag),
                show_duration(self.lag_limit)
            ));
        }
        let unsent = now.unsent as f64 / now.offered as f64;
        (now.unsent > 0 && unsent >= RISK * self.unsent_limit).then(|| {
            format!(
                "at {at} {} of {} requests had not been sent in time: the run may not be valid",
                now.unsent, now.offered
            )
        })
    }
}

/// `00:51 of 02:10, 01:19 left`
fn remaining(total: Duration, lasts: Duration) -> String {
    // of whole seconds, so that both add up
    let left = Duration::from_secs(lasts.as_secs().saturating_sub(total.as_secs()));
    format!("{} of {}, {} left", clock(total), clock(lasts), clock(left))
}

fn phase(now: &Snapshot) -> String {
    match &now.phase {
        Some((name, at, lasts)) => format!("{name} {} of {}", clock(*at), clock(*lasts)),
        None => "ending".to_owned(),
    }
}

/// A recent count as a rate, `-` before there is one.
fn rate(now: &Snapshot, count: u64) -> String {
    match now.recent.per_second(count) {
        None => "-".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}/s"),
        Some(value) => format!("{value:.1}/s"),
    }
}

fn lag(now: &Snapshot) -> String {
    now.lag_p99.map_or_else(|| "-".to_owned(), show_duration)
}

/// `01:05`, hours in front where there are any.
fn clock(span: Duration) -> String {
    let secs = span.as_secs();
    let (hours, minutes, secs) = (secs / 3_600, secs / 60 % 60, secs % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{secs:02}") } else { format!("{minutes:02}:{secs:02}") }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Recent, Returns};
    use crate::observe::{Depth, Gauge};
    use crate::units::Tokens;

    fn snapshot() -> Snapshot {
        let mut probes = Returns::default();
        (probes.inside.returned, probes.inside.kept) = (31, 31);
        Snapshot {
            at: Moment::from_secs(51),
            phase: Some(("promotion".into(), Duration::from_secs(31), Duration::from_secs(60))),
            lasts: Duration::from_secs(130),
            offered: 600,
            unsent: 0,
            lag_p99: Some(Duration::from_micros(400)),
            gauge: Gauge {
                depth: Depth { requests: 55, tokens: Tokens::new(66_000) },
                outstanding: 63,
                ..Gauge::default()
            },
            recent: Recent { span: Duration::from_secs(5), offered: 83, completions: 17, refusals: 66 },
            retry_after_s: Some(7),
            memory: Some(Bytes::new(21_000_000)),
            probes,
        }
    }

    fn terms() -> Terms {
        let ceiling = Bytes::new(34_000_000);
        Terms {
            title: "flash-promotion · 1/2 scale".into(),
            bound: Some(55),
            served: 4_166.7,
            ceiling,
            lag_limit: Duration::from_millis(30),
            unsent_limit: 0.001,
        }
    }

    #[test]
    fn the_block_says_what_each_number_is_compared_with() {
        assert_eq!(
            terms().block(&snapshot()),
            [
                "offered 16.6/s   sent 100.0 %   lag p99 400 µs   in flight 63   queue 55 of 55 · 15.8 s of work",
                "goodput 3.4/s   shed 13.2/s   Retry-After 7 s   memory 21.0 MB of 34.0 MB   probes 31 kept of 31",
            ]
        );
        assert!(terms().block(&snapshot()).iter().all(|line| line.chars().count() <= 100));
        assert!([BAR, LINE].iter().all(|template| ProgressStyle::with_template(template).is_ok()));
    }

    #[test]
    fn before_anything_happened_nothing_is_made_up() {
        let nothing = Snapshot {
            phase: None,
            offered: 0,
            lag_p99: None,
            recent: Recent::default(),
            retry_after_s: None,
            memory: None,
            ..snapshot()
        };
        let line = terms().line(&nothing);
        assert!(
            line.starts_with("00:51 of 02:10, 01:19 left, ending: offered -, goodput -, shed -,"),
            "{line}"
        );
        assert!(terms().block(&nothing)[1].contains("Retry-After -   memory -"));
        assert_eq!(clock(Duration::from_secs(3_725)), "1:02:05");
    }

    #[test]
    fn the_first_warning_comes_before_the_run_is_lost_and_not_from_a_handful() {
        let lag = |millis, offered| {
            let lag_p99 = Some(Duration::from_millis(millis));
            terms().at_risk(&Snapshot { lag_p99, offered, ..snapshot() })
        };
        assert_eq!(lag(23, 600), None);
        assert_eq!(lag(41, 99), None, "the first few say nothing");
        let said = lag(25, 600).unwrap();
        assert!(said.starts_with("at 00:51 lag p99 was 25 ms, the limit is 30 ms"), "{said}");
        let unsent = terms().at_risk(&Snapshot { unsent: 1, ..snapshot() }).unwrap();
        assert!(unsent.contains("1 of 600 requests"), "{unsent}");
        let mut progress = Progress { view: View::Quiet, terms: terms(), warned: None };
        progress.show(&Snapshot { lag_p99: Some(Duration::from_millis(25)), ..snapshot() });
        progress.show(&Snapshot { lag_p99: Some(Duration::from_millis(50)), ..snapshot() });
        assert_eq!(progress.warned.unwrap(), said, "the first one stays");
    }
}
