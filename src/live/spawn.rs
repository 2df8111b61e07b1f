//! A command as the target: what it is given before it starts, and the wait until it answers.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::child::Child;
use super::target::{Start, gone, is_ready, pause, said};
use super::{LiveError, request};
use crate::plan::Spawn;
use crate::plan::address::Address;
use crate::units::show_duration;

/// From one look at its readiness to the next.
const LOOK: Duration = Duration::from_millis(50);

/// What a command is given: ports nobody else is handed meanwhile, a directory of its own, and the variables that tell
/// it of them. The directory is gone when this is dropped.
#[derive(Debug)]
pub(super) struct Berth {
    variables: BTreeMap<&'static str, String>,
    /// Where it answers once it is ready.
    ready: String,
    /// Where requests go.
    url: String,
    dir: PathBuf,
    metrics: Port,
    _target: Option<Port>,
}

/// A port kept free for a command. The socket is bound and never listens: the system hands the port to nobody who asks
/// for any, and a server that sets `SO_REUSEADDR`, as servers do, can still take it.
#[derive(Debug)]
struct Port {
    number: u16,
    _held: Socket,
}

impl Port {
    /// One that is free at `host`.
    fn free(host: IpAddr) -> io::Result<Self> {
        let held = Socket::new(Domain::for_address((host, 0).into()), Type::STREAM, Some(Protocol::TCP))?;
        held.set_reuse_address(true)?;
        held.bind(&SocketAddr::from((host, 0)).into())?;
        let address = held.local_addr()?.as_socket();
        let number = address.ok_or_else(|| io::Error::other("a socket without a port"))?.port();
        Ok(Self { number, _held: held })
    }
}

impl Berth {
    /// Prepares everything `spawn` needs to call `provider_url`.
    fn prepare(spawn: &Spawn, provider_url: &str) -> Result<Self, LiveError> {
        let failed = |what: &str, e: &io::Error| LiveError::Target(format!("target.spawn: {what}: {e}"));
        let provider = address(provider_url)?;
        let ready = address(&spawn.ready)?;
        // what is not this machine has no free port: port 0 is refused there, and its metrics have a port of their own
        let here = if ready.is_loopback() { ip(&ready.host) } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let free = || Port::free(here).map_err(|e| failed("no port could be kept free", &e));
        let target = if ready.port == Some(0) { Some(free()?) } else { None };
        let number = target.as_ref().map_or_else(|| port_of(&ready), |port| port.number);
        let metrics = free()?;
        let settled = |url: &str| {
            let mut address = address(url)?;
            if address.port == Some(0) {
                address.port = Some(number);
            }
            Ok::<_, LiveError>(address)
        };
        let dir = directory().map_err(|e| failed("no directory could be made for it", &e))?;
        let variables = BTreeMap::from([
            ("TENFOLD_DIR", dir.display().to_string()),
            ("TENFOLD_METRICS_PORT", metrics.number.to_string()),
            ("TENFOLD_PROVIDER_HOST", provider.host.clone()),
            ("TENFOLD_PROVIDER_PORT", port_of(&provider).to_string()),
            ("TENFOLD_PROVIDER_URL", provider_url.to_owned()),
            ("TENFOLD_TARGET_HOST", ready.host.clone()),
            ("TENFOLD_TARGET_PORT", number.to_string()),
        ]);
        let ready = settled(&spawn.ready)?;
        let ready = format!("{}{}", ready.origin(), ready.path);
        let url = settled(&spawn.url)?.origin();
        let mut berth = Self { variables, ready, url, dir, metrics, _target: target };
        berth.configure(spawn).map_err(|e| failed("its configuration could not be written", &e))?;
        Ok(berth)
    }

    /// The port that is kept for its metrics.
    pub(super) const fn metrics_port(&self) -> u16 {
        self.metrics.number
    }

    /// Writes the configuration, if there is one to be made.
    fn configure(&mut self, spawn: &Spawn) -> io::Result<()> {
        let Some(template) = &spawn.config else { return Ok(()) };
        let name = Path::new(&template.file).file_name().unwrap_or_else(|| "config".as_ref());
        let path = self.dir.join(name);
        self.variables.insert("TENFOLD_CONFIG", path.display().to_string());
        let value = |name: &str| self.variables.get(name).or_else(|| spawn.env.get(name)).cloned();
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(template.filled(value).as_bytes())
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        // what cannot be removed is left for the system's own cleaning of temporary files
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A new directory that only we may read.
fn directory() -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let name = format!("tenfold-{}-{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            // left by a process of this number that was killed
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}

fn address(url: &str) -> Result<Address, LiveError> {
    Address::parse_or_free(url).map_err(LiveError::Request)
}

fn port_of(address: &Address) -> u16 {
    address.port.unwrap_or(if address.scheme == "https" { 443 } else { 80 })
}

/// The address of a host of this machine.
fn ip(host: &str) -> IpAddr {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare.parse().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// A command that is up.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) child: Child,
    pub(super) berth: Berth,
    /// Where requests go.
    pub(super) url: String,
}

/// Starts `spawn` and waits until it answers.
pub(super) fn start(spawn: &Spawn, with: Start<'_>) -> Result<Spawned, LiveError> {
    let Some((program, arguments)) = spawn.command.split_first() else {
        return Err(LiveError::Target("target.spawn.command is empty: name the program to start".into()));
    };
    let berth = Berth::prepare(spawn, with.provider_url)?;
    let mut command = Command::new(program);
    command.args(arguments).envs(&spawn.env).envs(&berth.variables);
    let (mut child, _) = Child::start(command, None, with.clock).map_err(|e| {
        LiveError::Target(format!(
            "target.spawn.command: `{program}` could not be started: {e} (is it installed?)"
        ))
    })?;
    let ready = request::join(&berth.ready, "")?;
    let client = request::client(&with.plan.target.request)?.build().map_err(LiveError::Client)?;
    let until = with.clock.now() + spawn.ready_within;
    while !is_ready(with.runtime, &client, &ready) {
        if with.stop.asked() {
            return Err(LiveError::Interrupted);
        }
        if let Some(how) = child.ended() {
            return Err(gone(&format!("`{program}`"), &how, &child));
        }
        if with.clock.now() >= until {
            return Err(LiveError::Target(format!(
                "`{program}` was started but {ready} did not answer 200 within {} (target.spawn.ready, \
                 ready_within){}",
                show_duration(spawn.ready_within),
                said(&child)
            )));
        }
        pause(with.clock, LOOK);
    }
    let url = berth.url.clone();
    Ok(Spawned { child, berth, url })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::TcpListener;

    use super::*;
    use crate::plan::Template;

    fn spawn(ready: &str, config: Option<&str>) -> Spawn {
        let url = Address::parse_or_free(ready).unwrap().origin();
        let config = config.map(|text| Template { file: "../some/gw.conf".into(), text: text.into() });
        let env = BTreeMap::from([("MODE".to_owned(), "strict".to_owned())]);
        Spawn {
            command: vec!["x".into()],
            ready: ready.into(),
            url,
            config,
            ready_within: LOOK,
            env,
            policy: None,
        }
    }

    #[test]
    fn a_port_that_is_kept_is_handed_to_nobody_and_can_be_taken_by_the_one_who_was_told() {
        let berth = Berth::prepare(&spawn("http://127.0.0.1:0/up", None), "http://127.0.0.1:9").unwrap();
        let port: u16 = berth.variables["TENFOLD_TARGET_PORT"].parse().unwrap();
        assert_eq!(berth.ready, format!("http://127.0.0.1:{port}/up"));
        assert_eq!(berth.url, format!("http://127.0.0.1:{port}"));
        let others: Vec<_> = (0..200).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        assert!(others.iter().all(|other| other.local_addr().unwrap().port() != port));
        // a server of the standard library sets SO_REUSEADDR
        let server = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert_eq!(server.local_addr().unwrap().port(), port);
    }

    #[test]
    fn a_configuration_is_made_for_the_run_and_gone_after_it() {
        let text =
            "listen ${TENFOLD_TARGET_PORT} to ${TENFOLD_PROVIDER_HOST}:${TENFOLD_PROVIDER_PORT} ${MODE} $x";
        let berth = Berth::prepare(&spawn("http://127.0.0.1:81/", Some(text)), "http://127.0.0.1:9").unwrap();
        let path = PathBuf::from(&berth.variables["TENFOLD_CONFIG"]);
        assert_eq!(path.file_name().unwrap(), "gw.conf");
        assert_eq!(fs::read_to_string(&path).unwrap(), "listen 81 to 127.0.0.1:9 strict $x");
        drop(berth);
        assert!(!path.exists() && !path.parent().unwrap().exists());
    }

    #[test]
    fn two_targets_share_neither_port_nor_directory() {
        let berths: Vec<_> = (0..2)
            .map(|_| Berth::prepare(&spawn("http://127.0.0.1:0/", None), "https://[::1]").unwrap())
            .collect();
        assert_eq!(berths[0].variables["TENFOLD_METRICS_PORT"], berths[0].metrics_port().to_string());
        for variable in ["TENFOLD_DIR", "TENFOLD_TARGET_PORT", "TENFOLD_METRICS_PORT"] {
            assert_ne!(berths[0].variables[variable], berths[1].variables[variable]);
        }
        assert_eq!(berths[0].variables["TENFOLD_PROVIDER_PORT"], "443");
    }
}
