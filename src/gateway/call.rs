//! One request's way through the gateway.

use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes as Buffer;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use tokio::time::{Sleep, sleep, timeout};

use super::body::{Begun, Body, Collected, Ending, Passing, begin, collect};
use super::config::Config;
use super::refusal::Refusal;
use super::shell::{Shell, Terms, Ticket, Verdict};
use super::{ask, upstream};
use crate::provider::wire::openai;
use crate::units::{Bytes, Moment};

/// An answer up to this size is read whole before it is passed on: its usage is read, and one that breaks off becomes
/// a 502 instead of half an answer.
const COLLECT: usize = 1 << 20;

/// How long the rest of a provider's refusal is read.
const DRAIN: Duration = Duration::from_millis(100);

/// What all requests share.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) config: Config,
    pub(super) shell: Rc<Shell>,
    pub(super) client: reqwest::Client,
    pub(super) url: reqwest::Url,
}

/// What a request keeps while it waits.
struct Kept {
    headers: HeaderMap,
    body: Buffer,
    deadline: Moment,
}

impl Gateway {
    /// Answers a request. Dropped before it ends, the caller has left.
    pub(super) async fn answer(
        self: Rc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let path = request.uri().path();
        let get = *request.method() == Method::GET || *request.method() == Method::HEAD;
        let refuse = |refusal: Refusal| {
            self.shell.count(refusal.outcome());
            refusal.response()
        };
        if path == self.config.path {
            if *request.method() != Method::POST {
                return Ok(refuse(Refusal::Method { allowed: "POST" }));
            }
            return Ok(Rc::clone(&self).complete(request).await);
        }
        Ok(match path {
            "/healthz" if get => page("text/plain; charset=utf-8", "ok\n".into()),
            "/metrics" if get => page("text/plain; version=0.0.4; charset=utf-8", self.shell.metrics()),
            "/healthz" | "/metrics" => refuse(Refusal::Method { allowed: "GET, HEAD" }),
            _ => refuse(Refusal::NotFound),
        })
    }

    async fn complete(self: Rc<Self>, request: Request<Incoming>) -> Response<Body> {
        let (terms, kept) = match self.read(request).await {
            Ok(read) => read,
            Err(refusal) => {
                self.shell.count(refusal.outcome());
                return refusal.response();
            }
        };
        let mut ticket = match self.shell.admit(terms) {
            Ok(ticket) => ticket,
            Err(refusal) => {
                self.shell.count(refusal.outcome());
                return refusal.response();
            }
        };
        loop {
            match ticket.verdict().await {
                Verdict::Refuse(refusal) => return refusal.response(),
                // boxed, so that a request which only waits stays small
                Verdict::Forward => match Box::pin(self.forward(&kept, ticket)).await {
                    Ok(answer) => return answer,
                    Err(again) => ticket = again,
                },
            }
        }
    }

    /// Reads what a request asks for, and of the request what is needed to pass it on. The rest is let go.
    async fn read(&self, request: Request<Incoming>) -> Result<(Terms, Kept), Refusal> {
        let came = self.shell.now();
        let (head, body) = request.into_parts();
        let remaining = ask::remaining(&head.headers, &self.config.deadline)?;
        let caller = ask::caller(&head.headers);
        let headers = upstream::passed_on(&head.headers, &self.config.deadline.header);
        drop(head);
        let limit = self.config.max_body;
        let most = usize::try_from(limit.get()).unwrap_or(usize::MAX);
        let body = match timeout(remaining, collect(body, most)).await {
            Ok(Collected::Whole(body)) => body,
            Ok(Collected::TooLarge) => return Err(Refusal::TooLarge { limit }),
            Ok(Collected::Broken) => {
                return Err(Refusal::Malformed {
                    param: None,
                    message: "the body broke off before its end".into(),
                });
            }
            Err(_) => return Err(Refusal::SlowBody),
        };
        let (prompt, max_output) = ask::tokens(&body)?;
        let deadline = came + remaining;
        let bytes = Bytes::new(body.len() as u64);
        Ok((Terms { caller, prompt, max_output, bytes, deadline }, Kept { headers, body, deadline }))
    }

    /// Calls the provider. The ticket comes back if the provider refused for its quota: the request waits again.
    async fn forward(&self, kept: &Kept, ticket: Ticket) -> Result<Response<Body>, Ticket> {
        let remaining = kept.deadline.since(self.shell.now());
        if remaining.is_zero() {
            ticket.failed(true);
            return Ok(Refusal::Timeout.response());
        }
        let mut until = Box::pin(sleep(remaining));
        let deadline = &self.config.deadline;
        // digits and at most one dot
        let budget =
            HeaderValue::from_str(&deadline.form.write(remaining)).expect("digits make a header value");
        let call =
            self.client.post(self.url.clone()).headers(kept.headers.clone()).header(&deadline.header, budget);
        let came = tokio::select! {
            came = call.body(kept.body.clone()).send() => came,
            () = &mut until => {
                ticket.failed(false);
                return Ok(Refusal::Timeout.response());
            }
        };
        match came {
            Err(error) => {
                ticket.failed(error.is_connect());
                Ok(Refusal::Upstream { message: upstream::describe(error) }.response())
            }
            Ok(answer) if answer.status() == StatusCode::TOO_MANY_REQUESTS => {
                let mut ticket = ticket;
                ticket.refused(upstream::retry_after(answer.headers()));
                // read to its end, so that the connection can be used again; a long or slow one is not worth it
                let _ = timeout(DRAIN, collect(reqwest::Body::from(answer), COLLECT)).await;
                Err(ticket)
            }
            Ok(answer) => Ok(pass_back(answer, ticket, until).await),
        }
    }
}

/// Passes a provider's answer back and closes the ticket at its end. The work of a 4xx was none; a 5xx may have cost
/// its tokens.
async fn pass_back(answer: reqwest::Response, ticket: Ticket, mut until: Pin<Box<Sleep>>) -> Response<Body> {
    let (head, mut body) = Response::<reqwest::Body>::from(answer).into_parts();
    let success = head.status.is_success();
    let ending =
        if success { Ending::Success } else { Ending::Failure { known: head.status.is_client_error() } };
    let streams = head
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let first = if streams {
        Begun::More(Buffer::new())
    } else {
        tokio::select! {
            begun = begin(&mut body, COLLECT) => begun,
            () = &mut until => {
                ticket.failed(false);
                return Refusal::Timeout.response();
            }
        }
    };
    let body = match first {
        Begun::Broken => {
            ticket.failed(false);
            return Refusal::Upstream { message: "the provider's answer broke off".into() }.response();
        }
        Begun::Whole(whole) => {
            ending.close(ticket, openai::used_tokens(&whole));
            Body::from(whole)
        }
        Begun::More(first) => Body::Passing(Box::new(Passing::new(first, body, ticket, ending, until))),
    };
    let mut passed = Response::new(body);
    *passed.status_mut() = head.status;
    *passed.headers_mut() = upstream::passed_back(&head.headers);
    passed
}

fn page(kind: &'static str, text: String) -> Response<Body> {
    let mut page = Response::new(Body::from(Buffer::from(text)));
    page.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    page
}
