mod fault;
mod quota;
mod service;

pub use fault::{Fault, FaultKind, What};
pub use quota::{Charge, Quota};
pub(super) use service::times;
pub use service::{Law, Service, Slots, Strain};

use super::wire::Api;
use super::wire::openai::OpenAi;
use crate::units::{Moment, Read, Reader};

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
    /// When it is not as usual, in order of their beginnings.
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

impl Engine {
    /// Its name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Wiremock => "wiremock",
        }
    }
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

impl Config {
    /// The part of the usual quota that gets answers at `at`, of a run that begins at the epoch: 1 without a fault.
    pub fn part_at(&self, at: Moment) -> f64 {
        fault::part_at(self.faults.iter(), at.since(Moment::ZERO))
    }

    /// The part of the usual quota that is granted at `at`, of a run that begins at the epoch.
    pub fn granted_at(&self, at: Moment) -> f64 {
        let quota = self.faults.iter().filter(|fault| matches!(fault.what, What::Capacity(_)));
        fault::part_at(quota, at.since(Moment::ZERO))
    }

    /// The instants at which something begins to be wrong, or ends to be, in order.
    pub fn turns(&self) -> Vec<Moment> {
        let ends = |fault: &Fault| [fault.at, fault.end()].map(|after| Moment::ZERO + after);
        let mut turns: Vec<_> = self.faults.iter().flat_map(ends).collect();
        turns.sort_unstable();
        turns.dedup();
        turns
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
        let (engine, faults) = (engine?, fault::in_order(faults?, map.here())?);
        if let Some(fault) =
            faults.iter().find(|fault| fault.what.kind().needs_stream && engine == Engine::Wiremock)
        {
            let name = fault.what.kind().name;
            map.here().fault(format!(
                "`engine: wiremock` sends whole answers only, so it knows no `{name}`: take `engine: stream`"
            ));
            return None;
        }
        let listen: String = listen?;
        if listen.parse::<std::net::SocketAddr>().is_err() {
            map.here().fault(format!("`listen: {listen}` is no address with a port (write 127.0.0.1:0)"));
            return None;
        }
        Some(Self {
            listen,
            advertise,
            engine,
            api: api?,
            count: count?,
            quota: quota?,
            service: service?,
            slots: slots?,
            faults,
        })
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
read_named!(
    Count, "way to count tokens",
    "cl100k_base" => Cl100kBase, "o200k_base" => O200kBase, "words" => Words
);
read_named!(Charge, "way to charge", "actual" => Actual, "reservation" => Reservation);
