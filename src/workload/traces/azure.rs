//! The Azure LLM inference traces of 2023 and later years: dates in a CSV. Those of 2023 have seven digits of a second
//! and no zone, later ones six digits and `+00:00`; both are read.

use super::{Clock, Format, Layout};

pub(super) const FORMAT: Format = Format {
    name: "azure",
    about: "Azure LLM inference, 2023 and later: CSV of TIMESTAMP, ContextTokens, GeneratedTokens",
    layout: Layout::Csv,
    columns: Some(["TIMESTAMP", "ContextTokens", "GeneratedTokens"]),
    clock: Some(Clock::Date),
};
