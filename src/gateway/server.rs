use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};

use super::ask::Tenants;
use super::call::Gateway;
use super::faults::Wrongs;
use super::operation::Digests;
use super::shell::{Clocks, Shell};
use super::{Config, upstream};
use crate::units::Moment;

/// Connections the system keeps for us until they are accepted: a burst larger than this is refused by the system.
const BACKLOG: i32 = 4_096;

/// How long a connection may take to send the head of a request, and may be idle between two.
const HEAD: Duration = Duration::from_secs(60);

/// The largest head of a request.
const MOST_HEAD: usize = 32 << 10;

/// How long accepting rests after a failure, such as a lack of descriptors.
const REST: Duration = Duration::from_millis(10);

/// How long a stop waits for answers that are on their way.
const GRACE: Duration = Duration::from_secs(30);

/// The most connections at once, whatever the system allows.
const MOST_CONNECTIONS: usize = 32_768;

/// Descriptors that are not connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// Why a gateway could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source} (is it taken? port 0 takes a free one)")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The certificates cannot be read.
    #[error("cannot use the certificates in `{}`: {why}", file.display())]
    Certificates {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The client towards the provider cannot be made.
    #[error("cannot make the client for the provider")]
    Client(#[source] reqwest::Error),
    /// The provider's address and path make no URL together.
    #[error("`{0}` is no URL to call (write provider: http://127.0.0.1:9000)")]
    Url(String),
    /// The system gives no threads, timers or signals.
    #[error("cannot start the runtime")]
    Runtime(#[source] io::Error),
}

/// A gateway that listens, but answers nobody yet.
#[derive(Debug)]
pub struct Bound {
    config: Config,
    listener: TcpListener,
    address: SocketAddr,
    client: reqwest::Client,
    url: reqwest::Url,
}

impl Bound {
    /// Takes the address of `config` and prepares the way to the provider.
    pub fn new(config: Config) -> Result<Self, ServeError> {
        let client = upstream::client(&config)?;
        let url = format!("{}{}", config.provider, config.path);
        let url = url.parse().map_err(|_| ServeError::Url(url))?;
        let failed = |source| ServeError::Listen { address: config.listen, source };
        let listener = listen(config.listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { config, listener, address, client, url })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on this thread until `stop` ends. Then nothing new is accepted, what waits is refused, and what is at the
    /// provider is finished, for at most thirty seconds.
    ///
    /// `now` is the clock, and `unix` the time on the wall since 1970, which deadlines that are instants are read by.
    /// `stop` is called once the runtime stands, so that it can ask for signals.
    pub fn serve<F: Future<Output = ()>>(
        self,
        now: impl Fn() -> Moment + 'static,
        unix: impl Fn() -> Duration + 'static,
        stop: impl FnOnce() -> io::Result<F>,
    ) -> Result<(), ServeError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .map_err(ServeError::Runtime)?;
        runtime.block_on(async {
            let stop = stop().map_err(ServeError::Runtime)?;
            let listener = tokio::net::TcpListener::from_std(self.listener).map_err(ServeError::Runtime)?;
            let clocks = Clocks { now: Box::new(now), unix: Box::new(unix) };
            let shell = Rc::new(Shell::new(&self.config.admission, clocks));
            let Self { config, client, url, .. } = self;
            let tenants = Tenants::new(&config.admission.tenants);
            let digests = Digests::default();
            let wrongs = Wrongs::of(&config.admission.faults);
            let gateway = Gateway { shell: Rc::clone(&shell), config, client, url, tenants, digests, wrongs };
            let gateway = Rc::new(gateway);
            let waker = tokio::task::spawn_local(Rc::clone(&shell).keep_awake());
            serve(gateway, listener, stop).await;
            waker.abort();
            Ok(())
        })
    }
}

/// A listener with room for a burst.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// How many callers may be connected at once. Calls to the provider need connections too: as many as may run at a time,
/// if that is limited; else a fifth is left to them, since most of many callers wait. A call that finds none left has
/// cost nothing, and is tried again.
fn most_connections(concurrent: Option<u32>) -> usize {
    let limit = getrlimit(Resource::Nofile);
    // a process may raise its own limit as far as it was given; where it may not, the old one stands
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let all = descriptors.saturating_sub(OTHER_DESCRIPTORS);
    let calls = concurrent.map_or(all / 5, |slots| (u64::from(slots) + upstream::IDLE as u64).min(all / 2));
    let most = all - calls;
    usize::try_from(most).unwrap_or(usize::MAX).clamp(1, MOST_CONNECTIONS)
}

async fn serve(gateway: Rc<Gateway>, listener: tokio::net::TcpListener, stop: impl Future<Output = ()>) {
    let most = most_connections(gateway.config.admission.budgets.concurrent);
    let places = Arc::new(Semaphore::new(most));
    let (stopping, stopped) = watch::channel(());
    let mut stop = pin!(stop);
    loop {
        // a connection without a place stays in the backlog until another ends
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = async {
                let place = Arc::clone(&places).acquire_owned().await.expect("the semaphore is never closed");
                listener.accept().await.map(|(stream, _)| (stream, place))
            } => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let connection = connection(Rc::clone(&gateway), stream, stopped.clone());
                tokio::task::spawn_local(async move {
                    connection.await;
                    drop(place);
                });
            }
            // a lack of descriptors, or a caller that is gone again: neither is a reason to end
            Err(_) => sleep(REST).await,
        }
    }
    drop(listener);
    gateway.shell.stop();
    // every connection has its own receiver
    let _ = stopping.send(());
    let all = u32::try_from(most).unwrap_or(u32::MAX);
    // those that are not done by then end with the process
    let _ = timeout(GRACE, places.acquire_many(all)).await;
}

async fn connection(gateway: Rc<Gateway>, stream: TcpStream, mut stopped: watch::Receiver<()>) {
    // without it an answer is only slower
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| Rc::clone(&gateway).answer(request));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_buf_size(MOST_HEAD)
            .serve_connection(TokioIo::new(stream), service)
    );
    // how a connection ended is told by its requests: a caller that left is no error of the gateway's
    tokio::select! {
        _ = connection.as_mut() => {}
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}
