//! A server of our own on a thread of its own. An answer comes when its time has come, whole or token by token; nothing
//! is kept of it afterwards. A call that is cut off before the end of its answer is counted.

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
use tokio::time::{Instant, Sleep, sleep_until};

use super::office::{Answered, Came, Office, Reply};
use crate::live::Clock;
use crate::provider::wire::Frames;
use crate::units::Moment;

/// The largest request body that is read.
const LARGEST: usize = 64 << 20;
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
pub(super) fn start(
    listener: TcpListener,
    office: Office,
    clock: Clock,
    cut: Arc<AtomicU64>,
) -> io::Result<Server> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _inside = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    let (stop, stopped) = oneshot::channel();
    let desk = Arc::new(Desk { office, clock, cut });
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
    clock: Clock,
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
    let Reply { status, kind, headers, body, until } = reply;
    let open = Open { cut: Some(Arc::clone(&desk.cut)) };
    let body = match body {
        Answered::Whole(text) => {
            sleep_until(instant(desk.clock, until)).await;
            open.ended();
            Answer::Whole(Some(text.into()))
        }
        Answered::Stream { frames, tokens, gap } => {
            Answer::Stream(Box::new(Stream::new(frames, tokens, gap, until, desk.clock, open)))
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

fn instant(clock: Clock, at: Moment) -> Instant {
    clock.tokio_instant(at)
}

/// Counts a call as cut off if it is dropped before its end.
struct Open {
    cut: Option<Arc<AtomicU64>>,
}

impl Open {
    fn ended(mut self) {
        self.cut = None;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(cut) = self.cut.take() {
            cut.fetch_add(1, Ordering::Relaxed);
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
    /// How many tokens are still to come.
    left: u64,
    gap: Duration,
    /// When the last one is due.
    until: Moment,
    clock: Clock,
    timer: Pin<Box<Sleep>>,
    open: Option<Open>,
}

impl Stream {
    fn new(frames: Frames, tokens: u64, gap: Duration, until: Moment, clock: Clock, open: Open) -> Self {
        let mut stream = Self {
            opening: Some(frames.opening.into()),
            token: frames.token.into(),
            closing: Some(frames.closing.into()),
            left: tokens,
            gap,
            until,
            clock,
            timer: Box::pin(sleep_until(instant(clock, until))),
            open: Some(open),
        };
        stream.rearm();
        stream
    }

    /// When the next token is due, so that the last one is due at the end.
    fn next_due(&self) -> Moment {
        let after = u32::try_from(self.left.saturating_sub(1)).unwrap_or(u32::MAX);
        self.until - self.gap.saturating_mul(after)
    }

    fn rearm(&mut self) {
        let at = instant(self.clock, self.next_due());
        self.timer.as_mut().reset(at);
    }

    /// Every token that is due by now, in one piece.
    fn due(&mut self) -> Bytes {
        let now = self.clock.now();
        let mut count = 0usize;
        while self.left > 0 && self.next_due() <= now {
            self.left -= 1;
            count += 1;
        }
        if count == 1 {
            return self.token.clone();
        }
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
        while stream.left > 0 {
            ready!(stream.timer.as_mut().poll(cx));
            let piece = stream.due();
            stream.rearm();
            // a timer is never early, but its clock and ours are read one after the other
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(piece))));
            }
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
