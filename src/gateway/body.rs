use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use tokio::time::Sleep;

use super::metrics::CallEnd;
use super::ticket::Ticket;
use crate::admission::Failure;
use crate::provider::wire::{Api, Close, Transcript};

/// Why a body broke off.
type Broken = Box<dyn std::error::Error + Send + Sync>;

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum Body {
    /// It is all there.
    Whole(Full<Bytes>),
    /// It passes through from the provider.
    Passing(Box<Passing>),
}

/// A provider's answer on its way to the caller. The hold is kept until its end; if this is dropped before, the
/// caller has left, and the call to the provider is cancelled with it, unless a stream had said its last event.
#[derive(Debug)]
pub(crate) struct Passing {
    /// What was read already.
    first: Bytes,
    upstream: reqwest::Body,
    open: Option<(Ticket, Ending)>,
    until: Pin<Box<Sleep>>,
    /// What was heard of a stream of events.
    heard: Option<(&'static dyn Api, Transcript)>,
}

/// What the end of a provider's answer means.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ending {
    /// It was a success.
    Success,
    /// It was an error.
    Failure(Failure, CallEnd),
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self::Whole(Full::new(bytes))
    }
}

impl Passing {
    /// Passes on `first` and then the rest of `upstream`, until it ends or `until` comes, and then closes the ticket. A
    /// stream of events is listened to as `heard` has it.
    pub(crate) fn new(
        first: Bytes,
        upstream: reqwest::Body,
        open: (Ticket, Ending),
        until: Pin<Box<Sleep>>,
        heard: Option<&'static dyn Api>,
    ) -> Self {
        let heard = heard.map(|api| (api, Transcript::new(api)));
        Self { first, upstream, open: Some(open), until, heard }
    }

    /// A body of known length is not asked again after its last byte.
    fn close_at_last_byte(&mut self) {
        let rest = http_body::Body::size_hint(&self.upstream).exact();
        if http_body::Body::is_end_stream(&self.upstream) || rest == Some(0) {
            self.ended();
        }
    }

    /// The answer has ended; or it did not, for the reason that is given.
    fn close(&mut self, unended: Option<CallEnd>) {
        let used = self.heard.as_ref().and_then(|(_, heard)| heard.used());
        match (self.open.take(), unended) {
            // it broke off after it had said what it used
            (Some((ticket, Ending::Success)), Some(_)) if used.is_some() => ticket.settled(used, None),
            (Some((ticket, _)), Some(end)) => ticket.failed(Failure::Unknown, end),
            (Some((ticket, Ending::Success)), None) => ticket.settled(used, None),
            (Some((ticket, Ending::Failure(how, end))), None) => ticket.failed(how, end),
            (None, _) => {}
        }
    }

    /// The stream has ended. An error inside it may have cost tokens, like one that has a status.
    fn ended(&mut self) {
        let close = self.heard.as_mut().map(|(_, heard)| {
            heard.finish();
            heard.close()
        });
        self.close((close == Some(Close::Error)).then_some(CallEnd::ServerError));
    }

    /// What is said to the caller of a stream whose time is up; nothing where it would be mixed up with an event that has
    /// begun.
    fn last_words(&self) -> Option<Bytes> {
        let (api, heard) = self.heard.as_ref()?;
        heard.is_between_events().then(|| api.out_of_time().into())
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // whoever has read the last event need not wait for the end of the body
        if self.heard.as_ref().is_some_and(|(_, heard)| heard.has_ended()) {
            self.ended();
        }
    }
}

impl http_body::Body for Passing {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            self.close_at_last_byte();
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if self.open.is_none() && self.heard.is_some() {
            return Poll::Ready(None);
        }
        if self.until.as_mut().poll(cx).is_ready() {
            self.close(Some(CallEnd::Timeout));
            if let Some(words) = self.last_words() {
                return Poll::Ready(Some(Ok(Frame::data(words))));
            }
            return Poll::Ready(Some(Err("the deadline came before the end of the answer".into())));
        }
        match ready!(Pin::new(&mut self.upstream).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let (Some((_, heard)), Some(data)) = (&mut self.heard, frame.data_ref()) {
                    heard.feed(data);
                }
                self.close_at_last_byte();
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                self.close(Some(CallEnd::Broken));
                Poll::Ready(Some(Err(error.into())))
            }
            None => {
                self.ended();
                Poll::Ready(None)
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, first) = (self.upstream.size_hint(), self.first.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(first));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(first));
        }
        hint
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(full) => Pin::new(full).poll_frame(cx).map_err(|never| match never {}),
            Self::Passing(passing) => Pin::new(passing.as_mut()).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        // a passing body is polled to its end, since that is what closes its ticket
        matches!(self, Self::Whole(full) if full.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(full) => full.size_hint(),
            Self::Passing(passing) => passing.size_hint(),
        }
    }
}

/// What became of a body that was to be read whole.
#[derive(Debug)]
pub(crate) enum Collected {
    /// All of it.
    Whole(Bytes),
    /// It is larger than the limit.
    TooLarge,
    /// It broke off.
    Broken,
}

/// Reads `body` whole, up to `limit` bytes, into one buffer of its own: the connection's buffer is free again.
pub(crate) async fn collect<B>(mut body: B, limit: usize) -> Collected
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    let told = usize::try_from(body.size_hint().exact().unwrap_or(0)).unwrap_or(usize::MAX);
    if told > limit {
        return Collected::TooLarge;
    }
    // what a header claims is believed up to this much before it is there
    let mut whole = Vec::with_capacity(told.min(64 << 10));
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Collected::Broken };
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > limit - whole.len() {
            return Collected::TooLarge;
        }
        whole.extend_from_slice(&data);
    }
    Collected::Whole(whole.into())
}

/// The beginning of a provider's answer.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It was all there is.
    Whole(Bytes),
    /// There is more than was to be read.
    More(Bytes),
    /// It broke off.
    Broken,
}

/// Reads the beginning of `body`: all of it, if that is at most `limit` bytes.
pub(crate) async fn begin(body: &mut reqwest::Body, limit: usize) -> Begun {
    let mut first = Vec::new();
    while first.len() <= limit {
        match body.frame().await {
            Some(Ok(frame)) => first.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data)),
            Some(Err(_)) => return Begun::Broken,
            None => return Begun::Whole(first.into()),
        }
    }
    Begun::More(first.into())
}
