//! Instants, amounts and rates, and the typed reader every configuration is read with.
//!
//! Everything here is plain data with exact integer arithmetic: an instant is whole nanoseconds, an
//! amount whole tokens or bytes, a rate a fraction. Text forms carry their unit, always: a number
//! without one is refused where a unit is possible.
//!
//! This layer uses nothing else of the project.

mod amount;
mod dense;
mod duration;
mod exposition;
mod meter;
mod moment;
mod newest;
mod node;
mod normal;
mod rate;
mod read;
mod row;
mod share;
mod slab;

pub use amount::{Bytes, Tokens};
pub use dense::Dense;
pub use duration::{parse_duration, plain_duration, show_duration, span_of};
pub use exposition::Series;
pub use meter::{Level, Meter, Periods, Sliding, Window};
pub use moment::Moment;
pub use newest::Newest;
pub use node::{Key, Node, Place, Value};
pub use normal::normal_at;
pub use rate::{Rate, Ratio};
pub use read::{Fault, Faults, MapReader, Read, Reader, nearest};
pub use row::Row;
pub use share::Share;
