//! What a plan needs of this machine, worked out before anything is started.

use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{LiveError, ProviderShell};
use crate::plan::{Http, Plan, SenderKind, TargetKind, Transport};
use crate::provider::{Charge, Engine, Law};
use crate::units::{Bytes, Window};

/// The most memory wiremock may come to keep.
const KEEPS_AT_MOST: Bytes = Bytes::new(2 << 30);
/// What a connection to the provider takes of our memory in bytes, at its end.
const CALL_TAKES: u64 = 40_000;
/// So much longer than it should may a call take, and so many more may there be.
const CALLS_MORE: f64 = 1.25;
const CALLS_BESIDES: u64 = 64;
/// So often may a gateway call again for one request.
const CALLS_EACH: f64 = 4.0;
/// Descriptors besides those of requests: files, pipes, runtimes, pings, and a reserve to end in order with.
const BESIDES: u64 = 128;
/// How long a call that is refused is open.
const REFUSED_WITHIN: Duration = Duration::from_millis(50);
/// How long the kernel keeps the port of a connection that was closed from this side.
const TIME_WAIT_SECS: u64 = 60;
/// What stands around a prompt's text in a request.
const AROUND: Bytes = Bytes::new(1_000);

/// What a plan needs of this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Needs {
    /// Requests in all, returning callers included; the mean of a random process and a tenth.
    pub requests: u64,
    /// The most requests open at once: everyone waits to the end of their patience, or `max_outstanding`.
    pub open: u64,
    /// The most arrivals a second.
    pub peak_per_s: f64,
    /// Connections to the target, and how many requests each carries at once.
    pub connections: (u64, u64),
    /// Addresses they come from; at least one, the system's choice.
    pub sources: u64,
    /// Connections to the provider: the calls its quota lets be open at once.
    pub calls: u64,
    /// Descriptors: both ends of a request are ours.
    pub descriptors: u64,
    /// What wiremock will have kept at the end: it keeps each request it was sent.
    pub provider_keeps: Bytes,
    /// How the last number comes about: so many requests of so many bytes each.
    pub each: Bytes,
    /// What open requests take of our own memory.
    pub open_take: Bytes,
    addresses: Vec<IpAddr>,
}

/// What this machine has.
#[derive(Debug, Clone, Copy)]
struct Has {
    descriptors: u64,
    /// Local ports to one address, from one address.
    ports: u64,
    /// Memory that programs can still take.
    memory: Bytes,
}

impl Needs {
    /// What `plan`, as it is rehearsed, needs.
    pub fn of(plan: &Plan) -> Self {
        let classes = plan.requests.classes();
        let returning = if plan.probes.every == 0 { 0.0 } else { 1.0 / f64::from(plan.probes.every) };
        // in the worst case everybody makes all its attempts; copies come on top
        let attempts = plan.requests.mean(crate::workload::Class::sends);
        let requests = (plan.load.expected() * (1.1 + returning) * attempts).ceil() as u64;
        let peak_per_s = plan.load.peak_per_s();
        let patience = classes.iter().map(|class| class.patience).max().unwrap_or_default();
        let waiting = (peak_per_s * patience.as_secs_f64() * 1.1 * attempts).ceil() as u64;
        let open = waiting.min(requests).min(u64::from(plan.max_outstanding));
        let each = Bytes::new(plan.requests.mean(|class| class.bytes.get() as f64).ceil() as u64) + AROUND;
        let transport = &plan.target.request.transport;
        let connections = transport.connections(open);
        let calls = calls(plan, peak_per_s).min(open);
        Self {
            requests,
            open,
            peak_per_s,
            connections,
            sources: (transport.source_addresses.len() as u64).max(1),
            calls,
            // the embedded gateway is a process with descriptors of its own
            descriptors: connections.0 + calls + BESIDES,
            provider_keeps: match plan.provider.engine {
                Engine::Stream => Bytes::ZERO,
                Engine::Wiremock => ProviderShell::keeps(requests, each),
            },
            each,
            open_take: Bytes::new(open * takes(transport) + calls * CALL_TAKES),
            addresses: transport.source_addresses.clone(),
        }
    }

    /// Raises the limit of descriptors as far as is needed and allowed, and refuses what cannot fit.
    ///
    /// # Errors
    /// With the arithmetic and the way out.
    pub fn secure(&self) -> Result<(), LiveError> {
        for address in &self.addresses {
            if let Err(error) = TcpListener::bind(SocketAddr::new(*address, 0)) {
                return Err(LiveError::Preflight(format!(
                    "target.request.source_addresses: no connection can come from {address}: {error}"
                )));
            }
        }
        let descriptors = raise_descriptors(self.descriptors);
        self.fits(Has { descriptors, ports: ports(), memory: available() })
    }

    /// Local ports to one address, from one address, that this machine has.
    pub fn ports() -> u64 {
        ports()
    }

    fn fits(&self, has: Has) -> Result<(), LiveError> {
        let refuse = |why: String| Err(LiveError::Preflight(why));
        let Has { descriptors, ports, memory } = has;
        if self.provider_keeps > KEEPS_AT_MOST {
            return refuse(format!(
                "wiremock keeps every request: {} of {} come to about {}, more than {KEEPS_AT_MOST}; \
                 lower the rates (rehearsal.scale), shorten the phases, send smaller prompts (requests.0.prompt.bytes), or take provider.engine: stream, which keeps none",
                self.requests, self.each, self.provider_keeps,
            ));
        }
        let (connections, streams) = self.connections;
        if connections * streams < self.open {
            return refuse(format!(
                "{} requests open at once are more than {connections} connections of {streams} streams carry; \
                 set target.request.connections to {} or leave it out",
                self.open,
                self.open.div_ceil(streams),
            ));
        }
        if self.descriptors > descriptors {
            return refuse(format!(
                "{} requests open at once take {connections} connections to the target and up to {} to the provider, and \
                 {BESIDES} descriptors besides: {} of {descriptors} allowed; raise the hard limit (ulimit -Hn), lower \
                 max_outstanding{}",
                self.open,
                self.calls,
                self.descriptors,
                if streams == 1 { ", or send over HTTP/2 (target.request.http: 2)" } else { "" },
            ));
        }
        let sources = self.sources;
        if connections > ports * sources {
            return refuse(format!(
                "{connections} connections take a local port each, and there are {ports} for each of {sources} source \
                 addresses (net.ipv4.ip_local_port_range); name more of them (target.request.source_addresses), widen \
                 the range or lower max_outstanding",
            ));
        }
        let takes = self.provider_keeps + self.open_take;
        if takes > memory {
            return refuse(format!(
                "{} for {} requests open at once, their calls at the provider, and {} that wiremock keeps are more than the {memory} of memory that \
                 are free; lower the rates (rehearsal.scale) or max_outstanding",
                self.open_take, self.open, self.provider_keeps,
            ));
        }
        Ok(())
    }

    /// What may become tight; nothing that prevents a run.
    pub fn warnings(&self, plan: &Plan) -> Vec<String> {
        let keeps_alive = matches!(plan.target.kind, TargetKind::Embedded(_)) || self.connections.1 > 1;
        self.tight(ports(), keeps_alive)
    }

    fn tight(&self, ports: u64, keeps_alive: bool) -> Vec<String> {
        let mut said = Vec::new();
        let all = ports * self.sources;
        let most = all / TIME_WAIT_SECS;
        if !keeps_alive && self.peak_per_s > most as f64 {
            said.push(format!(
                "{:.0} requests a second would run out of local ports if the target closed its connections: {all} \
                 ports are free again after {TIME_WAIT_SECS} s, which is enough for {most} new connections a second",
                self.peak_per_s,
            ));
        }
        let half = ports / 2;
        if self.connections.0 > half * self.sources {
            said.push(format!(
                "{} connections from {} source address{} are past half the local ports ({half} of {ports} each), from \
                 where on the kernel searches long for a free one; name {} under target.request.source_addresses",
                self.connections.0,
                self.sources,
                if self.sources == 1 { "" } else { "es" },
                self.connections.0.div_ceil(half.max(1)),
            ));
        }
        said
    }
}

/// What an open request takes of our memory in bytes; see the bench `generator`.
const fn takes(transport: &Transport) -> u64 {
    match (transport.sender, transport.http) {
        (SenderKind::Hyper, Http::One) => 25_000,
        (SenderKind::Hyper, Http::Two { .. }) => 8_000,
        (SenderKind::Reqwest, Http::One) => 34_000,
        (SenderKind::Reqwest, Http::Two { .. }) => 20_000,
    }
}

/// Calls that can be open at the provider at once: those its quota grants in the time one takes, were they all as small as
/// the smallest, and those that are being refused. As good as endless where a fault or a strain makes calls longer.
fn calls(plan: &Plan, peak_per_s: f64) -> u64 {
    let provider = &plan.provider;
    if !provider.faults.is_empty() || provider.service.strain.is_some() || provider.service.law != Law::Fixed
    {
        return u64::MAX;
    }
    let classes = plan.requests.classes().iter();
    let charged = classes.map(|class| match provider.quota.charge {
        Charge::Reservation => class.smallest_hold().get(),
        Charge::Actual => class.prompt.least().get(),
    });
    let charged = charged.min().unwrap_or(0) as f64;
    let longest = plan.requests.classes().iter().map(|class| provider.service.time_for(class.max_tokens));
    let longest = longest.max().unwrap_or_default().as_secs_f64();
    // a window that ends lets a second one through at once
    let bursts = match provider.quota.window {
        Window::Bucket { .. } | Window::Sliding { .. } => 1.0,
        Window::Fixed { .. } | Window::Round { .. } => 2.0,
    };
    let burst = provider.quota.burst_tokens().get() as f64 * bursts;
    let tokens = burst + provider.quota.tokens.per_sec_f64() * longest;
    let granted = tokens / charged.max(1.0) * provider.quota.accounts.len().max(1) as f64;
    let refused = peak_per_s * CALLS_EACH * REFUSED_WITHIN.as_secs_f64();
    (((granted + refused) * CALLS_MORE).ceil() as u64).saturating_add(CALLS_BESIDES)
}

/// Raises the soft limit of descriptors to twice what is `wanted`, for what comes closer together than was reckoned with, if
/// it is lower and the hard limit allows it; gives the limit then.
fn raise_descriptors(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let (soft, hard) = (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX));
    let better = raised(wanted, soft, hard);
    let raised = Rlimit { current: Some(better), maximum: limit.maximum };
    if better == soft || setrlimit(Resource::Nofile, raised).is_ok() { better } else { soft }
}

/// The soft limit that is asked for: never a lower one.
fn raised(wanted: u64, soft: u64, hard: u64) -> u64 {
    wanted.saturating_mul(2).min(hard).max(soft)
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

/// Memory that programs can still take; as good as endless where the kernel does not say.
fn available() -> Bytes {
    let told = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    Bytes::new(kib.map_or(u64::MAX, |kib| kib.saturating_mul(1_024)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing;

    fn has(descriptors: u64, ports: u64) -> Has {
        Has { descriptors, ports, memory: Bytes::new(8 << 30) }
    }

    #[test]
    fn needs_follow_from_the_plan() {
        let plan = testing::plan("http://127.0.0.1:1");
        let needs = Needs::of(&plan);
        // 50 arrivals, each returning at most once, and a tenth
        assert_eq!((needs.requests, needs.open), (105, 28));
        assert_eq!((needs.calls, needs.descriptors), (28, 2 * 28 + BESIDES));
        assert!(needs.secure().is_ok());
        // every second request is followed by a copy
        let mut doubled = testing::plan("http://127.0.0.1:1");
        doubled.requests = testing::mix_doubled("500ms", "50%");
        assert_eq!((Needs::of(&doubled).requests, Needs::of(&doubled).open), (158, 42));
    }

    #[test]
    fn what_cannot_fit_is_refused_with_the_arithmetic() {
        let mut plan = testing::plan("http://127.0.0.1:1");
        plan.load = testing::load("2000/s", Duration::from_secs(3_600));
        let needs = Needs::of(&plan);
        let why = needs.fits(has(1_000_000, 28_232)).unwrap_err().to_string();
        assert!(
            why.contains("wiremock keeps every request") && why.contains("GB, more than 2.15 GB"),
            "{why}"
        );
        plan.load = testing::load("2000/s", Duration::from_secs(20));
        plan.requests = testing::mix("20s");
        plan.max_outstanding = 40_000;
        let needs = Needs::of(&plan);
        let descriptors = needs.fits(has(20_000, 28_232)).unwrap_err().to_string();
        assert!(descriptors.contains(&format!("{} of 20000 allowed", 40_128 + needs.calls)), "{descriptors}");
        let ports = needs.fits(has(100_000, 28_232)).unwrap_err().to_string();
        assert!(ports.contains("40000 connections take a local port each"), "{ports}");
        plan.target.request.transport.source_addresses = vec![[127, 0, 0, 2].into(), [127, 0, 0, 3].into()];
        assert!(Needs::of(&plan).fits(has(100_000, 28_232)).is_ok(), "two addresses have twice the ports");
        let little = Has { memory: Bytes::new(1 << 30), ..has(100_000, 50_000) };
        let memory = needs.fits(little).unwrap_err().to_string();
        let takes = format!("{} for 40000 requests open at once", Needs::of(&plan).open_take);
        assert!(memory.contains(&takes), "{memory}");
        assert!(needs.fits(has(100_000, 50_000)).is_ok());
    }

    /// Ten thousand open requests over HTTP/1.1, and thirty thousand over HTTP/2, under a limit of 20,000 descriptors: the
    /// provider's quota lets few of them through at once.
    #[test]
    fn what_the_quota_holds_back_takes_no_descriptor_at_the_provider() {
        let mut plan = testing::plan("http://127.0.0.1:1");
        plan.load = testing::load("1000/s", Duration::from_secs(20));
        plan.requests = testing::mix("20s");
        plan.max_outstanding = 10_000;
        // 12 tokens a request: 100 a second, each for 10 ms
        plan.provider.quota = crate::provider::Quota::of_tokens(
            crate::units::Rate::per_minute(72_000).unwrap(),
            Duration::from_secs(1),
        );
        let needs = Needs::of(&plan);
        assert_eq!((needs.open, needs.connections.0), (10_000, 10_000));
        // 101 granted at once, 200 being refused, a quarter more, and some besides
        assert_eq!(needs.calls, 441);
        assert!(needs.fits(has(20_000, 28_232)).is_ok());
        plan.load = testing::load("3000/s", Duration::from_secs(10));
        plan.max_outstanding = 30_000;
        plan.target.request.transport.http = Http::Two { connections: None, streams: 100 };
        assert!(Needs::of(&plan).fits(has(20_000, 28_232)).is_ok());
        // nobody knows how long calls take that a fault holds up
        plan.provider.service.law = Law::Exponential;
        assert_eq!(Needs::of(&plan).calls, 30_000);
    }

    #[test]
    fn the_limit_of_descriptors_is_raised_past_what_was_reckoned_and_never_lowered() {
        assert_eq!(raised(3_000, 1_024, 20_000), 6_000);
        assert_eq!(raised(15_000, 1_024, 20_000), 20_000);
        assert_eq!(raised(30_000, 1_024, 20_000), 20_000);
        assert_eq!(raised(100, 1_024, 20_000), 1_024);
        assert_eq!(raised(100, u64::MAX, u64::MAX), u64::MAX);
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

    #[test]
    fn streams_need_few_connections_and_too_few_are_refused() {
        let mut plan = testing::plan("http://127.0.0.1:1");
        plan.load = testing::load("3000/s", Duration::from_secs(10));
        plan.requests = testing::mix("20s");
        plan.max_outstanding = 30_000;
        plan.target.request.transport.http = Http::Two { connections: None, streams: 100 };
        let needs = Needs::of(&plan);
        assert_eq!((needs.open, needs.connections), (30_000, (300, 100)));
        assert_eq!(needs.open_take, Bytes::new(30_000 * 20_000 + needs.calls * CALL_TAKES));
        assert!(needs.fits(has(31_000, 28_232)).is_ok() && needs.tight(28_232, true).is_empty());
        plan.target.request.transport.http = Http::Two { connections: Some(8), streams: 100 };
        let few = Needs::of(&plan).fits(has(100_000, 28_232)).unwrap_err().to_string();
        assert!(few.contains("set target.request.connections to 300 or leave it out"), "{few}");
    }

    #[test]
    fn past_half_the_ports_a_second_source_address_is_advised() {
        let mut plan = testing::plan("http://127.0.0.1:1");
        plan.load = testing::load("1000/s", Duration::from_secs(20));
        plan.requests = testing::mix("20s");
        plan.max_outstanding = 14_117;
        let tight = |plan: &Plan| Needs::of(plan).tight(28_232, true);
        assert!(
            tight(&plan)[0].contains("name 2 under target.request.source_addresses"),
            "{:?}",
            tight(&plan)
        );
        plan.max_outstanding = 14_116;
        assert!(tight(&plan).is_empty());
    }

    #[test]
    fn an_address_that_is_not_ours_is_refused_by_name() {
        let mut plan = testing::plan("http://127.0.0.1:1");
        plan.target.request.transport.source_addresses = vec![[192, 0, 2, 1].into()];
        let why = Needs::of(&plan).secure().unwrap_err().to_string();
        assert!(why.contains("no connection can come from 192.0.2.1"), "{why}");
    }
}
