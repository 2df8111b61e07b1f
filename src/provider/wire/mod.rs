//! How requests and answers look on the wire.

mod id;
pub mod openai;

pub use id::{RequestId, caller_of};
