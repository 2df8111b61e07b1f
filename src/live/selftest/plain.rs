//! A plain server: it answers everything with the same completion and notes when each request came. It is what the
//! generator is measured against; it decides nothing.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::sync::watch;

use crate::live::Clock;
use crate::units::Moment;

/// What it answers.
const COMPLETION: &[u8] = br#"{"choices":[{"message":{"content":"word"}}]}"#;
/// Connections the system keeps until they are accepted.
const BACKLOG: i32 = 16_384;

/// How a plain server behaves.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// From a request to its answer.
    pub delay: Duration,
    /// So long after the first request it stops doing anything at all, once, for so long.
    pub freeze: Option<(Duration, Duration)>,
    /// The most streams it allows on an HTTP/2 connection.
    pub streams: u32,
    /// Whether it forgets when requests came: for loads that go on for long.
    pub forgets: bool,
}

impl Manner {
    /// Like the default, but it keeps nothing of what came.
    pub fn forgetful() -> Self {
        Self { forgets: true, ..Self::default() }
    }
}

impl Default for Manner {
    /// Answers at once, never freezes, and allows 100 streams, as many servers do.
    fn default() -> Self {
        Self { delay: Duration::ZERO, freeze: None, streams: 100, forgets: false }
    }
}

/// A running plain server. It ends when this is dropped.
#[derive(Debug)]
pub struct Plain {
    address: SocketAddr,
    shared: Arc<Shared>,
    quit: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// What its connections share.
#[derive(Debug)]
struct Shared {
    clock: Clock,
    manner: Manner,
    arrived: Mutex<Vec<Moment>>,
    first: OnceLock<Moment>,
    sources: Mutex<BTreeMap<IpAddr, u64>>,
    frozen: AtomicBool,
}

impl Plain {
    /// Starts one on a free port of this machine, with HTTP/1.1 and, for callers that know it, HTTP/2.
    ///
    /// # Errors
    /// If the system gives it no socket or thread.
    pub fn start(clock: Clock, manner: Manner) -> io::Result<Self> {
        let listener = listen()?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            clock,
            manner,
            arrived: Mutex::default(),
            first: OnceLock::new(),
            sources: Mutex::default(),
            frozen: AtomicBool::new(false),
        });
        let (quit, mut quitting) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let inner = Arc::clone(&shared);
        let thread = thread::Builder::new().name("plain".into()).spawn(move || {
            // it is what the others are measured by
            crate::live::run_before_others();
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, inner) => {}
                    _ = quitting.wait_for(|quit| *quit) => {}
                }
            });
            runtime.shutdown_background();
        })?;
        Ok(Self { address, shared, quit, thread: Some(thread) })
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many connections it has accepted.
    pub fn connections(&self) -> u64 {
        self.sources().values().sum()
    }

    /// How many of them came from each address.
    pub fn sources(&self) -> BTreeMap<IpAddr, u64> {
        self.shared.sources.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When requests came, in order, since this was last asked. Pings (every GET) are not among them.
    pub fn take_arrivals(&self) -> Vec<Moment> {
        std::mem::take(&mut *self.shared.arrived.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // nobody is left to be told if it has ended by itself
        let _ = self.quit.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn listen() -> io::Result<TcpListener> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(None);
    http.http2().timer(TokioTimer::new()).max_concurrent_streams(shared.manner.streams);
    let http = Arc::new(http);
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            // no descriptor is free: some will be
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        // an answer of one segment goes out at once either way
        let _ = stream.set_nodelay(true);
        *shared.sources.lock().unwrap_or_else(PoisonError::into_inner).entry(from.ip()).or_default() += 1;
        let (http, shared) = (Arc::clone(&http), Arc::clone(&shared));
        tokio::spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&shared), request));
            // a caller that has gone is none of our business
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let at = shared.clock.now();
    if request.method() == Method::GET {
        return Ok(completion());
    }
    if !shared.manner.forgets {
        shared.arrived.lock().unwrap_or_else(PoisonError::into_inner).push(at);
    }
    let first = *shared.first.get_or_init(|| at);
    if let Some((after, lasts)) = shared.manner.freeze
        && at >= first + after
        && !shared.frozen.swap(true, Ordering::Relaxed)
    {
        // the whole thread: nothing is read, accepted or answered
        shared.clock.sleep_until(at + lasts);
    }
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    if shared.manner.delay > Duration::ZERO {
        tokio::time::sleep_until(shared.clock.tokio_instant(at + shared.manner.delay)).await;
    }
    Ok(completion())
}

fn completion() -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(COMPLETION)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
