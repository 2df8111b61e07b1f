//! HTTP/2 by the h2 crate itself. hyper would spawn a task and open channels for each request; ten thousand of them are
//! what an open request then costs most.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use http_body::Body as _;

use super::connect::Io;
use super::names::Peer;
use crate::live::body::Stamped;
use crate::live::trouble::{self, Trouble};

/// How much of answers a connection, and a stream on it, may have under way.
const WINDOWS: (u32, u32) = (5 << 20, 2 << 20);
/// The largest head of an answer that is taken.
const HEAD: u32 = 64 << 10;

/// A connection that stands, until it has ended or takes no more requests.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) peer: Arc<Peer>,
    ended: AtomicBool,
}

impl Line {
    /// It takes no more requests: somebody found out. True for the first who did.
    pub(super) fn retire(&self) -> bool {
        !self.ended.swap(true, Ordering::AcqRel)
    }

    pub(super) fn is_retired(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// The right to have one stream on a connection.
pub(super) struct Place {
    send: SendRequest<Bytes>,
    pub(super) line: Arc<Line>,
}

/// A new connection over `io`: its places, and what drives it to its end.
pub(super) async fn connect(
    io: Box<dyn Io>,
    peer: Arc<Peer>,
    streams: u32,
) -> Result<(Vec<Place>, Arc<Line>, Connection<Box<dyn Io>, Bytes>), Trouble> {
    let mut builder = Builder::new();
    builder
        .initial_connection_window_size(WINDOWS.0)
        .initial_window_size(WINDOWS.1)
        .max_header_list_size(HEAD)
        .enable_push(false)
        // none before the server has said how many it allows: those over its limit would be refused
        .initial_max_send_streams(0);
    let (send, connection) = builder.handshake(io).await.map_err(|e| trouble::of_stream(&e, false))?;
    let line = Arc::new(Line { peer, ended: AtomicBool::new(false) });
    let place = |_| Place { send: send.clone(), line: Arc::clone(&line) };
    Ok(((0..streams).map(place).collect(), line, connection))
}

impl Place {
    /// Whether a request can be sent.
    pub(super) async fn ready(&mut self) -> bool {
        std::future::poll_fn(|cx| self.send.poll_ready(cx)).await.is_ok()
    }

    /// Sends one request and reads the head of its answer. Dropping the future resets the stream.
    pub(super) async fn send(&mut self, request: Request<Stamped>) -> Result<Response<RecvStream>, Trouble> {
        let (mut parts, mut body) = request.into_parts();
        if let Some(length) = body.size_hint().exact() {
            parts.headers.insert(http::header::CONTENT_LENGTH, length.into());
        }
        let head = Request::from_parts(parts, ());
        let read = |error: h2::Error| trouble::of_stream(&error, false);
        // a handle keeps hold of a stream that waits to be opened, so this one goes when the request does: who leaves before
        // that resets it
        let mut handle = self.send.clone();
        let (answer, mut stream) = handle.send_request(head, false).map_err(read)?;
        let mut answer = pin!(answer);
        let mut whole = false;
        let answered = std::future::poll_fn(|cx| {
            // an answer may come before the whole request is written, and an error of writing shows in the answer
            whole = whole || write(&mut stream, &mut body, cx).is_ready();
            answer.as_mut().poll(cx)
        });
        answered.await.map_err(read)
    }
}

/// Writes as much of a body as the other side will take. Ready once there is nothing more to be written.
fn write(stream: &mut SendStream<Bytes>, body: &mut Stamped, cx: &mut Context<'_>) -> Poll<()> {
    loop {
        if stream.capacity() == 0 {
            // as much as there is of a piece goes as one: what is over waits in the connection, which shares it
            stream.reserve_capacity(1);
            match ready!(stream.poll_capacity(cx)) {
                Some(Ok(_)) => continue,
                Some(Err(_)) | None => return Poll::Ready(()),
            }
        }
        let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut *body).poll_frame(cx) else {
            return Poll::Ready(());
        };
        let last = body.is_end_stream();
        let Ok(data) = frame.into_data() else { return Poll::Ready(()) };
        // an error here shows in the answer
        if stream.send_data(data, last).is_err() || last {
            return Poll::Ready(());
        }
    }
}

/// The next piece of an answer's body.
pub(super) async fn chunk(body: &mut RecvStream) -> Option<Result<Bytes, Trouble>> {
    let read = |error: h2::Error| trouble::of_stream(&error, true);
    let data = match body.data().await? {
        Ok(data) => data,
        Err(error) => return Some(Err(read(error))),
    };
    let freed = body.flow_control().release_capacity(data.len());
    Some(freed.map(|()| data).map_err(read))
}
