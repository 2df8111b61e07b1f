//! How requests and answers look on the wire.

mod deadline;
pub mod headers;
mod id;
pub mod openai;

pub use deadline::DeadlineForm;
pub use id::{RequestId, caller_of};
