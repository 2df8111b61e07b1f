//! Reading a streamed answer as it comes.

use std::sync::mpsc::Sender;
use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::client::Heard;
use super::sender::Reply;
use super::trouble::Trouble;
use super::{Clock, Seen, reading};
use crate::observe::{Answer, Attempt, Broken, Gaps, Sighting, Streamed};
use crate::plan::Refusal;
use crate::provider::wire::{Api, Close, Transcript};
use crate::units::Moment;

/// How long the end of the body is waited for after the end of the answer, so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(50);

/// Whether an answer is a stream of events.
fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.and_then(|kind| kind.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// Says when tokens are read: some at a time, and the last of them at the latest when it is dropped.
#[derive(Debug)]
pub(super) struct Pulse {
    attempt: Attempt,
    out: Sender<Seen>,
    /// The very first, until it is told.
    first: Option<Moment>,
    last: Option<Moment>,
    gaps: Box<Gaps>,
}

impl Pulse {
    /// Nothing was read yet of the answer to `attempt`.
    pub(super) fn new(attempt: Attempt, out: Sender<Seen>) -> Self {
        Self { attempt, out, first: None, last: None, gaps: Box::default() }
    }

    /// So many tokens were read at `at`.
    fn beat(&mut self, at: Moment, tokens: u64) {
        let Some(others) = tokens.checked_sub(1) else { return };
        let full = match self.last.replace(at) {
            Some(last) => self.gaps.push(at.since(last), 1),
            None => {
                self.first = Some(at);
                false
            }
        };
        if full {
            self.tell();
        }
        if others > 0 && self.gaps.push(Duration::ZERO, u32::try_from(others).unwrap_or(u32::MAX)) {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let (Some(at), first) = (self.last, self.first.take()) else { return };
        if first.is_none() && self.gaps.count() == 0 {
            return;
        }
        let gaps = std::mem::take(&mut self.gaps);
        // nobody listens any more once the run is over
        let _ = self.out.send(Seen::Sighting(Sighting::Tokens { attempt: self.attempt, at, first, gaps }));
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.tell();
    }
}

/// Reads a success that was to be streamed. Gives when its end was read, too.
///
/// # Errors
/// If it is cut, breaks off with an error, or is no stream.
pub(super) async fn answer(
    api: &'static dyn Api,
    (reply, heard): (Reply, &Heard),
    headers: &HeaderMap,
    pulse: Pulse,
    expect: &Refusal,
    clock: Clock,
) -> Result<(Answer, Moment), Trouble> {
    if !is_stream(headers) {
        return Err(Trouble::Broken(Broken::NoStream));
    }
    let status = reply.status;
    let (streamed, usable, at) = listen(api, (reply, heard), pulse, clock).await?;
    let bare = reading::answer(api, status, headers, &[], expect);
    Ok((Answer { usable, streamed: Some(streamed), ..bare }, at))
}

/// Reads a streamed answer of `api` to its end. Gives what it says of itself, whether there was anything in it, and
/// when its end was read.
async fn listen(
    api: &'static dyn Api,
    (mut reply, heard): (Reply, &Heard),
    mut pulse: Pulse,
    clock: Clock,
) -> Result<(Streamed, bool, Moment), Trouble> {
    let mut transcript = Transcript::new(api);
    let at = loop {
        let chunk = reply.chunk().await?;
        let at = clock.now();
        match chunk {
            Some(bytes) => {
                heard.more(bytes.len());
                pulse.beat(at, transcript.feed(&bytes));
            }
            None => {
                pulse.beat(at, transcript.finish());
                break at;
            }
        }
        if transcript.is_over() {
            break at;
        }
    };
    let (flawed, spoke) = match transcript.close() {
        Close::Whole { flawed } => (flawed, true),
        Close::Hollow => (false, false),
        Close::Error => return Err(Trouble::Broken(Broken::ErrorInside)),
        Close::Cut => return Err(Trouble::Broken(Broken::Cut)),
        Close::Empty => return Err(Trouble::Broken(Broken::Empty)),
        Close::Garbage => return Err(Trouble::Broken(Broken::NoStream)),
    };
    drop(pulse);
    let rest = async { while let Ok(Some(_)) = reply.chunk().await {} };
    // the answer is all there: a body that does not end costs its connection, and nothing else
    let _ = tokio::time::timeout(DRAIN, rest).await;
    Ok((Streamed { used: transcript.used(), flawed }, spoke, at))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn tokens_are_told_some_at_a_time_and_none_is_lost() {
        let (out, seen) = mpsc::channel();
        let attempt = Attempt { seq: 7, nth: 0 };
        let mut pulse = Pulse::new(attempt, out);
        pulse.beat(Moment::from_millis(1), 0);
        // forty reads, each with two tokens, farther apart each time
        let mut at = Moment::from_millis(100);
        for n in 0..40u64 {
            at = at + Duration::from_millis(n);
            pulse.beat(at, 2);
        }
        drop(pulse);
        let (mut tokens, mut firsts, mut longest) = (0, Vec::new(), Duration::ZERO);
        for seen in seen.try_iter() {
            let Seen::Sighting(Sighting::Tokens { attempt: of, first, gaps, .. }) = seen else {
                panic!("{seen:?}")
            };
            assert_eq!(of, attempt);
            tokens += gaps.count() + u64::from(first.is_some());
            firsts.extend(first);
            longest = gaps.iter().map(|(gap, _)| gap).fold(longest, Duration::max);
        }
        assert_eq!((tokens, firsts), (80, vec![Moment::from_millis(100)]));
        assert_eq!(longest, Duration::from_millis(39));
    }

    #[test]
    fn a_stream_is_told_by_its_content_type() {
        for (kind, is) in [
            ("text/event-stream", true),
            ("Text/Event-Stream ; charset=utf-8", true),
            ("application/json", false),
            ("text/event-streams", false),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, http::HeaderValue::from_static(kind))]);
            assert_eq!(is_stream(&headers), is, "{kind}");
        }
        assert!(!is_stream(&HeaderMap::new()));
    }
}
