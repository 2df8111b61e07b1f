//! What this machine can keep up with, found by trying.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::plans::Way;
use super::{Manner, Plain, Spacing, drive, plans};
use crate::live::wall::Stamp;
use crate::live::{Clock, LiveError, ProviderShell, scheduling_permitted};
use crate::measure::Measures;
use crate::observe::Outcome;
use crate::plan::{Http, Plan, SenderKind};
use crate::provider::Engine;

/// The form of [`Limits`] in files.
pub const SCHEMA: &str = "tenfold.limits/2";

/// The first rate that is tried, in requests a second; each next one is twice as high, or half where it was not kept.
const FIRST: u32 = 4_000;
/// The lowest and the highest that are come to so.
const ENDS: (u32, u32) = (1_000, 64_000);
/// How often the span between the last rate that was kept and the first that was not is halved.
const HALVINGS: u32 = 2;
/// How often a rate is tried before it counts as not kept: a machine steals some milliseconds now and then.
const TRIES: u32 = 2;
/// How long a rate is tried.
const LASTS: Duration = Duration::from_secs(1);
/// The rate of sending over the planned one that is enough.
const ACHIEVED: f64 = 0.995;
/// The most an answer of our own provider may take at the 99th percentile, besides its service time.
const PROVIDER_P99: Duration = Duration::from_millis(50);

/// What this machine can keep up with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// [`SCHEMA`].
    pub schema: String,
    /// When it was found: RFC 3339, UTC.
    pub measured: String,
    /// Cores there were.
    pub cores: u32,
    /// How the threads that requests go through were scheduled, as [`Scheduling`](crate::live::Scheduling) says it. Empty in
    /// files that do not say so.
    #[serde(default)]
    pub scheduling: String,
    /// What the generator kept, by sender and version of HTTP.
    pub generator: Vec<Kept>,
    /// What our own provider kept, called directly, by engine.
    pub provider: Vec<Kept>,
}

/// The highest rate that was kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    /// The name in a plan of the sender, or of the engine.
    pub name: String,
    /// The version of HTTP: 1 or 2.
    pub http: u8,
    /// In requests a second; zero if even the first was not.
    pub rate_per_s: u32,
    /// Lag at that rate, at the 99th percentile.
    pub lag_p99_us: u64,
    /// How far the cumulative count was from `rate × t` as the server saw it, at the 99th percentile. Absent of the
    /// provider.
    pub deviation_p99_us: Option<u64>,
    /// How far gaps between two requests were from `1 / rate` as the server saw them: the median and the 99th percentile.
    /// Absent of the provider.
    #[serde(default)]
    pub gaps_us: Option<(u64, u64)>,
    /// What the next higher rate that was tried failed by, in words. Absent if none did.
    pub then: Option<String>,
}

impl Limits {
    /// Finds them: about a minute on loopback. `watch` is told what is tried.
    ///
    /// # Errors
    /// If the system gives no socket or thread.
    pub fn find(watch: &mut dyn FnMut(&str)) -> Result<Self, LiveError> {
        let (mut generator, mut provider) = (Vec::new(), Vec::new());
        for (name, sender) in SenderKind::ALL {
            for http in [Http::One, STREAMS] {
                let way = Way { sender, http, engine: Engine::Stream };
                generator.push(highest((name, version(http)), watch, |rate| plain(way, rate))?);
            }
        }
        for engine in [Engine::Stream, Engine::Wiremock] {
            let way = Way { sender: SenderKind::Hyper, http: Http::One, engine };
            provider.push(highest((engine.name(), 1), watch, |rate| provided(way, rate))?);
        }
        Ok(Self {
            schema: SCHEMA.to_owned(),
            measured: Stamp::of(Clock::start().wall()).rfc3339(),
            cores: cores(),
            scheduling: scheduling(),
            generator,
            provider,
        })
    }

    /// Whether they were found on a machine like this one, with the same permission to run before others.
    pub fn fit_here(&self) -> bool {
        self.schema == SCHEMA && self.cores == cores() && self.scheduling == scheduling()
    }

    /// Says why `plan`, as it is rehearsed, is beyond them, if it is: the arithmetic and the way out. Its provider will be
    /// called `forwarded` times a second.
    pub fn exceeded_by(&self, plan: &Plan, forwarded: f64) -> Option<String> {
        let transport = &plan.target.request.transport;
        let (name, http) = (transport.sender.name(), version(transport.http));
        let kept = self.generator.iter().find(|kept| kept.name == name && kept.http == http)?;
        let (phase, peak) = plan.load.busiest()?;
        let most = f64::from(kept.rate_per_s);
        if peak > most {
            let better = self
                .generator
                .iter()
                .find(|other| other.http == http && f64::from(other.rate_per_s) >= peak)
                .map(|other| {
                    format!(
                        "send with {} (target.request.sender), which keeps {}/s, or ",
                        other.name, other.rate_per_s
                    )
                });
            return Some(format!(
                "phase `{}` offers {peak:.0}/s, and the generator keeps {most:.0}/s here (sender {name}, HTTP/{http}): {}lower the \
                 rates to {:.2} of theirs (rehearsal.scale)",
                phase.name,
                better.unwrap_or_default(),
                most / peak,
            ));
        }
        let engine = plan.provider.engine.name();
        let most = f64::from(self.provider.iter().find(|kept| kept.name == engine)?.rate_per_s);
        (forwarded > most).then(|| {
            format!(
                "up to {forwarded:.0} requests a second reach the provider, and it keeps {most:.0}/s here (engine \
                 {engine}): lower the rates to {:.2} of theirs (rehearsal.scale)",
                most / forwarded
            )
        })
    }
}

/// HTTP/2 with as many streams as most servers allow.
const STREAMS: Http = Http::Two { connections: None, streams: 100 };

const fn version(http: Http) -> u8 {
    match http {
        Http::One => 1,
        Http::Two { .. } => 2,
    }
}

fn cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

fn scheduling() -> String {
    scheduling_permitted().map_or_else(|_| String::new(), |scheduling| scheduling.to_string())
}

/// How one rate went.
struct Trial {
    lag_p99_us: u64,
    deviation_p99_us: Option<u64>,
    gaps_us: Option<(u64, u64)>,
    /// What it failed by.
    short: Option<String>,
}

/// The highest rate at which `attempt` does not fall short.
fn highest(
    (name, http): (&str, u8),
    watch: &mut dyn FnMut(&str),
    mut attempt: impl FnMut(u32) -> Result<Trial, LiveError>,
) -> Result<Kept, LiveError> {
    let mut kept = Kept {
        name: name.to_owned(),
        http,
        rate_per_s: 0,
        lag_p99_us: 0,
        deviation_p99_us: None,
        gaps_us: None,
        then: None,
    };
    let mut tried = |rate: u32, kept: &mut Kept| -> Result<bool, LiveError> {
        for _ in 0..TRIES {
            watch(&format!("{name}, HTTP/{http}: {rate}/s"));
            let trial = attempt(rate)?;
            match trial.short {
                None => {
                    kept.rate_per_s = rate;
                    kept.lag_p99_us = trial.lag_p99_us;
                    kept.deviation_p99_us = trial.deviation_p99_us;
                    kept.gaps_us = trial.gaps_us;
                    return Ok(true);
                }
                Some(why) => kept.then = Some(format!("{rate}/s: {why}")),
            }
        }
        Ok(false)
    };
    let (mut low, mut high, mut rate) = (0, None, FIRST);
    // up to the first that is not kept, or down to the first that is
    while (ENDS.0..=ENDS.1).contains(&rate) && (low == 0 || high.is_none()) {
        if tried(rate, &mut kept)? {
            low = rate;
        } else {
            high = Some(rate);
        }
        rate = if high.is_none() { rate * 2 } else { rate / 2 };
    }
    let Some(mut high) = high else {
        kept.then = None;
        return Ok(kept);
    };
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2;
        if tried(middle, &mut kept)? { low = middle } else { high = middle }
    }
    Ok(kept)
}

/// What a load came to, judged as a run would be.
fn judged(plan: &Plan, measures: &Measures) -> (u64, Option<String>) {
    let lag = measures.lag.quantile(0.99).unwrap_or_default();
    let (achieved, offered) = (measures.achieved().unwrap_or(0.0), measures.offered);
    let unsent = measures.arrivals.get(Outcome::Unsent);
    let good = measures.arrivals.get(Outcome::Completed);
    let short = if unsent > 0 {
        Some(format!("{unsent} of {offered} unsent"))
    } else if achieved < ACHIEVED {
        Some(format!("{:.1} % of the rate", achieved * 100.0))
    } else if lag > plan.lag_limit() {
        Some(format!("lag p99 {:.1} ms", lag.as_secs_f64() * 1e3))
    } else if good < offered {
        Some(format!("{} of {offered} without an answer", offered - good))
    } else {
        None
    };
    (u64::try_from(lag.as_micros()).unwrap_or(u64::MAX), short)
}

/// The generator against a plain server.
fn plain(way: Way, rate: u32) -> Result<Trial, LiveError> {
    let server = Plain::start(Clock::start(), Manner::default()).map_err(LiveError::Thread)?;
    let plan = plans::steady(&server.url(), rate, LASTS, way)?;
    let driven = drive(&plan, &server.url())?;
    let spacing = Spacing::of(&server.take_arrivals(), f64::from(rate));
    let (lag_p99_us, short) = judged(&plan, &driven.measures);
    let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
    let deviation_p99_us = spacing.map(|s| micros(s.p99));
    let gaps_us = spacing.map(|s| (micros(s.gaps.0), micros(s.gaps.1)));
    Ok(Trial { lag_p99_us, deviation_p99_us, gaps_us, short })
}

/// The generator against our own provider, with nothing between them.
fn provided(way: Way, rate: u32) -> Result<Trial, LiveError> {
    let plan = plans::steady("http://127.0.0.1:1", rate, LASTS, way)?;
    let shell = ProviderShell::start(&plan.provider, &plan.target.deadline, Clock::start(), 1, drop)
        .map_err(|e| LiveError::Provider(e.to_string()))?;
    let driven = drive(&plan, shell.url())?;
    let (lag_p99_us, short) = judged(&plan, &driven.measures);
    let took = driven.measures.latencies.from_due(Outcome::Completed).quantile(0.99).unwrap_or_default();
    let slow = (took > PROVIDER_P99 + plan.provider.service.first_token)
        .then(|| format!("answers took {:.0} ms at the 99th percentile", took.as_secs_f64() * 1e3));
    Ok(Trial { lag_p99_us, deviation_p99_us: None, gaps_us: None, short: short.or(slow) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine that keeps `most` a second.
    fn found(most: u32) -> (Kept, Vec<String>) {
        let mut said = Vec::new();
        let attempt = |rate| {
            let short = (rate > most).then(|| "too fast".to_owned());
            Ok(Trial {
                lag_p99_us: u64::from(rate / 10),
                deviation_p99_us: Some(7),
                gaps_us: Some((1, 9)),
                short,
            })
        };
        let kept = highest(("hyper", 1), &mut |what| said.push(what.to_owned()), attempt).unwrap();
        (kept, said)
    }

    #[test]
    fn the_highest_rate_is_bracketed_and_each_failure_tried_again() {
        let (kept, said) = found(5_500);
        assert_eq!((kept.rate_per_s, kept.lag_p99_us, kept.deviation_p99_us), (5_000, 500, Some(7)));
        assert_eq!(kept.then.as_deref(), Some("6000/s: too fast"));
        let rates: Vec<_> = said.iter().map(|what| what.strip_prefix("hyper, HTTP/1: ").unwrap()).collect();
        assert_eq!(rates, ["4000/s", "8000/s", "8000/s", "6000/s", "6000/s", "5000/s"]);
        assert_eq!((found(0).0.rate_per_s, found(300).0.rate_per_s), (0, 250));
        assert_eq!((found(1_200).0.rate_per_s, found(2_600).0.rate_per_s), (1_000, 2_500));
        assert_eq!((found(1_000_000).0.rate_per_s, found(1_000_000).0.then), (ENDS.1, None));
    }

    #[test]
    fn a_plan_beyond_the_limits_is_refused_with_the_arithmetic_and_the_way_out() {
        let kept = |name: &str, http, rate_per_s| Kept { name: name.into(), http, rate_per_s, ..found(0).0 };
        let limits = Limits {
            schema: SCHEMA.into(),
            measured: String::new(),
            cores: cores(),
            scheduling: scheduling(),
            generator: vec![kept("hyper", 1, 16_000), kept("reqwest", 1, 4_000), kept("reqwest", 2, 2_000)],
            provider: vec![kept("stream", 1, 30_000), kept("wiremock", 1, 6_000)],
        };
        assert!(limits.fit_here());
        assert!(!Limits { scheduling: "nice 40".into(), ..limits.clone() }.fit_here());
        let way = Way { sender: SenderKind::Reqwest, http: Http::One, engine: Engine::Wiremock };
        let by = |way, rate| plans::steady("http://127.0.0.1:1", rate, LASTS, way).unwrap();
        let plan = |rate| by(way, rate);
        assert_eq!(limits.exceeded_by(&plan(4_000), 4_000.0), None);
        let why = limits.exceeded_by(&plan(8_000), 100.0).unwrap();
        assert!(why.contains("`steady` offers 8000/s, and the generator keeps 4000/s"), "{why}");
        assert!(
            why.contains("send with hyper") && why.contains("lower the rates to 0.50 of theirs"),
            "{why}"
        );
        // a burst is faster than its phase
        let mut bursts = plan(2_000);
        assert_eq!(limits.exceeded_by(&bursts, 100.0), None);
        bursts.load.arrivals = crate::live::testing::arrivals("on_off");
        let why = limits.exceeded_by(&bursts, 100.0).unwrap();
        assert!(why.contains("`steady` offers 10000/s"), "{why}");
        let why = limits.exceeded_by(&plan(4_000), 9_000.0).unwrap();
        assert!(why.contains("reach the provider, and it keeps 6000/s here (engine wiremock)"), "{why}");
        assert_eq!(limits.exceeded_by(&by(Way { engine: Engine::Stream, ..way }, 4_000), 9_000.0), None);
        // each protocol has its own
        let streams = by(Way { http: STREAMS, ..way }, 4_000);
        let why = limits.exceeded_by(&streams, 100.0).unwrap();
        assert!(why.contains("keeps 2000/s here (sender reqwest, HTTP/2): lower the rates"), "{why}");
        let untried = by(Way { http: STREAMS, sender: SenderKind::Hyper, ..way }, 60_000);
        assert_eq!(limits.exceeded_by(&untried, 100.0), None, "nothing is known of it");
    }
}
