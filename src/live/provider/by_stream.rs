//! A server of our own on a thread of its own. An answer comes when its time has come, whole or token by token; nothing
//! is kept of it afterwards. A call that is cut off before the end of its answer is counted, and told to the run.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
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
use socket2::SockRef;
use tokio::sync::oneshot;
use tokio::time::{Sleep, sleep_until};

use super::office::{Answered, Came, End, Office, Reply, Work};
use crate::live::Clock;
use crate::provider::Flow;
use crate::provider::wire::Frames;
use crate::units::Moment;

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

/// Serves what `office` answers on `listener`; `resets` if it may have to reset a connection.
pub(super) fn start(
    listener: TcpListener,
    office: Office,
    cut: Arc<AtomicU64>,
    resets: bool,
) -> io::Result<Server> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let (stop, stopped) = oneshot::channel();
    let desk = Arc::new(Desk { office, cut, resets });
    let thread = thread::Builder::new().name("provider".into()).spawn(move || {
        crate::live::run_before_others();
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
    /// Whether a fault of the plan resets connections.
    resets: bool,
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
            // a descriptor more for each connection, only where one may be reset
            let connection = desk.resets.then(|| stream.as_fd().try_clone_to_owned().ok()).flatten();
            let connection = connection.as_ref();
            let service = service_fn(|request| answer(Arc::clone(&desk), request, connection));
            // a broken connection concerns only whoever made it
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// The answer to a request; an error ends its connection without one.
async fn answer(
    desk: Arc<Desk>,
    request: Request<Incoming>,
    connection: Option<&OwnedFd>,
) -> io::Result<Response<Answer>> {
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
    let Reply { status, kind, headers, body, until, work, end } = reply;
    let clock = desk.office.clock();
    let open = Open { desk: Some(Arc::clone(&desk)), work };
    let body = match (end, body) {
        (End::Reset, _) => {
            open.ended();
            // closed with this it is reset, and not ended
            let reset = connection.map(|fd| SockRef::from(fd).set_linger(Some(Duration::ZERO)));
            return Err(reset.and_then(Result::err).unwrap_or_else(broken_off));
        }
        (End::Never, _) => std::future::pending().await,
        (End::Cut(at), Answered::Whole(text)) => {
            sleep_until(clock.tokio_instant(at)).await;
            open.ended();
            let (length, whole) = (text.len(), Bytes::from(text));
            Answer::Cut { length: length as u64, half: Some(whole.slice(..length / 2)), flushed: false }
        }
        (_, Answered::Whole(text)) => {
            sleep_until(clock.tokio_instant(until)).await;
            open.ended();
            Answer::Whole(Some(text.into()))
        }
        (end, Answered::Stream { frames, flow }) => {
            let cut = if let End::Cut(at) = end { Some(at) } else { None };
            Answer::Stream(Box::new(Stream::new(frames, flow, cut, clock, open)))
        }
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

/// The provider's own fault.
fn broken_off() -> io::Error {
    io::Error::other("a fault of the plan ends the connection")
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
    /// One that breaks off in the middle.
    Cut {
        length: u64,
        half: Option<Bytes>,
        flushed: bool,
    },
    Stream(Box<Stream>),
}

/// An answer on its way out, token by token.
struct Stream {
    opening: Option<Bytes>,
    token: Bytes,
    closing: Option<Bytes>,
    flow: Flow,
    /// When it breaks off, if it does.
    cut: Option<Moment>,
    /// How many tokens are out.
    sent: u64,
    clock: Clock,
    timer: Pin<Box<Sleep>>,
    open: Option<Open>,
}

impl Stream {
    fn new(frames: Frames, flow: Flow, cut: Option<Moment>, clock: Clock, open: Open) -> Self {
        let mut stream = Self {
            opening: Some(frames.opening.into()),
            token: frames.token.into(),
            closing: Some(frames.closing.into()),
            flow,
            cut,
            sent: 0,
            clock,
            timer: Box::pin(sleep_until(clock.tokio_instant(flow.due(0)))),
            open: Some(open),
        };
        stream.rearm();
        stream
    }

    /// Whether it breaks off now; it has ended then.
    fn breaks_off(&mut self) -> bool {
        let over = self.cut.is_some_and(|cut| cut <= self.clock.now());
        if over && let Some(open) = self.open.take() {
            open.ended();
        }
        over
    }

    /// Waits for what comes next: a token, and after the last the end.
    fn rearm(&mut self) {
        let next = self.flow.due(self.sent);
        let at = self.clock.tokio_instant(self.cut.map_or(next, |cut| cut.min(next)));
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
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let stream = match self.get_mut() {
            Self::Cut { half, flushed, .. } => {
                if let Some(half) = half.take() {
                    return Poll::Ready(Some(Ok(Frame::data(half))));
                }
                // what is there goes out before the end, while nothing more can be had
                if !std::mem::replace(flushed, true) {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                return Poll::Ready(Some(Err(broken_off())));
            }
            Self::Whole(body) => return Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Self::Stream(stream) => stream,
        };
        if let Some(opening) = stream.opening.take() {
            return Poll::Ready(Some(Ok(Frame::data(opening))));
        }
        while stream.sent < stream.flow.tokens {
            ready!(stream.timer.as_mut().poll(cx));
            if stream.breaks_off() {
                return Poll::Ready(Some(Err(broken_off())));
            }
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
            Self::Cut { length, .. } => http_body::SizeHint::with_exact(*length),
            Self::Stream(_) => http_body::SizeHint::default(),
        }
    }
}
