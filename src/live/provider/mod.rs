//! The provider's shells: servers around [`crate::provider`]. Both do the same with a request (`office`), and tell the
//! run of it as it arrives.
//!
//! `engine: wiremock` keeps every request it has matched for as long as it lives: [`ProviderShell::keeps`] says how much
//! that comes to. It gives whole answers only and cannot see a cancelled call. When descriptors run out its accept loop
//! ends without a word: [`ProviderShell::answers`] is how a run notices.
//!
//! `engine: stream` is a server of our own: whole answers and streamed ones, token by token; it keeps nothing, and sees
//! calls that are cut off.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::Clock;
use crate::observe::Sighting;
use crate::plan::DeadlineHeader;
use crate::provider::wire::RequestId;
use crate::provider::{Config, Engine, Provider, What};
use crate::units::{Bytes, Moment};

mod by_stream;
mod by_wiremock;
mod office;

use office::Office;

/// Connections the system keeps until they are accepted.
const BACKLOG: i32 = 4_096;

/// What wiremock keeps of a matched request besides its body: the request itself, and the buffer its head was read into,
/// which every value of a header is a piece of.
const KEPT_PER_REQUEST: u64 = 8_000;
/// What it keeps of a body, for each byte: a copy that grew by doubling.
const KEPT_PER_BYTE: u64 = 2;

/// What the provider saw of a request, by its id.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrived {
    /// Its id, as the provider read it.
    pub id: RequestId,
    /// Which carriers of the id came through the gateway.
    pub carriers: Carriers,
    /// What the run's observer is to be told of it: [`Sighting::AtProvider`] as it comes, or [`Sighting::CutOff`] as it
    /// leaves before the end of its answer.
    pub sighting: Sighting,
}

/// The ways an id travels, and which of them a request still had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Carriers {
    /// The `x-request-id` header.
    pub request_id: bool,
    /// The W3C `traceparent` header.
    pub traceparent: bool,
    /// The `user` field of the body.
    pub user: bool,
}

impl fmt::Display for Carriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named =
            [(self.request_id, "x-request-id"), (self.traceparent, "traceparent"), (self.user, "user")];
        let names: Vec<_> = named.iter().filter(|(has, _)| *has).map(|(_, name)| *name).collect();
        f.write_str(&if names.is_empty() { "none".to_owned() } else { names.join(", ") })
    }
}

/// Why the provider could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// The address in the plan cannot be listened on.
    #[error(
        "the provider cannot listen on {address}: {source} (is it taken? provider.listen: 127.0.0.1:0 takes a free port)"
    )]
    Listen {
        /// The address, as the plan gives it.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The system gave no thread or runtime to start it on.
    #[error("the provider cannot be started: {0}")]
    Start(io::Error),
}

/// A running provider. It ends when this is dropped.
pub struct ProviderShell {
    /// Its own thread serves; this ends it.
    _server: Server,
    address: SocketAddr,
    url: String,
    strangers: Arc<AtomicU64>,
    cut: Arc<AtomicU64>,
    machine: Arc<Mutex<Provider>>,
}

/// What serves.
enum Server {
    Wiremock { _server: wiremock::MockServer },
    Stream { _server: by_stream::Server },
}

impl ProviderShell {
    /// Starts the provider of `config` for the run with the id `run`. `tell` is called for every request of this run
    /// that reaches it, in order of their instants, on the provider's thread: it must not block. `engine: stream` calls it
    /// again for one that is cut off before the end of its answer. The budget each was told is read from `deadline`.
    pub fn start(
        config: &Config,
        deadline: &DeadlineHeader,
        clock: Clock,
        run: u32,
        tell: impl Fn(Arrived) + Send + Sync + 'static,
    ) -> Result<Self, ProviderError> {
        let failed = |source| ProviderError::Listen { address: config.listen.clone(), source };
        let listener = listen(&config.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let strangers = Arc::new(AtomicU64::new(0));
        let office = Office::new(config, deadline, clock, run, Arc::clone(&strangers), Box::new(tell));
        let cut = Arc::new(AtomicU64::new(0));
        let machine = office.machine();
        let resets = config.faults.iter().any(|fault| matches!(fault.what, What::Resets(_)));
        let server = match config.engine {
            Engine::Wiremock => {
                by_wiremock::start(listener, office).map(|server| Server::Wiremock { _server: server })
            }
            Engine::Stream => by_stream::start(listener, office, Arc::clone(&cut), resets)
                .map(|server| Server::Stream { _server: server }),
        };
        let server = server.map_err(ProviderError::Start)?;
        let url = config.advertise.clone().unwrap_or_else(|| format!("http://{}", reachable(address)));
        Ok(Self { _server: server, address, url, strangers, cut, machine })
    }

    /// The load begins at `at`: the times of the plan's faults count from then.
    pub fn begin(&self, at: Moment) {
        // a panic of a call leaves the machine whole: it has no half-done state
        self.machine.lock().unwrap_or_else(std::sync::PoisonError::into_inner).begin(at);
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL the gateway shall call: the plan's `advertise`, else where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How many requests came that were none of this run's.
    pub fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Relaxed)
    }

    /// How many calls were cut off before the end of their answer: whoever made them left. Only `engine: stream` sees it.
    pub fn cut(&self) -> u64 {
        self.cut.load(Ordering::Relaxed)
    }

    /// Whether it answers on a new connection within `within`. Blocks for so long at most; not for a runtime's thread.
    pub fn answers(&self, within: Duration) -> bool {
        answers(reachable(self.address), within)
    }

    /// What wiremock will have kept after `requests` with bodies of `body` each: it keeps what it has matched for as
    /// long as it lives. Measured: 5.0 kB each without a body, 8.4 with one of 0.9 kB, 15.4 with one of 5.7 kB, 36 with
    /// one of 20 kB, 72 with one of 40 kB; a gateway whose requests come in several pieces makes it a third more.
    pub fn keeps(requests: u64, body: Bytes) -> Bytes {
        let each = body.get().saturating_mul(KEPT_PER_BYTE).saturating_add(KEPT_PER_REQUEST);
        Bytes::new(requests.saturating_mul(each))
    }
}

impl fmt::Debug for ProviderShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderShell").field("url", &self.url).finish_non_exhaustive()
    }
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let address: SocketAddr = address.parse().map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// An address to connect to: an unspecified one is reached by loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        SocketAddr::V4(_) | SocketAddr::V6(_) => {}
    }
    address
}

fn answers(address: SocketAddr, within: Duration) -> bool {
    let ask = || -> io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(&address, within)?;
        stream.set_read_timeout(Some(within))?;
        stream.set_write_timeout(Some(within))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: provider\r\nconnection: close\r\n\r\n")?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(status == *b"HTTP/1.1 200")
    };
    ask().unwrap_or(false)
}

#[cfg(test)]
mod tests;
