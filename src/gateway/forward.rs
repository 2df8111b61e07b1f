//! One request's way to the provider and back.

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes as Buffer;
use http::{HeaderMap, HeaderValue, Response, header};
use tokio::time::{Sleep, sleep, timeout};

use super::body::{Begun, Body, Ending, Passing, begin, collect};
use super::call::{Gateway, Kept};
use super::metrics::CallEnd;
use super::refusal::Refusal;
use super::reply::{Reply, Stored};
use super::shell::Verdict;
use super::ticket::Ticket;
use super::upstream;
use crate::admission::{Failure, Meaning};
use crate::provider::wire::Api;

/// An answer up to this size is read whole before it is passed on: its usage is read, one that breaks off becomes a
/// 502 instead of half an answer, and it can be kept for those who send the same.
const COLLECT: usize = 1 << 20;

/// How long the rest of a provider's refusal is read.
const DRAIN: Duration = Duration::from_millis(100);

/// The longest a call may take whose caller has left.
const LONGEST: Duration = Duration::from_secs(600);

/// What a call has come to.
enum Called {
    /// To an answer for the caller.
    Done(Reply),
    /// The machine will say whether it is tried again; if not, this is why.
    Again(Ticket, String),
}

impl Gateway {
    /// Takes a request through the queue to the provider, again if need be.
    pub(super) async fn run(self: Rc<Self>, kept: Kept, mut ticket: Ticket) -> Reply {
        let mut why = String::new();
        loop {
            match ticket.verdict().await {
                Verdict::Refuse(refusal) => return Reply::Refused(refusal),
                Verdict::Answer(answer) => return Reply::Whole(answer),
                Verdict::Fail => return Reply::Refused(Refusal::Upstream { message: why }),
                // boxed, so that a request which only waits stays small
                Verdict::Forward => match Box::pin(self.forward(&kept, ticket)).await {
                    Called::Done(reply) => return reply,
                    Called::Again(again, message) => (ticket, why) = (again, message),
                },
            }
        }
    }

    /// A call to the provider with these headers, which is told the time that `remains`.
    pub(super) fn towards_provider(&self, headers: HeaderMap, remains: Duration) -> reqwest::RequestBuilder {
        let deadline = &self.config.deadline;
        let budget = deadline.form.write(remains, self.shell.unix());
        let budget = HeaderValue::try_from(budget).expect("digits, a dot and a letter make a header value");
        self.client.post(self.url.clone()).headers(headers).header(&deadline.header, budget)
    }

    /// Calls the provider, which is told the time that remains.
    async fn forward(&self, kept: &Kept, mut ticket: Ticket) -> Called {
        let remaining = kept.deadline.since(self.shell.now());
        // one that outlasts its caller is not given up when its time is over
        let outlasts = !self.shell.forgets_leaver(ticket.id());
        if remaining.is_zero() && !outlasts {
            ticket.failed(Failure::Final, CallEnd::Timeout);
            return Called::Done(Reply::Refused(Refusal::Timeout));
        }
        let mut until = Box::pin(sleep(if outlasts { LONGEST } else { remaining }));
        let told = self.shell.telling.deadline(remaining, kept.deadline.since(kept.came));
        let call = self.towards_provider(kept.headers.clone(), told);
        let came = tokio::select! {
            came = call.body(kept.body.clone()).send() => came,
            () = &mut until => {
                ticket.failed(Failure::Unknown, CallEnd::Timeout);
                return Called::Done(Reply::Refused(Refusal::Timeout));
            }
        };
        let answer = match came {
            Err(error) if error.is_connect() => {
                ticket.repeatable(CallEnd::Connect);
                return Called::Again(ticket, upstream::describe(error));
            }
            Err(error) => {
                ticket.failed(Failure::Unknown, CallEnd::Broken);
                let message = upstream::describe(error);
                return Called::Done(Reply::Refused(Refusal::Upstream { message }));
            }
            Ok(answer) => answer,
        };
        let status = answer.status();
        match Meaning::of(status.as_u16()) {
            Meaning::Spent => ticket.refused(upstream::retry_after(answer.headers())),
            Meaning::Busy => ticket.repeatable(CallEnd::Busy),
            Meaning::Answered | Meaning::Broken | Meaning::Rejected => {
                return Called::Done(pass_back(self.config.api, answer, ticket, until).await);
            }
        }
        // read to its end, so that the connection can be used again; a long or slow one is not worth it
        let _ = timeout(DRAIN, collect(reqwest::Body::from(answer), COLLECT)).await;
        Called::Again(ticket, format!("the provider answered {}", status.as_u16()))
    }
}

/// Passes a provider's answer back and closes the ticket at its end. An error of the caller's cost nothing; an error of
/// the provider's may have cost its tokens.
async fn pass_back(
    api: &'static dyn Api,
    answer: reqwest::Response,
    ticket: Ticket,
    mut until: Pin<Box<Sleep>>,
) -> Reply {
    let (head, mut body) = Response::<reqwest::Body>::from(answer).into_parts();
    let status = head.status;
    let ending = match Meaning::of(status.as_u16()) {
        Meaning::Answered if status.is_success() => Ending::Success,
        Meaning::Broken => Ending::Failure(Failure::Unknown, CallEnd::ServerError),
        _ => Ending::Failure(Failure::Final, CallEnd::ClientError),
    };
    let streams = head
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let first = if streams {
        ticket.begun();
        Begun::More(Buffer::new())
    } else {
        tokio::select! {
            begun = begin(&mut body, COLLECT) => begun,
            () = &mut until => {
                ticket.failed(Failure::Unknown, CallEnd::Timeout);
                return Reply::Refused(Refusal::Timeout);
            }
        }
    };
    let headers = upstream::passed_back(&head.headers);
    match first {
        Begun::Broken => {
            ticket.failed(Failure::Unknown, CallEnd::Broken);
            Reply::Refused(Refusal::upstream("the provider's answer broke off"))
        }
        Begun::Whole(body) => {
            let stored = Rc::new(Stored { status, headers, body });
            match ending {
                Ending::Success => ticket.settled(api.used(&stored.body), Some(&stored)),
                Ending::Failure(how, end) => ticket.failed(how, end),
            }
            Reply::Whole(stored)
        }
        Begun::More(first) => {
            ticket.streams();
            // what a stream used stands in its last events
            let heard = (streams && status.is_success()).then_some(api);
            let passing = Passing::new(first, body, (ticket, ending), until, heard);
            let mut passed = Response::new(Body::Passing(Box::new(passing)));
            *passed.status_mut() = status;
            *passed.headers_mut() = headers;
            Reply::Passing(passed)
        }
    }
}
