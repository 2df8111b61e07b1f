//! Mooncake: a JSON object a line, times in milliseconds from the beginning. What else stands there (the hashes of a
//! prompt's blocks) is not looked at.

use super::{Clock, Format, Layout};

pub(super) const FORMAT: Format = Format {
    name: "mooncake",
    about: "Mooncake: JSON lines of timestamp (ms), input_length, output_length",
    layout: Layout::JsonLines,
    columns: Some(["timestamp", "input_length", "output_length"]),
    clock: Some(Clock::Milliseconds),
};
