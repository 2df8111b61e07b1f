//! One request's way through the gateway, up to the provider's door.

use std::convert::Infallible;
use std::rc::Rc;

use bytes::Bytes as Buffer;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use hyper::body::Incoming;
use tokio::time::timeout;

use super::ask::{self, Tenants};
use super::body::{Body, Collected, collect};
use super::config::Config;
use super::faults::Wrongs;
use super::operation::Digests;
use super::problem::Dialect;
use super::refusal::Refusal;
use super::reply::Reply;
use super::shell::{Shell, Terms, Verdict};
use super::ticket::Ticket;
use super::{unknown, upstream};
use crate::units::{Bytes, Moment};

/// What all requests share.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) config: Config,
    pub(super) shell: Rc<Shell>,
    pub(super) client: reqwest::Client,
    pub(super) url: reqwest::Url,
    pub(super) tenants: Tenants,
    pub(super) digests: Digests,
    pub(super) wrongs: Wrongs,
}

/// What a request keeps while it waits.
pub(super) struct Kept {
    pub(super) headers: HeaderMap,
    pub(super) body: Buffer,
    pub(super) came: Moment,
    pub(super) deadline: Moment,
}

impl Gateway {
    /// Answers a request. Dropped before it ends, the caller has left.
    pub(super) async fn answer(
        self: Rc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        let path = request.uri().path();
        let get = *request.method() == Method::GET || *request.method() == Method::HEAD;
        let dialect = Dialect::of(request.headers(), path);
        let refuse = |refusal: Refusal| self.refuse(&refusal, &dialect);
        if path == self.config.path {
            if *request.method() != Method::POST {
                return Ok(refuse(Refusal::Method { allowed: "POST" }));
            }
            return Ok(Rc::clone(&self).complete(request, dialect).await);
        }
        if let Some(number) = path.strip_prefix(unknown::PATH).and_then(|rest| rest.strip_prefix('/')) {
            if *request.method() != Method::POST {
                return Ok(refuse(Refusal::Method { allowed: "POST" }));
            }
            let number = number.to_owned();
            let done = unknown::reconcile(&self.shell, &number, request).await;
            return Ok(done.unwrap_or_else(&refuse));
        }
        Ok(match path {
            "/healthz" if get => page("text/plain; charset=utf-8", "ok\n".into()),
            "/metrics" if get => page("text/plain; version=0.0.4; charset=utf-8", self.shell.metrics()),
            unknown::PATH if get => unknown::list(&self.shell),
            "/healthz" | "/metrics" | unknown::PATH => refuse(Refusal::Method { allowed: "GET, HEAD" }),
            _ => refuse(Refusal::NotFound),
        })
    }

    fn refuse(&self, refusal: &Refusal, dialect: &Dialect) -> Response<Body> {
        self.shell.count(refusal.outcome());
        refusal.response(dialect)
    }

    async fn complete(self: Rc<Self>, request: Request<Incoming>, dialect: Dialect) -> Response<Body> {
        let came = self.shell.now();
        self.wrongs.request();
        let (terms, head, body) = match self.read(request).await {
            Ok(read) => read,
            Err(refusal) => return self.refuse(&refusal, &dialect),
        };
        let ticket = match self.shell.admit(terms) {
            Ok(ticket) => ticket,
            Err(verdict) => {
                if matches!(&verdict, Verdict::Refuse(refusal) if refusal.costs()) {
                    self.spend(&head.headers, body, terms.deadline);
                }
                if let Verdict::Refuse(_) = &verdict {
                    self.wrongs.refusal().await;
                }
                return ended(verdict, &dialect);
            }
        };
        if ticket.follows() {
            drop((head, body));
            return self.follow(ticket, terms.deadline, &dialect).await;
        }
        // only now is anything copied: most requests of an overload do not come so far
        let headers = upstream::passed_on(&head.headers, &self.config.deadline.header);
        drop(head);
        let kept = Kept { headers, body, came, deadline: terms.deadline };
        let reply =
            if ticket.runs_apart() { self.lead(kept, ticket).await } else { self.run(kept, ticket).await };
        reply.response(&dialect)
    }

    /// Reads what a request asks for.
    async fn read(&self, request: Request<Incoming>) -> Result<(Terms, Box<Parts>, Buffer), Refusal> {
        let came = self.shell.now();
        let (head, body) = request.into_parts();
        let head = Box::new(head);
        let remaining = ask::remaining(&head.headers, &self.config.deadline, self.shell.unix())?;
        let tenant = self.tenants.of(&head.headers)?;
        let tier = ask::tier(&head.headers)?;
        ask::key(&head.headers)?;
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
        let (prompt, max_output) = ask::tokens(self.config.api, &body)?;
        let key = ask::key(&head.headers)?.filter(|_| !self.shell.ignores_keys());
        let operation = key.map(|key| {
            self.digests.operation(tenant, key.as_bytes(), (&head.method, head.uri.path()), &body)
        });
        let caller = ask::caller(&head.headers);
        let deadline = came + remaining;
        let bytes = Bytes::new(body.len() as u64);
        Ok((Terms { caller, prompt, max_output, bytes, deadline, tenant, tier, operation }, head, body))
    }

    /// Runs a request in a task of its own, so that others can wait for its answer when its first caller has left.
    async fn lead(self: Rc<Self>, kept: Kept, ticket: Ticket) -> Reply {
        let seat = ticket.hand_over(|ticket| {
            let id = ticket.id();
            let task = tokio::task::spawn_local(async move {
                let shell = Rc::clone(&self.shell);
                let reply = self.run(kept, ticket).await;
                shell.deliver(id, reply);
            });
            task.abort_handle()
        });
        seat.reply().await
    }

    /// Sends a refused request to the provider all the same; nobody reads the answer.
    fn spend(&self, headers: &HeaderMap, body: Buffer, deadline: Moment) {
        let headers = upstream::passed_on(headers, &self.config.deadline.header);
        let call = self.towards_provider(headers, deadline.since(self.shell.now())).body(body);
        tokio::task::spawn_local(async move {
            if let Ok(answer) = call.send().await {
                // to its end, so that the connection can be used again
                let _ = answer.bytes().await;
            }
        });
    }

    /// Waits for the answer of another request of the same operation, up to its own deadline.
    async fn follow(&self, mut ticket: Ticket, deadline: Moment, dialect: &Dialect) -> Response<Body> {
        let remaining = deadline.since(self.shell.now());
        if let Ok(verdict) = timeout(remaining, ticket.verdict()).await {
            return ended(verdict, dialect);
        }
        ticket.gives_up();
        Refusal::Timeout.response(dialect)
    }
}

/// The answer to a request that ended by the machine's word alone.
fn ended(verdict: Verdict, dialect: &Dialect) -> Response<Body> {
    match verdict {
        Verdict::Answer(answer) => answer.replayed(),
        Verdict::Refuse(refusal) => refusal.response(dialect),
        // neither is said to a request that was never at the provider
        Verdict::Forward | Verdict::Fail => Refusal::upstream("the call was given up").response(dialect),
    }
}

fn page(kind: &'static str, text: String) -> Response<Body> {
    let mut page = Response::new(Body::from(Buffer::from(text)));
    page.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    page
}
