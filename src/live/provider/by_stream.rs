//! A server of our own on a thread of its own. An answer comes when its time has come, whole or token by token; nothing
//! is kept of it afterwards. A call that is cut off before the end of its answer is counted, and told to the run.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, header};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep_until};

use super::office::{Answered, Came, Office, Reply, Work};
use crate::live::Clock;
use crate::provider::Flow;
use crate::provider::wire::Frames;

/// The largest request body that is read.
const LARGEST: usize = 64 << 20;
/// The most tokens that go out in one piece, if their time came long ago.
const AT_ONCE: u64 = 64;
/// How long to wait when no connection can be accepted: descriptors may come back.
const PAUSE: Duration = Duration::from_millis(10);

/// A running server. It ends when this is dropped.
pub(super) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // it may have ended already
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Serves what `office` answers on `listener`.
pub(super) fn start(listener: TcpListener, office: Office, cut: Arc<AtomicU64>) -> io::Result<Server> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let (stop, stopped) = oneshot::channel();
    let desk = Arc::new(Desk { office, cut });
    let thread = thread::Builder::new().name("provider".into()).spawn(move || {
        crate::live::priority::run_before_others();
        runtime.block_on(async {
            tokio::select! {
                () = accept(listener, desk) => {}
                _ = stopped => {}
            }
        });
        runtime.shutdown_background();
    })?;
    Ok(Server { stop: Some(stop), thread: Some(thread) })
}

struct Desk {
    office: Office,
    cut: Arc<AtomicU64>,
}

async fn accept(listener: tokio::net::TcpListener, desk: Arc<Desk>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // small pieces go out as they come
        let _ = stream.set_nodelay(true);
        let desk = Arc::clone(&desk);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&desk), request));
            // a broken connection concerns only whoever made it
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(desk: Arc<Desk>, request: Request<Incoming>) -> Result<Response<Answer>, Infallible> {
    let (head, body) = request.into_parts();
    // what is too large by its own word is not waited for
    if body.size_hint().lower() > LARGEST as u64 {
        return Ok(bare(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let Ok(body) = Limited::new(body, LARGEST).collect().await else {
        return Ok(bare(StatusCode::PAYLOAD_TOO_LARGE));
    };
    let body = body.to_bytes();
    let came = Came { method: &head.method, path: head.uri.path(), headers: &head.headers, body: &body };
    let reply = desk.office.reply(&came);
    drop(body);
    let Reply { status, kind, headers, body, until, work } = reply;
    let clock = desk.office.clock();
    let open = Open { desk: Some(Arc::clone(&desk)), work };
    let body = match body {
        Answered::Whole(text) => {
            sleep_until(clock.tokio_instant(until)).await;
            open.ended();
            Answer::Whole(Some(text.into()))
        }
        Answered::Stream { frames, flow } => Answer::Stream(Box::new(Stream::new(frames, flow, clock, open))),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            out.append(HeaderName::from_static(name), value);
        }
    }
    Ok(response)
}

fn bare(status: StatusCode) -> Response<Answer> {
    let mut response = Response::new(Answer::Whole(None));
    *response.status_mut() = status;
    response
}

/// Counts a call as cut off, and tells of it, if it is dropped before its end.
struct Open {
    desk: Option<Arc<Desk>>,
    work: Option<Work>,
}

impl Open {
    fn ended(mut self) {
        self.desk = None;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(desk) = self.desk.take() else { return };
        desk.cut.fetch_add(1, Ordering::Relaxed);
        if let Some(work) = &self.work {
            desk.office.cut_off(work);
        }
    }
}

/// The body of an answer.
enum Answer {
    Whole(Option<Bytes>),
    Stream(Box<Stream>),
}

/// An answer on its way out, token by token.
struct Stream {
    opening: Option<Bytes>,
    token: Bytes,
    closing: Option<Bytes>,
    flow: Flow,
    /// How many tokens are out.
    sent: u64,
    clock: Clock,
    timer: Pin<Box<Sleep>>,
    open: Option<Open>,
}

impl Stream {
    fn new(frames: Frames, flow: Flow, clock: Clock, open: Open) -> Self {
        Self {
            opening: Some(frames.opening.into()),
            token: frames.token.into(),
            closing: Some(frames.closing.into()),
            flow,
            sent: 0,
            clock,
            timer: Box::pin(sleep_until(clock.tokio_instant(flow.due(0)))),
            open: Some(open),
        }
    }

    /// Waits for what comes next: a token, and after the last the end.
    fn rearm(&mut self) {
        let at = self.clock.tokio_instant(self.flow.due(self.sent));
        self.timer.as_mut().reset(at);
    }

    /// Every token that is due by now and not out yet, in one piece of so many at most.
    fn due(&mut self) -> Bytes {
        let due = self.flow.by(self.clock.now()).saturating_sub(self.sent).min(AT_ONCE);
        self.sent += due;
        if due == 1 {
            return self.token.clone();
        }
        let count = usize::try_from(due).unwrap_or(0);
        let mut piece = BytesMut::with_capacity(self.token.len() * count);
        (0..count).for_each(|_| piece.extend_from_slice(&self.token));
        piece.freeze()
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let stream = match self.get_mut() {
            Self::Whole(body) => return Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Self::Stream(stream) => stream,
        };
        if let Some(opening) = stream.opening.take() {
            return Poll::Ready(Some(Ok(Frame::data(opening))));
        }
        while stream.sent < stream.flow.tokens {
            ready!(stream.timer.as_mut().poll(cx));
            let piece = stream.due();
            stream.rearm();
            // a timer is never early, but its clock and ours are read one after the other
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
        }
        if stream.closing.is_some() {
            ready!(stream.timer.as_mut().poll(cx));
        }
        let Some(closing) = stream.closing.take() else { return Poll::Ready(None) };
        if let Some(open) = stream.open.take() {
            open.ended();
        }
        Poll::Ready(Some(Ok(Frame::data(closing))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        match self {
            Self::Whole(body) => {
                http_body::SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64))
            }
            Self::Stream(_) => http_body::SizeHint::default(),
        }
    }
}
