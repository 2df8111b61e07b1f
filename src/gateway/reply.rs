//! What a request gets in the end.

use std::rc::Rc;

use bytes::Bytes as Buffer;
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::body::Body;
use super::problem::Dialect;
use super::refusal::Refusal;
use crate::provider::wire::headers;
use crate::units::Bytes;

/// What a request gets.
#[derive(Debug)]
pub(crate) enum Reply {
    /// No answer of the provider's.
    Refused(Refusal),
    /// An answer of the provider's that is all there.
    Whole(Rc<Stored>),
    /// One that passes through.
    Passing(Response<Body>),
}

/// An answer that can be given more than once.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Buffer,
}

impl Reply {
    /// The answer to a caller who speaks `dialect`.
    pub(super) fn response(self, dialect: &Dialect) -> Response<Body> {
        match self {
            Self::Refused(refusal) => refusal.response(dialect),
            Self::Whole(stored) => {
                Rc::try_unwrap(stored).map_or_else(|shared| shared.copy(), Stored::into_response)
            }
            Self::Passing(answer) => answer,
        }
    }
}

impl Stored {
    /// What keeping it takes.
    pub(crate) fn size(&self) -> Bytes {
        let headers: usize = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        Bytes::new((self.body.len() + headers) as u64)
    }

    /// The answer for another request of the same operation, and it says so.
    pub(super) fn replayed(&self) -> Response<Body> {
        let mut answer = self.copy();
        answer.headers_mut().insert(headers::IDEMPOTENCY_REPLAYED, HeaderValue::from_static("true"));
        answer
    }

    fn copy(&self) -> Response<Body> {
        Self { status: self.status, headers: self.headers.clone(), body: self.body.clone() }.into_response()
    }

    fn into_response(self) -> Response<Body> {
        let mut answer = Response::new(Body::from(self.body));
        *answer.status_mut() = self.status;
        *answer.headers_mut() = self.headers;
        answer
    }
}
