use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderMap, Method};
use serde_json::json;
use wiremock::{Request, Respond, ResponseTemplate};

use super::{Arrived, Carriers};
use crate::live::Clock;
use crate::observe::{Attempt, Sighting};
use crate::plan::DeadlineHeader;
use crate::provider::wire::{Api, Asked, Made, RequestId, Told, Trouble, headers};
use crate::provider::{Answer, Call, Config, Provider};
use crate::units::{Moment, Tokens};

const JSON: &str = "application/json";

/// The one mock's responder: it reads the body once and asks the machine.
pub(super) struct Responder {
    provider: Mutex<Provider>,
    api: &'static dyn Api,
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
}

impl Responder {
    pub(super) fn new(
        config: &Config,
        deadline: &DeadlineHeader,
        clock: Clock,
        run: u32,
        strangers: Arc<AtomicU64>,
        tell: Box<dyn Fn(Arrived) + Send + Sync>,
    ) -> Self {
        let provider = Mutex::new(Provider::new(config, clock.now()));
        Self { provider, api: config.api, deadline: deadline.clone(), clock, run, strangers, tell }
    }

    fn complete(&self, request: &Request) -> ResponseTemplate {
        let read = self.api.read(&request.body);
        let known =
            self.identify(&request.headers, read.as_ref().ok().and_then(|asked| asked.user.as_deref()));
        if known.is_none() {
            self.strangers.fetch_add(1, Ordering::Relaxed);
        }
        let asked = match read {
            Ok(asked) => answerable(&asked),
            Err(ref why) => Err(Trouble::NotJson(why)),
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err(trouble) => {
                self.tell_refused(known, request);
                return self.error(&trouble);
            }
        };
        let output = known.map_or(asked.max_output, |(id, _)| id.output);
        let call = Call { prompt: asked.prompt, max_output: asked.max_output, output };
        let (at, answer) = self.decide(call);
        let (until, charged) = match &answer {
            Answer::Served { charged, takes, .. } => (at + *takes, *charged),
            Answer::Refused { .. } | Answer::TooLarge { .. } => (at, Tokens::ZERO),
        };
        let refused = !matches!(answer, Answer::Served { .. });
        self.tell(known, request, at, until, charged, refused);
        self.write(&asked, &answer)
    }

    /// The machine's decision and its instant, which is read under the machine's lock so that time never runs back.
    fn decide(&self, call: Call) -> (Moment, Answer) {
        // a panic of another call leaves the machine whole: it has no half-done state
        let mut provider = self.provider.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let at = self.clock.now();
        (at, provider.call(at, call))
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

    fn tell_refused(&self, known: Option<(RequestId, Carriers)>, request: &Request) {
        let at = self.clock.now();
        self.tell(known, request, at, at, Tokens::ZERO, true);
    }

    fn tell(
        &self,
        known: Option<(RequestId, Carriers)>,
        request: &Request,
        at: Moment,
        until: Moment,
        charged: Tokens,
        refused: bool,
    ) {
        let Some((id, carriers)) = known else { return };
        let attempt = Attempt { seq: id.seq, nth: id.attempt };
        let budget = self.budget(&request.headers);
        let sighting = Sighting::AtProvider { attempt, at, until, charged, refused, budget };
        (self.tell)(Arrived { id, carriers, sighting });
    }

    fn budget(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = headers.get(&self.deadline.header)?.to_str().ok()?;
        self.deadline.form.read(text, self.clock.unix()).ok()
    }

    fn write(&self, asked: &Answerable, answer: &Answer) -> ResponseTemplate {
        let model = asked.model.as_str();
        match answer {
            Answer::Served { output, takes, limits, .. } => {
                let id = format!("{:016x}", self.clock.now().as_nanos());
                let (prompt, output, unix) = (asked.prompt, *output, self.clock.unix());
                let (headers, body) = self.api.answer(&Made { id: &id, model, prompt, output, limits, unix });
                ResponseTemplate::new(200).append_headers(headers).set_body_raw(body, JSON).set_delay(*takes)
            }
            Answer::Refused { retry_after, wanted, limits } => {
                let retry_after = Some(*retry_after);
                self.error(&Trouble::Quota { model, wanted: *wanted, limits, retry_after })
            }
            Answer::TooLarge { wanted, most } => {
                self.error(&Trouble::TooLarge { model, wanted: *wanted, most: *most })
            }
        }
    }

    fn error(&self, trouble: &Trouble<'_>) -> ResponseTemplate {
        let Told { status, headers, body } = self.api.error(trouble, self.clock.unix());
        ResponseTemplate::new(status).append_headers(headers).set_body_raw(body, JSON)
    }
}

impl Respond for Responder {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let path = request.url.path();
        let get = request.method == Method::GET || request.method == Method::HEAD;
        // gateways may put a prefix of their own before the path
        if path.ends_with(self.api.path().trim_start_matches("/v1")) && request.method == Method::POST {
            return self.complete(request);
        }
        match path {
            "/health" if get => ResponseTemplate::new(200).set_body_raw("ok\n", "text/plain"),
            "/v1/models" if get => {
                let models = json!({
                    "object": "list",
                    "data": [{ "id": "rehearsal", "object": "model", "created": 0, "owned_by": "tenfold" }],
                });
                ResponseTemplate::new(200).set_body_raw(models.to_string(), JSON)
            }
            _ => {
                let shown: String = path.chars().take(200).collect();
                self.error(&Trouble::NotFound { method: request.method.as_str(), path: &shown })
            }
        }
    }
}

/// What a request asks for, if it can be answered.
fn answerable(asked: &Asked) -> Result<Answerable, Trouble<'static>> {
    let Some(model) = asked.model.as_deref().filter(|model| !model.is_empty()) else {
        return Err(Trouble::Missing("model"));
    };
    if !asked.has_messages {
        return Err(Trouble::Missing("messages"));
    }
    if asked.stream {
        return Err(Trouble::Invalid("stream", "this provider gives whole answers only: leave out 'stream'"));
    }
    let field = asked.max_output_field;
    let Some(max_output) = asked.max_output else { return Err(Trouble::Missing(field)) };
    if max_output == Tokens::ZERO {
        return Err(Trouble::Invalid(field, "it is 0, and an answer has at least 1 token"));
    }
    let model = model.chars().take(100).collect();
    Ok(Answerable { model, prompt: asked.prompt, max_output })
}
