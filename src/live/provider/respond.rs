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
use crate::provider::wire::{RequestId, headers, openai};
use crate::provider::{Answer, Call, Config, Provider};
use crate::units::{Moment, Tokens};

const JSON: &str = "application/json";

/// The one mock's responder: it reads the body once and asks the machine.
pub(super) struct Responder {
    provider: Mutex<Provider>,
    deadline: DeadlineHeader,
    clock: Clock,
    run: u32,
    strangers: Arc<AtomicU64>,
    tell: Box<dyn Fn(Arrived) + Send + Sync>,
}

/// A chat completion request that can be answered.
struct Asked {
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
        Self { provider, deadline: deadline.clone(), clock, run, strangers, tell }
    }

    fn complete(&self, request: &Request) -> ResponseTemplate {
        let body = serde_json::from_slice::<openai::Request>(&request.body);
        let user = body.as_ref().ok().and_then(|body| body.user.as_deref());
        let known = self.identify(&request.headers, user);
        if known.is_none() {
            self.strangers.fetch_add(1, Ordering::Relaxed);
        }
        let asked = match body {
            Ok(body) => check(&body),
            Err(error) => Err((None, format!("We could not parse the JSON body of your request: {error}"))),
        };
        let asked = match asked {
            Ok(asked) => asked,
            Err((param, message)) => {
                self.tell_refused(known, request);
                let body = openai::error_body("invalid_request_error", None, param, &message);
                return ResponseTemplate::new(400).set_body_raw(body, JSON);
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

    fn write(&self, asked: &Asked, answer: &Answer) -> ResponseTemplate {
        match answer {
            Answer::Served { output, takes, limits, .. } => {
                let created = self.clock.unix().as_secs();
                let id = format!("{:016x}", self.clock.now().as_nanos());
                let body = openai::answer_body(&id, &asked.model, asked.prompt, *output, created);
                ResponseTemplate::new(200)
                    .append_headers(openai::limit_headers(limits))
                    .set_body_raw(body, JSON)
                    .set_delay(*takes)
            }
            Answer::Refused { retry_after, wanted, limits } => {
                let body = openai::quota_error(&asked.model, limits, *wanted, *retry_after);
                let millis = retry_after.as_nanos().div_ceil(1_000_000);
                ResponseTemplate::new(429)
                    .append_headers(openai::limit_headers(limits))
                    .insert_header("retry-after", millis.div_ceil(1_000).to_string())
                    .insert_header("retry-after-ms", millis.to_string())
                    .set_body_raw(body, JSON)
            }
            Answer::TooLarge { wanted, most } => {
                let message = format!(
                    "Request too large for {} on tokens per min (TPM): Limit {most}, Requested {wanted}. The input or \
                     output tokens must be reduced in order to run successfully.",
                    asked.model
                );
                let body = openai::error_body("tokens", Some("rate_limit_exceeded"), None, &message);
                ResponseTemplate::new(429).set_body_raw(body, JSON)
            }
        }
    }
}

impl Respond for Responder {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let path = request.url.path();
        let get = request.method == Method::GET || request.method == Method::HEAD;
        if path.ends_with("/chat/completions") && request.method == Method::POST {
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
                let message = format!("Invalid URL ({} {shown})", request.method);
                let body = openai::error_body("invalid_request_error", None, None, &message);
                ResponseTemplate::new(404).set_body_raw(body, JSON)
            }
        }
    }
}

/// What a request asks for; or the parameter at fault, if it is one, and what is wrong.
fn check(body: &openai::Request) -> Result<Asked, (Option<&'static str>, String)> {
    let bad = |param, message: &str| Err((Some(param), message.to_owned()));
    let Some(model) = body.model.as_deref().filter(|model| !model.is_empty()) else {
        return bad("model", "you must provide a model parameter");
    };
    if body.messages.as_ref().is_none_or(Vec::is_empty) {
        return bad("messages", "Missing required parameter: 'messages'.");
    }
    if body.stream == Some(true) {
        return bad("stream", "this provider gives whole answers only: leave out 'stream'");
    }
    let Some(max_output) = body.max_output().filter(|most| *most > Tokens::ZERO) else {
        return bad(
            "max_completion_tokens",
            "Invalid 'max_completion_tokens': this provider needs a value of at least 1.",
        );
    };
    let model = model.chars().take(100).collect();
    Ok(Asked { model, prompt: body.prompt_words(), max_output })
}
