//! One request through the whole chain before the load: does it come through, and which carrier of its id survives?

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use tokio::runtime::Runtime;

use super::body::{Template, Written};
use super::listening::{self, Pulse};
use super::request::{Errand, Wire};
use super::run::Stop;
use super::sender::Outgoing;
use super::target::{Target, pause};
use super::trouble::Trouble;
use super::{Arrived, Carriers, Clock, LiveError, ProviderShell, client, reading};
use crate::observe::{Attempt, Broken};
use crate::plan::Plan;
use crate::units::{Moment, show_duration};
use crate::workload::{Class, Skew};

/// The canary's number: no arrival reaches it.
pub(super) const SEQ: u64 = (1 << 40) - 1;
/// The least time it is given.
const PATIENCE: Duration = Duration::from_secs(5);
/// From one to the next while a target is waited for.
const AGAIN: Duration = Duration::from_millis(250);
/// From one look whether to stop to the next.
const LOOK: Duration = Duration::from_millis(50);
/// How long the provider's side of an answered canary may be on its way.
const HEARD: Duration = Duration::from_millis(500);

/// What a canary needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain<'a> {
    pub(super) plan: &'a Plan,
    pub(super) wire: &'a Wire,
    pub(super) target: &'a Target,
    pub(super) provider: &'a ProviderShell,
    /// Canaries that reached the provider.
    pub(super) heard: &'a Receiver<Arrived>,
    pub(super) clock: Clock,
    pub(super) runtime: &'a Runtime,
}

/// Sends canaries until one comes through, for at most `wait_ready`; without it there is one. Gives the carriers of
/// the id that survived.
pub(super) fn fly(
    chain: Chain<'_>,
    wait_ready: Option<Duration>,
    stop: &Stop,
) -> Result<Carriers, LiveError> {
    let give_up = wait_ready.map(|wait| chain.clock.now() + wait);
    for nth in 0..=u16::MAX {
        match once(chain, nth % 256, stop) {
            Ok(carriers) => return Ok(carriers),
            Err(_) if stop.asked() => return Err(LiveError::Interrupted),
            Err(lost) if give_up.is_none_or(|at| chain.clock.now() + AGAIN > at) => {
                let words = chain.target.last_words();
                return Err(LiveError::Canary(format!("{lost}{words}")));
            }
            Err(_) => pause(chain.clock, AGAIN),
        };
    }
    Err(LiveError::Canary("65,536 of them were sent and none came through".into()))
}

/// One canary; the error says what was seen and the way out.
fn once(chain: Chain<'_>, nth: u16, stop: &Stop) -> Result<Carriers, String> {
    let strangers = chain.provider.strangers();
    let answer = chain.runtime.block_on(async {
        tokio::select! {
            answer = exchange(chain, nth) => answer,
            () = asked(stop) => Err(Lost::Silence(Duration::ZERO)),
        }
    });
    let (base, provider) = (&chain.target.base, chain.provider.url());
    let heard = chain.heard.recv_timeout(if answer.is_ok() { HEARD } else { Duration::ZERO }).ok();
    let seen = if heard.is_some() { "the provider did see it" } else { "the provider never saw it" };
    match answer {
        Ok((200, true, _)) => match heard {
            Some(arrived) if arrived.carriers != Carriers::default() => Ok(arrived.carriers),
            _ if chain.provider.strangers() > strangers => Err(format!(
                "{base} answered, and called the provider without its id: let the gateway pass on x-request-id, \
                 traceparent or the body's `user`"
            )),
            _ => {
                Err(format!("{base} answered 200, but not from our provider: set its upstream to {provider}"))
            }
        },
        Ok((status, _, body)) => Err(format!(
            "{base} answered {status} where a completion was due, and {seen}: check target.request (path, model, \
             headers) and that its upstream is {provider}; it said: {}",
            reading::escaped(&body, 200)
        )),
        Err(Lost::Silence(span)) => Err(format!(
            "no answer from {base} within {}, and {seen}: check that its upstream is {provider}",
            show_duration(span)
        )),
        Err(Lost::Text(error)) => Err(error.to_string()),
        Err(Lost::Trouble(Trouble::Exhausted)) => {
            Err("this machine has no port, descriptor or memory left to call it with".into())
        }
        Err(Lost::Trouble(Trouble::Broken(
            how @ (Broken::Refused | Broken::Unresolved | Broken::Connect | Broken::TimedOut),
        ))) => Err(format!(
            "no connection to {base} could be made ({}): is it running there? (--wait-ready 60s waits for it)",
            how.words()
        )),
        Err(Lost::Trouble(Trouble::Tls(tls))) => {
            let (what, way_out) = tls.words();
            Err(format!("{base} {what}: {way_out}"))
        }
        Err(Lost::Trouble(Trouble::Broken(how))) => Err(format!(
            "{base} {}, and {seen}: is it an HTTP server, and is its upstream {provider}?",
            match how {
                Broken::TooLarge => "answered with more than 1 MiB",
                Broken::Cut => "gave an answer that is cut short or no HTTP",
                Broken::NoStream => "gave no stream, though one was asked for",
                Broken::Empty => "began a stream that ended before anything came",
                Broken::ErrorInside => "gave an error inside a success",
                Broken::Reset => "reset the connection",
                _ => "closed the connection without an answer",
            }
        )),
    }
}

/// Ends soon after someone has asked to stop.
async fn asked(stop: &Stop) {
    while !stop.asked() {
        tokio::time::sleep(LOOK).await;
    }
}

/// Why a canary has no answer.
enum Lost {
    /// None came in time.
    Silence(Duration),
    /// The exchange broke.
    Trouble(Trouble),
    /// There is no prompt to send.
    Text(LiveError),
}

/// Status, whether it is a completion, and the body's text.
async fn exchange(chain: Chain<'_>, nth: u16) -> Result<(u16, bool, String), Lost> {
    // by a clock that is right: whether the target is there is asked, and not what it believes
    let class = &Class { clock: Skew::None, ..chain.plan.requests.classes()[0].clone() };
    let patience = class.deadline.max(PATIENCE);
    let id = chain.wire.id(Attempt { seq: SEQ, nth }, class.output.least());
    let text = id.to_string();
    // nobody joins a canary: what its body says of being written is not listened to
    let written = Written::new(Attempt { seq: SEQ, nth }, chain.clock, mpsc::channel().0);
    let body = Template::new(
        chain.plan.provider.api,
        &chain.plan.target.request.model,
        class,
        chain.plan.provider.count,
    )
    .map_err(Lost::Text)?
    .body(text.clone(), class.prompt.least(), Arc::clone(&written));
    let unix = chain.clock.unix();
    let errand = Errand { id: &id, text: &text, class, remaining: patience, unix, key: None };
    let headers = chain.wire.headers(errand);
    let heard = client::Heard::default();
    let talk = async {
        let mut reply = chain.wire.sender.send(Box::new(Outgoing { headers, body })).await?;
        let (status, headers) = (reply.status, std::mem::take(&mut reply.headers));
        let (api, expect) = (chain.plan.provider.api, &chain.plan.expect.refusal);
        if class.stream && status == 200 {
            // nobody listens to its tokens
            let pulse = Pulse::new(Attempt { seq: SEQ, nth }, mpsc::channel().0);
            let reply = (reply, &heard);
            let (answer, _) = listening::answer(api, reply, &headers, pulse, expect, chain.clock).await?;
            return Ok((status, answer.usable, String::new()));
        }
        let body = client::whole_body(reply, &heard).await?;
        let answer = reading::answer(api, status, &headers, &body, expect);
        Ok((status, answer.usable, String::from_utf8_lossy(&body).into_owned()))
    };
    let until: Moment = chain.clock.now() + patience;
    match tokio::time::timeout_at(chain.clock.tokio_instant(until), talk).await {
        Ok(result) => result.map_err(Lost::Trouble),
        Err(_) => Err(Lost::Silence(patience)),
    }
}
