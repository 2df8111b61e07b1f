//! How requests and answers look on the wire.
//!
//! To add an API: one file here that implements [`Api`], and one entry of [`APIS`].

pub mod anthropic;
mod api;
mod content;
mod deadline;
pub mod headers;
mod id;
pub mod openai;
pub mod sse;
mod transcript;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

pub use api::{ALL as APIS, Api, Asked, Frames, Made, Said, Told, Trouble};
pub use deadline::DeadlineForm;
pub use id::{RequestId, caller_of};
pub use transcript::{Close, Transcript};

/// Reads a number that may be absent, and names its field in what goes wrong.
fn named<'de, D: Deserializer<'de>>(name: &str, deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::deserialize(deserializer).map_err(|error| Error::custom(format_args!("`{name}`: {error}")))
}
