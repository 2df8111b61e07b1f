//! What writes a request to the wire and reads its answer: one file a sender, behind [`Sender`].
//!
//! A sender is asked for one exchange at a time per request and bounds by itself how many connections it opens at once:
//! without a bound each late request would open one of its own, and be later still.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use reqwest::Url;

use super::body::Stamped;
use super::trouble::Trouble;
use super::{Clock, LiveError};
use crate::plan::{SenderKind, TargetRequest};

mod by_hyper;
mod by_reqwest;
mod connect;
mod names;
mod pool;
mod tls;
mod two;

/// Connections being opened, or requests being written, at once.
const AT_ONCE: usize = 64;

pub use names::Looked;
use names::Names;
use pool::Haste;

/// The sender of a run, with its connections.
#[derive(Debug)]
pub(super) struct Sender {
    by: By,
    names: Arc<Names>,
    clock: Clock,
    haste: Arc<Haste>,
}

/// What it sends with.
#[derive(Debug)]
enum By {
    /// reqwest: what most callers of a gateway are built on.
    Reqwest(by_reqwest::Sender),
    /// hyper itself: fewer instructions and less memory a request.
    Hyper(by_hyper::Sender),
}

/// A request to be sent. It is handed on in a box: a future keeps room for whatever was moved through it.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) headers: HeaderMap,
    pub(super) body: Stamped,
}

/// The head of an answer; its body is still to be read.
#[derive(Debug)]
pub(super) struct Reply {
    /// The HTTP status.
    pub(super) status: u16,
    /// Its headers.
    pub(super) headers: HeaderMap,
    body: Rest,
}

/// What is still to be read.
#[derive(Debug)]
enum Rest {
    Reqwest(Box<by_reqwest::Rest>),
    Hyper(by_hyper::Rest),
}

impl Sender {
    /// A sender of requests to `url`, as `request` says, of which at most `open` are open at once.
    ///
    /// # Errors
    /// If the certificates, or the client they are for, cannot be used.
    pub(super) fn new(url: Url, request: &TargetRequest, open: u64) -> Result<Self, LiveError> {
        let names = Names::of(&url, request.transport.lookup);
        Self::to(url, request, open, names)
    }

    /// The same, to a host whose addresses `names` knows.
    fn to(url: Url, request: &TargetRequest, open: u64, names: Arc<Names>) -> Result<Self, LiveError> {
        let known = Arc::clone(&names);
        let (clock, haste) = (Clock::start(), Arc::<Haste>::default());
        let by = match request.transport.sender {
            SenderKind::Reqwest => By::Reqwest(by_reqwest::Sender::new(url, request, open, known)?),
            SenderKind::Hyper => {
                let haste = (clock, Arc::clone(&haste));
                By::Hyper(by_hyper::Sender::new(&url, request, open, known, haste)?)
            }
        };
        Ok(Self { by, names, clock, haste })
    }

    /// How the target's name was looked up, and which of its addresses have answered; nothing if it has no name.
    pub(super) fn looked(&self) -> Option<Looked> {
        self.names.looked()
    }

    /// The thread that sends has nothing to do. One that never says so is slow itself, and is to open few connections.
    pub(super) fn rest(&self) {
        self.haste.rest(self.clock.now());
    }

    /// It has something to do again.
    pub(super) fn wake(&self) {
        self.haste.wake(self.clock.now());
    }

    /// How long it has been behind until now, all in all.
    pub(super) fn busy(&self) -> Duration {
        self.haste.busy(self.clock.now())
    }

    /// Sends one request and reads the head of its answer. Dropping the future, or the reply, abandons the request:
    /// over HTTP/1.1 its connection is closed, over HTTP/2 its stream is reset.
    pub(super) async fn send(&self, outgoing: Box<Outgoing>) -> Result<Reply, Trouble> {
        match &self.by {
            // its future is several times the size of the other's, which would otherwise have to make room for it
            By::Reqwest(sender) => Box::pin(sender.send(outgoing)).await,
            By::Hyper(sender) => sender.send(outgoing).await,
        }
    }
}

impl Reply {
    /// The next piece of the body; `None` at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Trouble> {
        match &mut self.body {
            Rest::Reqwest(rest) => rest.chunk().await,
            Rest::Hyper(rest) => rest.chunk().await,
        }
    }
}

#[cfg(test)]
mod tests;
