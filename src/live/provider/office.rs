use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method};
use serde_json::json;

use super::{Arrived, Carriers};
use crate::live::Clock;
use crate::observe::{Attempt, Sighting};
use crate::plan::DeadlineHeader;
use crate::provider::wire::{Api, Asked, Frames, Made, RequestId, Told, Trouble, headers};
use crate::provider::{self, Answer, Call, Config, Engine, Failing, Flow, Limits, Provider, Spoilt};
use crate::units::{Moment, Tokens};

const JSON: &str = "application/json";

/// What comes instead of an answer that is garbage.
const GARBAGE: &str = "<html><body>It works!</body></html>";

/// What both shells do with a request: they read its body once and ask the machine.
pub(super) struct Office {
    provider: Arc<Mutex<Provider>>,
    api: &'static dyn Api,
    streams: bool,
    deadline: DeadlineHeader,
    clock: Clock,
    run: u32,
    strangers: Arc<AtomicU64>,
    tell: Box<dyn Fn(Arrived) + Send + Sync>,
}

/// A request that can be answered.
struct Answerable {
    model: String,
    prompt: Tokens,
    max_output: Tokens,
    stream: bool,
    stream_usage: bool,
}

/// A request as it came.
pub(super) struct Came<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

/// What it gets.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) kind: &'static str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Answered,
    /// When the whole of it is to be there.
    pub(super) until: Moment,
    /// What is being made, if something is.
    pub(super) work: Option<Work>,
    /// How it ends.
    pub(super) end: End,
}

/// How a reply ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// As it should.
    Whole,
    /// The connection ends at this instant, in the middle of the body.
    Cut(Moment),
    /// The connection is reset before anything comes.
    Reset,
    /// Nothing ever comes.
    Never,
}

/// What the machine decided, when, and what was left of the quota then.
struct Decided {
    at: Moment,
    answer: Answer,
    limits: Limits,
}

/// An answer that is being made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Work {
    /// For which request of this run; `None` for a stranger's.
    id: Option<(RequestId, Carriers)>,
    prompt: Tokens,
    flow: Flow,
}

/// The body of a reply.
#[derive(Debug)]
pub(super) enum Answered {
    /// All at once.
    Whole(String),
    /// In pieces.
    Stream { frames: Frames, flow: Flow },
}

impl Office {
    pub(super) fn new(
        config: &Config,
        deadline: &DeadlineHeader,
        clock: Clock,
        run: u32,
        strangers: Arc<AtomicU64>,
        tell: Box<dyn Fn(Arrived) + Send + Sync>,
    ) -> Self {
        let mut provider = Provider::new(config, clock.now());
        // no fault before the load has begun
        provider.begin(Moment::NEVER);
        let provider = Arc::new(Mutex::new(provider));
        let streams = config.engine == Engine::Stream;
        Self { provider, api: config.api, streams, deadline: deadline.clone(), clock, run, strangers, tell }
    }

    /// The answer to a request, which is told to the run.
    pub(super) fn reply(&self, came: &Came<'_>) -> Reply {
        let get = *came.method == Method::GET || *came.method == Method::HEAD;
        // gateways may put a prefix of their own before the path
        let ends = self.api.path().trim_start_matches("/v1");
        if came.path.ends_with(ends) && *came.method == Method::POST {
            return self.complete(came);
        }
        match came.path {
            "/health" if get => self.page(200, "text/plain", "ok\n".to_owned()),
            "/v1/models" if get => {
                let models = json!({
                    "object": "list",
                    "data": [{ "id": "rehearsal", "object": "model", "created": 0, "owned_by": "tenfold" }],
                });
                self.page(200, JSON, models.to_string())
            }
            path => {
                let shown: String = path.chars().take(200).collect();
                self.error(&Trouble::NotFound { method: came.method.as_str(), path: &shown })
            }
        }
    }

    fn complete(&self, came: &Came<'_>) -> Reply {
        let read = self.api.read(came.body);
        let user = read.as_ref().ok().and_then(|asked| asked.user.as_deref());
        let known = self.identify(came.headers, user);
        if known.is_none() {
            self.strangers.fetch_add(1, Ordering::Relaxed);
        }
        let asked = match &read {
            Ok(asked) => answerable(asked, self.streams),
            Err(why) => Err(Trouble::NotJson(why)),
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(trouble) => {
                self.tell(known, came, self.clock.now(), None);
                return self.error(&trouble);
            }
        };
        let output = known.map_or(asked.max_output, |(id, _)| id.output);
        let Some(decided) = self.decide(&asked, output, key(came.headers)) else {
            self.tell(known, came, self.clock.now(), None);
            return self.error(&Trouble::UnknownKey);
        };
        self.tell(known, came, decided.at, Some(&decided.answer));
        self.write(known, &asked, &decided)
    }

    /// The machine, for whoever knows when the load begins.
    pub(super) fn machine(&self) -> Arc<Mutex<Provider>> {
        Arc::clone(&self.provider)
    }

    pub(super) const fn clock(&self) -> Clock {
        self.clock
    }

    /// Whoever wanted this answer has left before its end. The run is told what it cost until now.
    pub(super) fn cut_off(&self, work: &Work) {
        let Some((id, carriers)) = work.id else { return };
        let at = self.clock.now();
        let spent = work.prompt + Tokens::new(work.flow.by(at));
        let sighting = Sighting::CutOff { attempt: attempt(id), at, spent };
        (self.tell)(Arrived { id, carriers, sighting });
    }

    /// The machine's decision and its instant, which is read under the machine's lock so that time never runs back; `None`
    /// if nobody has this key.
    fn decide(&self, asked: &Answerable, output: Tokens, key: Option<&str>) -> Option<Decided> {
        // a panic of another call leaves the machine whole: it has no half-done state
        let mut provider = self.provider.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let account = provider.account_of(key)?;
        let at = self.clock.now();
        let call = Call { prompt: asked.prompt, max_output: asked.max_output, output, account };
        let answer = provider.call(at, call);
        Some(Decided { at, answer, limits: provider.limits(account) })
    }

    /// The id of a request of this run, and which carriers brought it.
    fn identify(&self, came: &HeaderMap, user: Option<&str>) -> Option<(RequestId, Carriers)> {
        let header = |name: &str| came.get(name).and_then(|value| value.to_str().ok());
        let ours = |id: Option<RequestId>| id.filter(|id| id.run == self.run);
        let by_request_id = ours(header(headers::REQUEST_ID).and_then(RequestId::parse));
        let by_traceparent = ours(header("traceparent").and_then(RequestId::parse_traceparent));
        let by_user = ours(user.and_then(RequestId::parse));
        let carriers = Carriers {
            request_id: by_request_id.is_some(),
            traceparent: by_traceparent.is_some(),
            user: by_user.is_some(),
        };
        Some((by_request_id.or(by_traceparent).or(by_user)?, carriers))
    }

    /// Tells the run of a request, and of its `answer` if it was one that can be answered.
    fn tell(
        &self,
        known: Option<(RequestId, Carriers)>,
        came: &Came<'_>,
        at: Moment,
        answer: Option<&Answer>,
    ) {
        let Some((id, carriers)) = known else { return };
        let attempt = attempt(id);
        let budget = self.budget(came.headers);
        let (taken, faulty) = (answer.and_then(Answer::taken), answer.is_some_and(Answer::is_faulty));
        let (works, charged) = taken.unwrap_or_default();
        let (until, refused) = (at + works, taken.is_none());
        let sighting = Sighting::AtProvider { attempt, at, until, charged, refused, faulty, budget };
        (self.tell)(Arrived { id, carriers, sighting });
    }

    fn budget(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = headers.get(&self.deadline.header)?.to_str().ok()?;
        self.deadline.form.told(text, self.clock.unix())
    }

    fn write(&self, known: Option<(RequestId, Carriers)>, asked: &Answerable, decided: &Decided) -> Reply {
        let Decided { at, answer, limits } = decided;
        let made = |work, end| self.made(known, asked, decided, work, end);
        let model = asked.model.as_str();
        match *answer {
            Answer::Served(work) => made(work, End::Whole),
            Answer::Spoilt(work, Spoilt::Cut { after }) => made(work, End::Cut(*at + after)),
            Answer::Spoilt(work, Spoilt::Stall) => made(work, End::Never),
            Answer::Spoilt(work, Spoilt::Garbage) => {
                Reply { until: *at + work.takes, ..self.page(200, "text/html", GARBAGE.to_owned()) }
            }
            Answer::Failed(Failing::Error { status, retry_after }) => {
                self.error(&Trouble::Failing { status, retry_after })
            }
            Answer::Failed(Failing::Reset) => {
                Reply { end: End::Reset, ..self.page(200, JSON, String::new()) }
            }
            Answer::Refused { retry_after, wanted, .. } => {
                self.error(&Trouble::Quota { model, wanted, limits, retry_after: Some(retry_after) })
            }
            Answer::TooLarge { wanted, most } => self.error(&Trouble::TooLarge { model, wanted, most }),
        }
    }

    /// An answer that is made from the decision on.
    fn made(
        &self,
        known: Option<(RequestId, Carriers)>,
        asked: &Answerable,
        Decided { at, limits, .. }: &Decided,
        work: provider::Work,
        end: End,
    ) -> Reply {
        let id = format!("{:016x}", self.clock.now().as_nanos());
        let (prompt, output, unix) = (asked.prompt, work.output, self.clock.unix());
        let made = Made { id: &id, model: &asked.model, prompt, output, limits, unix };
        let until = *at + work.takes;
        let flow = Flow { until, gap: work.gap, tokens: output.get() };
        let (kind, body) = if asked.stream {
            let frames = self.api.frames(&made, asked.stream_usage);
            ("text/event-stream; charset=utf-8", Answered::Stream { frames, flow })
        } else {
            (JSON, Answered::Whole(self.api.answer(&made)))
        };
        let headers = self.api.headers_of_answer(&made);
        let work = Some(Work { id: known, prompt, flow });
        Reply { status: 200, kind, headers, body, until, work, end }
    }

    fn error(&self, trouble: &Trouble<'_>) -> Reply {
        let Told { status, headers, body } = self.api.error(trouble, self.clock.unix());
        Reply { headers, ..self.page(status, JSON, body) }
    }

    fn page(&self, status: u16, kind: &'static str, body: String) -> Reply {
        let (body, until) = (Answered::Whole(body), self.clock.now());
        Reply { status, kind, headers: Vec::new(), body, until, work: None, end: End::Whole }
    }
}

/// The key of a request, as either API carries it.
fn key(headers: &HeaderMap) -> Option<&str> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let bearer = || text("authorization")?.strip_prefix("Bearer ");
    text("x-api-key").or_else(bearer)
}

fn attempt(id: RequestId) -> Attempt {
    Attempt { seq: id.seq, nth: id.attempt }
}

/// What a request asks for, if it can be answered.
fn answerable(asked: &Asked, streams: bool) -> Result<Answerable, Trouble<'static>> {
    let Some(model) = asked.model.as_deref().filter(|model| !model.is_empty()) else {
        return Err(Trouble::Missing("model"));
    };
    if !asked.has_messages {
        return Err(Trouble::Missing("messages"));
    }
    if asked.stream && !streams {
        let why =
            "this provider gives whole answers only: leave out 'stream', or set provider.engine to stream";
        return Err(Trouble::Invalid("stream", why));
    }
    let field = asked.max_output_field;
    let Some(max_output) = asked.max_output else { return Err(Trouble::Missing(field)) };
    if max_output == Tokens::ZERO {
        return Err(Trouble::Invalid(field, "it is 0, and an answer has at least 1 token"));
    }
    let model = model.chars().take(100).collect();
    let (prompt, stream, stream_usage) = (asked.prompt, asked.stream, asked.stream_usage);
    Ok(Answerable { model, prompt, max_output, stream, stream_usage })
}
