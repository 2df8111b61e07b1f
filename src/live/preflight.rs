//! What a plan needs of this machine, worked out before anything is started.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{LiveError, ProviderShell};
use crate::plan::{Plan, TargetKind};
use crate::units::Bytes;

/// The most memory wiremock may come to keep.
const KEEPS_AT_MOST: Bytes = Bytes::new(2 << 30);
/// Descriptors besides those of requests: files, pipes, runtimes, pings, and a reserve to end in order with.
const BESIDES: u64 = 128;
/// How long the kernel keeps the port of a connection that was closed from this side.
const TIME_WAIT_SECS: u64 = 60;
/// What stands around a prompt's text in a request.
const AROUND: Bytes = Bytes::new(1_000);

/// What a plan needs of this machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needs {
    /// Requests in all, returning callers included; the mean of a random process and a tenth.
    pub requests: u64,
    /// The most requests open at once: everyone waits to the end of their patience, or `max_outstanding`.
    pub open: u64,
    /// The most arrivals a second.
    pub peak_per_s: f64,
    /// Descriptors: both ends of a request are ours.
    pub descriptors: u64,
    /// What wiremock will have kept at the end: it keeps each request it was sent.
    pub provider_keeps: Bytes,
    /// How the last number comes about: so many requests of so many bytes each.
    pub each: Bytes,
}

impl Needs {
    /// What `plan`, as it is rehearsed, needs.
    pub fn of(plan: &Plan) -> Self {
        let classes = plan.requests.classes();
        let returning = if plan.probes.every == 0 { 0.0 } else { 1.0 / f64::from(plan.probes.every) };
        // in the worst case everybody makes all its attempts
        let attempts = plan.requests.mean(crate::workload::Class::attempts);
        let requests = (plan.load.expected() * (1.1 + returning) * attempts).ceil() as u64;
        let peak_per_s = plan.load.peak_per_s();
        let patience = classes.iter().map(|class| class.patience).max().unwrap_or_default();
        let waiting = (peak_per_s * patience.as_secs_f64() * 1.1 * attempts).ceil() as u64;
        let open = waiting.min(requests).min(u64::from(plan.max_outstanding));
        let each = Bytes::new(plan.requests.mean(|class| class.bytes.get() as f64).ceil() as u64) + AROUND;
        // the embedded gateway is a process of its own, with descriptors of its own
        let descriptors = open * 2 + BESIDES;
        Self {
            requests,
            open,
            peak_per_s,
            descriptors,
            provider_keeps: ProviderShell::keeps(requests, each),
            each,
        }
    }

    /// Raises the limit of descriptors as far as is needed and allowed, and refuses what cannot fit.
    ///
    /// # Errors
    /// With the arithmetic and the way out.
    pub fn secure(&self) -> Result<(), LiveError> {
        self.fits(raise_descriptors(self.descriptors), ports())
    }

    fn fits(&self, descriptors: u64, ports: u64) -> Result<(), LiveError> {
        let refuse = |why: String| Err(LiveError::Preflight(why));
        if self.provider_keeps > KEEPS_AT_MOST {
            return refuse(format!(
                "wiremock keeps every request: {} of {} and about 5 kB each come to {}, more than {KEEPS_AT_MOST}; \
                 lower the rates (rehearsal.scale), shorten the phases, or send smaller prompts (requests.0.prompt.bytes)",
                self.requests, self.each, self.provider_keeps,
            ));
        }
        if self.descriptors > descriptors {
            return refuse(format!(
                "{} requests open at once take 2 descriptors each, and {BESIDES} besides: {} of {descriptors} allowed; \
                 raise the hard limit (ulimit -Hn) or lower max_outstanding",
                self.open, self.descriptors,
            ));
        }
        if self.open > ports {
            return refuse(format!(
                "{} requests open at once take a local port each, and there are {ports} \
                 (net.ipv4.ip_local_port_range); widen the range or lower max_outstanding",
                self.open,
            ));
        }
        Ok(())
    }

    /// What may become tight; nothing that prevents a run.
    pub fn warnings(&self, plan: &Plan) -> Vec<String> {
        self.tight(ports(), matches!(plan.target.kind, TargetKind::Embedded(_)))
    }

    fn tight(&self, ports: u64, keeps_alive: bool) -> Vec<String> {
        let most = ports / TIME_WAIT_SECS;
        let over = !keeps_alive && self.peak_per_s > most as f64;
        over.then(|| {
            format!(
                "{:.0} requests a second would run out of local ports if the target closed its connections: {ports} \
                 ports are free again after {TIME_WAIT_SECS} s, which is enough for {most} new connections a second",
                self.peak_per_s,
            )
        })
        .into_iter()
        .collect()
    }
}

/// Raises the soft limit of descriptors to `wanted` if it is lower and the hard limit allows it; gives the
/// limit then.
fn raise_descriptors(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let (soft, hard) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    if soft >= wanted {
        return soft;
    }
    let raised = Rlimit { current: Some(wanted.min(hard)), maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() { wanted.min(hard) } else { soft }
}

/// Local ports that connections to one address can have.
fn ports() -> u64 {
    /// Where the kernel does not say.
    const USUAL: u64 = 28_232;
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let mut ends = range.split_whitespace().filter_map(|end| end.parse::<u64>().ok());
    match (ends.next(), ends.next()) {
        (Some(low), Some(high)) if high > low => high - low + 1,
        _ => USUAL,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::live::testing;

    #[test]
    fn needs_follow_from_the_plan() {
        let plan = testing::plan("http://127.0.0.1:1");
        let needs = Needs::of(&plan);
        // 50 arrivals, each returning at most once, and a tenth
        assert_eq!((needs.requests, needs.open), (105, 28));
        assert_eq!(needs.descriptors, 2 * 28 + BESIDES);
        assert!(needs.secure().is_ok());
    }

    #[test]
    fn what_cannot_fit_is_refused_with_the_arithmetic() {
        let mut plan = testing::plan("http://127.0.0.1:1");
        plan.load = testing::load("2000/s", Duration::from_secs(3_600));
        let needs = Needs::of(&plan);
        let why = needs.fits(1_000_000, 28_232).unwrap_err().to_string();
        assert!(
            why.contains("wiremock keeps every request") && why.contains("GB, more than 2.15 GB"),
            "{why}"
        );
        plan.load = testing::load("2000/s", Duration::from_secs(20));
        plan.requests = testing::mix("20s");
        plan.max_outstanding = 40_000;
        let needs = Needs::of(&plan);
        let descriptors = needs.fits(20_000, 28_232).unwrap_err().to_string();
        assert!(descriptors.contains("80128 of 20000 allowed"), "{descriptors}");
        let ports = needs.fits(100_000, 28_232).unwrap_err().to_string();
        assert!(ports.contains("40000 requests open at once take a local port each"), "{ports}");
        assert!(needs.fits(100_000, 50_000).is_ok());
    }

    /// As in grafana/k6#826: more than 28,232 / 60 = 470 new connections a second run out of ports.
    #[test]
    fn a_rate_that_may_run_out_of_ports_is_warned_of() {
        let at = |rate: &str| {
            let mut plan = testing::plan("http://127.0.0.1:1");
            plan.load = testing::load(rate, Duration::from_secs(1));
            Needs::of(&plan).tight(28_232, false).len()
        };
        assert_eq!((at("470/s"), at("471/s")), (0, 1));
    }
}
