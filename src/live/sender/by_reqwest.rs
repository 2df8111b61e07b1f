//! Sending with reqwest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use bytes::Bytes;
use http::Method;
use reqwest::{Client, Request, Response, Url};
use tokio::sync::Semaphore;
use tower::limit::ConcurrencyLimitLayer;

use super::names::{ForReqwest, Names};
use super::{AT_ONCE, Outgoing, Reply, Rest as AnyRest, tls};
use crate::live::trouble::{self, Trouble};
use crate::live::{LiveError, request};
use crate::plan::{Http, TargetRequest};

/// Idle connections that are kept.
const IDLE: usize = 1_024;

/// reqwest's clients: one for each source address and, since a client has one HTTP/2 connection to a host, one for each
/// of those.
#[derive(Debug)]
pub(in crate::live) struct Sender {
    url: Url,
    lanes: Vec<Lane>,
    next: AtomicUsize,
    names: Arc<Names>,
    /// Requests being written: each holds a permit until its body is first asked for.
    writing: Arc<Semaphore>,
    http: Http,
}

#[derive(Debug)]
struct Lane {
    client: Client,
    open: Arc<AtomicU32>,
}

/// A request that is open on a lane, until the last byte of its answer.
#[derive(Debug)]
struct Place(Arc<AtomicU32>);

impl Place {
    fn on(lane: &Lane) -> Self {
        lane.open.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&lane.open))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Sender {
    pub(super) fn new(
        url: Url,
        request: &TargetRequest,
        open: u64,
        names: Arc<Names>,
    ) -> Result<Self, LiveError> {
        let transport = &request.transport;
        let sources = transport.source_addresses.len().max(1);
        let lanes = match transport.http {
            Http::One => sources,
            Http::Two { .. } => {
                usize::try_from(transport.connections(open).0).unwrap_or(usize::MAX).max(sources)
            }
        };
        // once for all: reading the system's certificates takes longer than a request
        let tls = (url.scheme() == "https").then(|| tls::config(request)).transpose()?;
        let lane = |n: usize| {
            let source = transport.source_addresses.get(n % sources).copied();
            let client = match &tls {
                Some(config) => request::client(request)?.tls_backend_preconfigured(config.clone()),
                None => request::client(request)?.tls_certs_only([]),
            };
            let client = client
                .local_address(source)
                .dns_resolver(Arc::new(ForReqwest(Arc::clone(&names))))
                .pool_max_idle_per_host(IDLE)
                .connector_layer(ConcurrencyLimitLayer::new(AT_ONCE))
                .build()
                .map_err(LiveError::Client)?;
            Ok(Lane { client, open: Arc::default() })
        };
        Ok(Self {
            url,
            lanes: (0..lanes).map(lane).collect::<Result<_, LiveError>>()?,
            next: AtomicUsize::new(0),
            names,
            writing: Arc::new(Semaphore::new(AT_ONCE)),
            http: transport.http,
        })
    }

    /// The lane for the next request: in turn over HTTP/1.1, the one with the fewest open streams over HTTP/2.
    fn lane(&self) -> Option<&Lane> {
        match self.http {
            Http::One => self.lanes.get(self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len()),
            Http::Two { .. } => self.lanes.iter().min_by_key(|lane| lane.open.load(Ordering::Relaxed)),
        }
    }

    pub(super) async fn send(&self, mut outgoing: Box<Outgoing>) -> Result<Reply, Trouble> {
        // neither is ever missing: there is a lane, and nobody closes the semaphore
        let permit = Arc::clone(&self.writing).acquire_owned().await.map_err(|_| Trouble::Exhausted)?;
        let lane = self.lane().ok_or(Trouble::Exhausted)?;
        outgoing.body.until_written(permit);
        let place = Place::on(lane);
        let answer = lane.client.execute(self.request(*outgoing));
        let mut response = answer.await.map_err(|e| trouble::of(&e, false))?;
        // of a target without a name nobody asks which address answered
        if self.names.is_name()
            && let Some(address) = response.remote_addr()
        {
            self.names.peer(address.ip()).answered();
        }
        let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
        Ok(Reply { status, headers, body: AnyRest::Reqwest(Box::new(Rest { response, _place: place })) })
    }

    fn request(&self, Outgoing { headers, body }: Outgoing) -> Request {
        let mut request = Request::new(Method::POST, self.url.clone());
        *request.headers_mut() = headers;
        *request.body_mut() = Some(reqwest::Body::wrap(body));
        request
    }
}

/// The rest of an answer.
#[derive(Debug)]
pub(super) struct Rest {
    response: Response,
    _place: Place,
}

impl Rest {
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Trouble> {
        self.response.chunk().await.map_err(|e| trouble::of(&e, true))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::oneshot;

    use super::*;
    use crate::live::body::{Template, Written};
    use crate::live::{Clock, testing};
    use crate::observe::Attempt;
    use crate::units::Tokens;

    /// The least loaded connection is chosen by what is open on it, and an answer is that until its end.
    #[tokio::test]
    async fn a_request_is_open_until_the_last_byte_of_its_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (finish, finished) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = [0; 16 << 10];
            assert!(stream.read(&mut buffer).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab").await.unwrap();
            finished.await.unwrap();
            stream.write_all(b"cd").await.unwrap();
            stream
        });

        let plan = testing::plan(&base);
        let url: Url = base.parse().unwrap();
        let names = Names::of(&url, plan.target.request.transport.lookup);
        let sender = Sender::new(url, &plan.target.request, 1, names).unwrap();
        let open = || sender.lanes[0].open.load(Ordering::Relaxed);
        let (class, provider) = (&plan.requests.classes()[0], &plan.provider);
        let template = Template::new(provider.api, "m", class, provider.count).unwrap();
        let (out, _seen) = mpsc::channel();
        let written = Written::new(Attempt { seq: 0, nth: 0 }, Clock::start(), out);
        let body = template.body("id".into(), Tokens::new(1), written);
        let outgoing = Outgoing { headers: http::HeaderMap::new(), body };
        let mut reply = sender.send(Box::new(outgoing)).await.unwrap();
        assert_eq!((reply.status, open()), (200, 1), "its head has come, and it is open");
        finish.send(()).unwrap();
        let mut whole = Vec::new();
        while let Some(chunk) = reply.chunk().await.unwrap() {
            whole.extend_from_slice(&chunk);
        }
        assert_eq!(whole, b"abcd");
        drop(reply);
        assert_eq!(open(), 0);
        server.await.unwrap();
    }
}
