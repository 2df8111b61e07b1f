//! Request bodies: built once a class, stamped when they are written.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use super::prompts::Text;
use super::{Clock, LiveError, Seen};
use crate::observe::{Attempt, Sighting};
use crate::provider::Count;
use crate::provider::wire::Api;
use crate::units::{Moment, Tokens};
use crate::workload::Class;

/// Stands where the prompt goes while a body is built.
const PROMPT: &str = "{the prompt of tenfold}";
/// And where the id goes.
const ID: &str = "{the id of tenfold}";

/// A body of at most so many bytes is one piece.
const JOINED: usize = 2_048;

/// The body of every request of a class but for the id and the length of its prompt, which is a slice of one text: O(1)
/// memory and work a request, whatever the prompt's size.
#[derive(Debug, Clone)]
pub(super) struct Template {
    head: Bytes,
    text: Text,
    between: Bytes,
    tail: Bytes,
}

impl Template {
    /// The body of `class` in the form of `api`, asking for `model`, its prompts counted by `count`.
    ///
    /// # Errors
    ///
    /// If no prompt can be made that counts as it should.
    pub(super) fn new(api: &dyn Api, model: &str, class: &Class, count: Count) -> Result<Self, LiveError> {
        let whole = api.request(model, PROMPT, class.max_tokens, ID, class.stream);
        // members are sorted, and in every API the prompt comes before the id
        let (head, rest) = whole.split_once(PROMPT).unwrap_or((&whole, ""));
        let (between, tail) = rest.split_once(ID).unwrap_or((rest, ""));
        let [head, between, tail] = [head, between, tail].map(|part| Bytes::copy_from_slice(part.as_bytes()));
        Ok(Self { head, text: Text::new(class, count)?, between, tail })
    }

    /// The body with a prompt of so many tokens and with `id` in their places; `written` learns when it is first asked
    /// for.
    pub(super) fn body(&self, id: String, prompt: Tokens, written: Arc<Written>) -> Stamped {
        let text = self.text.first(prompt);
        let rest = [self.between.as_ref(), id.as_bytes(), self.tail.as_ref()];
        let after: usize = rest.iter().map(|part| part.len()).sum();
        let small = self.head.len() + text.len() + after <= JOINED;
        let mut last = Vec::with_capacity(after + if small { self.head.len() + text.len() } else { 0 });
        if small {
            last.extend_from_slice(&self.head);
            last.extend_from_slice(&text);
        }
        rest.iter().for_each(|part| last.extend_from_slice(part));
        // each piece is written on its own, which costs more than to copy a small one
        let parts = if small {
            [Bytes::new(), Bytes::new(), last.into()]
        } else {
            [self.head.clone(), text, last.into()]
        };
        Stamped { parts, next: if small { 2 } else { 0 }, marked: false, written, permit: None }
    }
}

/// When an attempt was written: the instant the connection is up and asks for the body, its head being in the buffer.
#[derive(Debug)]
pub(super) struct Written {
    attempt: Attempt,
    clock: Clock,
    out: Sender<Seen>,
    /// Nanoseconds; `u64::MAX` until it is written.
    at: AtomicU64,
}

impl Written {
    /// Not written yet. Sightings of it go to `out`.
    pub(super) fn new(attempt: Attempt, clock: Clock, out: Sender<Seen>) -> Arc<Self> {
        Arc::new(Self { attempt, clock, out, at: AtomicU64::new(u64::MAX) })
    }

    /// When it was written, if it was.
    pub(super) fn at(&self) -> Option<Moment> {
        let nanos = self.at.load(Ordering::Acquire);
        (nanos != u64::MAX).then(|| Moment::from_nanos(nanos))
    }

    /// Says that it was written at `at`, unless that was said before. Gives the instant that counts.
    pub(super) fn mark(&self, at: Moment) -> Moment {
        let first = self.at.compare_exchange(u64::MAX, at.as_nanos(), Ordering::AcqRel, Ordering::Acquire);
        match first {
            Ok(_) => {
                // nobody listens any more once the run is over
                let _ = self.out.send(Seen::Sighting(Sighting::Sent { attempt: self.attempt, at }));
                at
            }
            Err(earlier) => Moment::from_nanos(earlier),
        }
    }
}

/// A body of at most three pieces that notes when it is first asked for.
#[derive(Debug)]
pub(super) struct Stamped {
    parts: [Bytes; 3],
    next: usize,
    /// Whether it has been asked for.
    marked: bool,
    written: Arc<Written>,
    /// Let go once it is written.
    permit: Option<OwnedSemaphorePermit>,
}

impl Stamped {
    /// Holds `permit` until the body is first asked for, or dropped.
    pub(super) fn until_written(&mut self, permit: OwnedSemaphorePermit) {
        self.permit = Some(permit);
    }
}

impl Body for Stamped {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.marked {
            self.marked = true;
            self.written.mark(self.written.clock.now());
            self.permit = None;
        }
        let next = self.next;
        let part = self.parts.get_mut(next).map(std::mem::take);
        self.next += 1;
        Poll::Ready(part.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.next >= self.parts.len()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.parts.iter().map(|part| part.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::live::testing;
    use crate::provider::wire::{APIS, openai};

    #[test]
    fn in_every_api_the_prompt_and_the_id_come_into_their_places() {
        let plan = testing::plan("http://127.0.0.1:1");
        let class = &plan.requests.classes()[0];
        for api in APIS {
            let template = Template::new(*api, "m", class, Count::Words).unwrap();
            let (out, _seen) = mpsc::channel();
            let written = Written::new(Attempt { seq: 4, nth: 0 }, Clock::start(), out);
            let whole = template.body("tenfold-1".into(), Tokens::new(5), written).parts.concat();
            let asked = api.read(&whole).unwrap();
            assert_eq!(
                (asked.prompt, asked.user.as_deref()),
                (Tokens::new(5), Some("tenfold-1")),
                "{}",
                api.name()
            );
        }
    }

    #[test]
    fn a_body_is_the_whole_request_with_its_id_and_is_stamped_once() {
        let plan = testing::plan("http://127.0.0.1:1");
        let class = &plan.requests.classes()[0];
        let template = Template::new(&openai::OpenAi, "a {id} model", class, Count::Words).unwrap();
        let (out, seen) = mpsc::channel();
        let written = Written::new(Attempt { seq: 4, nth: 0 }, Clock::start(), out);
        let mut body = template.body("tenfold-1".into(), Tokens::new(8), written.clone());
        let size = body.size_hint().exact().unwrap();
        assert_eq!(written.at(), None);

        let mut whole = Vec::new();
        let mut cx = Context::from_waker(std::task::Waker::noop());
        while let Poll::Ready(Some(frame)) = Pin::new(&mut body).poll_frame(&mut cx) {
            whole.extend_from_slice(&frame.unwrap().into_data().unwrap());
        }
        assert_eq!(whole.len() as u64, size);
        let asked = openai::OpenAi.read(&whole).unwrap();
        assert_eq!(asked.user.as_deref(), Some("tenfold-1"));
        assert_eq!(asked.model.as_deref(), Some("a {id} model"));
        assert_eq!((asked.prompt, asked.max_output), (Tokens::new(8), Some(Tokens::new(4))));

        let large = Class { bytes: crate::units::Bytes::new(60_000), ..class.clone() };
        let template = Template::new(&openai::OpenAi, "m", &large, Count::Words).unwrap();
        let other = template.body("tenfold-2".into(), Tokens::new(3), written.clone());
        let text = template.text.first(Tokens::new(8));
        assert_eq!(other.parts[1].as_ptr(), text.as_ptr(), "the prompt is shared, not copied");
        assert!(other.parts[1].len() < text.len());

        let stamp = written.at().unwrap();
        assert_eq!(written.mark(Moment::NEVER), stamp, "the first stamp stays");
        assert_eq!(seen.try_iter().count(), 1);
    }
}
