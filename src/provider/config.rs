use std::time::Duration;

use super::wire::Api;
use super::wire::openai::OpenAi;
use crate::units::{Rate, Ratio, Read, Reader, Tokens};

/// The provider's part of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Address to listen on; port 0 takes a free one.
    pub listen: String,
    /// The URL the gateway shall call, where it differs from the listening address.
    pub advertise: Option<String>,
    /// The shell that serves it.
    pub engine: Engine,
    /// The wire format.
    pub api: &'static dyn Api,
    /// How tokens are counted.
    pub count: Count,
    /// What may be used.
    pub quota: Quota,
    /// How long an answer takes.
    pub service: Service,
    /// How many answers are worked on at once, and how many wait for that; `None` for no limit.
    pub slots: Option<Slots>,
    /// When less can be served than usual, in order of their beginnings.
    pub faults: Vec<Fault>,
}

/// The shell around the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// A server of our own: whole answers and streamed ones, and memory that does not grow.
    Stream,
    /// A wiremock server: whole answers.
    Wiremock,
}

/// How both sides count tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// A token is a blank-separated word.
    Words,
    /// By the tokenizer `cl100k_base`: prompts are made of words that are one of its tokens each.
    Cl100kBase,
    /// By the tokenizer `o200k_base`, in the same way.
    O200kBase,
}

/// How the quota's window moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// A bucket that fills continuously.
    Bucket,
}

/// What a request is charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charge {
    /// Prompt and `max_tokens`, at admission.
    Reservation,
}

/// The token quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Tokens that may be used in the long run.
    pub tokens: Rate,
    /// How much of the rate may be used at once, as a span of it.
    pub burst: Duration,
    /// How the window moves.
    pub window: Window,
    /// What is charged.
    pub charge: Charge,
}

impl Quota {
    /// The burst in tokens.
    pub fn burst_tokens(&self) -> Tokens {
        Tokens::new(self.tokens.whole_in(self.burst))
    }

    /// The same quota with its rate times `ratio`, in whole tokens a minute; the burst, a span of it, shrinks alike.
    pub fn scaled(&self, ratio: Ratio) -> Self {
        Self { tokens: self.tokens.scaled(ratio).whole_per_minute(), ..*self }
    }
}

/// How long an answer takes: a time to the first token and a time for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// From the request to the first token.
    pub first_token: Duration,
    /// For each token of the answer.
    pub per_token: Duration,
    /// How the time spreads around that.
    pub law: Law,
}

/// How service times spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// Not at all.
    Fixed,
    /// Exponentially, around the time of the answer's length as the mean.
    Exponential,
}

/// Places for answers that are worked on, with a queue of their own before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// How many.
    pub count: u32,
    /// How many calls may wait for one; beyond it a call is refused.
    pub queue: u32,
}

/// A stretch of time in which the quota is smaller.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fault {
    /// When it begins, from the beginning of the run.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// The quota's rate, as a part of the usual one. What may be used at once stays.
    pub capacity: Ratio,
}

impl Service {
    /// The time of an answer of `output` tokens for `draw` in `[0, 1)`.
    pub fn drawn(&self, output: Tokens, draw: f64) -> Duration {
        let mean = self.time_for(output);
        match self.law {
            Law::Fixed => mean,
            // by inversion: 1 - draw lies in (0, 1], so this is at most 37 means
            Law::Exponential => mean.mul_f64(-(1.0 - draw).ln()),
        }
    }

    /// The time from one token to the next in an answer of `output` tokens that takes `takes` in all. Where times spread,
    /// the first token's part and the others' stay in proportion.
    pub fn gap(&self, output: Tokens, takes: Duration) -> Duration {
        let mean = self.time_for(output).as_secs_f64();
        match self.law {
            Law::Exponential if mean > 0.0 => takes.mul_f64(self.per_token.as_secs_f64() / mean),
            Law::Fixed | Law::Exponential => self.per_token,
        }
    }

    /// The whole time of an answer of `output` tokens; its mean where times spread.
    pub fn time_for(&self, output: Tokens) -> Duration {
        let tokens = self.per_token.as_nanos().saturating_mul(u128::from(output.get()));
        self.first_token.saturating_add(Duration::from_nanos(u64::try_from(tokens).unwrap_or(u64::MAX)))
    }
}

impl Read for Config {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let listen = map.or("listen", "127.0.0.1:0".to_owned());
        let advertise = map.get("advertise");
        let engine = map.or("engine", Engine::Wiremock);
        let api = map.or("api", &OpenAi as &dyn Api);
        let count = map.or("count", Count::Words);
        let quota = map.need("quota");
        let service = map.need("service");
        let slots = match map.reader("slots") {
            Some(reader) => Slots::read(&reader).map(Some),
            None => Some(None),
        };
        let faults = map.or("faults", Vec::<Fault>::new());
        let listen: String = listen?;
        if listen.parse::<std::net::SocketAddr>().is_err() {
            map.here().fault(format!("`listen: {listen}` is no address with a port (write 127.0.0.1:0)"));
            return None;
        }
        Some(Self {
            listen,
            advertise,
            engine: engine?,
            api: api?,
            count: count?,
            quota: quota?,
            service: service?,
            slots: slots?,
            faults: in_order(faults?, map.here())?,
        })
    }
}

/// The faults by their beginnings; one that begins before another has ended is reported.
fn in_order(mut faults: Vec<Fault>, here: &Reader<'_>) -> Option<Vec<Fault>> {
    faults.sort_by_key(|fault| fault.at);
    if faults.windows(2).any(|pair| pair[0].at.saturating_add(pair[0].lasts) > pair[1].at) {
        here.fault("`faults` overlap: one ends before the next begins");
        return None;
    }
    Some(faults)
}

impl Read for Slots {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (count, queue) = (map.need::<u32>("count"), map.or("queue", u32::MAX));
        let slots = Self { count: count?, queue: queue? };
        if slots.count == 0 || slots.count > 1_000_000 {
            map.here().fault("`count` is 1 to 1,000,000 slots");
            return None;
        }
        Some(slots)
    }
}

impl Read for Fault {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let (at, lasts) = (map.need("at"), map.need::<Duration>("for"));
        let capacity = map.need::<Ratio>("capacity");
        let fault = Self { at: at?, lasts: lasts?, capacity: capacity? };
        if fault.lasts.is_zero() {
            map.here().fault("a fault lasts more than nothing");
            return None;
        }
        Some(fault)
    }
}

macro_rules! read_named {
    ($type:ident, $what:literal, $($name:literal => $variant:ident),+) => {
        impl Read for $type {
            fn read(reader: &Reader<'_>) -> Option<Self> {
                match reader.one_of($what, &[$($name),+])? {
                    $(($name, None) => Some(Self::$variant),)+
                    (name, _) => {
                        reader.fault(format!("`{name}` has no settings"));
                        None
                    }
                }
            }
        }
    };
}

read_named!(Engine, "engine", "stream" => Stream, "wiremock" => Wiremock);
read_named!(Law, "law of service times", "exponential" => Exponential, "fixed" => Fixed);
read_named!(
    Count, "way to count tokens",
    "cl100k_base" => Cl100kBase, "o200k_base" => O200kBase, "words" => Words
);
read_named!(Window, "quota window", "bucket" => Bucket);
read_named!(Charge, "way to charge", "reservation" => Reservation);

impl Read for Quota {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let tokens = map.need::<Tokens>("tokens_per_minute");
        let burst = map.or("burst", Duration::from_secs(1));
        let window = map.or("window", Window::Bucket);
        let charge = map.or("charge", Charge::Reservation);
        let Some(rate) = Rate::per_minute(tokens?.get()) else {
            map.here().fault("`tokens_per_minute` is zero or out of range: nothing could ever be served");
            return None;
        };
        Some(Self { tokens: rate, burst: burst?, window: window?, charge: charge? })
    }
}

impl Read for Service {
    fn read(reader: &Reader<'_>) -> Option<Self> {
        let mut map = reader.map()?;
        let first_token = map.need("first_token");
        let per_token = map.or("per_token", Duration::ZERO);
        let law = map.or("law", Law::Fixed);
        Some(Self { first_token: first_token?, per_token: per_token?, law: law? })
    }
}
