//! Sending with hyper (HTTP/2: with h2, on which hyper is built): their connections, our own pool.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderValue, Method, Request, Version, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::{TrySendError, http1};
use hyper_util::rt::TokioIo;
use reqwest::Url;

use super::connect::Route;
use super::names::{Names, Peer};
use super::pool::{Bounds, Haste, Pool, Turn};
use super::two::{self, Line};
use super::{AT_ONCE, Outgoing, Reply, Rest as AnyRest};
use crate::live::body::Stamped;
use crate::live::trouble::{self, Trouble};
use crate::live::{Clock, LiveError};
use crate::observe::Broken;
use crate::plan::{Http, TargetRequest};

/// How long an HTTP/1.1 connection may lie idle: shorter than a server usually keeps it, so that none is closed just as
/// it is used.
const IDLE_FOR: Duration = Duration::from_secs(3);
/// What is read at once of an answer over HTTP/1.1, and so the longest head that is understood. Each open request has room
/// for so much, of which it takes what it uses: with 16 kB ten thousand of them measured as with 4.
const READ: usize = 16 * 1_024;
/// How often a request that was not written is tried on another connection.
const TRIES: usize = 3;

/// hyper, and the connections it has.
pub(in crate::live) struct Sender(Arc<Inner>);

struct Inner {
    route: Route,
    pool: Pool<Handle>,
    /// What stands in the request line: the path, or the whole over HTTP/2.
    uri: Uri,
    host: HeaderValue,
    http: Http,
    clock: Clock,
}

/// The right to send one request on a connection.
enum Handle {
    /// The whole connection, and whom it is to.
    One(http1::SendRequest<Stamped>, Arc<Peer>),
    /// A stream.
    Two(two::Place),
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("uri", &self.0.uri).field("http", &self.0.http).finish_non_exhaustive()
    }
}

/// A handle in use. It goes back to the pool when it is whole again: a stream always, a connection after a whole answer.
struct Held {
    handle: Option<Handle>,
    inner: Arc<Inner>,
    whole: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        let whole = self.whole || matches!(self.handle, Some(Handle::Two(..)));
        if let Some(handle) = self.handle.take().filter(|handle| whole && !handle.is_closed()) {
            self.inner.pool.give(self.inner.clock.now(), handle);
        }
    }
}

/// The rest of an answer.
pub(super) struct Rest {
    body: Body,
    held: Held,
}

enum Body {
    One(Incoming),
    Two(RecvStream),
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").finish_non_exhaustive()
    }
}

impl Sender {
    pub(super) fn new(
        url: &Url,
        request: &TargetRequest,
        open: u64,
        names: Arc<Names>,
        (clock, haste): (Clock, Arc<Haste>),
    ) -> Result<Self, LiveError> {
        let unusable = |_| LiveError::Request(format!("`{url}` is no address a request can be sent to"));
        let whole: Uri = url.as_str().parse().map_err(unusable)?;
        let authority = whole.authority().map_or("", |authority| authority.as_str());
        let bad_host = |_| LiveError::Request(format!("`{authority}` is no host a request can name"));
        let http = request.transport.http;
        let bounds = match http {
            Http::One => Bounds { places: 1, connections: usize::MAX, opening: AT_ONCE, idle_for: IDLE_FOR },
            Http::Two { streams, .. } => Bounds {
                places: usize::try_from(streams).unwrap_or(usize::MAX),
                connections: usize::try_from(request.transport.connections(open).0).unwrap_or(usize::MAX),
                opening: AT_ONCE,
                // a stream costs nothing to keep, and a connection that has ended says so
                idle_for: Duration::MAX,
            },
        };
        Ok(Self(Arc::new(Inner {
            route: Route::new(url, request, names)?,
            pool: Pool::new(bounds, haste),
            host: HeaderValue::from_str(authority).map_err(bad_host)?,
            uri: match http {
                Http::One => Uri::from(
                    whole.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/")),
                ),
                Http::Two { .. } => whole,
            },
            http,
            clock,
        })))
    }

    pub(super) async fn send(&self, outgoing: Box<Outgoing>) -> Result<Reply, Trouble> {
        let mut request = self.request(outgoing);
        for _ in 0..TRIES {
            let mut held = self.place().await?;
            let response = match held.handle.as_mut() {
                Some(Handle::One(one, _)) => match one.try_send_request(*request).await {
                    Ok(response) => response.map(Body::One),
                    Err(error) => {
                        request = unwritten(error)?;
                        continue;
                    }
                },
                // whether its connection takes one more has just been asked
                Some(Handle::Two(two)) => two.send(*request).await?.map(Body::Two),
                None => break,
            };
            held.handle.as_ref().map(Handle::peer).inspect(|peer| peer.answered());
            let (head, body) = response.into_parts();
            let body = AnyRest::Hyper(Rest { body, held });
            return Ok(Reply { status: head.status.as_u16(), headers: head.headers, body });
        }
        Err(Trouble::Broken(Broken::Closed))
    }

    fn request(&self, outgoing: Box<Outgoing>) -> Box<Request<Stamped>> {
        let Outgoing { headers, body } = *outgoing;
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.0.uri.clone();
        *request.headers_mut() = headers;
        match self.0.http {
            Http::One => drop(request.headers_mut().insert(header::HOST, self.0.host.clone())),
            Http::Two { .. } => *request.version_mut() = Version::HTTP_2,
        }
        Box::new(request)
    }

    /// A place on a connection that stands.
    async fn place(&self) -> Result<Held, Trouble> {
        let inner = &self.0;
        loop {
            let handle = match inner.pool.turn(inner.clock.now(), |handle: &Handle| !handle.is_closed()) {
                Turn::Take(handle) => handle,
                Turn::Wait { place, open } => {
                    if open {
                        tokio::spawn(open_connections(Arc::clone(inner)));
                    }
                    // told by whoever opens, gives or fails; dropped only with the pool
                    place.await.unwrap_or(Err(Trouble::Broken(Broken::Closed)))?
                }
            };
            let mut held = Held { handle: Some(handle), inner: Arc::clone(inner), whole: true };
            let stands = match held.handle.as_mut() {
                Some(Handle::One(one, _)) => one.ready().await.is_ok(),
                Some(Handle::Two(two)) => two.ready().await,
                None => false,
            };
            held.whole = false;
            if stands {
                return Ok(held);
            }
            // what is open on it may yet be answered, but it takes no more
            if let Some(Handle::Two(two)) = &held.handle {
                retire(inner, &two.line);
            }
        }
    }
}

/// The request, if nothing of it was written: the connection ended before its turn came.
fn unwritten(mut error: TrySendError<Request<Stamped>>) -> Result<Box<Request<Stamped>>, Trouble> {
    error.take_message().map(Box::new).ok_or_else(|| trouble::of_exchange(&error.into_error(), false))
}

impl Handle {
    fn is_closed(&self) -> bool {
        match self {
            Self::One(one, _) => one.is_closed(),
            Self::Two(two) => two.line.is_retired(),
        }
    }

    fn peer(&self) -> &Peer {
        match self {
            Self::One(_, peer) => peer,
            Self::Two(two) => &two.line.peer,
        }
    }
}

impl Rest {
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Trouble> {
        loop {
            let body = match &mut self.body {
                Body::One(body) => body,
                Body::Two(body) => return two::chunk(body).await.transpose(),
            };
            match body.frame().await {
                None => {
                    self.held.whole = true;
                    return Ok(None);
                }
                Some(Ok(frame)) => {
                    // trailers say nothing here
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => return Err(trouble::of_exchange(&error, true)),
            }
        }
    }
}

/// Opens a connection, and others after it while they are wanted.
async fn open_connections(inner: Arc<Inner>) {
    loop {
        let again = match open(&inner).await {
            Ok(handles) => inner.pool.opened(inner.clock.now(), handles),
            Err(trouble) => inner.pool.failed(inner.clock.now(), trouble),
        };
        if !again {
            return;
        }
    }
}

async fn open(inner: &Arc<Inner>) -> Result<Vec<Handle>, Trouble> {
    let (io, peer) = inner.route.connect().await?;
    match inner.http {
        Http::One => {
            let io = TokioIo::new(io);
            let mut builder = http1::Builder::new();
            builder.read_buf_exact_size(Some(READ));
            let (one, connection) =
                builder.handshake(io).await.map_err(|e| trouble::of_exchange(&e, false))?;
            let inner = Arc::downgrade(inner);
            tokio::spawn(async move {
                // the request on it is told the same
                let _ = connection.await;
                inner.upgrade().inspect(ended);
            });
            Ok(vec![Handle::One(one, peer)])
        }
        Http::Two { streams, .. } => {
            let (places, line, connection) = two::connect(io, peer, streams).await?;
            let inner = Arc::downgrade(inner);
            tokio::spawn(async move {
                // the requests on it are told the same
                let _ = connection.await;
                inner.upgrade().inspect(|inner| retire(inner, &line));
            });
            Ok(places.into_iter().map(Handle::Two).collect())
        }
    }
}

/// A connection takes no more requests; others may be wanted in its place.
fn ended(inner: &Arc<Inner>) {
    if inner.pool.ended(inner.clock.now()) {
        tokio::spawn(open_connections(Arc::clone(inner)));
    }
}

/// The same, of one that several have streams on: it is said once.
fn retire(inner: &Arc<Inner>, line: &Line) {
    if line.retire() {
        ended(inner);
    }
}
